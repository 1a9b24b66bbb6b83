//! JSON Schemas of tools: resolves references and finds schemas that cannot be compiled.
//!
//! A host compiles a schema at the first call of its tool. `tools` and `doctor` compile all schemas to report
//! problems earlier.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_model::{RawJson, ServerId, Tool};
use mcp_host_registry::{Problem, ValidationOutcome, ValidatorCache};
use mcp_host_runtime::{ActiveProblem, HostSnapshot};
use serde_json::Value;

use crate::runtime::run_blocking;

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

/// A schema of a tool that cannot be used.
pub(crate) struct InvalidSchema {
    /// The index of the tool among those that were checked.
    pub(crate) tool_index: usize,
    /// Whether it is the output schema.
    is_output: bool,
    /// A sentence that begins with `its schema`.
    reason: String,
}

impl InvalidSchema {
    /// The reason, which begins with `its schema` or `its output schema`.
    pub(crate) fn message(&self) -> String {
        if self.is_output {
            self.reason.replacen("its schema", "its output schema", 1)
        } else {
            self.reason.clone()
        }
    }

    fn problem(&self, server: &ServerId, tool: &str) -> Problem {
        if self.is_output {
            Problem::tool_result_unvalidated(server, tool, &self.reason)
        } else {
            Problem::tool_unvalidated(server, tool, &self.reason)
        }
    }
}

/// Compiles the schemas of the tools and returns those that cannot be compiled.
pub(crate) fn find_invalid_schemas<'a>(tools: impl Iterator<Item = &'a Tool>) -> Vec<InvalidSchema> {
    // Any check compiles the schema; its other results do not matter here.
    let (validators, empty) = (ValidatorCache::new(), RawJson::empty_object());
    let mut invalid = Vec::new();
    for (tool_index, tool) in tools.take(MAX_SCHEMAS).enumerate() {
        let checked = validators.check_arguments(&tool.input_schema, &empty);
        if let Ok(ValidationOutcome::Unvalidated(reason)) = checked {
            invalid.push(InvalidSchema { tool_index, is_output: false, reason });
        }
        if let Some(schema) = &tool.output_schema
            && let Ok(ValidationOutcome::Unvalidated(reason)) = validators.check_result(schema, Some(&empty))
        {
            invalid.push(InvalidSchema { tool_index, is_output: true, reason });
        }
    }
    invalid
}

/// Adds a problem for each schema of a tool that cannot be compiled, unless the host has reported it.
pub(crate) async fn add_schema_problems(published: Arc<HostSnapshot>) -> Arc<HostSnapshot> {
    run_blocking(move || {
        let tools = published.catalog.tools();
        let problem = |invalid: InvalidSchema| {
            let tool = &tools[invalid.tool_index];
            invalid.problem(&tool.server, &tool.tool.name)
        };
        let since = SystemTime::now();
        let found: Vec<ActiveProblem> = find_invalid_schemas(tools.iter().map(|it| &*it.tool))
            .into_iter()
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
