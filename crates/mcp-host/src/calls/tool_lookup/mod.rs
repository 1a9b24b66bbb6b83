//! Lookup of tools by name, with errors that explain why one is missing.

use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, ExposureFilter, ExposureRules, ServerId};
use mcp_host_registry::{
    Catalog, CompiledRules, Decision, ExposedTool, ProblemKind, ServerLists, ToolLookup, decide,
};

use crate::calls::tool_call::{CalledTool, ToolCall};
use crate::config::desired::is_qualified;
use crate::error::HostError;
use crate::state::published::ServerState;
use crate::supervisor::machine::{Route, RoutingTable, UnavailableServer};

/// The maximum number of characters of a name in a message.
const MAX_NAME_CHARS: usize = 128;

/// Finds the tool of a call, and its route. Tools of the host have no route.
pub(super) fn find_called_tool<'c, 't: 'c, I>(
    routing_table: &'t RoutingTable<I>,
    call: &'c ToolCall,
) -> Result<(&'c ExposedTool, Option<&'t Route<I>>), HostError> {
    let found = match &call.tool {
        CalledTool::Named(name) => return find_tool(routing_table, name, call.options.server.as_ref()),
        CalledTool::Found(found) => found,
    };
    let found_tool @ ExposedTool { name, server, tool, .. } = found.tool();
    if Arc::ptr_eq(found.snapshot(), &routing_table.snapshot)
        && let Some(route) = routing_table.routes.get(server)
    {
        return Ok((found_tool, Some(route)));
    }
    let (current, route) = find_tool(routing_table, name.as_str(), Some(server))?;
    // The caller made the call for the schema that it knows.
    match current.tool.input_schema == tool.input_schema {
        true => Ok((current, route)),
        false => Err(being_replaced_error(&format!("Tool '{}'", display_name(name.as_str())))),
    }
}

/// Finds the tool called `name`, on `server` if there is one, and its route. Tools of the host have no route.
fn find_tool<'a, I>(
    routing_table: &'a RoutingTable<I>,
    name: &str,
    server: Option<&ServerId>,
) -> Result<(&'a ExposedTool, Option<&'a Route<I>>), HostError> {
    if let Some(error) = &routing_table.host_error {
        return Err(error.clone());
    }
    let catalog = &routing_table.snapshot.catalog;
    let lookup = match server {
        None => catalog.find(name),
        Some(server) => find_on_server(catalog, name, server),
    };
    match lookup {
        ToolLookup::Found(tool) => Ok((tool, routing_table.routes.get(&tool.server))),
        ToolLookup::Ambiguous(tools) => Err(ambiguous_error(name, &tools)),
        ToolLookup::Missing { nearest } => Err(missing_error(routing_table, name, server, nearest)),
    }
}

/// Returns a name for messages: without control characters, and shortened.
pub(super) fn display_name(name: &str) -> String {
    let mut shown: String = name.chars().filter(|it| !it.is_control()).take(MAX_NAME_CHARS).collect();
    if name.chars().count() > MAX_NAME_CHARS {
        shown.push('…');
    }
    shown
}

fn find_on_server<'a>(catalog: &'a Catalog, name: &str, server: &ServerId) -> ToolLookup<'a> {
    match catalog.tool_of(server, name) {
        Some(tool) => ToolLookup::Found(tool),
        None => match catalog.find(name) {
            ToolLookup::Missing { nearest } => {
                ToolLookup::Missing { nearest: nearest.filter(|it| it.server == *server) }
            }
            ToolLookup::Found(_) | ToolLookup::Ambiguous(_) => ToolLookup::Missing { nearest: None },
        },
    }
}

fn ambiguous_error(name: &str, tools: &[&ExposedTool]) -> HostError {
    let mut names: Vec<String> = tools.iter().map(|it| format!("'{}'", it.name)).collect();
    let last = names.pop().unwrap_or_default();
    let message = format!("Tool '{}' is ambiguous: use {} or {last}", display_name(name), names.join(", "));
    HostError::new(ErrorKind::ToolNotFound, message)
}

