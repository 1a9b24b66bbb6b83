//! Writes servers in each dialect, and lists what the dialect cannot express.
//!
//! Reading the output returns the same servers, except for the reported differences. Each dialect's writer destructures
//! every field of a server, so a new field fails to compile until it is handled.

pub(super) mod common;
pub(crate) mod values;

use std::collections::HashSet;
use std::fmt;

use mcp_host_model::{Profile, ServerSpec};
use serde::{Serialize, Serializer};

use crate::dialect::editor::InputDeclarations;
use crate::dialect::editor::program::Program;
use crate::dialect::write::values::Reason;
use crate::dialect::{acp, dominds, editor, holodeck};
use crate::profile::policy::Policy;
use crate::syntax::output::OutputValue;

/// Servers as the text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenFile {
    /// The text. It contains all literal values of the servers, including secrets.
    pub text: String,
    /// What the dialect cannot express, in server order. Contains no values.
    pub unsupported: Vec<UnsupportedField>,
}

/// A field that a dialect cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnsupportedField {
    /// The name of the server.
    pub server: String,
    /// The field of the model, such as `cwd` or `env.NAME`.
    pub field: String,
    /// Why it cannot be expressed.
    #[serde(rename = "why")]
    pub reason: String,
    /// What was written instead.
    #[serde(rename = "done")]
    pub fallback: FieldFallback,
}

impl UnsupportedField {
    /// A field with the reason, in any words, why it cannot be written.
    pub fn new(
        server: impl Into<String>,
        field: impl Into<String>,
        reason: impl Into<String>,
        fallback: FieldFallback,
    ) -> UnsupportedField {
        UnsupportedField { server: server.into(), field: field.into(), reason: reason.into(), fallback }
    }
}

/// What was written in place of a field that cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldFallback {
    /// The field was omitted.
    FieldOmitted,
    /// The whole server was omitted, because it would behave differently without the field.
    ServerOmitted,
    /// Something else was written, as described.
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

/// Writes servers in the given order.
///
/// `program` looks up the absolute path of a program, which ACP requires.
pub fn write_servers(servers: &[ServerSpec], profile: Profile, program: ProgramLookup<'_>) -> WrittenFile {
    write_file(servers, profile, program, None)
}

/// Writes servers to an editor file at `file`, with the editor's variable syntax, server key and inputs (DIA-06,
/// DIA-08). An input that is not in `declared` is declared as a prompt with a hidden answer.
pub fn write_editor_file(
    file: &str,
    declared: &InputDeclarations,
    servers: &[ServerSpec],
    profile: Profile,
    program: ProgramLookup<'_>,
) -> WrittenFile {
    write_file(servers, profile, program, Some((Program::of(file), declared)))
}

