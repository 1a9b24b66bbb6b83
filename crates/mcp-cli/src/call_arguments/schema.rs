//! JSON Schemas of tools: resolves references and finds schemas that cannot be compiled.
//!
//! A host compiles a schema at the first call of its tool. `tools` and `doctor` compile all schemas to report
//! problems earlier.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host::{ActiveProblem, HostSnapshot};
use mcp_model::{RawJson, Tool};
use mcp_registry::{Problem, ValidationOutcome, ValidatorCache};
use serde_json::Value;

use crate::runtime::blocking;

/// The maximum number of schemas to compile.
const MAX_SCHEMAS: usize = 2_000;

/// The maximum length of a chain of references.
pub(crate) const MAX_REFERENCES: usize = 8;

/// Follows references of the form `#/…` within the document `root`. Returns the schema at the first reference that
/// has another form, no target, or more than [`MAX_REFERENCES`] before it.
pub(crate) fn resolve_ref<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut resolved = schema;
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = resolved.get("$ref").and_then(Value::as_str) else { return resolved };
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let Some(target) = target else { return resolved };
        resolved = target;
    }
    resolved
}

/// Whether an object's schema requires a member.
pub(crate) fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required.as_str() == Some(name)))
}

/// The index of each tool with an input schema that cannot be compiled, and the reason.
pub(crate) fn invalid_schemas<'a>(
    tools: impl Iterator<Item = &'a Tool>,
) -> impl Iterator<Item = (usize, String)> {
    // Any check compiles the schema; its other results do not matter here.
    let (validators, no_arguments) = (ValidatorCache::new(), RawJson::empty_object());
    tools.take(MAX_SCHEMAS).enumerate().filter_map(move |(index, tool)| {
        match validators.check_arguments(&tool.input_schema, &no_arguments) {
            Ok(ValidationOutcome::Unvalidated(reason)) => Some((index, reason)),
            Ok(ValidationOutcome::Valid) | Err(_) => None,
        }
    })
}

/// Adds a problem for each tool whose input schema cannot be compiled, unless the host has reported it.
pub(crate) async fn with_schema_problems(published: Arc<HostSnapshot>) -> Arc<HostSnapshot> {
    blocking(move || {
        let tools = published.catalog.tools();
        let problem = |(index, reason): (usize, String)| {
            let tool = &tools[index];
            Problem::tool_unvalidated(&tool.server, &tool.tool.name, &reason)
        };
        let since = SystemTime::now();
        let found: Vec<ActiveProblem> = invalid_schemas(tools.iter().map(|it| &*it.tool))
            .map(|it| ActiveProblem { problem: problem(it), since })
            .filter(|it| !published.problems.iter().any(|known| known.problem.id == it.problem.id))
            .collect();
        if found.is_empty() {
            return published;
        }
        let mut extended = HostSnapshot::clone(&published);
        extended.problems.extend(found);
        Arc::new(extended)
    })
    .await
}