/// Returns the error of a missing tool, with the most certain reason.
fn missing_error<I>(
    routing_table: &RoutingTable<I>,
    name: &str,
    server: Option<&ServerId>,
    nearest: Option<&ExposedTool>,
) -> HostError {
    if routing_table.snapshot.servers.iter().any(|it| it.state == ServerState::Stopped) {
        return HostError::shut_down();
    }
    let is_named = |id: &str| server.is_none_or(|it| it.as_str() == id);
    let is_owner =
        |it: &UnavailableServer| is_named(&it.name) && (server.is_some() || can_have_tool(it, name));
    if let Some(error) = find_unavailable_owner(routing_table, name, is_owner) {
        return error;
    }
    let not_found = |reason: &str| {
        HostError::new(ErrorKind::ToolNotFound, format!("Tool '{}' not found{reason}", display_name(name)))
    };
    if let Some(server) = server.filter(|it| !routing_table.routes.contains_key(*it)) {
        return not_found(&format!(": there is no server '{server}'"));
    }
    let unlisted = routing_table
        .routes
        .iter()
        .filter(|(id, it)| is_named(id.as_str()) && !it.server.spec.discovery.tools);
    let unlisted = unlisted.map(|(id, it)| {
        (id, server.is_some() || has_affixes(&it.server, &it.server.spec.exposure.tools, name))
    });
    if let Some((id, _)) = unlisted.filter(|(_, owns)| *owns).min() {
        return not_found(&format!(": the tools of server '{id}' are not loaded (load_tools is false)"));
    }
    let is_hidden = |it: &&Decision| is_named(it.server.as_str()) && it.original == name;
    if let Some(decision) = routing_table.snapshot.catalog.hidden_tools().find(is_hidden) {
        return not_found(&format!(
            ": server '{}' has it, but it is not shown: {}",
            decision.server, decision.rule
        ));
    }
    let mut hints = String::new();
    let may_own = |id: &ServerId| {
        let route = routing_table.routes.get(id);
        is_named(id.as_str())
            && route.is_some_and(|it| {
                server.is_some() || has_affixes(&it.server, &it.server.spec.exposure.tools, name)
            })
    };
    if let Some(problem) = routing_table.snapshot.problems.iter().map(|it| &it.problem).find(|problem| {
        problem.kind == ProblemKind::ServerError && problem.server.as_ref().is_some_and(may_own)
    }) {
        hints.push_str(&format!("; {}", problem.message));
    }
    let unavailable: Vec<String> =
        routing_table.unavailable.iter().map(|it| format!("'{}'", display_name(&it.name))).collect();
    if !unavailable.is_empty() {
        hints.push_str(&format!("; servers that are not available: {}", unavailable.join(", ")));
    }
    if let Some(nearest) = nearest {
        hints.push_str(&format!("; did you mean '{}'?", nearest.name));
    }
    not_found(&hints)
}

/// Returns why a tool is not available, if one of these servers is down and can have it.
pub(crate) fn unavailable_tool_error<I>(
    routing_table: &RoutingTable<I>,
    name: &str,
    may_own: impl Fn(&ServerId) -> bool,
) -> Option<HostError> {
    find_unavailable_owner(routing_table, name, |unavailable| {
        unavailable.name.id().is_some_and(&may_own) && can_have_tool(unavailable, name)
    })
}

fn find_unavailable_owner<I>(
    routing_table: &RoutingTable<I>,
    name: &str,
    is_owner: impl Fn(&UnavailableServer) -> bool,
) -> Option<HostError> {
    let unavailable = routing_table.unavailable.iter().find(|it| is_owner(it))?;
    Some(unavailable_error(unavailable, &format!("Tool '{}'", display_name(name))))
}

/// Returns the error for an item of a server that is not available. `label` is that of the item, such as `Tool 'x'`.
pub(super) fn unavailable_error(unavailable: &UnavailableServer, label: &str) -> HostError {
    if unavailable.state == ServerState::Disabled {
        let message = format!("{label} is not available: server '{}' is disabled", unavailable.name);
        return HostError::new(ErrorKind::Connection, message);
    }
    let Some(failure) = &unavailable.failure else {
        let message = format!("{label} is not available: server '{}' is starting", unavailable.name);
        return HostError::new(ErrorKind::Connection, message);
    };
    let restart = match unavailable.state {
        ServerState::Restarting => "; it is restarted automatically",
        ServerState::Starting
        | ServerState::Ready
        | ServerState::Failed
        | ServerState::Disabled
        | ServerState::Stopped => "",
    };
    let server =
        if failure.has_context() { String::new() } else { format!("server '{}': ", unavailable.name) };
    let message = format!("{label} is not available: {server}{}{restart}", failure.message);
    HostError { help: failure.help.clone(), ..HostError::new(failure.kind, message) }
}

/// Returns the error for an item whose server was replaced during each lookup, or by one that differs.
pub(super) fn being_replaced_error(label: &str) -> HostError {
    let message = format!("{label} is not available: its server is being replaced");
    HostError::new(ErrorKind::Connection, message)
}

/// Returns whether an unavailable server may have this tool, by its last lists, or by the prefix of its names.
fn can_have_tool(unavailable: &UnavailableServer, name: &str) -> bool {
    let Some(server) = &unavailable.server else {
        return unavailable.name.id().is_some_and(|id| is_qualified(id, name));
    };
    unavailable.lists.as_ref().is_some_and(|it| lists_tool(server, it, name))
        || has_affixes(server, &server.spec.exposure.tools, name)
}

fn lists_tool(server: &ResolvedServer, lists: &ServerLists, name: &str) -> bool {
    let decider = CompiledRules::new(&server.spec.id, &server.spec.exposure.tools);
    lists.tools.iter().any(|tool| {
        *tool.name == *name || decider.decide(&tool.name).exposed.is_some_and(|it| it.as_str() == name)
    })
}

/// Returns whether `name` has the prefix and suffix of the server's exposed names. They are found by applying its rules
/// for one kind of item to a probe name.
pub(super) fn has_affixes(server: &ResolvedServer, rules: &ExposureRules, name: &str) -> bool {
    // A text that no prefix or suffix contains.
    const PROBE: &str = "q7zq";
    let mut rules = rules.clone();
    rules.filter = ExposureFilter::default();
    let Some(exposed) = decide(&server.spec.id, &rules, PROBE).exposed else { return false };
    // A long prefix may cut the probe name: then the affixes are unknown.
    let Some((prefix, suffix)) = exposed.as_str().rsplit_once(PROBE) else { return false };
    !prefix.is_empty() && name.starts_with(prefix) && name.ends_with(suffix)
}

#[cfg(test)]
mod tests;
