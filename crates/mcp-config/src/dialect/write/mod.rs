//! Servers written down in each dialect, and everything that a dialect cannot say.
//!
//! What is written is read again as it was written: the same servers, but for what the report names. Nothing is left out
//! in silence, and nothing is made up without a word. A dialect's file names every field of a server, so that a new one
//! stops the build until somebody has thought about it.

pub(super) mod common;
pub(super) mod values;

use std::collections::HashSet;
use std::fmt;

use mcp_model::ServerSpec;
use serde::{Serialize, Serializer};

use crate::dialect::editor::{EditorFile, InputDeclarations};
use crate::dialect::lowering::INPUTS_KEY;
use crate::dialect::{acp, dominds, editor, holodeck};
use crate::profile::Profile;
use crate::profile::policy::Policy;
use crate::syntax::output::OutputValue;

/// Servers, written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// The file. It holds every literal value of the servers, secrets included.
    pub text: String,
    /// What the dialect cannot say, in the order of the servers. No value stands in it.
    pub unsupported: Vec<UnsupportedField>,
}

/// Something that a dialect cannot say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnsupportedField {
    /// The server it is about.
    pub server: String,
    /// What of it: a word of the model, such as `cwd`, or `env.NAME`.
    pub field: String,
    /// Why it cannot be said.
    #[serde(rename = "why")]
    pub reason: String,
    /// What was done about it.
    #[serde(rename = "done")]
    pub fallback: FieldFallback,
}

/// What was done about something that cannot be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldFallback {
    /// It was left out.
    FieldOmitted,
    /// The whole server was left out, because it would be another one without it.
    ServerOmitted,
    /// Something else was written, as the words say.
    Replaced(String),
}

impl fmt::Display for FieldFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldFallback::FieldOmitted => f.write_str("left out"),
            FieldFallback::ServerOmitted => f.write_str("the server is left out"),
            FieldFallback::Replaced(words) => f.write_str(words),
        }
    }
}

impl Serialize for FieldFallback {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes servers down, in their order.
///
/// `program` gives the absolute path of a program, where there is one of that name: ACP takes nothing else.
pub fn write_servers(servers: &[ServerSpec], profile: Profile, program: ProgramLookup<'_>) -> WrittenFile {
    write_file(servers, profile, program, None)
}

/// The same for a file of this path, whose editor may spell variables in a way of its own, look for its servers under
/// another key, and ask for what is declared in `inputs` (DIA-06, DIA-08). What is asked for and not in `declared` is
/// declared as a question whose answer is not shown.
pub fn write_editor_file(
    file: &str,
    declared: &InputDeclarations,
    servers: &[ServerSpec],
    profile: Profile,
    program: ProgramLookup<'_>,
) -> WrittenFile {
    write_file(servers, profile, program, Some((EditorFile::of(file), declared)))
}

fn write_file(
    servers: &[ServerSpec],
    profile: Profile,
    program: ProgramLookup<'_>,
    place: Option<(EditorFile, &InputDeclarations)>,
) -> WrittenFile {
    let place = place.filter(|_| profile == Profile::McpJson);
    let mut asked: Vec<String> = Vec::new();
    let mut unsupported = Vec::new();
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for server in servers {
        let mut report =
            WriteReport { profile, program, server: server.id.to_string(), unsupported: &mut unsupported };
        let before = report.unsupported.len();
        let Some((name, mut entry)) = server_entry(server, &mut report) else {
            // Of a server that is not there, only the reason is worth a word.
            let last = unsupported.len().saturating_sub(1);
            unsupported.drain(before..last.max(before));
            continue;
        };
        if names.insert(name.clone()) {
            if let Some((editor, _)) = place {
                let ids = editor.rewrite_references(&mut entry, &mut report);
                asked.extend(ids.into_iter().filter(|it| !asked.contains(it)).collect::<Vec<_>>());
            }
            entries.push((name, entry));
        } else {
            report.add("id", "another server has this name already", FieldFallback::ServerOmitted);
        }
    }
    if place.is_some_and(|it| it.0.prompts_for_inputs()) {
        // What is declared stands in the file again.
        unsupported.retain(|it| it.field != format!("metadata.{INPUTS_KEY}"));
    }
    let Some((editor, declared)) = place else {
        return WrittenFile { text: file_text(profile, entries), unsupported };
    };
    let mut members = vec![(editor.key.to_owned(), OutputValue::Map(entries))];
    if !asked.is_empty() {
        let inputs = asked.iter().map(|it| declared.declaration(it)).collect();
        members.insert(0, ("inputs".to_owned(), OutputValue::List(inputs)));
    }
    WrittenFile { text: OutputValue::Map(members).pretty().join("\n") + "\n", unsupported }
}

/// One server as an entry: its name, and what stands in its place, the name included where the dialect has it there.
pub(crate) fn server_entry(
    server: &ServerSpec,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    match report.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => {
            holodeck::write::entry(server, Policy::for_profile(report.profile), report)
        }
        Profile::Dominds => dominds::write::entry(server, report),
        Profile::AcpV1 => acp::write::entry(server, acp::write::Version::One, report),
        Profile::AcpV2 => acp::write::entry(server, acp::write::Version::Two, report),
        Profile::McpJson => editor::write::entry(server, report),
    }
}

