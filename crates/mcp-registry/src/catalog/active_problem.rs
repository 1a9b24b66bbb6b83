//! The problems of a host, each with the time since which it is active.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use serde::{Serialize, Serializer};

use crate::catalog::timestamp::rfc3339;
use crate::problem::Problem;

/// A problem with the time since which it is active.
///
/// Serializes as `{"id", "kind", "severity", "server", "tool", "message", "since"}`; `since` is RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a problem with its time; whatever else it has is a field of `Problem`"
)]
pub struct ActiveProblem {
    /// The problem.
    #[serde(flatten)]
    pub problem: Problem,
    /// The time since which the problem has existed without interruption.
    #[serde(serialize_with = "serialize_rfc3339")]
    pub since: SystemTime,
}

fn serialize_rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

impl ActiveProblem {
    /// Updates `before` with the problems `found` now. A problem that persists keeps its time, even if its message
    /// changed; a new one starts at `now`; the others are dropped (DM-124). Of two with one id the first counts.
    pub fn update(
        before: &[ActiveProblem],
        found: impl IntoIterator<Item = Problem>,
        now: SystemTime,
    ) -> Vec<ActiveProblem> {
        let since: HashMap<&str, SystemTime> =
            before.iter().map(|it| (it.problem.id.as_str(), it.since)).collect();
        let mut ids = HashSet::new();
        let first = found.into_iter().filter(|it| ids.insert(it.id.clone()));
        first
            .map(|problem| {
                let since = since.get(problem.id.as_str()).copied().unwrap_or(now);
                ActiveProblem { problem, since }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::catalog::snapshot::Catalog;
    use crate::catalog::snapshot::tests::dominds;
    use crate::lists::Builtins;

    fn second(at: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(at)
    }

    /// The problems of the catalog of these servers.
    fn problems_of(servers: &str) -> Vec<Problem> {
        Catalog::build(&Builtins::default(), &dominds(servers)).problems().to_vec()
    }

    /// Updates the problems once per second. `want` has those of each second, as `<problem>@<second>`.
    #[track_caller]
    fn check(catalogs: &[&str], want: &[&str]) {
        let mut problems = Vec::new();
        for (at, (servers, want)) in (1..).zip(catalogs.iter().zip(want)) {
            problems = ActiveProblem::update(&problems, problems_of(servers), second(at));
            let got = problems.iter().map(|it| {
                let since = it.since.duration_since(UNIX_EPOCH).unwrap().as_secs();
                format!("{}@{since}", it.problem.tool.as_deref().unwrap_or("?"))
            });
            assert_eq!(got.collect::<Vec<_>>().join(" "), *want, "second {at}");
        }
    }

    #[test]
    fn dm_124_problem_lasts_as_long_as_its_cause() {
        check(
            &["a: x |black=x", "a: x y |black=x,y", "a: x y |black=y", "a: x y", "a: x |black=x"],
            &["x@1", "x@1 y@2", "y@2", "", "x@5"],
        );
    }

    #[test]
    fn changed_message_keeps_the_problem() {
        let one = ActiveProblem::update(&[], problems_of("a: x |black=x"), second(1));
        let two = ActiveProblem::update(&one, problems_of("a: x |black=x*"), second(2));
        assert_ne!(one[0].problem.message, two[0].problem.message);
        assert_eq!(two[0].since, second(1));
    }

    #[test]
    fn dm_125_host_problems_are_first_and_unique() {
        let own = [Problem::workspace_config_error("bad"), Problem::workspace_config_error("worse")];
        let found = own.into_iter().chain(problems_of("a: x |black=x"));
        let problems = ActiveProblem::update(&[], found, second(7));
        let ids: Vec<&str> = problems.iter().map(|it| it.problem.id.as_str()).collect();
        assert_eq!(ids, ["mcp/workspace_config_error", "mcp/server/a/tool_blacklisted/x"]);
        assert_eq!(
            serde_json::to_string(&problems[0]).unwrap(),
            concat!(
                r#"{"id":"mcp/workspace_config_error","kind":"mcp_workspace_config_error","severity":"error","#,
                r#""server":null,"tool":null,"message":"bad","since":"1970-01-01T00:00:07.000Z"}"#
            )
        );
    }
}
