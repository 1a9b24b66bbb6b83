//! A limit on the number and the size of the tools in a list: models choose worse among too many tools, and each
//! definition costs tokens in every prompt.
//!
//! Tools are kept in the catalog's order, which is that of the configuration. One that does not fit is left out; a
//! later, smaller one may still fit. So a single huge definition does not hide the tools of other servers.

use crate::catalog::exposed_items::ExposedTool;
use crate::catalog::snapshot::Catalog;
use crate::catalog::view::NamedView;
use crate::problem::Problem;

/// Maximum number of names in a problem.
const MAX_NAMES: usize = 10;

/// The limits on a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolBudget {
    /// Maximum number of tools; `None` for no limit.
    pub max_tools: Option<usize>,
    /// Maximum sum of [`ExposedTool::estimated_tokens`]; `None` for no limit.
    pub max_tokens: Option<usize>,
}

impl ToolBudget {
    /// Whether every tool fits.
    pub fn is_unlimited(&self) -> bool {
        self.max_tools.is_none() && self.max_tokens.is_none()
    }

    /// Starts to count the tools of one list.
    pub fn start(&self) -> BudgetTracker {
        BudgetTracker { budget: *self, tools: 0, tokens: 0 }
    }
}

/// Counts the tools of one list against a budget.
#[derive(Debug, Clone)]
pub struct BudgetTracker {
    budget: ToolBudget,
    /// The number of tools that were added.
    tools: usize,
    /// The sum of their tokens, if they are limited.
    tokens: usize,
}

impl BudgetTracker {
    /// Adds the next tool of the list if it fits. Returns false if it is left out.
    pub fn try_add(&mut self, tool: &ExposedTool) -> bool {
        let ToolBudget { max_tools, max_tokens } = self.budget;
        if max_tools.is_some_and(|max| self.tools >= max) {
            return false;
        }
        if let Some(max) = max_tokens {
            let tokens = self.tokens.saturating_add(tool.estimated_tokens());
            if tokens > max {
                return false;
            }
            self.tokens = tokens;
        }
        self.tools += 1;
        true
    }
}

impl Catalog {
    /// The problem that `budget` leaves out tools of a view; `None` if all fit.
    pub fn left_out_problem(&self, view: &NamedView, budget: ToolBudget) -> Option<Problem> {
        if budget.is_unlimited() {
            return None;
        }
        let mut tracker = budget.start();
        let (mut total, mut left_out, mut names) = (0, 0, Vec::new());
        for tool in self.tools().iter().filter(|tool| view.shows_tool(tool)) {
            total += 1;
            if !tracker.try_add(tool) {
                left_out += 1;
                if names.len() < MAX_NAMES {
                    names.push(tool.name.as_str());
                }
            }
        }
        if left_out == 0 {
            return None;
        }
        let mut names = names.join(", ");
        if left_out > MAX_NAMES {
            names.push_str(&format!(" and {} more", left_out - MAX_NAMES));
        }
        let limits = [(budget.max_tools, "tools"), (budget.max_tokens, "tokens")];
        let limits = limits.iter().filter_map(|(max, what)| Some(format!("{} {what}", (*max)?)));
        let limits = limits.collect::<Vec<_>>().join(" and ");
        Some(Problem::tools_left_out(&view.name, left_out, total, &limits, &names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::snapshot::tests::dominds;
    use crate::catalog::view::{Selection, ViewFilter};
    use crate::lists::Builtins;

    /// Limits (0 for none) and the servers of a view (empty for all); expects the message.
    #[track_caller]
    fn check((max_tools, max_tokens): (usize, usize), servers: &[&str], want: &str) {
        let catalog = Catalog::build(&Builtins::default(), &dominds("web: w1 w2 w3; db: d1 d2"));
        let limit = |max: usize| Some(max).filter(|max| *max > 0);
        let budget = ToolBudget { max_tools: limit(max_tools), max_tokens: limit(max_tokens) };
        let toolsets = match servers {
            [] => Selection::Inherit,
            names => Selection::Patterns(names.iter().map(|name| (*name).to_owned()).collect()),
        };
        let filter = ViewFilter { toolsets, ..ViewFilter::default() };
        let view = NamedView { name: "the token `ann`".to_owned(), filters: vec![filter] };
        let message =
            catalog.left_out_problem(&view, budget).map(|problem| problem.message).unwrap_or_default();
        assert_eq!(message, want);
    }

    #[test]
    fn first_tools_of_the_configuration_are_kept() {
        check((0, 0), &[], "");
        check((5, 0), &[], "");
        check(
            (2, 0),
            &[],
            "3 of 5 tools are left out for the token `ann`, because of the limit of 2 tools: w3, d1, d2",
        );
        check((2, 0), &["db"], "");
        check(
            (1, 0),
            &["db"],
            "1 of 2 tools are left out for the token `ann`, because of the limit of 1 tools: d2",
        );
    }

    #[test]
    fn limit_of_tokens_leaves_out_what_does_not_fit() {
        let catalog = Catalog::build(&Builtins::default(), &dominds("web: w1 w2 w3; db: d1 d2"));
        let one = catalog.tools()[0].estimated_tokens();
        assert!(catalog.tools().iter().all(|tool| tool.estimated_tokens() == one));
        let message = |tokens: usize, tools: usize| {
            format!(
                "2 of 5 tools are left out for the token `ann`, because of the limit of {tools} tools and {tokens} \
                tokens: d1, d2"
            )
        };
        check((9, 3 * one), &[], &message(3 * one, 9));
        check((9, 4 * one - 1), &[], &message(4 * one - 1, 9));
        check((0, 5 * one), &[], "");
        check((3, 5 * one), &[], &message(5 * one, 3));
    }

    #[test]
    fn huge_tool_does_not_hide_later_ones() {
        let catalog =
            Catalog::build(&Builtins::default(), &dominds("web: a_long_name_that_costs_more_tokens b"));
        let max_tokens = Some(catalog.tools()[1].estimated_tokens());
        let mut used = ToolBudget { max_tools: None, max_tokens }.start();
        assert_eq!([0, 1].map(|at| used.try_add(&catalog.tools()[at])), [false, true]);
    }
}
