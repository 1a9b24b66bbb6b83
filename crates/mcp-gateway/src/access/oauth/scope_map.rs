//! OAuth scopes, each with the part of the catalog that it shows. Pure.

use mcp_host_registry::ViewFilter;

use crate::access::scope;

/// Maximum number of scopes.
const MAX_SCOPES: usize = 256;
/// Maximum length of a scope in bytes.
const MAX_SCOPE_BYTES: usize = 256;

/// The scopes of access tokens, each with the part of the catalog that it shows. A token with several scopes shows what
/// any of them shows. Without any scope in the map, every valid token shows everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopeMap(Vec<(String, Option<ViewFilter>)>);

/// An error in a list of scopes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the scopes: {reason}")]
#[non_exhaustive]
pub struct InvalidScopes {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

impl ScopeMap {
    /// Reads a list with one scope per line: the scope, then optionally selections (`servers=a,b*`, `tools=…`,
    /// `prompts=…`, `resources=…`); without any it shows everything. Empty lines and lines that begin with `#` are
    /// ignored. Refusals ask clients to request the first scope.
    pub fn read(text: &str) -> Result<ScopeMap, InvalidScopes> {
        let mut scopes: Vec<(String, Option<ViewFilter>)> = Vec::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let invalid = |reason: String| InvalidScopes { line: at + 1, reason };
            let mut fields = line.split_whitespace();
            let name = fields.next().expect("the line is not empty");
            if !is_scope(name) {
                let reason =
                    format!("a scope has 1 to {MAX_SCOPE_BYTES} visible characters except \" and \\");
                return Err(invalid(reason));
            }
            let selections: Option<Vec<(&str, &str)>> = fields
                .map(|field| field.split_once('=').filter(|(key, _)| scope::SELECTIONS.contains(key)))
                .collect();
            let selections = selections.ok_or_else(|| {
                invalid(format!(
                    "only KEY=VALUE may follow the scope, with a KEY of {}",
                    scope::SELECTIONS.join(", ")
                ))
            })?;
            let view = scope::read_view(selections).map_err(|error| invalid(error.to_string()))?;
            if scopes.iter().any(|(known, _)| known == name) {
                return Err(invalid(format!("the scope {name} is there twice")));
            }
            scopes.push((name.to_owned(), view));
            if scopes.len() > MAX_SCOPES {
                return Err(invalid(format!("there are more than {MAX_SCOPES} scopes")));
            }
        }
        Ok(ScopeMap(scopes))
    }

    /// The scopes with their views; a view is `None` if the scope shows everything. They can be passed to
    /// [`Host::set_views`](mcp_host_runtime::Host::set_views).
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&ViewFilter>)> {
        self.0.iter().map(|(name, view)| (name.as_str(), view.as_ref()))
    }

    /// The scope that refusals tell clients to request: the first one.
    pub(crate) fn default_scope(&self) -> Option<&str> {
        self.0.first().map(|(name, _)| name.as_str())
    }

    /// The views of these scopes, of which a definition must pass one; empty if they show everything. `None` if none of
    /// them is in the map.
    pub(crate) fn views_of(&self, held: &[String]) -> Option<Vec<ViewFilter>> {
        if self.0.is_empty() {
            return Some(Vec::new());
        }
        let mut views = Vec::new();
        let mut is_any_held = false;
        for (_, view) in self.0.iter().filter(|(name, _)| held.contains(name)) {
            is_any_held = true;
            match view {
                Some(view) => views.push(view.clone()),
                None => return Some(Vec::new()),
            }
        }
        is_any_held.then_some(views)
    }

    /// The first scope that is not in `held` and has a view that satisfies `shows`.
    pub(crate) fn first_missing_scope(
        &self,
        held: &[String],
        shows: impl Fn(Vec<ViewFilter>) -> bool,
    ) -> Option<&str> {
        let others = self.0.iter().filter(|(name, _)| !held.contains(name));
        let mut showing = others.filter(|(_, view)| shows(view.iter().cloned().collect()));
        showing.next().map(|(name, _)| name.as_str())
    }
}

/// Whether a text is a scope by RFC 6749. Such a text is allowed in a quoted string of a header.
fn is_scope(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    (1..=MAX_SCOPE_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, held: &[&str], want: &str) {
        let held: Vec<String> = held.iter().map(|&name| name.to_owned()).collect();
        let got = match ScopeMap::read(text) {
            Err(error) => error.to_string(),
            Ok(map) => match map.views_of(&held) {
                None => "nothing".to_owned(),
                Some(views) if views.is_empty() => "everything".to_owned(),
                Some(views) => format!("{} views", views.len()),
            },
        };
        assert_eq!(got, want);
    }

    #[test]
    fn token_shows_what_any_of_its_scopes_shows() {
        let map = "# ours\nread servers=a tools=x*\n\nwrite servers=b\nadmin\n";
        check(map, &["read"], "1 views");
        check(map, &["other", "write", "read"], "2 views");
        check(map, &["read", "admin"], "everything");
        check(map, &["other"], "nothing");
        check(map, &[], "nothing");
        check("", &[], "everything");
        let map = ScopeMap::read(map).unwrap();
        assert_eq!(map.default_scope(), Some("read"));
        assert_eq!(map.first_missing_scope(&["read".to_owned()], |views| views.is_empty()), Some("admin"));
        assert_eq!(map.first_missing_scope(&["admin".to_owned()], |views| views.is_empty()), None);
    }

    #[test]
    fn scope_list_error_names_the_line() {
        check(
            "\na\"b",
            &[],
            "line 2 of the scopes: a scope has 1 to 256 visible characters except \" and \\",
        );
        let key =
            "only KEY=VALUE may follow the scope, with a KEY of servers, tools, prompts, resources, hints";
        check("a x", &[], &format!("line 1 of the scopes: {key}"));
        check("a name=x", &[], &format!("line 1 of the scopes: {key}"));
        check("a\na tools=", &[], "line 2 of the scopes: the scope a is there twice");
    }
}
