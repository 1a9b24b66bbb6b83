//! Views: the part of a catalog that one agent sees.
//!
//! A view does not rename anything, so a call needs no view to find its tool.

use std::collections::HashSet;

use mcp_host_model::ServerId;

use crate::catalog::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
use crate::catalog::snapshot::Catalog;
use crate::filter::pattern::first_match;
use crate::name::exposed_name::ExposedName;
use crate::problem::Problem;

/// A selection of names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-gateway narrows a scope by every form; a wildcard would show too much"
)]
pub enum Selection {
    /// Everything.
    #[default]
    Inherit,
    /// Nothing.
    None,
    /// Names that match a pattern; `*` matches any run of characters (DM-036).
    Patterns(Vec<String>),
}

/// A selection of tools by what their servers say about their effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-gateway narrows a scope by every form; a wildcard would show too much"
)]
pub enum HintSelection {
    /// Any tool.
    #[default]
    Any,
    /// Tools whose `readOnlyHint` is true, if a lock file approves the definition that says so.
    ApprovedReads,
}

/// The filter of a view. An item is visible if its toolset and its name are both selected (DM-052).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "mcp-gateway narrows every list; a field that it does not know would show too much"
)]
pub struct ViewFilter {
    /// Toolsets, by server id.
    pub toolsets: Selection,
    /// Tools of these toolsets, by exposed name.
    pub tools: Selection,
    /// Prompts, by exposed name.
    pub prompts: Selection,
    /// Resources and resource templates: by URI or URI template if the pattern has a `:`, else by exposed name. One
    /// pattern never matches both, because servers choose URIs.
    pub resources: Selection,
    /// Tools, by their annotations.
    pub hints: HintSelection,
}

impl ViewFilter {
    /// Whether the filter selects a tool.
    pub fn shows_tool(&self, tool: &ExposedTool) -> bool {
        let has_hint = match self.hints {
            HintSelection::Any => true,
            HintSelection::ApprovedReads => tool.is_approved && tool.tool.hints.read_only == Some(true),
        };
        has_hint && self.toolsets.contains(tool.server.as_str()) && self.tools.contains(tool.name.as_str())
    }
}

/// A view with the name of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a name and its filters; what a view shows is in the filters")]
pub struct NamedView {
    /// The user of the view, as part of a sentence: "the token `ann`".
    pub name: String,
    /// The filters; an item must pass all of them.
    pub filters: Vec<ViewFilter>,
}

impl NamedView {
    /// Whether the view shows a tool.
    pub fn shows_tool(&self, tool: &ExposedTool) -> bool {
        self.filters.iter().all(|filter| filter.shows_tool(tool))
    }
}

/// The visible part of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogView<'a> {
    /// The tools, in the catalog's order.
    pub tools: Vec<&'a ExposedTool>,
    /// The prompts, in the catalog's order.
    pub prompts: Vec<&'a ExposedPrompt>,
    /// The resources, in the catalog's order.
    pub resources: Vec<&'a ExposedResource>,
    /// The resource templates, in the catalog's order.
    pub templates: Vec<&'a ExposedTemplate>,
    /// A warning for each selected toolset, without `*`, that does not exist.
    pub problems: Vec<Problem>,
}

impl Catalog {
    /// Returns the part that `view` selects.
    pub fn view(&self, view: &ViewFilter) -> CatalogView<'_> {
        let ViewFilter { toolsets, tools: _, prompts, resources, hints: _ } = view;
        let is_selected = |names: &Selection, server: &ServerId, name: &ExposedName| {
            toolsets.contains(server.as_str()) && names.contains(name.as_str())
        };
        let is_selected_resource = |server: &ServerId, name: &ExposedName, uri: &str| {
            toolsets.contains(server.as_str()) && resources.contains_resource(name.as_str(), uri)
        };
        CatalogView {
            tools: self.tools().iter().filter(|tool| view.shows_tool(tool)).collect(),
            prompts: self.prompts().iter().filter(|it| is_selected(prompts, &it.server, &it.name)).collect(),
            resources: (self.resources().iter())
                .filter(|it| is_selected_resource(&it.server, &it.name, &it.resource.uri))
                .collect(),
            templates: (self.templates().iter())
                .filter(|it| is_selected_resource(&it.server, &it.name, &it.template.uri_template))
                .collect(),
            problems: self.missing_toolset_problems(toolsets),
        }
    }

    /// A problem for each selected toolset, without `*`, that does not exist.
    fn missing_toolset_problems(&self, toolsets: &Selection) -> Vec<Problem> {
        let Selection::Patterns(names) = toolsets else { return Vec::new() };
        let mut known: HashSet<&str> = self.toolsets().iter().map(ServerId::as_str).collect();
        known.extend(self.builtin_toolsets().iter().map(String::as_str));
        // A reported name is inserted, so that it is reported once.
        let unknown = names.iter().filter(|name| !name.contains('*') && known.insert(name));
        unknown.map(|name| Problem::toolset_not_found(name)).collect()
    }
}

