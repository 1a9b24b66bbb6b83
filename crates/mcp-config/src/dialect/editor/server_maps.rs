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

/// Finds the maps and lists of servers. Reports a file without servers. `path_program` is the program that the path of
/// the file belongs to.
pub(super) fn find_servers<'a>(
    root: &'a Node,
    path_program: Option<&'static Program>,
    context: &ReadContext,
) -> Vec<ServerMap<'a>> {
    let at = Location::root(root, context);
    let map_of = |node: &'a Node, at: Location, pointer: &str| {
        let program = Program::choose(path_program, root, pointer);
        ServerMap { node, at, program, project: None }
    };
    match root.resolved_content() {
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
    let file = FileKeys { path_program, root, at, context };
    let mut res = Vec::new();
    for key in server_keys() {
        let Some(member) = root.get(key).filter(|member| file.is_read(key, &member.value)) else { continue };
        let at = at.member(member, context);
        let nested = member.value.get("servers").filter(|_| key == NESTED_KEY);
        res.push(match nested {
            Some(inner) => map_of(&inner.value, at.member(inner, context), NESTED_SERVERS),
            None => map_of(&member.value, at, &syntax::child_pointer("", key)),
        });
        file.check_servers_key(member, nested.is_some());
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
        file.check_servers_at_root();
        return vec![map_of(root, at, "")];
    }
    if res.is_empty() {
        file.report_no_servers();
    } else {
        file.report_misspelt_maps();
    }
    res
}

/// The key of VS Code's settings that has the servers in its member `servers`.
const NESTED_KEY: &str = "mcp";
const NESTED_SERVERS: &str = "/mcp/servers";

const EXAMPLE: &str =
    "write `{\"mcpServers\": {\"some-name\": {\"command\": \"some-program\", \"args\": []}}}`";

/// The top-level keys of a file.
struct FileKeys<'a> {
    path_program: Option<&'static Program>,
    root: &'a Node,
    at: Location,
    context: &'a ReadContext,
}

