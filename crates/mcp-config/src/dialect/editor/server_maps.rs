//! Finds the maps and lists of servers in a file, and the program of each (DIA-01).

use crate::de::{Location, ReadContext, closest};
use crate::diagnostic::{Applicability, Code, FixIntent, quoted};
use crate::dialect::editor::conventions::{FilePurpose, Program};
use crate::dialect::editor::keys;
use crate::dialect::editor::program::server_keys;
use crate::dialect::editor::programs::{DEV_CONTAINER_INPUTS, DEV_CONTAINER_SERVERS};
use crate::syntax::{self, Content, Node};

/// A map or list of servers in a file.
pub(super) struct ServerMap<'a> {
    pub(super) node: &'a Node,
    pub(super) at: Location,
    pub(super) program: &'static Program,
    /// The folder of the project to which the servers belong, in Claude Code's settings.
    pub(super) project: Option<String>,
}

/// Names of settings files of unknown programs, which are valid without servers.
const SETTINGS_FILES: [&str; 3] = ["settings.json", "settings.jsonc", "settings.local.json"];

/// Finds the maps and lists of servers. Reports a file without servers.
pub(super) fn find_servers<'a>(root: &'a Node, context: &ReadContext) -> Vec<ServerMap<'a>> {
    let at = Location::root(root, context);
    let map_of = |node: &'a Node, at: Location, pointer: &str| {
        let program = Program::of_servers(&context.file, root, pointer);
        ServerMap { node, at, program, project: None }
    };
    match root.content() {
        Content::Sequence(_) => return vec![map_of(root, at, "")],
        Content::Mapping(_) => {}
        Content::Broken => return Vec::new(),
        content => {
            let message = match content {
                Content::Null => "the file is empty".to_owned(),
                _ => format!("the file must hold an object, not {}", root.kind()),
            };
            context.error(Code::NoServers, &at, message, EXAMPLE);
            return Vec::new();
        }
    }
    let by_path = Program::of_file(&context.file);
    let mut res = Vec::new();
    for key in server_keys() {
        let Some(member) = root.get(key) else { continue };
        let at = at.member(member, context);
        let node = &member.value;
        match (key, node.get("servers")) {
            ("mcp", Some(inner)) => {
                res.push(map_of(&inner.value, at.member(inner, context), "/mcp/servers"));
            }
            ("mcp", None) if !is_map_of_servers(node) && by_path.is_none_or(|it| it.key != key) => {}
            // Only Codex has this key, in TOML. In other files it is misspelt.
            ("mcp_servers", _) if !may_be_toml(&context.file) => {}
            // Other programs' extensions are no servers.
            ("extensions", _) if !is_goose_extensions(node) => {}
            (_, _) => res.push(map_of(node, at, &syntax::child_pointer("", key))),
        }
    }
    for pointer in nested_maps(root) {
        let found = syntax::pointer_segments(&pointer).try_fold((root, at), |(node, at), segment| {
            let member = node.get(&segment)?;
            Some((&member.value, at.member(member, context)))
        });
        if let Some((node, at)) = found {
            let project =
                pointer.strip_prefix("/projects").and(syntax::parent_pointer(&pointer)).map(syntax::last_key);
            res.push(ServerMap { project, ..map_of(node, at, &pointer) });
        }
    }
    if res.is_empty() && is_map_of_servers(root) {
        check_servers_key("", false, &at, context);
        return vec![map_of(root, at, "")];
    }
    if res.is_empty() {
        report_no_servers(root, &at, context);
    } else {
        report_misspelt_maps(root, &at, context);
    }
    let own_key = Program::of_file(&context.file).map_or("", |it| it.key);
    if root.get(own_key).is_none() {
        for member in root.members().unwrap_or_default() {
            let is_nested = member.value.get("servers").is_some();
            let key = &*member.key.text;
            // `{"mcp": {"servers": …}}` is the same as `mcp.servers` in settings.
            if server_keys().any(|it| it == key) && !(key == "mcp" && is_nested && own_key == "mcp.servers") {
                let is_nested = is_nested && key == "mcp";
                check_servers_key(key, is_nested, &at.member(member, context), context);
            }
        }
    }
    res
}

/// Warns about servers under a key that the program of the file does not read. The key is empty for servers at the top
/// level. `is_nested`: the servers are in the member `servers` of that key.
fn check_servers_key(key: &str, is_nested: bool, at: &Location, context: &ReadContext) {
    let Some(program) = Program::of_file(&context.file).filter(|it| !it.is_unknown()) else { return };
    // Settings have the keys of extensions too, such as `amp.mcpServers`.
    let is_extension = program.file_purpose == FilePurpose::Settings && key.contains('.');
    if key == program.key || program.other_keys.contains(&key) || is_extension {
        return;
    }
    let own_key = program.key;
    let (message, help, fix) = match key {
        "" => (
            format!("{} reads servers under '{own_key}' only", program.name),
            format!("put them under `\"{own_key}\"`"),
            None,
        ),
        // A new name for the key would wrap the servers twice.
        _ if is_nested => (
            format!("{} reads servers under '{own_key}', and ignores '{}'", program.name, quoted(key)),
            format!("move the servers up: `{{\"{own_key}\": {{…}}}}`"),
            None,
        ),
        _ => (
            format!("{} reads servers under '{own_key}', and ignores '{}'", program.name, quoted(key)),
            format!("write `\"{own_key}\"`"),
            Some(FixIntent::RenameKey(own_key.to_owned(), Applicability::Suggested)),
        ),
    };
    let diagnostic = context.new_diagnostic(Code::NoServers, &at.at_key(), message);
    context.report(diagnostic.warning().help(help).fix(fix));
}

