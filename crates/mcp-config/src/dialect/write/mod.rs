//! Writes servers in each dialect, and reports what the dialect cannot express.
//!
//! Reading the output returns the same servers, except for the reported differences.

pub(super) mod common;
pub(super) mod entry_writer;
pub(crate) mod report;
pub(crate) mod values;

use std::collections::HashSet;

use mcp_host_model::{Profile, ServerSpec};

use crate::dialect::editor::conventions::Program;
use crate::dialect::editor::programs::UNKNOWN;
use crate::dialect::editor::references::InputDeclarations;
use crate::dialect::write::report::{FieldFallback, ProgramLookup, WriteReport, WrittenFile};
use crate::dialect::{acp, dominds, editor, holodeck};
use crate::profile::rules::ProfileRules;
use crate::syntax::output::{OutputMembers, OutputValue};

/// Writes servers in the given order.
///
/// `find_program` looks up the absolute path of a program, which ACP requires.
pub fn write_servers(
    servers: &[ServerSpec],
    profile: Profile,
    find_program: ProgramLookup<'_>,
) -> WrittenFile {
    write_file(servers, profile, find_program, None)
}

/// Writes servers as the text of the editor file at `file`, with the editor's variable syntax, server key and inputs
/// (DIA-06, DIA-08). An input that is not in `declared` is declared as a prompt with a hidden answer.
pub fn write_editor_file(
    file: &str,
    declared: &InputDeclarations,
    servers: &[ServerSpec],
    profile: Profile,
    find_program: ProgramLookup<'_>,
) -> WrittenFile {
    write_file(servers, profile, find_program, Some((Program::of_file(file).unwrap_or(&UNKNOWN), declared)))
}

/// Writes servers. `target` is the program of an editor file and the inputs that are declared in it.
fn write_file(
    servers: &[ServerSpec],
    profile: Profile,
    find_program: ProgramLookup<'_>,
    target: Option<(&'static Program, &InputDeclarations)>,
) -> WrittenFile {
    let target = target.filter(|_| profile == Profile::McpJson);
    let mut input_ids: Vec<String> = Vec::new();
    let mut unsupported = Vec::new();
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for server in servers {
        let id = server.id.to_string();
        let mut report = WriteReport { profile, find_program, server: id, unsupported: &mut unsupported };
        let reports_before = report.unsupported.len();
        let Some((name, mut entry)) = write_server_entry(server, &mut report) else {
            // For an omitted server, only the reason is reported.
            let last = unsupported.len().saturating_sub(1);
            unsupported.drain(reports_before..last.max(reports_before));
            continue;
        };
        if !names.insert(name.clone()) {
            report.add("id", "another server has this name already", FieldFallback::ServerOmitted);
            continue;
        }
        if let Some((editor, _)) = target {
            let Some((adapted, ids)) = editor.adapt_entry(&name, entry, &mut report) else { continue };
            entry = adapted;
            input_ids.extend(ids.into_iter().filter(|it| !input_ids.contains(it)).collect::<Vec<_>>());
        }
        entries.push((name, entry));
    }
    if target.is_some_and(|it| it.0.prompts_for_inputs()) {
        // The declared inputs are written to the file.
        unsupported.retain(|it| it.field != common::INPUTS_FIELD);
    }
    let Some((editor, declared)) = target else {
        return WrittenFile { text: write_file_text(profile, entries), unsupported };
    };
    let mut members = vec![(editor.key.to_owned(), OutputValue::Map(entries))];
    if !input_ids.is_empty() {
        let inputs = input_ids.iter().map(|it| declared.declaration(it)).collect();
        members.insert(0, ("inputs".to_owned(), OutputValue::List(inputs)));
    }
    WrittenFile { text: OutputValue::Map(members).to_json_lines().join("\n") + "\n", unsupported }
}

/// Writes one server as an entry: its name and its content. The content includes the name if the servers of the dialect
/// are a list. `None` if the dialect cannot express the server, which is reported.
pub(crate) fn write_server_entry(
    server: &ServerSpec,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    match report.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => {
            holodeck::write::write_server(server, ProfileRules::for_profile(report.profile), report)
        }
        Profile::Dominds => dominds::write::write_server(server, report),
        Profile::AcpV1 | Profile::AcpV2 => acp::write::write_server(server, report),
        Profile::McpJson => editor::write::write_server(server, report),
    }
}

/// Writes the entries as the text of a file.
fn write_file_text(profile: Profile, entries: OutputMembers) -> String {
    let list = |entries: OutputMembers| OutputValue::List(entries.into_iter().map(|it| it.1).collect());
    let file = |members: Vec<(&str, OutputValue)>| {
        OutputValue::Map(members.into_iter().map(|it| (it.0.to_owned(), it.1)).collect())
    };
    let lines = match profile {
        Profile::HoloDeck | Profile::HoloDeck07 => file(vec![("tools", list(entries))]).to_block_lines(),
        Profile::Dominds => {
            file(vec![("version", OutputValue::scalar(1)), ("servers", OutputValue::Map(entries))])
                .to_block_lines()
        }
        Profile::AcpV1 | Profile::AcpV2 => file(vec![("mcpServers", list(entries))]).to_json_lines(),
        Profile::McpJson => file(vec![("mcpServers", OutputValue::Map(entries))]).to_json_lines(),
    };
    lines.join("\n") + "\n"
}
