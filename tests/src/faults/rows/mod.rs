//! All rows.

mod beginning;
mod meaning;
mod message;
mod process;
mod status;

use super::{Era, Exclusion, Expectation, Group, Row, Wire};

const ALL: &[Wire] = &Wire::ALL;
const STDIO: &[Wire] = &[Wire::Stdio];
const NETWORK: &[Wire] = &[Wire::Sse, Wire::WebSocket, Wire::Events, Wire::Document];
const HTTP: &[Wire] = &[Wire::Events, Wire::Document];
/// Those on which all messages share one stream.
const SHARED: &[Wire] = &[Wire::Stdio, Wire::Sse, Wire::WebSocket];

/// The whole table.
pub fn rows() -> Vec<Row> {
    [beginning::rows(), message::rows(), meaning::rows(), status::rows(), process::rows()]
        .into_iter()
        .flatten()
        .collect()
}

fn row(group: Group, fault: impl Into<String>, script: impl Into<String>) -> Row {
    let (fault, script) = (fault.into(), script.into());
    Row { group, fault, script, wants: Vec::new(), absent: Vec::new() }
}

impl Row {
    /// What is expected on these wires in both eras.
    fn want_on(mut self, wires: &'static [Wire], session: &'static str, host: &'static str) -> Row {
        self.wants.push(Expectation { wires, era: None, session, host, gateway: None });
        self
    }

    /// What is expected on these wires in one era. It goes before what is expected in both.
    fn want_in(mut self, era: Era, wires: &'static [Wire], session: &'static str, host: &'static str) -> Row {
        self.wants.insert(0, Expectation { wires, era: Some(era), session, host, gateway: None });
        self
    }

    /// What a client of the gateway is told, where that is not what the last expectation says of the host.
    fn at_gateway(mut self, told: &'static str) -> Row {
        if let Some(want) = self.wants.last_mut() {
            want.gateway = Some(told);
        }
        self
    }

    /// Why it is no fault on these wires.
    fn absent_on(mut self, wires: &'static [Wire], why: &'static str) -> Row {
        self.absent.push(Exclusion { wires, why });
        self
    }
}