const EXAMPLE: &str =
    "write `{\"mcpServers\": {\"some-name\": {\"command\": \"some-program\", \"args\": []}}}`";

/// Reports a file without servers; settings without servers get a warning.
fn report_no_servers(root: &Node, at: &Location, context: &ReadContext) {
    let at = &at.at_key();
    let name = context.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = Program::of_file(&context.file);
    if program.is_some_and(|it| it.file_purpose == FilePurpose::Settings) || SETTINGS_FILES.contains(&name) {
        let message = "these settings have no MCP servers";
        let own_key = program.filter(|it| !it.is_unknown()).map(|it| it.key);
        let members = root.members().unwrap_or_default();
        let near = own_key.and_then(|own_key| {
            let keys = members.iter().map(|it| &*it.key.text);
            keys.into_iter().find(|it| closest(it, [own_key]).is_some()).zip(Some(own_key))
        });
        let help = match (near, own_key) {
            (Some((key, near)), _) => format!("did you mean `{near}` by '{}'?", quoted(key)),
            (None, Some(own_key)) => format!("servers belong under `{own_key}`"),
            (None, None) => "servers belong under `mcpServers`, or this program's own key".to_owned(),
        };
        context.warning(Code::NoServers, at, message, help);
        return;
    }
    let members = root.members().unwrap_or_default();
    let near = members
        .iter()
        .find_map(|it| Some((&it.key.text, closest(&it.key.text.replace('_', ""), server_keys())?)));
    let help = if is_server(root) {
        "this is a single server: put it under a name, `{\"mcpServers\": {\"some-name\": …}}`".to_owned()
    } else if let Some((key, near)) = near {
        format!("did you mean `{near}` by '{}'?", quoted(key))
    } else {
        format!("{EXAMPLE}; a file named `mcp.json` may also belong to another program")
    };
    let message = "the file has no MCP servers: neither 'mcpServers' nor 'servers', 'mcp.servers', \
                   'context_servers' or 'mcp'";
    context.error(Code::NoServers, at, message, help);
}

/// Warns about further servers and inputs under a misspelt key (DIA-13). Other unknown keys belong to the program of
/// the file.
fn report_misspelt_maps(root: &Node, at: &Location, context: &ReadContext) {
    // A key with a word more is not misspelt: some users keep servers under such a key.
    const MAX_LENGTH_DIFFERENCE: usize = 2;
    let is_list_of_inputs =
        |it: &Node| it.items().is_some_and(|it| !it.is_empty() && it.iter().all(|it| it.get("id").is_some()));
    for member in root.members().unwrap_or_default() {
        let key = &*member.key.text;
        let candidates: Vec<&str> = match &member.value {
            it if is_map_of_servers(it) => server_keys().collect(),
            it if is_list_of_inputs(it) => vec!["inputs"],
            _ => continue,
        };
        let is_private = context.rules.private_keys.iter().any(|it| key.starts_with(it));
        if is_private || candidates.contains(&key) {
            continue;
        }
        let near = context.suggest(key, candidates.iter().copied());
        let near = near.filter(|it| it.0.len().abs_diff(key.len()) <= MAX_LENGTH_DIFFERENCE);
        if let Some((near, _)) = near {
            let message = format!("unknown key '{}'; its content is not read", quoted(key));
            let diagnostic =
                context.new_diagnostic(Code::UnknownKey, &at.member(member, context).at_key(), message);
            let fix = FixIntent::RenameKey(near.to_owned(), Applicability::Suggested);
            let fix = root.get(near).is_none().then_some(fix);
            context.report(diagnostic.warning().help(format!("did you mean `{near}`?")).fix(fix));
        }
    }
}

/// Returns whether a file may be TOML: by its extension, or because it has none.
fn may_be_toml(file: &str) -> bool {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').is_none_or(|it| it.1 == "toml")
}

/// The pointers to the server maps of a dev container, and of the projects in Claude Code's settings.
fn nested_maps(root: &Node) -> Vec<String> {
    let projects = root.value("projects").and_then(Node::members).unwrap_or_default();
    let of_project = |it: &syntax::Member| {
        let servers = it.value.get("mcpServers")?;
        let is_used = servers.value.members().is_some_and(|it| !it.is_empty());
        is_used
            .then(|| syntax::child_pointer(&syntax::child_pointer("/projects", &it.key.text), "mcpServers"))
    };
    let dev_container = root.at(DEV_CONTAINER_SERVERS).map(|_| DEV_CONTAINER_SERVERS.to_owned());
    dev_container.into_iter().chain(projects.iter().filter_map(of_project)).collect()
}

/// The declarations of inputs in a file.
pub(super) fn declared_inputs(root: &Node) -> impl Iterator<Item = &Node> {
    let lists = ["/inputs", "/mcp/inputs", DEV_CONTAINER_INPUTS].into_iter();
    lists.filter_map(|it| root.at(it)?.items()).flatten()
}

/// Returns whether a node is a map of Goose's extensions: each has a `type`.
pub(crate) fn is_goose_extensions(node: &Node) -> bool {
    let members = node.members().unwrap_or_default();
    !members.is_empty() && members.iter().all(|it| it.value.get("type").is_some())
}

/// Returns whether a node looks like a server entry.
pub(crate) fn is_server(node: &Node) -> bool {
    keys::command_and_url_keys().any(|it| node.get(it).is_some())
}

/// Returns whether a node is a non-empty mapping of server entries only.
pub(crate) fn is_map_of_servers(node: &Node) -> bool {
    let members = node.members().unwrap_or_default();
    !members.is_empty() && members.iter().all(|it| is_server(&it.value))
}
