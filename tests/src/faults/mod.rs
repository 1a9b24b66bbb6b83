//! The fault matrix: what can go wrong on the other side, on which wire, and what comes of it at each face of ours.
//!
//! Invariant: every fault has for every way (a wire in an era) either what is expected, or the reason why it is none there.
//! The test reads what is expected from here and the page of docs/ is made from here, so that neither can say anything
//! else. Nothing here runs: it is a table.

mod machine;
mod page;
mod rows;
mod script;

pub use machine::*;
pub use page::{Totals, page, totals};
pub use rows::rows;
pub use script::{At, Script, ScriptError, Step};

/// A wire, and over Streamable HTTP in which framing an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// A child process.
    Stdio,
    /// HTTP with server-sent events.
    Sse,
    /// WebSocket.
    WebSocket,
    /// Streamable HTTP; an answer is an event stream.
    Events,
    /// Streamable HTTP; an answer is a JSON document.
    Document,
}

/// The era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`.
    Legacy,
    /// Without.
    Modern,
}

/// Where a fault is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// mcp-transport's `Session`.
    Session,
    /// mcp-host's `Host::call`.
    Host,
    /// A client of mcp-gateway.
    Gateway,
}

/// A wire in an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The wire.
    pub wire: Wire,
    /// The era.
    pub era: Era,
}

/// What is expected on some wires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// On which.
    pub wires: &'static [Wire],
    /// In which era; `None` in both.
    pub era: Option<Era>,
    /// What a session tells: `of the faulty request | of the next one`. Where either of two things may come first, both
    /// stand there with `or` between them.
    pub session: &'static str,
    /// What a call through the host tells, and what becomes of the server.
    pub host: &'static str,
    /// What a client of the gateway is told, where that is not the same.
    pub gateway: Option<&'static str>,
}

/// Why a fault is none on some wires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// On which.
    pub wires: &'static [Wire],
    /// Why.
    pub why: &'static str,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What kind of fault.
    pub group: Group,
    /// The fault, in words.
    pub fault: String,
    /// What the server does.
    pub script: String,
    /// What is expected.
    pub wants: Vec<Expectation>,
    /// Where it makes no sense.
    pub absent: Vec<Exclusion>,
}

/// What kinds of faults there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Before there is a session.
    Beginning,
    /// In the bytes of a message, or in their pace.
    Message,
    /// In what messages say.
    Meaning,
    /// In statuses and redirects.
    Status,
    /// In a process.
    Process,
}

impl Group {
    /// All of them, in the order of the page.
    pub const ALL: [Group; 5] =
        [Group::Beginning, Group::Message, Group::Meaning, Group::Status, Group::Process];

    /// The heading.
    pub fn words(self) -> &'static str {
        match self {
            Group::Beginning => "At the beginning",
            Group::Message => "In the bytes of a message and their pace",
            Group::Meaning => "In what messages say",
            Group::Status => "In statuses and redirects",
            Group::Process => "In a process",
        }
    }
}

impl Wire {
    /// All of them.
    pub const ALL: [Wire; 5] = [Wire::Stdio, Wire::Sse, Wire::WebSocket, Wire::Events, Wire::Document];

    /// Its name on the page.
    pub fn words(self) -> &'static str {
        match self {
            Wire::Stdio => "stdio",
            Wire::Sse => "SSE",
            Wire::WebSocket => "WebSocket",
            Wire::Events => "HTTP streams",
            Wire::Document => "HTTP documents",
        }
    }
}

impl Face {
    /// All of them.
    pub const ALL: [Face; 3] = [Face::Session, Face::Host, Face::Gateway];
}

impl Way {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Way> {
        Wire::ALL.into_iter().flat_map(|wire| [Era::Legacy, Era::Modern].map(|era| Way { wire, era }))
    }
}

impl Row {
    /// What is expected there at a face; `None` where it is no fault.
    pub fn want(&self, way: Way, face: Face) -> Option<&'static str> {
        if self.absent(way.wire).is_some() {
            return None;
        }
        let fits = |it: &&Expectation| it.wires.contains(&way.wire) && it.era.is_none_or(|it| it == way.era);
        let want = self.wants.iter().find(fits)?;
        Some(match face {
            Face::Session => want.session,
            Face::Host => want.host,
            Face::Gateway => want.gateway.unwrap_or(want.host),
        })
    }

    /// Why it is no fault there.
    pub fn absent(&self, wire: Wire) -> Option<&'static str> {
        self.absent.iter().find(|it| it.wires.contains(&wire)).map(|it| it.why)
    }

    /// Is there a cell? Where both eras come to the same, host and gateway are looked at in one of them.
    pub fn is_proven(&self, way: Way, face: Face) -> bool {
        let differs = self.wants.iter().any(|it| it.era.is_some() && it.wires.contains(&way.wire));
        self.absent(way.wire).is_none() && (face == Face::Session || way.era == Era::Legacy || differs)
    }

    /// What the server does.
    ///
    /// # Panics
    ///
    /// When the table holds a script that is none, which a test of its own looks for.
    pub fn script(&self) -> Script {
        Script::parse(&self.script).expect("the table holds scripts")
    }
}
