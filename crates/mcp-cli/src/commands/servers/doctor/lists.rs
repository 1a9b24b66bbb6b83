//! Reads the lists of a server and checks the schemas of its tools.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::Tool;
use mcp_host_registry::{ListKind, ServerLists};
use mcp_host_transport::{CallError, ListResult, Session};
use tokio::time::{Instant, timeout_at};

use super::examination::Examination;
use super::report::{StepOutcome, StepResult};
use crate::call_arguments::schema::invalid_schemas;
use crate::output::count;
use crate::runtime::blocking;

/// The help for an invalid item of a server.
const INVALID_ITEM_HELP: &str =
    "only the server's author can correct it: report it, or use another version; valid items can be used";

/// The remaining time of a start, which its steps share.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartBudget {
    pub(super) deadline: Instant,
    pub(super) limit: Duration,
}

/// The result of reading one list.
struct ReadList<T> {
    result: StepResult,
    items: Vec<T>,
}

/// The lists of a server.
#[derive(Default)]
pub(super) struct ReadLists {
    pub(super) lists: ServerLists,
    /// The lists that could be read.
    pub(super) complete: Vec<ListKind>,
}

/// Reads the lists that a host would read, within the remaining time of the start.
pub(super) async fn read_lists(
    examination: &Examination,
    server: &ResolvedServer,
    session: &Session,
    budget: StartBudget,
) -> Option<ReadLists> {
    let discovery = server.spec.discovery;
    let mut lists = ReadLists::default();
    match discovery.tools {
        false => examination.step("tools", StepResult::passed("skipped: `load_tools` is false"))?,
        true => {
            examination.begin("tools");
            let ReadList { result, items } = read_list("tool", budget, session.list_tools()).await;
            lists.lists.tools = items.iter().cloned().map(Arc::new).collect();
            lists.complete.push(ListKind::Tool);
            let result = match result.outcome {
                StepOutcome::Passed | StepOutcome::Warning => check_schemas(result, items).await,
                StepOutcome::Failed(_) | StepOutcome::Interrupted => result,
            };
            examination.step("tools", result)?;
        }
    }
    // If prompts or resources cannot be listed, the tools can still be used.
    let lenient = |result: StepResult| match result.outcome {
        StepOutcome::Failed(_) => StepResult { outcome: StepOutcome::Warning, ..result },
        StepOutcome::Passed | StepOutcome::Warning | StepOutcome::Interrupted => result,
    };
    match discovery.prompts {
        false => examination.step("prompts", StepResult::passed("skipped: `load_prompts` is false"))?,
        true => {
            examination.begin("prompts");
            let ReadList { result, items } = read_list("prompt", budget, session.list_prompts()).await;
            lists.lists.prompts = items.into_iter().map(Arc::new).collect();
            lists.complete.extend(is_read(&result).then_some(ListKind::Prompt));
            examination.step("prompts", lenient(result))?;
        }
    }
    examination.begin("resources");
    let ReadList { result, items } = read_list("resource", budget, session.list_resources()).await;
    // Templates have no step of their own, because few servers have any.
    let templates = read_list("template", budget, session.list_resource_templates()).await;
    lists.lists.resources = items.into_iter().map(Arc::new).collect();
    lists.lists.templates = templates.items.into_iter().map(Arc::new).collect();
    lists.complete.extend((is_read(&result) && is_read(&templates.result)).then_some(ListKind::Resource));
    examination.step("resources", lenient(result))?;
    Some(lists)
}

/// Whether the list was read, with or without invalid items.
fn is_read(result: &StepResult) -> bool {
    match result.outcome {
        StepOutcome::Passed | StepOutcome::Warning => true,
        StepOutcome::Failed(_) | StepOutcome::Interrupted => false,
    }
}

async fn read_list<T>(
    item: &str,
    budget: StartBudget,
    list: impl Future<Output = Result<ListResult<T>, CallError>>,
) -> ReadList<T> {
    let failed = |message, help| ReadList { result: StepResult::failed(message, help), items: Vec::new() };
    let ListResult { items, rejected, .. } = match timeout_at(budget.deadline, list).await {
        Ok(Ok(listing)) => listing,
        Ok(Err(error)) => {
            return failed(format!("cannot list the {item}s: {error}"), error.help());
        }
        Err(_) => {
            let limit = budget.limit.as_secs_f64();
            let message = format!("the {item}s were not listed within the start-up limit of {limit} s");
            return failed(message, Some("raise the start-up limit if the server is only slow".to_owned()));
        }
    };
    let valid_count = count(items.len(), item);
    let result = match rejected.first() {
        None => StepResult::passed(valid_count),
        Some(first) => {
            let name = first.name.as_deref().map(|it| format!(" `{it}`")).unwrap_or_default();
            let more = more(rejected.len());
            let message =
                format!("the {item}{name} is malformed: {}{more}; {valid_count} valid", first.reason);
            StepResult::warning(message, INVALID_ITEM_HELP)
        }
    };
    ReadList { result, items }
}

/// Checks the schemas of the tools. Returns the same result, or a warning if a schema is invalid.
async fn check_schemas(result: StepResult, tools: Vec<Tool>) -> StepResult {
    let find = move || {
        let found: Vec<_> = invalid_schemas(tools.iter()).collect();
        let first = found.first()?;
        let more = more(found.len());
        Some(format!("the tool `{}` has a mistake: {}{more}", tools[first.tool].name, first.message()))
    };
    match blocking(find).await {
        None => result,
        Some(message) => StepResult::warning(format!("{message}; {}", result.message), INVALID_ITEM_HELP),
    }
}

/// The number of further findings: ` (and 2 more)`.
fn more(found: usize) -> String {
    if found > 1 { format!(" (and {} more)", found - 1) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lists_share_one_time_limit() {
        let limit = Duration::from_secs(10);
        let budget = StartBudget { deadline: Instant::now() + limit, limit };
        let slow = || async {
            sleep(Duration::from_secs(6)).await;
            Ok(ListResult::<Tool>::empty())
        };
        assert_eq!(read_list("tool", budget, slow()).await.result.message, "0 tools");
        let result = read_list("prompt", budget, slow()).await.result;
        assert_eq!(result.message, "the prompts were not listed within the start-up limit of 10 s");
        assert!(result.help.is_some_and(|it| it.contains("start-up limit")));
    }
}
