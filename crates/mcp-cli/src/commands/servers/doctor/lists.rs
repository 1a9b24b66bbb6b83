//! Reads the lists of a server and checks the schemas of its tools.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::Tool;
use mcp_host_registry::{ListKind, ServerLists};
use mcp_host_runtime::OPTIONAL_LIST_LIMIT;
use mcp_host_transport::{CallError, ListResult, Session};
use tokio::time::{Instant, timeout_at};

use super::report::{StepOutcome, StepResult};
use super::step_log::StepLog;
use crate::call_arguments::schema::find_invalid_schemas;
use crate::output::count;
use crate::runtime::run_blocking;

/// The help for a list of which only a part was read.
const INCOMPLETE_LIST_HELP: &str =
    "only the server's author can correct how it lists them; those that came are available";

/// The help for an invalid item of a server.
const INVALID_ITEM_HELP: &str =
    "only the server's author can correct it: report it, or use another version; valid items can be used";

/// The help for a server that declares no capabilities.
const UNDECLARED_HELP: &str =
    "a server that has tools, prompts or resources must declare them: report it, or use another version";

/// The remaining time of a start, which its steps share.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartBudget {
    pub(super) deadline: Instant,
    /// The limit, for messages.
    pub(super) limit: Duration,
    /// What the limit applies to.
    pub(super) scope: LimitScope,
}

/// What a limit of time applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitScope {
    /// The whole start.
    Start,
    /// A list without which a host uses the tools.
    OptionalList,
}

impl StartBudget {
    /// The time for prompts or resources: a host does not wait longer for them.
    fn for_optional_list(self) -> StartBudget {
        let deadline = Instant::now() + OPTIONAL_LIST_LIMIT;
        if deadline >= self.deadline {
            return self;
        }
        StartBudget { deadline, limit: OPTIONAL_LIST_LIMIT, scope: LimitScope::OptionalList }
    }

    /// The failure of a list that took longer.
    fn exceeded(self, item: &str) -> (String, String) {
        let limit = self.limit.as_secs_f64();
        match self.scope {
            LimitScope::Start => (
                format!("the {item}s were not listed within the start-up limit of {limit} s"),
                "raise the start-up limit if the server is only slow".to_owned(),
            ),
            LimitScope::OptionalList => (
                format!("the {item}s were not listed within {limit} s"),
                format!("the tools are used without them; a host adds the {item}s when they come"),
            ),
        }
    }
}

/// One list of a server, and the result of its step. Without items if it could not be read.
struct FetchedList<T> {
    result: StepResult,
    items: Vec<T>,
}

/// The lists of a server that could be read.
#[derive(Default)]
pub(super) struct FetchedLists {
    pub(super) lists: ServerLists,
    /// The kinds of the lists that could be read completely.
    pub(super) complete_kinds: Vec<ListKind>,
}

/// Reads the lists that a host would read, within the remaining time of the start.
pub(super) async fn fetch_lists(
    step_log: &StepLog,
    server: &ResolvedServer,
    session: &Session,
    budget: StartBudget,
) -> Option<FetchedLists> {
    let discovery = server.spec.discovery;
    let mut fetched = FetchedLists::default();
    if discovery.tools {
        step_log.begin("tools");
        let FetchedList { result, items } = fetch_list("tool", budget, session.list_tools()).await;
        fetched.lists.tools = items.iter().cloned().map(Arc::new).collect();
        fetched.complete_kinds.push(ListKind::Tool);
        let result = match result.outcome {
            StepOutcome::Passed if session.server().capabilities.is_empty() => {
                let message = "the server declares no capabilities, so its tools, prompts and resources are not \
                               requested; 0 tools";
                StepResult::warning(message.to_owned(), UNDECLARED_HELP)
            }
            StepOutcome::Passed | StepOutcome::Warning => check_schemas(result, items).await,
            StepOutcome::Failed(_) | StepOutcome::Interrupted => result,
        };
        step_log.record("tools", result)?;
    } else {
        step_log.record("tools", StepResult::passed("skipped: `load_tools` is false"))?;
    }
    // If prompts or resources cannot be listed, the tools can still be used.
    let with_failure_as_warning = |result: StepResult| match result.outcome {
        StepOutcome::Failed(_) => StepResult { outcome: StepOutcome::Warning, ..result },
        StepOutcome::Passed | StepOutcome::Warning | StepOutcome::Interrupted => result,
    };
    if discovery.prompts {
        step_log.begin("prompts");
        let FetchedList { result, items } =
            fetch_list("prompt", budget.for_optional_list(), session.list_prompts()).await;
        fetched.lists.prompts = items.into_iter().map(Arc::new).collect();
        fetched.complete_kinds.extend(is_read(&result).then_some(ListKind::Prompt));
        step_log.record("prompts", with_failure_as_warning(result))?;
    } else {
        step_log.record("prompts", StepResult::passed("skipped: `load_prompts` is false"))?;
    }
    step_log.begin("resources");
    let budget = budget.for_optional_list();
    let FetchedList { result, items } = fetch_list("resource", budget, session.list_resources()).await;
    // Templates have no step of their own, because few servers have any.
    let templates = fetch_list("template", budget, session.list_resource_templates()).await;
    fetched.lists.resources = items.into_iter().map(Arc::new).collect();
    fetched.lists.templates = templates.items.into_iter().map(Arc::new).collect();
    fetched
        .complete_kinds
        .extend((is_read(&result) && is_read(&templates.result)).then_some(ListKind::Resource));
    step_log.record("resources", with_failure_as_warning(result))?;
    Some(fetched)
}

