//! Whether the schemas of tools can be used. A host finds out with a tool's first call; a person wants to know before.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host::{ActiveProblem, HostSnapshot};
use mcp_model::{RawJson, Tool};
use mcp_registry::{Problem, ValidationOutcome, ValidatorCache};

use crate::context::blocking;

/// The most schemas that are looked into.
const MOST: usize = 2_000;

/// The tools whose schemas cannot be used, each with the reason.
pub(super) fn unusable<'a>(tools: impl Iterator<Item = &'a Tool>) -> impl Iterator<Item = (usize, String)> {
    let (validators, nothing) = (ValidatorCache::new(), RawJson::empty_object());
    tools.take(MOST).enumerate().filter_map(move |(at, it)| {
        match validators.check_arguments(&it.input_schema, &nothing) {
            Ok(ValidationOutcome::Unvalidated(reason)) => Some((at, reason)),
            Ok(ValidationOutcome::Valid) | Err(_) => None,
        }
    })
}

/// The same with a problem for each tool whose schema cannot be used.
pub(super) async fn judged(published: Arc<HostSnapshot>) -> Arc<HostSnapshot> {
    blocking(move || {
        let tools = published.catalog.tools();
        let problem = |(at, reason): (usize, String)| {
            let tool = &tools[at];
            Problem::tool_unvalidated(&tool.server, &tool.tool.name, &reason)
        };
        let since = SystemTime::now();
        let found: Vec<ActiveProblem> = unusable(tools.iter().map(|it| &*it.tool))
            .map(|it| ActiveProblem { problem: problem(it), since })
            .filter(|it| !published.problems.iter().any(|known| known.problem.id == it.problem.id))
            .collect();
        if found.is_empty() {
            return published;
        }
        let mut res = HostSnapshot::clone(&published);
        res.problems.extend(found);
        Arc::new(res)
    })
    .await
}
