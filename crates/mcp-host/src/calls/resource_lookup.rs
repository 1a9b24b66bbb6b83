//! Lookup of prompts, resources, templates, tasks and skills, with errors that explain why one is missing.

use mcp_host_model::{ErrorKind, ExposureFilter, ServerId};
use mcp_host_registry::{CompiledRules, Decision, ExposedPrompt, ListKind};

use crate::calls::tool_lookup::{display_name, has_affixes, unavailable_error};
use crate::error::HostError;
use crate::state::published::ServerState;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{Route, RoutingTable, UnavailableServer};

/// A requested item that is no tool.
#[derive(Clone, Copy)]
pub(crate) enum LookupItem<'a> {
    Prompt(&'a str),
    Resource(&'a str),
    Template(&'a str),
    /// A task of a named server.
    Task(&'a str),
    /// The list of skills of a named server.
    Skills,
}

impl<'a> LookupItem<'a> {
    /// Returns a label for messages, such as `Prompt 'x'`.
    pub(super) fn label(self) -> String {
        match self {
            LookupItem::Prompt(name) => format!("Prompt '{}'", display_name(name)),
            LookupItem::Resource(uri) => format!("Resource '{}'", display_name(uri)),
            LookupItem::Template(uri) => format!("Resource template '{}'", display_name(uri)),
            LookupItem::Task(id) => format!("Task '{}'", display_name(id)),
            LookupItem::Skills => "Skills".to_owned(),
        }
    }

    /// Returns the name of the prompt, if the item is one.
    pub(super) fn prompt(self) -> Option<&'a str> {
        match self {
            LookupItem::Prompt(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the URI of the resource, if the item is one.
    pub(super) fn uri(self) -> Option<&'a str> {
        match self {
            LookupItem::Resource(uri) | LookupItem::Template(uri) => Some(uri),
            _ => None,
        }
    }

    /// Returns the list whose filter applies to the item.
    fn list_kind(self) -> ListKind {
        match self {
            LookupItem::Prompt(_) => ListKind::Prompt,
            LookupItem::Resource(_) | LookupItem::Template(_) | LookupItem::Skills => ListKind::Resource,
            LookupItem::Task(_) => ListKind::Tool,
        }
    }
}

/// Finds an item in a generation. Returns the route of its server, and the server's own name of the item.
pub(super) fn find_item<'a>(
    routing_table: &'a RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
) -> Result<(&'a Route<InstanceRef>, String), HostError> {
    if let Some(error) = &routing_table.host_error {
        return Err(error.clone());
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
            let server = server.ok_or_else(|| missing_error(routing_table, item, None))?;
            (server.clone(), id.to_owned())
        }
        LookupItem::Skills => {
            let server = server.ok_or_else(|| missing_error(routing_table, item, None))?;
            (server.clone(), String::new())
        }
    };
    match routing_table.routes.get(&id) {
        Some(route) => Ok((route, name)),
        None => Err(missing_error(routing_table, item, server)),
    }
}

/// Finds the prompt with this exposed name, or else with this original name if only one server has it.
pub(super) fn find_prompt<'a>(
    routing_table: &'a RoutingTable<InstanceRef>,
    name: &str,
    server: Option<&ServerId>,
) -> Result<&'a ExposedPrompt, HostError> {
    let is_candidate = |it: &&ExposedPrompt| server.is_none_or(|server| it.server == *server);
    let catalog = &routing_table.snapshot.catalog;
    if let Some(it) = catalog.prompt(name).filter(is_candidate) {
        return Ok(it);
    }
    let same_name: Vec<&ExposedPrompt> =
        catalog.prompts().iter().filter(is_candidate).filter(|it| &*it.prompt.name == name).collect();
    match same_name.as_slice() {
        [] => Err(missing_error(routing_table, LookupItem::Prompt(name), server)),
        [prompt] => Ok(prompt),
        many => {
            let names: Vec<String> = many.iter().map(|it| format!("'{}'", it.name)).collect();
            let message =
                format!("Prompt '{}' is ambiguous: use one of {}", display_name(name), names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// Finds the server of a URI: the named one, or else the one that lists it, or else the one with the best matching
/// template.
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
    let hidden_error = |reason: String| {
        let message = format!("{} not found: {reason} it is not shown", item.label());
        Err(HostError::new(ErrorKind::Validation, message))
    };
    // A resource that is listed but hidden must not become readable by a template.
    let is_hiding = |id: &&ServerId| {
        server.is_none_or(|server| server == *id) && is_listed_but_hidden(routing_table, id, uri)
    };
    if let Some(id) = routing_table.routes.keys().filter(is_hiding).min() {
        return hidden_error(format!("server '{id}' has it, but"));
    }
    if let Some(server) = server {
        if is_filtered(routing_table, server, uri) {
            return hidden_error(format!("server '{server}' has a filter, and"));
        }
        return match routing_table.routes.contains_key(server) {
            true => Ok(server.clone()),
            false => Err(missing_error(routing_table, item, Some(server))),
        };
    }
    let matching = catalog
        .templates()
        .iter()
        .filter_map(|it| Some((match_template(&it.template.uri_template, uri)?, it)));
    let matching: Vec<_> = matching.collect();
    let best = matching.iter().map(|(length, _)| *length).max();
    let owners = matching.iter().filter(|it| Some(it.0) == best).map(|(_, it)| &it.server);
    single_owner(routing_table, item, None, owners)
}

/// Returns whether a list contains the resource.
pub(super) fn is_listed(routing_table: &RoutingTable<InstanceRef>, uri: &str) -> bool {
    routing_table.snapshot.catalog.resources().iter().any(|it| &*it.resource.uri == uri)
}

/// Returns whether the resource must not be read from a server because of its filter.
pub(super) fn is_hidden(routing_table: &RoutingTable<InstanceRef>, server: &ServerId, uri: &str) -> bool {
    is_listed_but_hidden(routing_table, server, uri) || is_filtered(routing_table, server, uri)
}

/// Returns whether a server lists the resource, but its filter hides it.
fn is_listed_but_hidden(routing_table: &RoutingTable<InstanceRef>, server: &ServerId, uri: &str) -> bool {
    let route = routing_table.routes.get(server);
    let mut shown = routing_table.snapshot.catalog.resources().iter();
    route.is_some_and(|route| route.listing.lists.resources.iter().any(|it| &*it.uri == uri))
        && !shown.any(|it| it.server == *server && &*it.resource.uri == uri)
}

/// Returns whether a server has a filter for resources, and none of its exposed templates matches the URI.
fn is_filtered(routing_table: &RoutingTable<InstanceRef>, server: &ServerId, uri: &str) -> bool {
    let Some(route) = routing_table.routes.get(server) else { return false };
    let ExposureFilter { whitelist, blacklist } = &route.server.spec.exposure.resources.filter;
    let templates = routing_table.snapshot.catalog.templates().iter().filter(|it| it.server == *server);
    let is_template_match =
        || templates.map(|it| &it.template.uri_template).any(|it| match_template(it, uri).is_some());
    let has_filter = !whitelist.is_empty() || !blacklist.is_empty();
    has_filter && !is_template_match()
}

/// Matches a URI with a template (RFC 6570). Returns the number of literal bytes of the template; `None` if it does not
/// match. The value of a plain `{x}` contains no `/`.
pub(super) fn match_template(template: &str, uri: &str) -> Option<usize> {
    /// Longer inputs would be slow to match.
    const MAX_BYTES: usize = 4096;
    if template.len() > MAX_BYTES || uri.len() > MAX_BYTES || !template.contains('{') {
        return None;
    }
    let mut literal = 0;
    // For each position in the URI, whether the part of the template that was read so far can match up to it.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    let mut rest = template;
    while !rest.is_empty() {
        let (text, behind) = rest.split_once('{').map_or((rest, None), |(text, behind)| (text, Some(behind)));
        literal += text.len();
        ends = match_literal(&ends, uri, text);
        let Some(behind) = behind else { break };
        let (expression, behind) = behind.split_once('}')?;
        ends = match_expression(&ends, uri, expression.starts_with(['+', '#', '/', '?', '&']));
        rest = behind;
    }
    ends.last().is_some_and(|it| *it).then_some(literal)
}

/// Continues a match with a literal text. Takes and returns the positions where the matched part can end.
fn match_literal(ends: &[bool], uri: &str, text: &str) -> Vec<bool> {
    let mut new_ends = vec![false; ends.len()];
    let begins = ends.iter().enumerate().filter(|(_, is_end)| **is_end).map(|(at, _)| at);
    for at in begins.filter(|at| uri.as_bytes()[*at..].starts_with(text.as_bytes())) {
        new_ends[at + text.len()] = true;
    }
    new_ends
}

/// Continues a match with an expression, which matches one byte or more. Takes and returns the positions where the
/// matched part can end.
fn match_expression(ends: &[bool], uri: &str, allows_slash: bool) -> Vec<bool> {
    let mut new_ends = vec![false; ends.len()];
    let mut is_inside = false;
    for (at, byte) in uri.bytes().enumerate() {
        is_inside = (is_inside || ends[at]) && (allows_slash || byte != b'/');
        new_ends[at + 1] = is_inside;
    }
    new_ends
}

/// Returns the only owner of an item, among all servers or only `server`. Fails if there is none, or several.
fn single_owner<'a>(
    routing_table: &RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
    owners: impl Iterator<Item = &'a ServerId>,
) -> Result<ServerId, HostError> {
    let mut owners: Vec<&ServerId> = owners.filter(|it| server.is_none_or(|server| *it == server)).collect();
    owners.dedup();
    match owners.as_slice() {
        [] => Err(missing_error(routing_table, item, server)),
        [owner] => Ok((*owner).clone()),
        many => {
            let names: Vec<String> = many.iter().map(|it| format!("'{it}'")).collect();
            let message =
                format!("{} is ambiguous: name one of the servers {}", item.label(), names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// Returns the error of a missing item, with the most certain reason.
pub(super) fn missing_error(
    routing_table: &RoutingTable<InstanceRef>,
    item: LookupItem<'_>,
    server: Option<&ServerId>,
) -> HostError {
    if routing_table.snapshot.servers.iter().any(|it| it.state == ServerState::Stopped) {
        return HostError::shut_down();
    }
    let label = item.label();
    if let Some(server) = server {
        if let Some(unavailable) = routing_table.unavailable.iter().find(|it| it.name == *server) {
            return unavailable_error(unavailable, &label);
        }
        if !routing_table.routes.contains_key(server) {
            return HostError::new(
                ErrorKind::Validation,
                format!("{label} not found: there is no server '{server}'"),
            );
        }
    }
    if let Some(error) = unavailable_item_error(routing_table, item, |_| true) {
        return error;
    }
    let is_candidate = |it: &ServerId| server.is_none_or(|server| server == it);
    let is_hidden = |it: &&Decision| {
        let name = match item {
            LookupItem::Prompt(name) => name,
            LookupItem::Resource(_) | LookupItem::Template(_) | LookupItem::Task(_) | LookupItem::Skills => {
                return false;
            }
        };
        is_candidate(&it.server) && it.exposed.is_none() && it.original == name
    };
    if let Some(it) = routing_table.snapshot.catalog.decisions(item.list_kind()).find(is_hidden) {
        let message =
            format!("{label} not found: server '{}' has it, but it is not shown: {}", it.server, it.rule);
        return HostError::new(ErrorKind::Validation, message);
    }
    let unavailable: Vec<String> =
        routing_table.unavailable.iter().map(|it| format!("'{}'", display_name(&it.name))).collect();
    let hint = if unavailable.is_empty() {
        String::new()
    } else {
        format!("; servers that are not available: {}", unavailable.join(", "))
    };
    HostError::new(ErrorKind::Validation, format!("{label} not found{hint}"))
}

/// Returns why a prompt or a resource is not available, if one of these servers is down and can have it, by its last
/// lists or by the prefix of its names.
pub(crate) fn unavailable_item_error<I>(
    routing_table: &RoutingTable<I>,
    item: LookupItem<'_>,
    may_own: impl Fn(&ServerId) -> bool,
) -> Option<HostError> {
    let owner = routing_table
        .unavailable
        .iter()
        .find(|unavailable| unavailable.name.id().is_some_and(&may_own) && had_item(unavailable, item))?;
    Some(unavailable_error(owner, &item.label()))
}

/// Returns whether an unavailable server can have an item: by the prefix of its prompts, or by its last lists, under
/// its own or its exposed name.
fn had_item(unavailable: &UnavailableServer, item: LookupItem<'_>) -> bool {
    let Some(server) = &unavailable.server else { return false };
    if let LookupItem::Prompt(name) = item
        && has_affixes(server, &server.spec.exposure.prompts, name)
    {
        return true;
    }
    let Some(lists) = &unavailable.lists else { return false };
    match item {
        LookupItem::Prompt(name) => {
            let decider = CompiledRules::new(&server.spec.id, &server.spec.exposure.prompts);
            let exposed = |own: &str| decider.decide(own).exposed;
            lists.prompts.iter().any(|prompt| {
                exposed(&prompt.name).is_some_and(|exposed| *prompt.name == *name || exposed.as_str() == name)
            })
        }
        LookupItem::Resource(uri) => {
            let decider = CompiledRules::new(&server.spec.id, &server.spec.exposure.resources);
            let is_shown = |own: &str| decider.decide(own).exposed.is_some();
            lists.resources.iter().any(|it| &*it.uri == uri && is_shown(&it.name))
                || lists
                    .templates
                    .iter()
                    .any(|it| match_template(&it.uri_template, uri).is_some() && is_shown(&it.name))
        }
        LookupItem::Template(uri) => lists.templates.iter().any(|it| &*it.uri_template == uri),
        LookupItem::Task(_) | LookupItem::Skills => false,
    }
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