impl Selection {
    /// Returns whether a name is selected.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Selection::Inherit => true,
            Selection::None => false,
            Selection::Patterns(patterns) => first_match(patterns, name).is_some(),
        }
    }

    /// Returns whether a resource is selected: by its URI if the pattern has a `:`, else by its name.
    fn contains_resource(&self, name: &str, uri: &str) -> bool {
        let Selection::Patterns(patterns) = self else { return self.contains(name) };
        let matches = |pattern: &String| {
            let key = if pattern.contains(':') { uri } else { name };
            first_match(std::slice::from_ref(pattern), key).is_some()
        };
        patterns.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::snapshot::tests::{dominds, full};
    use crate::lists::Builtins;

    /// Parses a selection: `~` is inherit, `-` is none, anything else is patterns.
    fn selection(text: &str) -> Selection {
        match text {
            "~" => Selection::Inherit,
            "-" => Selection::None,
            patterns => Selection::Patterns(patterns.split_whitespace().map(str::to_owned).collect()),
        }
    }

    #[track_caller]
    fn check(toolsets: &str, tools: &str, want: &str, problems: &str) {
        let builtins = Builtins { tools: Vec::new(), toolsets: vec!["os".to_owned()] };
        let catalog = Catalog::build(&builtins, &dominds("web: web_open web_shut; db: read write; empty: "));
        let view =
            ViewFilter { toolsets: selection(toolsets), tools: selection(tools), ..ViewFilter::default() };
        let got = catalog.view(&view);
        assert_eq!(got.tools.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(" "), want);
        assert_eq!(
            got.problems.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("; "),
            problems
        );
    }

    #[test]
    fn dm_052_selections_inherit_exclude_or_list() {
        check("~", "~", "web_open web_shut read write", "");
        check("~", "-", "", "");
        check("-", "~", "", "");
        check("~", "web_* read", "web_open web_shut read", "");
        check("db", "~", "read write", "");
        check("db", "web_* r*", "read", "");
        check("w* d*", "*t*", "web_shut write", "");
        check("~", "", "", "");
    }

    /// Checks a view that selects `prompts` and `resources`. `want` has the visible prompts, resources and
    /// templates.
    #[track_caller]
    fn check_others(toolsets: &str, prompts: &str, resources: &str, want: [&str; 3]) {
        let entry = |id: &str| {
            let mut res = dominds(&format!("{id}: ")).remove(0);
            let resource = format!("{id}.md");
            res.lists = Arc::new(full("", &format!("{id}_ask {id}_tell"), &[("f:x", &resource)]));
            res
        };
        let catalog = Catalog::build(&Builtins::default(), &[entry("web"), entry("db")]);
        let view = ViewFilter {
            toolsets: selection(toolsets),
            tools: Selection::None,
            prompts: selection(prompts),
            resources: selection(resources),
            hints: HintSelection::Any,
        };
        let got = catalog.view(&view);
        let names = |all: Vec<&ExposedName>| all.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(" ");
        assert_eq!(names(got.prompts.iter().map(|it| &it.name).collect()), want[0]);
        assert_eq!(names(got.resources.iter().map(|it| &it.name).collect()), want[1]);
        assert_eq!(names(got.templates.iter().map(|it| &it.name).collect()), want[2]);
        assert!(got.tools.is_empty());
    }

    #[test]
    fn dm_052_selections_apply_to_prompts_and_resources() {
        let resources = "web.md db.md";
        check_others("~", "~", "~", ["web_ask web_tell db_ask db_tell", resources, resources]);
        check_others("~", "-", "-", ["", "", ""]);
        check_others("-", "~", "~", ["", "", ""]);
        check_others("db", "*_ask", "*", ["db_ask", "db.md", "db.md"]);
        check_others("~", "web_tell", "w*.md", ["web_tell", "web.md", "web.md"]);
        check_others("db", "-", "f:*", ["", "db.md", "db.md"]);
        check_others("~", "-", "f:y *:z", ["", "", ""]);
        // A pattern for names matches no URI.
        check_others("~", "-", "f*", ["", "", ""]);
    }

    #[test]
    fn dm_107_missing_toolset_is_a_warning() {
        check("db nowhere", "~", "read write", "Toolset not found: nowhere");
        check("nowhere nowhere", "-", "", "Toolset not found: nowhere");
        check("os empty no*", "~", "", "");
    }
}