fn file_text(profile: Profile, entries: Vec<(String, OutputValue)>) -> String {
    let list =
        |entries: Vec<(String, OutputValue)>| OutputValue::List(entries.into_iter().map(|it| it.1).collect());
    let file = |members: Vec<(&str, OutputValue)>| {
        OutputValue::Map(members.into_iter().map(|it| (it.0.to_owned(), it.1)).collect())
    };
    let lines = match profile {
        Profile::HoloDeck | Profile::HoloDeck07 => file(vec![("tools", list(entries))]).block(),
        Profile::Dominds => {
            file(vec![("version", OutputValue::scalar(1)), ("servers", OutputValue::Map(entries))]).block()
        }
        Profile::AcpV1 | Profile::AcpV2 => file(vec![("mcpServers", list(entries))]).pretty(),
        Profile::McpJson => file(vec![("mcpServers", OutputValue::Map(entries))]).pretty(),
    };
    lines.join("\n") + "\n"
}

/// The absolute path of a program, by its name.
pub type ProgramLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

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
pub(crate) struct WriteReport<'a> {
    pub(crate) profile: Profile,
    pub(crate) program: ProgramLookup<'a>,
    pub(crate) server: String,
    pub(crate) unsupported: &'a mut Vec<UnsupportedField>,
}

impl WriteReport<'_> {
    /// How users call the dialect.
    pub(crate) fn title(&self) -> &'static str {
        title(self.profile)
    }

    pub(crate) fn add(&mut self, field: impl Into<String>, why: impl Into<String>, done: FieldFallback) {
        let (server, field, why) = (self.server.clone(), field.into(), why.into());
        self.unsupported.push(UnsupportedField { server, field, reason: why, fallback: done });
    }

    /// The field is not written.
    pub(crate) fn omitted(&mut self, field: impl Into<String>, why: impl Into<String>) {
        self.add(field, why, FieldFallback::FieldOmitted);
    }

    /// The dialect has no word for the field, and it is not written.
    pub(crate) fn unsupported(&mut self, field: impl Into<String>, what: &str) {
        let why = format!("{} has no word for {what}", self.title());
        self.omitted(field, why);
    }

    /// Something else is written.
    pub(crate) fn replaced(
        &mut self,
        field: impl Into<String>,
        why: impl Into<String>,
        done: impl Into<String>,
    ) {
        self.add(field, why, FieldFallback::Replaced(done.into()));
    }

    /// The whole server is not written.
    pub(crate) fn server_omitted<T>(
        &mut self,
        field: impl Into<String>,
        why: impl Into<String>,
    ) -> Option<T> {
        self.add(field, why, FieldFallback::ServerOmitted);
        None
    }
}
