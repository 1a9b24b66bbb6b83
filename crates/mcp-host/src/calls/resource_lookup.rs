//! Where a prompt or a resource is asked for: the server and its place, or a sentence that says why there is none.

use std::sync::Arc;

use mcp_config::ResolvedServer;
use mcp_model::{ErrorKind, Filter, ServerId};
use mcp_registry::{Decision, ExposedPrompt, ListKind};

use super::find::{shown, unavailable};
use crate::failure::HostError;
use crate::state::published::ServerState;
use crate::supervisor::committer::Shared;
use crate::supervisor::machine::{Place, Route, Snapshot};

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) enum Wish<'a> {
    Prompt(&'a str),
    Resource(&'a str),
    Template(&'a str),
}

/// Where it is, and what its server knows it by.
pub(super) struct Found {
    pub(super) server: Arc<ResolvedServer>,
    pub(super) place: Place<Shared>,
    pub(super) name: String,
}

impl Wish<'_> {
    /// `Prompt 'x'`.
    pub(super) fn words(self) -> String {
        match self {
            Wish::Prompt(name) => format!("Prompt '{}'", shown(name)),
            Wish::Resource(uri) => format!("Resource '{}'", shown(uri)),
            Wish::Template(uri) => format!("Resource template '{}'", shown(uri)),
        }
    }

    fn list(self) -> ListKind {
        match self {
            Wish::Prompt(_) => ListKind::Prompt,
            Wish::Resource(_) | Wish::Template(_) => ListKind::Resource,
        }
    }
}

/// What is meant in this generation.
pub(super) fn look(
    snapshot: &Snapshot<Shared>,
    wish: Wish<'_>,
    server: Option<&ServerId>,
) -> Result<Found, HostError> {
    if let Some(fault) = &snapshot.fault {
        return Err(fault.clone());
    }
    let (id, name) = match wish {
        Wish::Prompt(name) => {
            let it = prompt(snapshot, name, server)?;
            (it.server.clone(), it.prompt.name.to_string())
        }
        Wish::Resource(uri) => (resource(snapshot, uri, server)?, uri.to_owned()),
        Wish::Template(uri) => {
            let templates = snapshot.published.catalog.templates().iter();
            let owners = templates.filter(|it| &*it.template.uri_template == uri).map(|it| &it.server);
            (one_of(snapshot, wish, server, owners)?, uri.to_owned())
        }
    };
    match snapshot.routes.get(&id) {
        Some(route) => Ok(Found { server: Arc::clone(&route.server), place: route.place.clone(), name }),
        None => Err(missing(snapshot, wish, server)),
    }
}

/// The prompt of this exposed name, else of this original name where only one server has it.
pub(super) fn prompt<'a>(
    snapshot: &'a Snapshot<Shared>,
    name: &str,
    server: Option<&ServerId>,
) -> Result<&'a ExposedPrompt, HostError> {
    let meant = |it: &&ExposedPrompt| server.is_none_or(|server| it.server == *server);
    let catalog = &snapshot.published.catalog;
    if let Some(it) = catalog.prompt(name).filter(meant) {
        return Ok(it);
    }
    let own: Vec<&ExposedPrompt> =
        catalog.prompts().iter().filter(meant).filter(|it| &*it.prompt.name == name).collect();
    match own.as_slice() {
        [] => Err(missing(snapshot, Wish::Prompt(name), server)),
        [one] => Ok(one),
        many => {
            let names: Vec<String> = many.iter().map(|it| format!("'{}'", it.name)).collect();
            let message = format!("Prompt '{}' is ambiguous: say one of {}", shown(name), names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// The server that a URI is asked of: the one that is named; the one that lists it; the one whose template fits best.
fn resource(
    snapshot: &Snapshot<Shared>,
    uri: &str,
    server: Option<&ServerId>,
) -> Result<ServerId, HostError> {
    let wish = Wish::Resource(uri);
    let catalog = &snapshot.published.catalog;
    let listed = catalog.resources().iter().filter(|it| &*it.resource.uri == uri).map(|it| &it.server);
    let listed: Vec<&ServerId> = listed.filter(|it| server.is_none_or(|server| *it == server)).collect();
    if !listed.is_empty() {
        return one_of(snapshot, wish, server, listed.into_iter());
    }
    // Whoever has it in his list does not show it: no template brings it back.
    let hiding = |(id, route): &(&ServerId, &Route<Shared>)| {
        server.is_none_or(|server| server == *id) && route.lists.resources.iter().any(|it| &*it.uri == uri)
    };
    if let Some((id, _)) = snapshot.routes.iter().filter(hiding).min_by_key(|(id, _)| *id) {
        let message = format!("{} not found: server '{id}' has it, but it is not shown", wish.words());
        return Err(HostError::new(ErrorKind::Validation, message));
    }
    if let Some(server) = server {
        if hides(snapshot, server, uri) {
            let message =
                format!("{} not found: server '{server}' has a filter, and it is not shown", wish.words());
            return Err(HostError::new(ErrorKind::Validation, message));
        }
        return match snapshot.routes.contains_key(server) {
            true => Ok(server.clone()),
            false => Err(missing(snapshot, wish, Some(server))),
        };
    }
    let fitting =
        catalog.templates().iter().filter_map(|it| Some((fits(&it.template.uri_template, uri)?, it)));
    let fitting: Vec<_> = fitting.collect();
    let best = fitting.iter().map(|(length, _)| *length).max();
    let owners = fitting.iter().filter(|it| Some(it.0) == best).map(|(_, it)| &it.server);
    one_of(snapshot, wish, None, owners)
}

/// Does a server show only some of its resources? Then one that it does not show is not asked for, unless it comes from a
/// template that it does show.
fn hides(snapshot: &Snapshot<Shared>, server: &ServerId, uri: &str) -> bool {
    let Some(route) = snapshot.routes.get(server) else { return false };
    let Filter { whitelist, blacklist } = &route.server.spec.exposure.resources.filter;
    let templates = snapshot.published.catalog.templates().iter().filter(|it| it.server == *server);
    let shown = || templates.map(|it| &it.template.uri_template).any(|it| fits(it, uri).is_some());
    let filters = !whitelist.is_empty() || !blacklist.is_empty();
    filters && !shown()
}

/// How much of a URI stands literally in a template that it may come from (RFC 6570); `None` where it cannot. What is put
/// in for a plain `{x}` holds no `/`.
fn fits(template: &str, uri: &str) -> Option<usize> {
    /// Looking closer would take long, and nobody writes such.
    const LONGEST: usize = 4096;
    if template.len() > LONGEST || uri.len() > LONGEST || !template.contains('{') {
        return None;
    }
    let mut literal = 0;
    // Where in the URI what was looked at so far may end.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    let mut rest = template;
    while !rest.is_empty() {
        let (text, behind) = rest.split_once('{').map_or((rest, None), |(text, it)| (text, Some(it)));
        literal += text.len();
        ends = after_text(&ends, uri, text);
        let Some(behind) = behind else { break };
        let (expression, behind) = behind.split_once('}')?;
        ends = after_value(&ends, uri, expression.starts_with(['+', '#', '/', '?', '&']));
        rest = behind;
    }
    ends.last().is_some_and(|it| *it).then_some(literal)
}

fn after_text(ends: &[bool], uri: &str, text: &str) -> Vec<bool> {
    let mut res = vec![false; ends.len()];
    let begins = ends.iter().enumerate().filter(|(_, is_end)| **is_end).map(|(at, _)| at);
    for at in begins.filter(|at| uri.as_bytes()[*at..].starts_with(text.as_bytes())) {
        res[at + text.len()] = true;
    }
    res
}

fn after_value(ends: &[bool], uri: &str, holds_slashes: bool) -> Vec<bool> {
    let mut res = vec![false; ends.len()];
    let mut is_inside = false;
    for (at, byte) in uri.bytes().enumerate() {
        is_inside = (is_inside || ends[at]) && (holds_slashes || byte != b'/');
        res[at + 1] = is_inside;
    }
    res
}

fn one_of<'a>(
    snapshot: &Snapshot<Shared>,
    wish: Wish<'_>,
    server: Option<&ServerId>,
    owners: impl Iterator<Item = &'a ServerId>,
) -> Result<ServerId, HostError> {
    let mut owners: Vec<&ServerId> = owners.filter(|it| server.is_none_or(|server| *it == server)).collect();
    owners.dedup();
    match owners.as_slice() {
        [] => Err(missing(snapshot, wish, server)),
        [one] => Ok((*one).clone()),
        many => {
            let names: Vec<String> = many.iter().map(|it| format!("'{it}'")).collect();
            let message = format!("{} is ambiguous: say which server: {}", wish.words(), names.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// Why there is no such thing: the most certain reason first.
fn missing(snapshot: &Snapshot<Shared>, wish: Wish<'_>, server: Option<&ServerId>) -> HostError {
    if snapshot.published.servers.iter().any(|it| it.state == ServerState::Stopped) {
        return HostError::new(ErrorKind::Connection, "the host was shut down");
    }
    let words = wish.words();
    if let Some(server) = server {
        if let Some(absent) = snapshot.absent.iter().find(|it| it.name == server.as_str()) {
            return unavailable(absent, &words);
        }
        if !snapshot.routes.contains_key(server) {
            return HostError::new(
                ErrorKind::Validation,
                format!("{words} not found: there is no server '{server}'"),
            );
        }
    }
    let meant = |it: &ServerId| server.is_none_or(|server| server == it);
    let hidden = |it: &&Decision| {
        let name = match wish {
            Wish::Prompt(name) => name,
            Wish::Resource(_) | Wish::Template(_) => return false,
        };
        meant(&it.server) && it.exposed.is_none() && it.original == name
    };
    if let Some(it) = snapshot.published.catalog.decisions(wish.list()).find(hidden) {
        let message =
            format!("{words} not found: server '{}' has it, but it is not shown: {}", it.server, it.rule);
        return HostError::new(ErrorKind::Validation, message);
    }
    let absent: Vec<String> = snapshot.absent.iter().map(|it| format!("'{}'", shown(&it.name))).collect();
    let why = match (absent.is_empty(), wish) {
        (false, _) => format!("; servers that are not available: {}", absent.join(", ")),
        (true, Wish::Resource(_)) if server.is_none() => "; say which server it is asked of".to_owned(),
        (true, _) => String::new(),
    };
    HostError::new(ErrorKind::Validation, format!("{words} not found{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, uri: &str, want: Option<usize>) {
        assert_eq!(fits(template, uri), want);
    }

    #[test]
    fn a_template_fits_what_it_may_have_made() {
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
