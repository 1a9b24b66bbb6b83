//! The fault matrix: faults of a server, on each transport, with the expected outcome at each API.
//!
//! Invariant: every fault has an expectation for each transport and era, or a reason for its exclusion. Both the test
//! and the page of docs/ are generated from this table.

mod machine;
mod page;
mod rows;
mod script;

pub use machine::*;
pub use page::{Totals, page, totals};
pub use rows::rows;
pub use script::{At, Script, ScriptError, Step};

/// A transport; for Streamable HTTP with the kind of response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Stdio,
    /// HTTP with server-sent events.
    Sse,
    /// WebSocket.
    WebSocket,
    /// Streamable HTTP with event streams as responses.
    Events,
    /// Streamable HTTP with JSON responses.
    Document,
}

/// The protocol era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`.
    Legacy,
    /// Without `initialize`.
    Modern,
}

/// The API where the outcome is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// mcp-transport's `Session`.
    Session,
    /// mcp-host's `Host::call`.
    Host,
    /// A client of mcp-gateway.
    Gateway,
}

/// A transport in an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// The transport.
    pub transport: Transport,
    /// The era.
    pub era: Era,
}

/// The expected outcome on some transports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The transports.
    pub transports: &'static [Transport],
    /// The era; `None` for both.
    pub era: Option<Era>,
    /// The outcome of a session: `of the faulty request | of the next request`. Two possible outcomes are separated by
    /// `or`.
    pub session: &'static str,
    /// The outcome of a call through the host, and of the server.
    pub host: &'static str,
    /// The outcome of a gateway client, if it differs from the host.
    pub gateway: Option<&'static str>,
}

/// The reason why a fault does not apply to some transports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// The transports.
    pub transports: &'static [Transport],
    /// The reason.
    pub reason: &'static str,
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRow {
    /// The group.
    pub group: Group,
    /// The description.
    pub fault: String,
    /// The script of the server.
    pub script: String,
    /// The expected outcomes.
    pub expectations: Vec<Expectation>,
    /// The transports without this fault.
    pub exclusions: Vec<Exclusion>,
}

/// A group of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Faults before the session.
    Start,
    /// Faults in the bytes of a message or in their timing.
    Message,
    /// Faults in the content of messages.
    Content,
    /// Faults in HTTP statuses and redirects.
    Status,
    /// Faults of processes.
    Process,
}

impl Group {
    /// All groups in the order of the page.
    pub const ALL: [Group; 5] = [Group::Start, Group::Message, Group::Content, Group::Status, Group::Process];

    /// The heading.
    pub fn label(self) -> &'static str {
        match self {
            Group::Start => "At the start",
            Group::Message => "In the bytes and the timing of a message",
            Group::Content => "In the content of messages",
            Group::Status => "In HTTP statuses and redirects",
            Group::Process => "In a process",
        }
    }
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 5] =
        [Transport::Stdio, Transport::Sse, Transport::WebSocket, Transport::Events, Transport::Document];

    /// The name on the page.
    pub fn label(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Sse => "SSE",
            Transport::WebSocket => "WebSocket",
            Transport::Events => "HTTP streams",
            Transport::Document => "HTTP JSON",
        }
    }
}

impl Api {
    /// All APIs.
    pub const ALL: [Api; 3] = [Api::Session, Api::Host, Api::Gateway];
}

impl Variant {
    /// All transports in all eras.
    pub fn all() -> impl Iterator<Item = Variant> {
        Transport::ALL
            .into_iter()
            .flat_map(|transport| [Era::Legacy, Era::Modern].map(|era| Variant { transport, era }))
    }
}

impl FaultRow {
    /// The expected outcome at an API; `None` if the fault does not apply.
    pub fn expected_outcome(&self, variant: Variant, api: Api) -> Option<&'static str> {
        if self.exclusions(variant.transport).is_some() {
            return None;
        }
        let fits = |it: &&Expectation| {
            it.transports.contains(&variant.transport) && it.era.is_none_or(|it| it == variant.era)
        };
        let want = self.expectations.iter().find(fits)?;
        Some(match api {
            Api::Session => want.session,
            Api::Host => want.host,
            Api::Gateway => want.gateway.unwrap_or(want.host),
        })
    }

    /// The reason why the fault does not apply.
    pub fn exclusions(&self, transport: Transport) -> Option<&'static str> {
        self.exclusions.iter().find(|it| it.transports.contains(&transport)).map(|it| it.reason)
    }

    /// Whether the cell is tested. Host and gateway are tested in one era if both eras have the same outcome.
    pub fn is_tested(&self, variant: Variant, api: Api) -> bool {
        let differs =
            self.expectations.iter().any(|it| it.era.is_some() && it.transports.contains(&variant.transport));
        self.exclusions(variant.transport).is_none()
            && (api == Api::Session || variant.era == Era::Legacy || differs)
    }

    /// The parsed script.
    ///
    /// # Panics
    ///
    /// If the script is invalid, which a test excludes.
    pub fn script(&self) -> Script {
        Script::parse(&self.script).expect("the scripts of the table are valid")
    }
}
