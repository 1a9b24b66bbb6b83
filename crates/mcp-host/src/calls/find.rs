//! From a name to a tool and the place where its calls go, or to a sentence that says why there is none.

use mcp_config::ResolvedServer;
use mcp_model::{ErrorKind, Filter, Rules, ServerId};
use mcp_registry::{
    Catalog, CompiledRules, Decision, ExposedTool, ListKind, ServerLists, ToolLookup, decide,
};

use crate::failure::HostError;
use crate::state::published::ServerState;
use crate::supervisor::machine::{Absent, Route, Snapshot};

/// The longest name that a message repeats, in characters.
const LONGEST_NAME: usize = 128;

/// The tool that is meant by `name`, of `server` where that is given, and where its calls go; the host's own have no
/// route.
pub(super) fn find<'a, I>(
    snapshot: &'a Snapshot<I>,
    name: &str,
    server: Option<&ServerId>,
) -> Result<(&'a ExposedTool, Option<&'a Route<I>>), HostError> {
    if let Some(fault) = &snapshot.fault {
        return Err(fault.clone());
    }
    let catalog = &snapshot.published.catalog;
    let lookup = match server {
        None => catalog.find(name),
        Some(server) => of_server(catalog, name, server),
    };
    match lookup {
        ToolLookup::Found(tool) => Ok((tool, snapshot.routes.get(&tool.server))),
        ToolLookup::Ambiguous(tools) => Err(ambiguous(name, &tools)),
        ToolLookup::Missing { nearest } => Err(missing(snapshot, name, server, nearest)),
    }
}

/// A name as a message may repeat it.
pub(super) fn shown(name: &str) -> String {
    let mut res: String = name.chars().filter(|it| !it.is_control()).take(LONGEST_NAME).collect();
    if name.chars().count() > LONGEST_NAME {
        res.push('…');
    }
    res
}

fn of_server<'a>(catalog: &'a Catalog, name: &str, server: &ServerId) -> ToolLookup<'a> {
    if let Some(tool) = catalog.tool(name).filter(|it| it.server == *server) {
        return ToolLookup::Found(tool);
    }
    let mut own = catalog.tools().iter().filter(|it| it.server == *server);
    match own.find(|it| &*it.tool.name == name) {
        Some(tool) => ToolLookup::Found(tool),
        None => match catalog.find(name) {
            ToolLookup::Missing { nearest } => {
                ToolLookup::Missing { nearest: nearest.filter(|it| it.server == *server) }
            }
            ToolLookup::Found(_) | ToolLookup::Ambiguous(_) => ToolLookup::Missing { nearest: None },
        },
    }
}

fn ambiguous(name: &str, tools: &[&ExposedTool]) -> HostError {
    let mut names: Vec<String> = tools.iter().map(|it| format!("'{}'", it.name)).collect();
    let last = names.pop().unwrap_or_default();
    let message = format!("Tool '{}' is ambiguous: say {} or {last}", shown(name), names.join(", "));
    HostError::new(ErrorKind::ToolNotFound, message)
}