impl FileKeys<'_> {
    /// The program of the file, if its path tells it.
    fn program(&self) -> Option<&'static Program> {
        self.path_program.filter(|it| !it.is_unknown())
    }

    /// Whether servers are read under this key with this value.
    fn is_read(&self, key: &str, value: &Node) -> bool {
        match key {
            NESTED_KEY => {
                value.get("servers").is_some()
                    || is_map_of_servers(value)
                    || self.path_program.is_some_and(|it| it.key == key)
            }
            // Only Codex has this key, in TOML. In other files it is misspelt.
            "mcp_servers" => may_be_toml(&self.context.file),
            // Other programs' extensions are no servers.
            "extensions" => is_goose_extensions(value),
            _ => true,
        }
    }

    /// Warns about servers under a key that the program of the file does not read (DIA-13). `is_nested`: the servers
    /// are in the member `servers` of that key.
    fn check_servers_key(&self, member: &syntax::Member, is_nested: bool) {
        let Some(program) = self.program() else { return };
        let key = &*member.key.text;
        // Settings have the keys of extensions too, such as `amp.mcpServers`.
        let is_extension = program.file_purpose == FilePurpose::Settings && key.contains('.');
        // `{"mcp": {"servers": …}}` is the same as `mcp.servers` in settings.
        let is_same_as_own = is_nested && program.key == "mcp.servers";
        if key == program.key || program.other_keys.contains(&key) || is_extension || is_same_as_own {
            return;
        }
        let has_own_key = self.root.at(&program.servers_pointer()).is_some();
        let is_empty = member.value.members().is_some_and(<[_]>::is_empty);
        if has_own_key && is_empty {
            return;
        }
        let (name, own_key) = (quoted(key), program.key);
        let message = format!("{} reads servers under '{own_key}', and ignores '{name}'", program.name);
        let (help, fix) = if has_own_key {
            (format!("move its servers to `{own_key}`"), None)
        } else if is_nested {
            // A new name for the key would wrap the servers twice.
            (format!("move the servers up: `{{\"{own_key}\": {{…}}}}`"), None)
        } else if program.has_key_at_root() {
            let fix = FixIntent::RenameKey(own_key.to_owned(), Applicability::Suggested);
            (format!("write `\"{own_key}\"`"), Some(fix))
        } else {
            (format!("move the servers to `{own_key}`"), None)
        };
        let at = self.at.member(member, self.context).at_key();
        let diagnostic = self.context.new_diagnostic(Code::NoServers, &at, message);
        self.context.report(diagnostic.warning().help(help).fix(fix));
    }

    /// Warns about servers without a key above them, if the program of the file does not read them.
    fn check_servers_at_root(&self) {
        let Some(program) = self.program().filter(|it| !it.other_keys.contains(&"")) else { return };
        let own_key = program.key;
        let message = format!("{} reads servers under '{own_key}' only", program.name);
        let help = format!("put them under `\"{own_key}\"`");
        self.context.warning(Code::NoServers, &self.at.at_key(), message, help);
    }

    /// Reports a file without servers; settings without servers get a warning.
    fn report_no_servers(&self) {
        let (context, at) = (self.context, &self.at.at_key());
        let name = context.file.rsplit(['/', '\\']).next().unwrap_or_default();
        let members = self.root.members().unwrap_or_default();
        let is_settings = self.path_program.is_some_and(|it| it.file_purpose == FilePurpose::Settings);
        if is_settings || SETTINGS_FILES.contains(&name) {
            let message = "these settings have no MCP servers";
            let own_key = self.program().map(|it| it.key);
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
        let near = members.iter().find_map(|it| {
            Some((&it.key.text, closest(&it.key.text.replace('_', ""), self.meant_keys(&it.value))?))
        });
        let help = if is_server(self.root) {
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

    /// The keys that a misspelt key of servers can mean: that of the program of the file, or any that is read.
    fn meant_keys<'k>(&self, value: &Node) -> Vec<&'k str> {
        match self.program() {
            Some(program) if program.has_key_at_root() => vec![program.key],
            Some(_) => Vec::new(),
            None => server_keys().filter(|it| self.is_read(it, value)).collect(),
        }
    }

    /// Warns about further servers and inputs under a misspelt key, and under a key of other programs (DIA-13). Other
    /// unknown keys belong to the program of the file.
    fn report_misspelt_maps(&self) {
        // A key with a word more is not misspelt: some users keep servers under such a key.
        const MAX_LENGTH_DIFFERENCE: usize = 2;
        let context = self.context;
        let is_list_of_inputs = |it: &Node| {
            it.items().is_some_and(|it| !it.is_empty() && it.iter().all(|it| it.get("id").is_some()))
        };
        for member in self.root.members().unwrap_or_default() {
            let key = &*member.key.text;
            let meant: Vec<&str> = match &member.value {
                it if is_map_of_servers(it) => self.meant_keys(it),
                it if is_list_of_inputs(it) => vec!["inputs"],
                _ => continue,
            };
            let is_private = context.rules.private_keys.iter().any(|it| key.starts_with(it));
            let is_of_program = server_keys().any(|it| it == key);
            if is_private || meant.contains(&key) || (is_of_program && self.is_read(key, &member.value)) {
                continue;
            }
            let own_key = self.program().map(|it| it.key).or(meant.first().copied());
            let near = if is_of_program { own_key } else { self.nearest(key, &meant) };
            let is_misspelt =
                |near: &&str| is_of_program || near.len().abs_diff(key.len()) <= MAX_LENGTH_DIFFERENCE;
            if let Some(near) = near.filter(is_misspelt) {
                let message = format!("unknown key '{}'; its content is not read", quoted(key));
                let at = self.at.member(member, context).at_key();
                let diagnostic = context.new_diagnostic(Code::UnknownKey, &at, message);
                let fix = FixIntent::RenameKey(near.to_owned(), Applicability::Suggested);
                let fix = (meant.contains(&near) && self.root.get(near).is_none()).then_some(fix);
                context.report(diagnostic.warning().help(format!("did you mean `{near}`?")).fix(fix));
            }
        }
    }

    fn nearest<'k>(&self, key: &str, meant: &[&'k str]) -> Option<&'k str> {
        self.context.suggest(key, meant.iter().copied()).map(|it| it.0)
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
