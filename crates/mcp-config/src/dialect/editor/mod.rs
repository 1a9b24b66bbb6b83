//! Reads the files of editors and agents: `.mcp.json`, `.vscode/mcp.json`, `mcp_config.json`, and settings that contain
//! servers.
//!
//! The files of all programs are one dialect, although their keys differ (DIA-01 to DIA-10). Reading is lenient:
//! servers are independent, and unknown keys are kept. A whole command line in `command` is never split.

mod approvals;
mod client_credentials;
mod command;
pub(crate) mod conventions;
mod entry_fields;
mod entry_forms;
mod fields;
pub(crate) mod keys;
mod lower;
pub(crate) mod name_lists;
pub(crate) mod program;
pub(crate) mod programs;
pub(crate) mod references;
mod schema;
mod server_maps;
mod start_texts;
mod transport;
mod wire;
pub(crate) mod write;

use crate::de::{ForeignKey, Location, ReadContext};
use crate::diagnostic::{Code, RawDiagnostic, quoted};
use crate::dialect::entry::{ReadEntry, display_name};
use crate::dialect::lowering::UniqueNames;
use crate::syntax::{self, Content, Member, Node, pointer_contains};

use conventions::{DISABLED, Disabling, ENABLED, EntryForm, JsonExtensions, Program, SwitchKey};
use entry_fields::EntryFields;
use fields::DeclaredInputs;
pub(crate) use keys::is_source;
use name_lists::NameLists;
pub(crate) use schema::schema;
use server_maps::ServerMap;
pub(crate) use server_maps::{is_goose_extensions, is_map_of_servers, is_server};

#[cfg(test)]
mod tests;

/// What is known about a key inside of an entry that is not read.
pub(crate) fn foreign_key(name: &str) -> Option<ForeignKey> {
    keys::foreign_key(name, EntryForm::Common)
}

/// Reads the servers in file order. Reports the `extensions` of JSON that the program of the file refuses.
pub(crate) fn read(
    root: &Node,
    extensions: &syntax::ExtensionSpans,
    context: &ReadContext,
) -> Vec<ReadEntry> {
    let path_program = Program::of_file(&context.file);
    if let Some(program) = path_program {
        report_extensions(extensions, program, context);
    }
    let roots = server_maps::find_servers(root, path_program, context);
    downgrade_foreign_duplicates(&roots, context);
    let (inputs, lists) = (DeclaredInputs::read(root), NameLists::read(root));
    if let Some(map) = roots.iter().find(|it| it.program.disabling == Disabling::NameLists) {
        NameLists::check(root, map.program, context);
    }
    let names = UniqueNames::new("servers of this file", "rename one of them");
    let mut reader = EntryReader { entries: Vec::new(), names, has_several_maps: roots.len() > 1 };
    for ServerMap { node, at, program, project } in &roots {
        let file = lower::FileContext {
            context,
            path_program,
            program,
            project: project.as_deref(),
            inputs: &inputs,
            lists: &lists,
        };
        check_collection(node, at, &file);
        match node.resolved_content() {
            Content::Mapping(members) => reader.read_members(node, members, at, &file),
            Content::Sequence(items) => reader.read_items(items, at, &file),
            Content::Null | Content::Broken => {}
            _ => {
                let key = crate::syntax::last_key(&at.pointer(context));
                let message = format!("'{key}' must be a mapping of servers, not {}", node.kind());
                let help = "write `{\"some-name\": {\"command\": \"some-program\"}}`";
                context.error(Code::WrongType, at, message, help);
            }
        }
    }
    reader.entries
}

/// Reads the entries of the maps and lists of servers.
struct EntryReader<'a> {
    entries: Vec<ReadEntry>,
    /// The names in lists, and those in maps if there are several.
    names: UniqueNames<'a>,
    has_several_maps: bool,
}