/// Why there is no such tool: the most certain reason first.
fn missing<I>(
    snapshot: &Snapshot<I>,
    name: &str,
    server: Option<&ServerId>,
    nearest: Option<&ExposedTool>,
) -> HostError {
    if snapshot.published.servers.iter().any(|it| it.state == ServerState::Stopped) {
        return HostError::new(ErrorKind::Connection, "the host was shut down");
    }
    let meant = |id: &str| server.is_none_or(|it| it.as_str() == id);
    let owner = |it: &&Absent| meant(&it.name) && (server.is_some() || may_own(it, name));
    if let Some(absent) = snapshot.absent.iter().find(owner) {
        return unavailable(absent, &format!("Tool '{}'", shown(name)));
    }
    let not_found =
        |why: &str| HostError::new(ErrorKind::ToolNotFound, format!("Tool '{}' not found{why}", shown(name)));
    if let Some(server) = server.filter(|it| !snapshot.routes.contains_key(*it)) {
        return not_found(&format!(": there is no server '{server}'"));
    }
    let unlisted =
        snapshot.routes.iter().filter(|(id, it)| meant(id.as_str()) && !it.server.spec.discovery.tools);
    let unlisted = unlisted.map(|(id, it)| (id, server.is_some() || has_prefix(&it.server, name)));
    if let Some((id, _)) = unlisted.filter(|(_, owns)| *owns).min() {
        return not_found(&format!(": the tools of server '{id}' are not loaded (load_tools is false)"));
    }
    let hidden = |it: &&Decision| meant(it.server.as_str()) && it.exposed.is_none() && it.original == name;
    if let Some(decision) = snapshot.published.catalog.decisions(ListKind::Tool).find(hidden) {
        return not_found(&format!(
            ": server '{}' has it, but it is not shown: {}",
            decision.server, decision.rule
        ));
    }
    let mut hints = String::new();
    let absent: Vec<String> = snapshot.absent.iter().map(|it| format!("'{}'", shown(&it.name))).collect();
    if !absent.is_empty() {
        hints.push_str(&format!("; servers that are not available: {}", absent.join(", ")));
    }
    if let Some(nearest) = nearest {
        hints.push_str(&format!("; did you mean '{}'?", nearest.name));
    }
    not_found(&hints)
}

/// Why what is asked for, such as `Tool 'x'`, is not there while its server is not.
pub(super) fn unavailable(absent: &Absent, what: &str) -> HostError {
    if absent.state == ServerState::Disabled {
        let message = format!("{what} is not available: server '{}' was switched off", absent.name);
        return HostError::new(ErrorKind::Connection, message);
    }
    let Some(failure) = &absent.failure else {
        let message = format!("{what} is not available: server '{}' is being started", absent.name);
        return HostError::new(ErrorKind::Connection, message);
    };
    let HostError { kind, message, help } = failure;
    let again = match absent.state {
        ServerState::Restarting => "; it is started again by itself",
        ServerState::Starting
        | ServerState::Ready
        | ServerState::Failed
        | ServerState::Disabled
        | ServerState::Stopped => "",
    };
    let own_words = format!("server '{}'", absent.name);
    let message = match message.starts_with(&own_words) {
        true => format!("{what} is not available: {message}{again}"),
        false => format!("{what} is not available: {own_words}: {message}{again}"),
    };
    HostError { kind: *kind, message, help: help.clone() }
}

/// Is `name` one of the tools of a server that is not there? Its last lists say so; without, the beginning that it
/// gives to all its names.
fn may_own(absent: &Absent, name: &str) -> bool {
    let Some(server) = &absent.server else { return false };
    absent.lists.as_ref().is_some_and(|it| lists_name(server, it, name)) || has_prefix(server, name)
}

fn lists_name(server: &ResolvedServer, lists: &ServerLists, name: &str) -> bool {
    let decider = CompiledRules::new(&server.spec.id, &server.spec.exposure.tools);
    lists.tools.iter().any(|tool| {
        *tool.name == *name || decider.decide(&tool.name).exposed.is_some_and(|it| it.as_str() == name)
    })
}

/// Does `name` begin as every name of the server does? What its rules do to a made-up name tells how.
fn has_prefix(server: &ResolvedServer, name: &str) -> bool {
    // A text that no prefix or suffix holds by chance.
    const PROBE: &str = "q7zq";
    let Rules { filter: _, transforms, naming, limit } = server.spec.exposure.tools.clone();
    let rules = Rules { filter: Filter::default(), transforms, naming, limit };
    let Some(exposed) = decide(&server.spec.id, &rules, PROBE).exposed else { return false };
    // A long name loses its end, and then says nothing.
    let Some((prefix, suffix)) = exposed.as_str().rsplit_once(PROBE) else { return false };
    !prefix.is_empty() && name.starts_with(prefix) && name.ends_with(suffix)
}

#[cfg(test)]
mod tests;
