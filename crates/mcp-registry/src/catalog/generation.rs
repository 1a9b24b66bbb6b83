//! Generations: numbered, immutable catalogs that a host publishes by swapping a pointer.
//!
//! A reader keeps its generation unchanged and waits for no lock. Only the number and the start times of problems are
//! carried over to the next generation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Serialize, Serializer};

use crate::catalog::diff::CatalogDiff;
use crate::catalog::snapshot::Catalog;
use crate::catalog::timestamp::rfc3339;
use crate::problem::Problem;

/// A numbered catalog with the problems of the host.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Generation {
    /// The number, counted from 1; 0 is the empty generation.
    pub number: u64,
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// The host's problems, then the catalog's, with unique ids.
    pub problems: Vec<ActiveProblem>,
}

impl Generation {
    /// Returns the next generation with `catalog`. Its problems are `host_problems` and those of the catalog.
    pub fn successor(
        &self,
        catalog: Arc<Catalog>,
        host_problems: Vec<Problem>,
        now: SystemTime,
    ) -> Generation {
        let found = host_problems.into_iter().chain(catalog.problems().iter().cloned());
        let problems = ActiveProblem::update(&self.problems, found, now);
        Generation { number: self.number + 1, catalog, problems }
    }

    /// Compares this generation's catalog with an earlier one.
    pub fn diff(&self, before: &Generation) -> CatalogDiff {
        Catalog::diff(&before.catalog, &self.catalog)
    }
}

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
    use crate::catalog::snapshot::tests::dominds;
    use crate::lists::Builtins;

    fn second(at: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(at)
    }

    /// Publishes one generation per second. `want` has the problems of each, as `<problem>@<second>`.
    #[track_caller]
    fn check(catalogs: &[&str], want: &[&str]) {
        let mut generation = Generation::default();
        for (at, (servers, want)) in catalogs.iter().zip(want).enumerate() {
            let (at, catalog) = (at as u64 + 1, Catalog::build(&Builtins::default(), &dominds(servers)));
            generation = generation.successor(Arc::new(catalog), Vec::new(), second(at));
            assert_eq!(generation.number, at);
            let told = generation.problems.iter().map(|it| {
                let since = it.since.duration_since(UNIX_EPOCH).unwrap().as_secs();
                format!("{}@{since}", it.problem.tool.as_deref().unwrap_or("?"))
            });
            assert_eq!(told.collect::<Vec<_>>().join(" "), *want, "generation {at}");
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
        let catalog = |text| Arc::new(Catalog::build(&Builtins::default(), &dominds(text)));
        let one = Generation::default().successor(catalog("a: x |black=x"), Vec::new(), second(1));
        let two = one.successor(catalog("a: x |black=x*"), Vec::new(), second(2));
        assert_ne!(one.problems[0].problem.message, two.problems[0].problem.message);
        assert_eq!(two.problems[0].since, second(1));
        // The earlier generation is unchanged.
        assert_eq!((one.number, one.catalog.problems().len()), (1, 1));
    }

    #[test]
    fn dm_125_host_problems_are_first_and_unique() {
        let own = || vec![Problem::workspace_config_error("bad"), Problem::workspace_config_error("worse")];
        let catalog = || Arc::new(Catalog::build(&Builtins::default(), &dominds("a: x |black=x")));
        let one = Generation::default().successor(catalog(), own(), second(7));
        let ids: Vec<&str> = one.problems.iter().map(|it| it.problem.id.as_str()).collect();
        assert_eq!(ids, ["mcp/workspace_config_error", "mcp/server/a/tool_blacklisted/x"]);
        assert_eq!(
            serde_json::to_string(&one.problems[0]).unwrap(),
            concat!(
                r#"{"id":"mcp/workspace_config_error","kind":"mcp_workspace_config_error","severity":"error","#,
                r#""server":null,"tool":null,"message":"bad","since":"1970-01-01T00:00:07.000Z"}"#
            )
        );
        let CatalogDiff { tools, toolsets, .. } = one.diff(&Generation::default());
        assert!(tools.is_empty() && toolsets.added == [mcp_host_model::ServerId::parse("a").unwrap()]);
    }
}