impl<'a> EntryReader<'a> {
    /// Reads the members of a map of servers. A key is the name of a server.
    fn read_members(
        &mut self,
        map: &Node,
        members: &'a [Member],
        at: &Location,
        file: &lower::FileContext<'_>,
    ) {
        let context = file.context;
        self.entries.reserve(members.len().min(context.entry_count()));
        for member in members.iter().take(context.entry_count()) {
            // Skip a key that is used as a comment.
            if member.key.text.starts_with("//") || member.key.text.starts_with('$') {
                continue;
            }
            let at = at.member(member, context);
            let mut name = member.key.text.to_string();
            // Projects may have servers of the same name.
            if let Some(folder) = file.project
                && self.entries.iter().any(|it| it.name == name)
            {
                let folder_name = folder.rsplit(['/', '\\']).next().unwrap_or_default();
                name = format!("{name}@{folder_name}");
            }
            // The keys of a single mapping are unique.
            if self.has_several_maps && file.project.is_none() {
                self.names.add(&member.key.text, at.at_key(), context);
            }
            self.entries.push(if report_quoted_table(&name, map, &at, file) {
                ReadEntry::new(name, &at, context)
            } else {
                read_server(Some(&name), &member.value, &at, file)
            });
        }
    }

    /// Reads the items of a list of servers, which state their names.
    fn read_items(&mut self, items: &'a [Node], at: &Location, file: &lower::FileContext<'_>) {
        let context = file.context;
        self.entries.reserve(items.len().min(context.entry_count()));
        for (index, item) in items.iter().enumerate().take(context.entry_count()) {
            let at = at.item(index, item, context);
            if let Some((name, name_at)) =
                item.get("name").and_then(|it| Some((it.value.text()?, at.member(it, context))))
            {
                self.names.add(name, name_at, context);
            }
            self.entries.push(read_server(None, item, &at, file));
        }
    }
}

/// Warns about a list of servers where the program of the file reads a map, and the reverse.
fn check_collection(node: &Node, at: &Location, file: &lower::FileContext<'_>) {
    let program = file.program;
    let (is_wanted, wanted, help) = match program.entry_form {
        EntryForm::Continue => (
            node.members().is_none(),
            "a list of servers",
            "write `- name: some-name` before the fields of each server",
        ),
        EntryForm::Common | EntryForm::Opencode | EntryForm::Codex | EntryForm::Goose => {
            (node.items().is_none(), "servers by their names", "write `{\"some-name\": {…}}`")
        }
    };
    if !is_wanted && file.is_read_by(program) {
        let message = format!("{} reads {wanted} here, not {}", program.name, node.kind());
        file.context.warning(Code::WrongType, &at.at_key(), message, help);
    }
}

/// Reports a table such as `[mcp_servers."a.env"]` beside the server `a`: in quotes, it is a server of its own. Returns
/// whether it is one.
fn report_quoted_table(name: &str, servers: &Node, at: &Location, file: &lower::FileContext<'_>) -> bool {
    let Some((server, key)) = name.rsplit_once('.').filter(|it| keys::is_text_map(it.1)) else {
        return false;
    };
    let is_own_server = servers.get(name).is_some_and(|it| is_server(&it.value));
    if file.program.entry_form != EntryForm::Codex || is_own_server || servers.get(server).is_none() {
        return false;
    }
    let message =
        format!("in quotes, '{}' is a server of its own, not the `{key}` of a server", quoted(name));
    let help = format!("write `[{}.{}.{key}]`, without quotes", file.program.key, quoted(server));
    file.context.error(Code::MissingCommand, &at.at_key(), message, help);
    true
}

/// Warns about extensions of JSON that are read here but not by the program of the file: comments, trailing commas, and
/// unusual blanks.
fn report_extensions(extensions: &syntax::ExtensionSpans, program: &Program, context: &ReadContext) {
    let (comments, commas) = match program.json_extensions {
        JsonExtensions::None => (false, false),
        JsonExtensions::Comments => (true, false),
        JsonExtensions::CommentsAndCommas | JsonExtensions::Unknown => return,
    };
    let found = [
        (comments, &extensions.comment, "a comment", "remove the comment"),
        (commas, &extensions.trailing_comma, "a comma before a closing bracket", "remove the comma"),
        (false, &extensions.unusual_blank, "a blank that is not a space, tab or line break", "write a space"),
    ];
    for (is_accepted, span, what, help) in found {
        if let Some(span) = span.clone().filter(|_| !is_accepted) {
            let message = format!("{} refuses {what} in this file, which is strict JSON there", program.name);
            context.report(RawDiagnostic::new(Code::Syntax, message, "", span).warning().help(help));
        }
    }
}

