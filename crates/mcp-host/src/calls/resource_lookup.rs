//! Lookup of prompts, resources and templates, with an error that explains why one is missing.

use mcp_host_model::{ErrorKind, ExposureFilter, ServerId};
use mcp_host_registry::{Decision, ExposedPrompt, ListKind};

use crate::calls::tool_lookup::{display_name, unavailable_error};
use crate::error::HostError;
use crate::state::published::ServerState;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{Route, RoutingTable};

/// The requested item.
#[derive(Clone, Copy)]
pub(super) enum LookupItem<'a> {
    Prompt(&'a str),
    Resource(&'a str),
    Template(&'a str),
    /// A task of a named server.
    Task(&'a str),
    /// The list of skills of a named server.
    Skills,
}

impl LookupItem<'_> {
    /// `Prompt 'x'`.
    pub(super) fn label(self) -> String {
        match self {
            LookupItem::Prompt(name) => format!("Prompt '{}'", display_name(name)),
            LookupItem::Resource(uri) => format!("Resource '{}'", display_name(uri)),
            LookupItem::Template(uri) => format!("Resource template '{}'", display_name(uri)),
            LookupItem::Task(id) => format!("Task '{}'", display_name(id)),
            LookupItem::Skills => "Skills".to_owned(),
        }
    }

    fn list_kind(self) -> ListKind {
        match self {
            LookupItem::Prompt(_) => ListKind::Prompt,
            LookupItem::Resource(_) | LookupItem::Template(_) | LookupItem::Skills => ListKind::Resource,
            LookupItem::Task(_) => ListKind::Tool,
        }
    }
}

/// Finds an item in this generation: the route of its server, and its name at the server.
pub(super) fn find_item<'a>(
    routing_table: &'a RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
) -> Result<(&'a Route<InstanceRef>, String), HostError> {
    if let Some(fault) = &routing_table.fault {
        return Err(fault.clone());
    }
    let (id, name) = match item {
        LookupItem::Prompt(name) => {
            let it = find_prompt(routing_table, name, server)?;
            (it.server.clone(), it.prompt.name.to_string())
        }
        LookupItem::Resource(uri) => (find_resource_server(routing_table, uri, server)?, uri.to_owned()),
        LookupItem::Template(uri) => {
            let templates = routing_table.snapshot.catalog.templates().iter();
            let owners = templates.filter(|it| &*it.template.uri_template == uri).map(|it| &it.server);
            (single_owner(routing_table, item, server, owners)?, uri.to_owned())
        }
        LookupItem::Task(id) => {
            let server = server.ok_or_else(|| missing(routing_table, item, None))?;
            (server.clone(), id.to_owned())
        }
        LookupItem::Skills => {
            let server = server.ok_or_else(|| missing(routing_table, item, None))?;
            (server.clone(), String::new())
        }
    };
    match routing_table.routes.get(&id) {
        Some(route) => Ok((route, name)),
        None => Err(missing(routing_table, item, server)),
    }
}

/// The prompt with this exposed name, else with this original name if only one server has it.
pub(super) fn find_prompt<'a>(
    routing_table: &'a RoutingTable<InstanceRef>,
    name: &str,
    server: Option<&ServerId>,
) -> Result<&'a ExposedPrompt, HostError> {
    let meant = |it: &&ExposedPrompt| server.is_none_or(|server| it.server == *server);
    let catalog = &routing_table.snapshot.catalog;
    if let Some(it) = catalog.prompt(name).filter(meant) {
        return Ok(it);
    }
    let own: Vec<&ExposedPrompt> =
        catalog.prompts().iter().filter(meant).filter(|it| &*it.prompt.name == name).collect();
    match own.as_slice() {
        [] => Err(missing(routing_table, LookupItem::Prompt(name), server)),
        [prompt] => Ok(prompt),
        many => {
            let names: Vec<String> = many.iter().map(|it| format!("'{}'", it.name)).collect();
            let message =
                format!("Prompt '{}' is ambiguous: use one of {}", display_name(name), names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// The server of a URI: the named one, else the one that lists it, else the one with the best matching template.
fn find_resource_server(
    routing_table: &RoutingTable<InstanceRef>,
    uri: &str,
    server: Option<&ServerId>,
) -> Result<ServerId, HostError> {
    let item = LookupItem::Resource(uri);
    let catalog = &routing_table.snapshot.catalog;
    let listed = catalog.resources().iter().filter(|it| &*it.resource.uri == uri).map(|it| &it.server);
    let listed: Vec<&ServerId> = listed.filter(|it| server.is_none_or(|server| *it == server)).collect();
    if !listed.is_empty() {
        return single_owner(routing_table, item, server, listed.into_iter());
    }
    let not_shown = |reason: String| {
        let message = format!("{} not found: {reason} it is not shown", item.label());
        Err(HostError::new(ErrorKind::Validation, message))
    };
    // A server that lists the resource but hides it: a template must not make it readable.
    let hiding =
        |id: &&ServerId| server.is_none_or(|server| server == *id) && is_withheld(routing_table, id, uri);
    if let Some(id) = routing_table.routes.keys().filter(hiding).min() {
        return not_shown(format!("server '{id}' has it, but"));
    }
    if let Some(server) = server {
        if is_filtered(routing_table, server, uri) {
            return not_shown(format!("server '{server}' has a filter, and"));
        }
        return match routing_table.routes.contains_key(server) {
            true => Ok(server.clone()),
            false => Err(missing(routing_table, item, Some(server))),
        };
    }
    let fitting = catalog
        .templates()
        .iter()
        .filter_map(|it| Some((match_template(&it.template.uri_template, uri)?, it)));
    let fitting: Vec<_> = fitting.collect();
    let best = fitting.iter().map(|(length, _)| *length).max();
    let owners = fitting.iter().filter(|it| Some(it.0) == best).map(|(_, it)| &it.server);
    single_owner(routing_table, item, None, owners)
}

/// Whether a list contains the resource.
pub(super) fn is_listed(routing_table: &RoutingTable<InstanceRef>, uri: &str) -> bool {
    routing_table.snapshot.catalog.resources().iter().any(|it| &*it.resource.uri == uri)
}

/// Whether the resource must not be read from a server because of its filter.
pub(super) fn is_hidden(routing_table: &RoutingTable<InstanceRef>, server: &ServerId, uri: &str) -> bool {
    is_withheld(routing_table, server, uri) || is_filtered(routing_table, server, uri)
}

/// Whether a server lists the resource, which is not shown.
fn is_withheld(routing_table: &RoutingTable<InstanceRef>, server: &ServerId, uri: &str) -> bool {
    let route = routing_table.routes.get(server);
    let mut shown = routing_table.snapshot.catalog.resources().iter();
    route.is_some_and(|route| route.lists.resources.iter().any(|it| &*it.uri == uri))
        && !shown.any(|it| it.server == *server && &*it.resource.uri == uri)
}

/// Whether a server filters its resources and no shown template matches the URI: then it must not be read.
fn is_filtered(routing_table: &RoutingTable<InstanceRef>, server: &ServerId, uri: &str) -> bool {
    let Some(route) = routing_table.routes.get(server) else { return false };
    let ExposureFilter { whitelist, blacklist } = &route.server.spec.exposure.resources.filter;
    let templates = routing_table.snapshot.catalog.templates().iter().filter(|it| it.server == *server);
    let is_listed =
        || templates.map(|it| &it.template.uri_template).any(|it| match_template(it, uri).is_some());
    let filters = !whitelist.is_empty() || !blacklist.is_empty();
    filters && !is_listed()
}

/// The number of literal bytes of a template (RFC 6570) that matches a URI; `None` if it does not match. The value of
/// a plain `{x}` contains no `/`.
pub(super) fn match_template(template: &str, uri: &str) -> Option<usize> {
    /// Longer inputs would be slow to match.
    const MAX_BYTES: usize = 4096;
    if template.len() > MAX_BYTES || uri.len() > MAX_BYTES || !template.contains('{') {
        return None;
    }
    let mut literal = 0;
    // The positions in the URI where the matched part may end.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    let mut rest = template;
    while !rest.is_empty() {
        let (text, behind) = rest.split_once('{').map_or((rest, None), |(text, it)| (text, Some(it)));
        literal += text.len();
        ends = match_literal(&ends, uri, text);
        let Some(behind) = behind else { break };
        let (expression, behind) = behind.split_once('}')?;
        ends = match_expression(&ends, uri, expression.starts_with(['+', '#', '/', '?', '&']));
        rest = behind;
    }
    ends.last().is_some_and(|it| *it).then_some(literal)
}

fn match_literal(ends: &[bool], uri: &str, text: &str) -> Vec<bool> {
    let mut res = vec![false; ends.len()];
    let begins = ends.iter().enumerate().filter(|(_, is_end)| **is_end).map(|(at, _)| at);
    for at in begins.filter(|at| uri.as_bytes()[*at..].starts_with(text.as_bytes())) {
        res[at + text.len()] = true;
    }
    res
}

fn match_expression(ends: &[bool], uri: &str, holds_slashes: bool) -> Vec<bool> {
    let mut res = vec![false; ends.len()];
    let mut is_inside = false;
    for (at, byte) in uri.bytes().enumerate() {
        is_inside = (is_inside || ends[at]) && (holds_slashes || byte != b'/');
        res[at + 1] = is_inside;
    }
    res
}

fn single_owner<'a>(
    routing_table: &RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
    owners: impl Iterator<Item = &'a ServerId>,
) -> Result<ServerId, HostError> {
    let mut owners: Vec<&ServerId> = owners.filter(|it| server.is_none_or(|server| *it == server)).collect();
    owners.dedup();
    match owners.as_slice() {
        [] => Err(missing(routing_table, item, server)),
        [owner] => Ok((*owner).clone()),
        many => {
            let names: Vec<String> = many.iter().map(|it| format!("'{it}'")).collect();
            let message =
                format!("{} is ambiguous: name one of the servers {}", item.label(), names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// Explains why an item is missing; the most certain reason first.
pub(super) fn missing(
    routing_table: &RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
) -> HostError {
    if routing_table.snapshot.servers.iter().any(|it| it.state == ServerState::Stopped) {
        return HostError::shut_down();
    }
    let label = item.label();
    if let Some(server) = server {
        if let Some(unavailable) = routing_table.unavailable.iter().find(|it| it.name == server.as_str()) {
            return unavailable_error(unavailable, &label);
        }
        if !routing_table.routes.contains_key(server) {
            return HostError::new(
                ErrorKind::Validation,
                format!("{label} not found: there is no server '{server}'"),
            );
        }
    }
    let meant = |it: &ServerId| server.is_none_or(|server| server == it);
    let hidden = |it: &&Decision| {
        let name = match item {
            LookupItem::Prompt(name) => name,
            LookupItem::Resource(_) | LookupItem::Template(_) | LookupItem::Task(_) | LookupItem::Skills => {
                return false;
            }
        };
        meant(&it.server) && it.exposed.is_none() && it.original == name
    };
    if let Some(it) = routing_table.snapshot.catalog.decisions(item.list_kind()).find(hidden) {
        let message =
            format!("{label} not found: server '{}' has it, but it is not shown: {}", it.server, it.rule);
        return HostError::new(ErrorKind::Validation, message);
    }
    let unavailable: Vec<String> =
        routing_table.unavailable.iter().map(|it| format!("'{}'", display_name(&it.name))).collect();
    let why = match unavailable.is_empty() {
        false => format!("; servers that are not available: {}", unavailable.join(", ")),
        true => String::new(),
    };
    HostError::new(ErrorKind::Validation, format!("{label} not found{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, uri: &str, want: Option<usize>) {
        assert_eq!(match_template(template, uri), want);
    }

    #[test]
    fn template_matches_its_expansions() {
        check("demo://numbers/{count}", "demo://numbers/7", Some(15));
        check("demo://numbers/{count}", "demo://numbers/7/8", None);
        check("demo://numbers/{count}", "demo://other/7", None);
        check("demo://numbers/{count}", "demo://numbers/", None);
        check("file:///{+path}.md", "file:///a/b.md", Some(11));
        check("file:///{+path}.md", "file:///a/b.txt", None);
        check("sec://{user}/public/{id}", "sec://ann/public/key", Some(14));
        check("sec://{user}/public/{id}", "sec://ann/private/key", None);
        check("sec://{user}/public/{id}", "sec://a/public/public/key", None);
        check("a{b}a", "a", None);
        check("a{b}{c}d", "axyd", Some(2));
        check("a{b", "ax", None);
        check("{+x}", &"y".repeat(5000), None);
        check("plain", "plain", None);
    }
}
