//! What one agent sees of a catalog: a part of it, never anything beside it.
//!
//! A view renames nothing and owns nothing, so that a call needs no view to find its tool.

use std::collections::HashSet;

use mcp_model::ServerId;

use crate::pattern::Patterns;
use crate::{Catalog, ExposedTool, Problem};

/// Which of several things are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// Nothing is said: all that there are.
    #[default]
    Inherit,
    /// None of them.
    None,
    /// Those whose name a pattern matches, with `*` for any run of characters (DM-036).
    Patterns(Vec<String>),
}

/// What an agent may see. A tool is seen where its toolset and its name both are selected (DM-052).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// Which toolsets, by name: that of the server.
    pub toolsets: Selection,
    /// Which of their tools, by exposed name.
    pub tools: Selection,
}

/// What an agent sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewed<'a> {
    /// Its tools, in the catalog's order.
    pub tools: Vec<&'a ExposedTool>,
    /// A warning for each toolset that is named, without a `*`, and is not there.
    pub problems: Vec<Problem>,
}

impl Catalog {
    /// Takes the part that `view` selects.
    pub fn view(&self, view: &View) -> Viewed<'_> {
        let View { toolsets, tools } = view;
        let (servers, names) = (Chooser::new(toolsets), Chooser::new(tools));
        let seen = |it: &&ExposedTool| servers.takes(it.server.as_str()) && names.takes(it.name.as_str());
        Viewed { tools: self.tools().iter().filter(seen).collect(), problems: self.missing(toolsets) }
    }

    fn missing(&self, toolsets: &Selection) -> Vec<Problem> {
        let Selection::Patterns(names) = toolsets else { return Vec::new() };
        let mut seen: HashSet<&str> = self.toolsets().iter().map(ServerId::as_str).collect();
        seen.extend(self.builtin_toolsets().iter().map(String::as_str));
        // A name that was reported is seen too, so that no problem stands twice.
        let unknown = names.iter().filter(|it| !it.contains('*') && seen.insert(it));
        unknown.map(|it| Problem::toolset_not_found(it)).collect()
    }
}

/// A selection, prepared.
enum Chooser<'a> {
    All,
    Nothing,
    Matching(Patterns<'a>),
}

impl<'a> Chooser<'a> {
    fn new(selection: &'a Selection) -> Chooser<'a> {
        match selection {
            Selection::Inherit => Chooser::All,
            Selection::None => Chooser::Nothing,
            Selection::Patterns(patterns) => Chooser::Matching(Patterns::new(patterns)),
        }
    }

    fn takes(&self, name: &str) -> bool {
        match self {
            Chooser::All => true,
            Chooser::Nothing => false,
            Chooser::Matching(patterns) => patterns.first(name).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builtins;
    use crate::catalog::tests::dominds;

    /// `~` is inherit, `-` none, anything else patterns.
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
        let view = View { toolsets: selection(toolsets), tools: selection(tools) };
        let got = catalog.view(&view);
        assert_eq!(got.tools.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(" "), want);
        assert_eq!(
            got.problems.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("; "),
            problems
        );
    }

    #[test]
    fn dm_052_a_view_inherits_refuses_or_lists() {
        check("~", "~", "web_open web_shut read write", "");
        check("~", "-", "", "");
        check("-", "~", "", "");
        check("~", "web_* read", "web_open web_shut read", "");
        check("db", "~", "read write", "");
        check("db", "web_* r*", "read", "");
        check("w* d*", "*t*", "web_shut write", "");
        check("~", "", "", "");
    }

    #[test]
    fn a_toolset_that_is_not_there_is_a_warning() {
        check("db nowhere", "~", "read write", "Toolset not found: nowhere");
        check("nowhere nowhere", "-", "", "Toolset not found: nowhere");
        check("os empty no*", "~", "", "");
    }
}
