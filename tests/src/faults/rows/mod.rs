//! The rows of the table.

mod content;
mod message;
mod process;
mod start;
mod status;

use super::{Era, Exclusion, Expectation, FaultRow, Group, Transport};

const ALL: &[Transport] = &Transport::ALL;
const STDIO: &[Transport] = &[Transport::Stdio];
const NETWORK: &[Transport] = &[Transport::Sse, Transport::WebSocket, Transport::Events, Transport::Document];
const HTTP: &[Transport] = &[Transport::Events, Transport::Document];
/// Transports with one stream for all messages.
const SHARED: &[Transport] = &[Transport::Stdio, Transport::Sse, Transport::WebSocket];

/// All rows.
pub fn rows() -> Vec<FaultRow> {
    [start::rows(), message::rows(), content::rows(), status::rows(), process::rows()]
        .into_iter()
        .flatten()
        .collect()
}

fn row(group: Group, fault: impl Into<String>, script: impl Into<String>) -> FaultRow {
    let (fault, script) = (fault.into(), script.into());
    FaultRow { group, fault, script, expectations: Vec::new(), exclusions: Vec::new() }
}

impl FaultRow {
    /// Adds the expected outcome on these transports in both eras.
    fn want_on(
        mut self,
        transports: &'static [Transport],
        session: &'static str,
        host: &'static str,
    ) -> FaultRow {
        self.expectations.push(Expectation { transports, era: None, session, host, gateway: None });
        self
    }

    /// Adds the expected outcome in one era, which precedes that of both eras.
    fn want_in(
        mut self,
        era: Era,
        transports: &'static [Transport],
        session: &'static str,
        host: &'static str,
    ) -> FaultRow {
        self.expectations.insert(0, Expectation { transports, era: Some(era), session, host, gateway: None });
        self
    }

    /// Sets the outcome of a gateway client, if it differs from the host.
    fn at_gateway(mut self, told: &'static str) -> FaultRow {
        if let Some(want) = self.expectations.last_mut() {
            want.gateway = Some(told);
        }
        self
    }

    /// Excludes these transports, with the reason.
    fn absent_on(mut self, transports: &'static [Transport], reason: &'static str) -> FaultRow {
        self.exclusions.push(Exclusion { transports, reason });
        self
    }
}
