//! Scopes: the part of the catalog that a client may use.
//!
//! A path or a query only narrows a scope: it shows nothing that a token's view hides.

use mcp_host_model::ServerId;
use mcp_host_registry::{ExposedTool, HintSelection, Selection, ViewFilter};

/// Maximum number of patterns in a selection.
const MAX_PATTERNS: usize = 64;

/// The keys of selections: query parameters, and with the prefix `Mcp-Host-` headers.
pub const SELECTIONS: [&str; 5] = ["servers", "tools", "prompts", "resources", "hints"];

/// The part of the catalog that a client may use, and the names under which it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Scope {
    /// The only server, if any.
    pub server: Option<ServerId>,
    /// The names under which definitions are listed.
    pub names: NameStyle,
    /// Filters; a definition must pass all of them.
    pub views: Vec<ViewFilter>,
    /// Filters, of which a definition must pass one; empty for no restriction.
    pub granted: Vec<ViewFilter>,
}

/// The names under which tools, prompts and resources are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum NameStyle {
    /// The unique names of the catalog.
    #[default]
    Exposed,
    /// The names that the server gives. Requires a scope with one server.
    Original,
}

/// The error for a selection that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSelection(String);

impl Scope {
    /// Whether the scope includes everything, under any names.
    pub(crate) fn is_unfiltered(&self) -> bool {
        let Scope { server, names: _, views, granted } = self;
        server.is_none() && views.is_empty() && granted.is_empty()
    }

    /// Whether no view hides a resource of this server, so that also resources that are not listed can be read.
    pub(crate) fn shows_all_resources(&self, server: &ServerId) -> bool {
        self.may_show(server, |view| view.resources == Selection::Inherit)
    }

    /// Whether the scope may show something of this server: all of `views`, and one of `granted`, select the server and
    /// satisfy `condition`.
    pub(crate) fn may_show(&self, server: &ServerId, condition: impl Fn(&ViewFilter) -> bool) -> bool {
        let selects = |view: &ViewFilter| view.toolsets.contains(server.as_str()) && condition(view);
        self.server.as_ref().is_none_or(|only| only == server)
            && self.views.iter().all(selects)
            && (self.granted.is_empty() || self.granted.iter().any(selects))
    }

    /// Whether the filters select a tool. Its audience, and limits on the list of tools, may still leave it out.
    pub(crate) fn shows_tool(&self, tool: &ExposedTool) -> bool {
        self.may_show(&tool.server, |view| view.shows_tool(tool))
    }

    /// Whether the scope includes everything under the names of the catalog.
    pub(crate) fn is_whole_catalog(&self) -> bool {
        self.is_unfiltered() && self.names == NameStyle::Exposed
    }
}

/// Reads selections: `servers`, `tools`, `prompts` and `resources`, each with comma-separated patterns, in which `*`
/// matches any characters, and `hints=reads`, which selects the tools that read only by their approved annotations. An
/// empty value selects nothing; `None` if there is no selection. An unknown or
/// repeated key is an error, because a misspelt selection would show everything.
pub fn read_view<'a>(
    selections: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Option<ViewFilter>, InvalidSelection> {
    let mut filter = ViewFilter::default();
    let mut seen = Vec::new();
    for (name, value) in selections {
        let ViewFilter { toolsets, tools, prompts, resources, hints } = &mut filter;
        let selected = match name {
            "servers" => Some(toolsets),
            "tools" => Some(tools),
            "prompts" => Some(prompts),
            "resources" => Some(resources),
            "hints" if value == "reads" => {
                *hints = HintSelection::ApprovedReads;
                None
            }
            "hints" => return Err(InvalidSelection("`hints` may only be `reads`".to_owned())),
            _ => return Err(unknown_key_error()),
        };
        if seen.contains(&name) {
            return Err(InvalidSelection(format!("`{name}` is given more than once")));
        }
        seen.push(name);
        if let Some(selected) = selected {
            *selected = read_selection(name, value)?;
        }
    }
    Ok((!seen.is_empty()).then_some(filter))
}

/// The error for an unknown key. It does not repeat the key, which a client chose.
pub(crate) fn unknown_key_error() -> InvalidSelection {
    InvalidSelection(format!("the keys of a scope are {}", SELECTIONS.join(", ")))
}

/// Reads comma-separated patterns.
fn read_selection(name: &str, value: &str) -> Result<Selection, InvalidSelection> {
    let patterns: Vec<String> =
        value.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect();
    if patterns.len() > MAX_PATTERNS {
        return Err(InvalidSelection(format!("`{name}` has more than {MAX_PATTERNS} patterns")));
    }
    if patterns.iter().any(|pattern| pattern.len() > ServerId::MAX_LEN) {
        let message = format!("`{name}` has a pattern of more than {} bytes", ServerId::MAX_LEN);
        return Err(InvalidSelection(message));
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
        let pairs = text
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let show = |selection: &Selection| match selection {
            Selection::Inherit => "~".to_owned(),
            Selection::None => "-".to_owned(),
            Selection::Patterns(patterns) => patterns.join(" "),
        };
        let got = match read_view(pairs) {
            Ok(Some(view)) => {
                [&view.toolsets, &view.tools, &view.prompts, &view.resources].map(show).join(" | ")
            }
            Ok(None) => "all".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn other_keys_are_refused_in_selections() {
        check("", "all");
        check("servers=a, b*", "a b* | ~ | ~ | ~");
        check("tool=a", "the keys of a scope are servers, tools, prompts, resources, hints");
        check("servers=a&x=1", "the keys of a scope are servers, tools, prompts, resources, hints");
        check("hints=writes", "`hints` may only be `reads`");
        check("hints=reads&hints=reads", "`hints` is given more than once");
        check("hints=reads", "~ | ~ | ~ | ~");
        check("tools=a&tools=b", "`tools` is given more than once");
        check("tools=&resources=f*", "~ | - | ~ | f*");
        check(&format!("tools={}", "a,".repeat(65)), "`tools` has more than 64 patterns");
        check(&format!("tools={}", "a".repeat(300)), "`tools` has a pattern of more than 256 bytes");
    }
}
