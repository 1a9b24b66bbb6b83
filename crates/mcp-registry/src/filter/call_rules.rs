//! Rules for calls: the rule that decides about a call. The first one that matches counts.

use mcp_host_model::{CallRule, ServerId, ToolAction, ToolHints};

use crate::filter::pattern::first_match;

/// What rules see of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has what a rule can name; another key is another field")]
pub struct CallFacts<'a> {
    /// The server.
    pub server: &'a ServerId,
    /// The server's own name of the tool.
    pub tool: &'a str,
    /// What the tool does; see [`tool_action`].
    pub action: ToolAction,
    /// The user, if the call has one.
    pub user: Option<&'a str>,
}

/// Returns what a tool does by its annotations. They are claims of the server, so they count only if a lock file
/// approves the tool: any other tool may destroy something.
pub fn tool_action(hints: ToolHints, is_approved: bool) -> ToolAction {
    match (is_approved, hints.read_only, hints.destructive) {
        (false, _, _) => ToolAction::Destructive,
        (true, Some(true), _) => ToolAction::Reads,
        (true, _, Some(false)) => ToolAction::Writes,
        (true, _, _) => ToolAction::Destructive,
    }
}

/// Returns the first rule that matches a call.
pub fn find_call_rule<'r>(
    rules: impl IntoIterator<Item = &'r CallRule>,
    call: &CallFacts<'_>,
) -> Option<&'r CallRule> {
    rules.into_iter().find(|rule| matches(rule, call))
}

fn matches(rule: &CallRule, call: &CallFacts<'_>) -> bool {
    let is_listed =
        |patterns: &[String], name: &str| patterns.is_empty() || first_match(patterns, name).is_some();
    is_listed(&rule.tools, call.tool)
        && is_listed(&rule.servers, call.server.as_str())
        && (rule.hints.is_empty() || rule.hints.contains(&call.action))
        && (rule.users.is_empty() || call.user.is_some_and(|it| first_match(&rule.users, it).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which rule decides: calls are `SERVER/TOOL[!ACTION][@USER]`, and `want` has a position or `-` for each.
    #[track_caller]
    fn check(rules: &str, calls: &str, want: &str) {
        let rules: Vec<CallRule> = rules.lines().map(|it| it.trim().parse().unwrap()).collect();
        let got = calls.split_whitespace().map(|call| {
            let (call, user) = call.split_once('@').map_or((call, None), |it| (it.0, Some(it.1)));
            let (call, action) = call.split_once('!').unwrap_or((call, "destructive"));
            let (server, tool) = call.split_once('/').unwrap();
            let (server, action) = (ServerId::parse(server).unwrap(), action.parse().unwrap());
            let found = find_call_rule(&rules, &CallFacts { server: &server, tool, action, user });
            let position = |found| rules.iter().position(|it| std::ptr::eq(it, found)).unwrap();
            found.map_or("-".to_owned(), |it| position(it).to_string())
        });
        assert_eq!(got.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn cp_002_first_matching_rule_decides() {
        check("allow tools=read_*\ndeny tools=*_all,drop\nask", "a/read_all a/drop a/x", "0 1 2");
        check("deny servers=prod*\nallow servers=test tools=x", "prod1/x test/x test/y", "0 1 -");
        check("", "a/x", "-");
    }

    #[test]
    fn cp_003_hints_and_users_restrict_a_rule() {
        check("allow hints=reads\nask hints=writes,destructive", "a/x!reads a/x!writes a/x", "0 1 1");
        check("allow users=ci-*\ndeny users=*\nask", "a/x@ci-1 a/x@bob a/x", "0 1 2");
    }

    #[test]
    fn cp_004_annotations_of_a_tool_that_is_not_approved_do_not_count() {
        let mut hints = ToolHints::default();
        assert_eq!(tool_action(hints, true), ToolAction::Destructive);
        hints.destructive = Some(false);
        assert_eq!(tool_action(hints, true), ToolAction::Writes);
        hints.read_only = Some(true);
        assert_eq!(tool_action(hints, true), ToolAction::Reads);
        assert_eq!(tool_action(hints, false), ToolAction::Destructive);
    }
}
