//! Servers written down in each dialect, and everything that a dialect cannot say.
//!
//! What is written is read again as it was written: the same servers, but for what the report names. Nothing is left out
//! in silence, and nothing is made up without a word. A dialect's file names every field of a server, so that a new one
//! stops the build until somebody has thought about it.

mod acp;
mod common;
mod data;
mod dominds;
mod holodeck;
mod mcp_json;
mod spelling;
mod values;

use std::collections::HashSet;
use std::fmt;

use mcp_model::ServerSpec;
use serde::{Serialize, Serializer};

use crate::dialect::lowering::INPUTS;
use crate::dialect::policy::Policy;
use crate::dialect::profile::Profile;
pub(crate) use data::{Data, Quotes, item, member};
pub(crate) use spelling::Editor;
pub use spelling::{Inputs, asks_for_inputs};

/// Servers, written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file. It holds every literal value of the servers, secrets included.
    pub text: String,
    /// What the dialect cannot say, in the order of the servers. No value stands in it.
    pub losses: Vec<Loss>,
}

/// Something that a dialect cannot say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The server it is about.
    pub server: String,
    /// What of it: a word of the model, such as `cwd`, or `env.NAME`.
    pub field: String,
    /// Why it cannot be said.
    pub why: String,
    /// What was done about it.
    pub done: Done,
}

/// What was done about something that cannot be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It was left out.
    LeftOut,
    /// The whole server was left out, because it would be another one without it.
    ServerLeftOut,
    /// Something else was written, as the words say.
    Instead(String),
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::LeftOut => f.write_str("left out"),
            Done::ServerLeftOut => f.write_str("the server is left out"),
            Done::Instead(words) => f.write_str(words),
        }
    }
}

impl Serialize for Done {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes servers down, in their order.
///
/// `program` gives the absolute path of a program, where there is one of that name: ACP takes nothing else.
pub fn write(servers: &[ServerSpec], profile: Profile, program: Programs<'_>) -> Written {
    written(servers, profile, program, None)
}

/// The same for a file of this path, whose editor may spell variables in a way of its own, look for its servers under
/// another key, and ask for what is declared in `inputs` (DIA-06, DIA-08). What is asked for and not in `declared` is
/// declared as a question whose answer is not shown.
pub fn write_for(
    file: &str,
    declared: &Inputs,
    servers: &[ServerSpec],
    profile: Profile,
    program: Programs<'_>,
) -> Written {
    written(servers, profile, program, Some((Editor::of(file), declared)))
}

fn written(
    servers: &[ServerSpec],
    profile: Profile,
    program: Programs<'_>,
    place: Option<(Editor, &Inputs)>,
) -> Written {
    let place = place.filter(|_| profile == Profile::McpJson);
    let mut asked: Vec<String> = Vec::new();
    let mut losses = Vec::new();
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for server in servers {
        let mut report = Report { profile, program, server: server.id.to_string(), losses: &mut losses };
        let before = report.losses.len();
        let Some((name, mut entry)) = entry(server, &mut report) else {
            // Of a server that is not there, only the reason is worth a word.
            let last = losses.len().saturating_sub(1);
            losses.drain(before..last.max(before));
            continue;
        };
        if names.insert(name.clone()) {
            if let Some((editor, _)) = place {
                let ids = editor.spell(&mut entry, &mut report);
                asked.extend(ids.into_iter().filter(|it| !asked.contains(it)).collect::<Vec<_>>());
            }
            entries.push((name, entry));
        } else {
            report.add("id", "another server has this name already", Done::ServerLeftOut);
        }
    }
    if place.is_some_and(|it| it.0.asks()) {
        // What is declared stands in the file again.
        losses.retain(|it| it.field != format!("metadata.{INPUTS}"));
    }
    let Some((editor, declared)) = place else { return Written { text: text(profile, entries), losses } };
    let mut members = vec![(editor.key.to_owned(), Data::Map(entries))];
    if !asked.is_empty() {
        let inputs = asked.iter().map(|it| declared.declaration(it)).collect();
        members.insert(0, ("inputs".to_owned(), Data::List(inputs)));
    }
    Written { text: Data::Map(members).pretty().join("\n") + "\n", losses }
}

/// One server as an entry: its name, and what stands in its place, the name included where the dialect has it there.
pub(crate) fn entry(server: &ServerSpec, report: &mut Report<'_>) -> Option<(String, Data)> {
    match report.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => {
            holodeck::entry(server, Policy::of(report.profile), report)
        }
        Profile::Dominds => dominds::entry(server, report),
        Profile::AcpV1 => acp::entry(server, acp::Version::One, report),
        Profile::AcpV2 => acp::entry(server, acp::Version::Two, report),
        Profile::McpJson => mcp_json::entry(server, report),
    }
}

fn text(profile: Profile, entries: Vec<(String, Data)>) -> String {
    let list = |entries: Vec<(String, Data)>| Data::List(entries.into_iter().map(|it| it.1).collect());
    let file = |members: Vec<(&str, Data)>| {
        Data::Map(members.into_iter().map(|it| (it.0.to_owned(), it.1)).collect())
    };
    let lines = match profile {
        Profile::HoloDeck | Profile::HoloDeck07 => file(vec![("tools", list(entries))]).block(),
        Profile::Dominds => file(vec![("version", Data::word(1)), ("servers", Data::Map(entries))]).block(),
        Profile::AcpV1 | Profile::AcpV2 => file(vec![("mcpServers", list(entries))]).pretty(),
        Profile::McpJson => file(vec![("mcpServers", Data::Map(entries))]).pretty(),
    };
    lines.join("\n") + "\n"
}

/// The absolute path of a program, by its name.
pub type Programs<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How users call a dialect.
fn title(profile: Profile) -> &'static str {
    match profile {
        Profile::HoloDeck => "HoloDeck",
        Profile::HoloDeck07 => "HoloDeck 0.7",
        Profile::Dominds => "Dominds",
        Profile::AcpV1 => "ACP 1",
        Profile::AcpV2 => "ACP 2",
        Profile::McpJson => "an mcp.json",
    }
}

/// What is being found out about one server on its way.
pub(crate) struct Report<'a> {
    pub(crate) profile: Profile,
    pub(crate) program: Programs<'a>,
    pub(crate) server: String,
    pub(crate) losses: &'a mut Vec<Loss>,
}

impl Report<'_> {
    /// How users call the dialect.
    fn title(&self) -> &'static str {
        title(self.profile)
    }

    fn add(&mut self, field: impl Into<String>, why: impl Into<String>, done: Done) {
        let (server, field, why) = (self.server.clone(), field.into(), why.into());
        self.losses.push(Loss { server, field, why, done });
    }

    /// The field is not written.
    fn lost(&mut self, field: impl Into<String>, why: impl Into<String>) {
        self.add(field, why, Done::LeftOut);
    }

    /// The dialect has no word for the field, and it is not written.
    fn unsaid(&mut self, field: impl Into<String>, what: &str) {
        let why = format!("{} has no word for {what}", self.title());
        self.lost(field, why);
    }

    /// Something else is written.
    fn instead(&mut self, field: impl Into<String>, why: impl Into<String>, done: impl Into<String>) {
        self.add(field, why, Done::Instead(done.into()));
    }

    /// The whole server is not written.
    fn left_out<T>(&mut self, field: impl Into<String>, why: impl Into<String>) -> Option<T> {
        self.add(field, why, Done::ServerLeftOut);
        None
    }
}