/// Whether the list was read, with or without invalid items.
fn is_read(result: &StepResult) -> bool {
    match result.outcome {
        StepOutcome::Passed | StepOutcome::Warning => true,
        StepOutcome::Failed(_) | StepOutcome::Interrupted => false,
    }
}

/// Awaits one list within the remaining time, and checks it. `item` is the word for one item in messages.
async fn fetch_list<T>(
    item: &str,
    budget: StartBudget,
    list: impl Future<Output = Result<ListResult<T>, CallError>>,
) -> FetchedList<T> {
    let failed = |message, help| FetchedList { result: StepResult::failed(message, help), items: Vec::new() };
    let ListResult { items, rejected, defect, .. } = match timeout_at(budget.deadline, list).await {
        Ok(Ok(list)) => list,
        Ok(Err(error)) => {
            return failed(format!("cannot list the {item}s: {error}"), error.help());
        }
        Err(_) => {
            let (message, help) = budget.exceeded(item);
            return failed(message, Some(help));
        }
    };
    let valid_count = count(items.len(), item);
    let result = match (defect, rejected.first()) {
        (Some(defect), _) => {
            let message = format!("the list of {item}s is incomplete: {defect}; {valid_count}");
            StepResult::warning(message, INCOMPLETE_LIST_HELP)
        }
        (None, None) => StepResult::passed(valid_count),
        (None, Some(first)) => {
            let name = first.name.as_deref().map(|it| format!(" `{it}`")).unwrap_or_default();
            let more = more_findings(rejected.len());
            let message =
                format!("the {item}{name} is malformed: {}{more}; {valid_count} valid", first.reason);
            StepResult::warning(message, INVALID_ITEM_HELP)
        }
    };
    FetchedList { result, items }
}

/// Checks the schemas of the tools. Returns the same result, or a warning if a schema is invalid.
async fn check_schemas(result: StepResult, tools: Vec<Tool>) -> StepResult {
    let find_mistake = move || {
        let found = find_invalid_schemas(tools.iter());
        let first = found.first()?;
        let more = more_findings(found.len());
        Some(format!("the tool `{}` has a mistake: {}{more}", tools[first.tool_index].name, first.message()))
    };
    match run_blocking(find_mistake).await {
        None => result,
        Some(message) => StepResult::warning(format!("{message}; {}", result.message), INVALID_ITEM_HELP),
    }
}

/// The number of further findings: ` (and 2 more)`.
fn more_findings(found: usize) -> String {
    if found > 1 { format!(" (and {} more)", found - 1) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lists_share_one_time_limit() {
        let limit = Duration::from_secs(10);
        let budget = StartBudget { deadline: Instant::now() + limit, limit, scope: LimitScope::Start };
        let slow = || async {
            sleep(Duration::from_secs(6)).await;
            Ok(ListResult::<Tool>::empty())
        };
        assert_eq!(fetch_list("tool", budget, slow()).await.result.message, "0 tools");
        let result = fetch_list("prompt", budget, slow()).await.result;
        assert_eq!(result.message, "the prompts were not listed within the start-up limit of 10 s");
        assert!(result.help.is_some_and(|it| it.contains("start-up limit")));
    }

    /// RPT-183
    #[tokio::test(start_paused = true)]
    async fn rpt_183_hanging_optional_list_has_a_short_limit() {
        let limit = Duration::from_secs(60);
        let begun = Instant::now();
        let budget = StartBudget { deadline: begun + limit, limit, scope: LimitScope::Start };
        let hanging = std::future::pending::<Result<ListResult<Tool>, CallError>>();
        let result = fetch_list("resource", budget.for_optional_list(), hanging).await.result;
        assert_eq!(result.message, "the resources were not listed within 2 s");
        assert_eq!(begun.elapsed(), OPTIONAL_LIST_LIMIT);
    }
}