/// Downgrades duplicate keys outside of the servers to warnings.
fn downgrade_foreign_duplicates(roots: &[ServerMap<'_>], context: &ReadContext) {
    let roots: Vec<_> = roots.iter().map(|it| it.at.pointer(context)).collect();
    context.downgrade_to_warnings(|it| {
        it.code == Code::DuplicateKey
            && !roots
                .iter()
                .any(|root| pointer_contains(root, &it.pointer) || pointer_contains(&it.pointer, root))
    });
}

/// Reads a server. `name` is its key, if the servers are a mapping.
fn read_server(name: Option<&str>, node: &Node, at: &Location, file: &lower::FileContext<'_>) -> ReadEntry {
    let context = file.context;
    let own_name = node.text_of("name");
    let label = || format!("servers[{}]", crate::syntax::last_key(&at.pointer(context)));
    let shown_name = name.or(own_name).filter(|name| !name.is_empty()).map_or_else(label, display_name);
    let mut res = ReadEntry::new(shown_name, at, context);
    res.span = node.span.clone();
    if node.members().is_none() {
        if !matches!(node.resolved_content(), Content::Broken) {
            let message = format!("a server must be an object, not {}", node.kind());
            context.error(Code::WrongType, at, message, "write its `command` and `args`, or its `url`");
        }
        return res;
    }
    if let (EntryForm::Continue, Some(block)) = (file.program.entry_form, node.get("uses")) {
        let name = block.value.text().and_then(|it| it.rsplit('/').next());
        res.name = name.map_or(res.name, display_name);
        res.disabled = true;
        let message = "there is nothing to start: the entry names a block that Continue downloads";
        let diagnostic = context.new_diagnostic(Code::NothingToStart, at, message);
        let help = "to run the server here, write its `command` and `args`, or its `url`";
        context.report(diagnostic.severity(mcp_host_model::Severity::Info).help(help));
        return res;
    }
    let fields = EntryFields::read(node, at, file.program.entry_form, context);
    let disabled_by = disabling_keys(&fields);
    let program = file.program;
    let is_listed = program.disabling == Disabling::NameLists && file.lists.disables(&res.name);
    let had_error = context.has_error(at);
    let lowered = lower::lower(name, fields, node, at, file);
    res.transport = lowered.kind;
    if is_listed || !disabled_by.is_empty() {
        // A disabled server is not checked; it is often a template.
        context.remove_diagnostics(at);
        res.disabled = true;
        if is_listed {
            file.lists.note_disabled(&res.name, program, at, context);
        } else {
            report_ignored_keys(&disabled_by, file);
        }
        return res;
    }
    if lowered.is_built_in && !had_error && !context.has_error(at) {
        let is_extension = ["settings", "source"].iter().any(|it| node.get(it).is_some());
        let message = if is_extension {
            "there is nothing to start: the entry has only the settings of an editor's extension"
        } else {
            "there is nothing to start: the program of this file provides this server itself"
        };
        let diagnostic = context.new_diagnostic(Code::NothingToStart, &at.at_key(), message);
        let help = "to run the server here, add its `command` and `args`";
        context.report(diagnostic.severity(mcp_host_model::Severity::Info).help(help));
        res.disabled = true;
        return res;
    }
    res.transport = lowered.spec.as_ref().map(|it| it.transport.kind()).or(res.transport);
    res.spec = lowered.spec;
    res
}

/// The keys of an entry that disable its server, with their places.
fn disabling_keys(fields: &EntryFields) -> Vec<(SwitchKey, Location)> {
    let keys = [(DISABLED, &fields.disabled), (ENABLED, &fields.enabled)];
    let disabled_by = keys.into_iter().filter(|(key, slot)| slot.value() == Some(&key.disabled_value));
    disabled_by.map(|(key, slot)| (key, slot.at)).collect()
}

/// Warns if the program of the file obeys none of the keys that disable a server. mcp-host obeys both in every file.
fn report_ignored_keys(disabled_by: &[(SwitchKey, Location)], file: &lower::FileContext<'_>) {
    let program = file.program;
    let is_obeyed = disabled_by.iter().any(|it| program.disabling == Disabling::Key(it.0));
    let Some((key, at)) = disabled_by.first().filter(|_| !is_obeyed && file.is_read_by(program)) else {
        return;
    };
    let message =
        format!("{} ignores '{}' and starts the server; only mcp-host obeys it", program.name, key.name);
    file.context.warning(Code::DisabledServer, &at.at_key(), message, program.disabling_help());
}
