//! What one client sees of the catalog: a server, a part of the names, or all of it.
//!
//! A scope only ever narrows: what a token's view hides no path and no query brings back.

use std::fmt;

use mcp_model::ServerId;
use mcp_registry::{Selection, ViewFilter};

/// How many patterns one selection may hold.
const MOST_PATTERNS: usize = 64;

/// The names of the selections, in a query; a header has `Mcp-Host-` before it.
pub(crate) const SELECTIONS: [&str; 4] = ["servers", "tools", "prompts", "resources"];

/// What a client sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Only this server.
    pub server: Option<ServerId>,
    /// Under which names.
    pub names: Names,
    /// Only what each of these selects.
    pub views: Vec<ViewFilter>,
    /// What is done about servers that are not shared.
    pub leased: Leased,
}

/// Under which names tools, prompts and resources are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Those of the catalog, which no two share.
    #[default]
    Exposed,
    /// Those of the server itself. Only where one server is seen.
    Original,
}

/// Whether servers are seen of which each dialog has an instance of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leased {
    /// They are: the client is, or names, a dialog.
    #[default]
    Offered,
    /// They are not, for nobody could say whose instance it is.
    Hidden,
}

/// A selection that cannot be used, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSelection(String);

impl fmt::Display for InvalidSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSelection {}

impl Scope {
    /// Is no part left out, but for what nobody has an instance of?
    pub(crate) fn is_whole(&self) -> bool {
        let Scope { server, names: _, views, leased: _ } = self;
        server.is_none() && views.is_empty()
    }

    /// Is everything seen, under the catalog's names?
    pub(crate) fn is_all(&self) -> bool {
        self.is_whole() && self.names == Names::Exposed && self.leased == Leased::Offered
    }
}

/// Reads selections: names (`servers`, `tools`, `prompts`, `resources`) with comma-separated patterns, in which `*` is
/// any run of characters. An empty value selects nothing. `None` where nothing is selected; other names are ignored.
pub(crate) fn view<'a>(
    selections: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Option<ViewFilter>, InvalidSelection> {
    let mut res = ViewFilter::default();
    let mut any = false;
    for (name, value) in selections {
        let ViewFilter { toolsets, tools, prompts, resources } = &mut res;
        let slot = match name {
            "servers" => toolsets,
            "tools" => tools,
            "prompts" => prompts,
            "resources" => resources,
            _ => continue,
        };
        any = true;
        *slot = selection(name, value)?;
    }
    Ok(any.then_some(res))
}

fn selection(name: &str, value: &str) -> Result<Selection, InvalidSelection> {
    let patterns: Vec<String> =
        value.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if patterns.len() > MOST_PATTERNS {
        return Err(InvalidSelection(format!("`{name}` has more than {MOST_PATTERNS} patterns")));
    }
    if patterns.iter().any(|it| it.len() > ServerId::MAX_LEN) {
        return Err(InvalidSelection(format!(
            "`{name}` has a pattern of more than {} bytes",
            ServerId::MAX_LEN
        )));
    }
    Ok(match patterns.is_empty() {
        true => Selection::None,
        false => Selection::Patterns(patterns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let pairs =
            text.split('&').filter(|it| !it.is_empty()).map(|it| it.split_once('=').unwrap_or((it, "")));
        let show = |it: &Selection| match it {
            Selection::Inherit => "~".to_owned(),
            Selection::None => "-".to_owned(),
            Selection::Patterns(them) => them.join(" "),
        };
        let got = match view(pairs) {
            Ok(Some(it)) => [&it.toolsets, &it.tools, &it.prompts, &it.resources].map(show).join(" | "),
            Ok(None) => "all".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn selections_are_read_and_others_left_alone() {
        check("", "all");
        check("x=1", "all");
        check("servers=a, b*&x=1", "a b* | ~ | ~ | ~");
        check("tools=&resources=f*", "~ | - | ~ | f*");
        check(&format!("tools={}", "a,".repeat(65)), "`tools` has more than 64 patterns");
        check(&format!("tools={}", "a".repeat(300)), "`tools` has a pattern of more than 256 bytes");
    }
}