fn write_file(
    servers: &[ServerSpec],
    profile: Profile,
    program: ProgramLookup<'_>,
    place: Option<(&'static Program, &InputDeclarations)>,
) -> WrittenFile {
    let place = place.filter(|_| profile == Profile::McpJson);
    let mut input_ids: Vec<String> = Vec::new();
    let mut unsupported = Vec::new();
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for server in servers {
        let mut report =
            WriteReport { profile, program, server: server.id.to_string(), unsupported: &mut unsupported };
        let before = report.unsupported.len();
        let Some((name, mut entry)) = server_entry(server, &mut report) else {
            // For an omitted server, only the reason is reported.
            let last = unsupported.len().saturating_sub(1);
            unsupported.drain(before..last.max(before));
            continue;
        };
        if !names.insert(name.clone()) {
            report.add("id", "another server has this name already", FieldFallback::ServerOmitted);
            continue;
        }
        if let Some((editor, _)) = place {
            let Some((adapted, ids)) = editor.adapt_entry(&name, entry, &mut report) else { continue };
            entry = adapted;
            input_ids.extend(ids.into_iter().filter(|it| !input_ids.contains(it)).collect::<Vec<_>>());
        }
        entries.push((name, entry));
    }
    if place.is_some_and(|it| it.0.prompts_for_inputs()) {
        // The declared inputs are written to the file.
        unsupported.retain(|it| it.field != common::INPUTS_FIELD);
    }
    let Some((editor, declared)) = place else {
        return WrittenFile { text: file_text(profile, entries), unsupported };
    };
    let mut members = vec![(editor.key.to_owned(), OutputValue::Map(entries))];
    if !input_ids.is_empty() {
        let inputs = input_ids.iter().map(|it| declared.declaration(it)).collect();
        members.insert(0, ("inputs".to_owned(), OutputValue::List(inputs)));
    }
    WrittenFile { text: OutputValue::Map(members).pretty().join("\n") + "\n", unsupported }
}

/// One server as an entry: its name and its content. The content includes the name if the dialect's list has no keys.
pub(crate) fn server_entry(
    server: &ServerSpec,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    match report.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => {
            holodeck::write::write_server(server, Policy::for_profile(report.profile), report)
        }
        Profile::Dominds => dominds::write::write_server(server, report),
        Profile::AcpV1 => acp::write::write_server(server, acp::write::AcpVersion::V1, report),
        Profile::AcpV2 => acp::write::write_server(server, acp::write::AcpVersion::V2, report),
        Profile::McpJson => editor::write::write_server(server, report),
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

/// Looks up the absolute path of a program by name.
pub type ProgramLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The display name of a dialect.
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

/// Collects the unsupported fields of one server.
pub(crate) struct WriteReport<'a> {
    pub(crate) profile: Profile,
    pub(crate) program: ProgramLookup<'a>,
    pub(crate) server: String,
    pub(crate) unsupported: &'a mut Vec<UnsupportedField>,
}

impl WriteReport<'_> {
    /// The display name of the dialect.
    pub(crate) fn title(&self) -> &'static str {
        title(self.profile)
    }

    pub(crate) fn add(&mut self, field: impl Into<String>, why: impl Into<String>, done: FieldFallback) {
        let (server, field, why) = (self.server.clone(), field.into(), why.into());
        self.unsupported.push(UnsupportedField { server, field, reason: why, fallback: done });
    }

    /// Reports a field that is not written.
    pub(crate) fn omitted(&mut self, field: impl Into<String>, why: impl Into<String>) {
        self.add(field, why, FieldFallback::FieldOmitted);
    }

    /// Reports a field that the dialect does not have and that is not written.
    pub(crate) fn unsupported(&mut self, field: impl Into<String>, what: &str) {
        let why = format!("{} cannot express {what}", self.title());
        self.omitted(field, why);
    }

    /// Reports a field that the dialect does not have, if it `is_set`.
    pub(crate) fn unsupported_if(&mut self, is_set: bool, field: &str, what: &str) {
        if is_set {
            self.unsupported(field, what);
        }
    }

    /// The member `key` with the text of an optional field; reports a text that cannot be written.
    pub(crate) fn optional(
        &mut self,
        key: &str,
        field: &str,
        text: Option<Result<String, Reason>>,
    ) -> Option<(String, OutputValue)> {
        let text = text?.map_err(|why| self.omitted(field, why)).ok()?;
        Some((key.to_owned(), OutputValue::Text(text)))
    }

    /// The text of a field without which the server would behave differently; reports one that cannot be written.
    pub(crate) fn required(&mut self, field: &str, text: Result<String, Reason>) -> Option<String> {
        text.map_or_else(|why| self.server_omitted(field, why), Some)
    }

    /// Reports a replacement.
    pub(crate) fn replaced(
        &mut self,
        field: impl Into<String>,
        why: impl Into<String>,
        done: impl Into<String>,
    ) {
        self.add(field, why, FieldFallback::Replaced(done.into()));
    }

    /// Reports a server that is not written.
    pub(crate) fn server_omitted<T>(
        &mut self,
        field: impl Into<String>,
        why: impl Into<String>,
    ) -> Option<T> {
        self.add(field, why, FieldFallback::ServerOmitted);
        None
    }
}
