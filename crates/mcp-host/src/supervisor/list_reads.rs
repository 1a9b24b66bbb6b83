//! Reads of a server's lists, side by side and each within a bounded time.
//!
//! A list that takes long delays no other: a start waits for the tools, and a little longer for the rest. What is
//! missing then counts as a failed list, which is read again in the background.

use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, Limits};
use mcp_host_registry::ListKind;
use mcp_host_transport::{CallError, CallOptions, ListDefect, ListResult, Session};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use crate::error::HostError;
use crate::supervisor::lists::{ListUpdate, plural_name};
use crate::supervisor::server_error::{call_error, server_error};
use crate::telemetry::metrics::HostMetrics;
use crate::telemetry::spans;

/// How long prompts and resources may take before the tools are used without them.
pub const OPTIONAL_LIST_LIMIT: Duration = Duration::from_secs(2);

/// How long they may take after the tools were listed.
const MAX_WAIT_AFTER_TOOLS: Duration = Duration::from_millis(500);

/// The lists to read of one server.
pub(crate) struct ListReads<'a> {
    pub(crate) session: &'a Session,
    pub(crate) server: &'a ResolvedServer,
    pub(crate) kinds: &'a [ListKind],
    /// When each read ends at the latest.
    pub(crate) deadline: Instant,
    pub(crate) metrics: &'a HostMetrics,
}

impl ListReads<'_> {
    /// Reads the lists. Tools may take until the deadline; if they are among the lists, the others have a bounded time.
    pub(crate) async fn run(self) -> Vec<ListUpdate> {
        let ListReads { session, server, kinds, deadline, metrics } = self;
        let begun = Instant::now();
        // Boxed, because all servers start at once and each start would hold three lists on its future.
        let read = |kind| Box::pin(read_list_within(session, server, kind, deadline, metrics));
        let (tools_listed, listed) = watch::channel(None);
        let tools = async {
            let update = kinds.contains(&ListKind::Tool).then(|| read(ListKind::Tool))?.await;
            tools_listed.send_replace(Some(Instant::now()));
            Some(update)
        };
        // Dropping a read cancels its request.
        let other = async |kind: ListKind| {
            let reading = kinds.contains(&kind).then(|| read(kind))?;
            Some(tokio::select! {
                biased;
                update = reading => update,
                () = wait_after_tools(listed.clone(), begun) => {
                    ListUpdate::Failed(kind, late_list_error(server, kind, begun.elapsed()))
                }
            })
        };
        let (tools, prompts, resources) =
            tokio::join!(tools, other(ListKind::Prompt), other(ListKind::Resource));
        [tools, prompts, resources].into_iter().flatten().collect()
    }
}

/// Waits until the tools are listed, and then for the time that the other lists have. Waits forever if they are not
/// read.
async fn wait_after_tools(mut listed: watch::Receiver<Option<Instant>>, begun: Instant) {
    let listed_at = listed.wait_for(Option::is_some).await.ok().and_then(|at| *at);
    match listed_at {
        Some(at) => {
            tokio::time::sleep_until((begun + OPTIONAL_LIST_LIMIT).max(at + MAX_WAIT_AFTER_TOOLS)).await
        }
        None => std::future::pending().await,
    }
}

/// Reads one list, at most until `deadline`.
async fn read_list_within(
    session: &Session,
    server: &ResolvedServer,
    kind: ListKind,
    deadline: Instant,
    metrics: &HostMetrics,
) -> ListUpdate {
    let span = tracing::info_span!(
        "list",
        server = %server.spec.id,
        list = kind.as_str(),
        method = kind.method().as_str(),
        transport = Empty,
        version = Empty,
        address = Empty,
        port = Empty,
        code = Empty,
        outcome = Empty,
        duration = Empty,
        items = Empty,
        bytes = Empty
    );
    async {
        spans::record_connection(&tracing::Span::current(), server, session);
        let (guard, begun) = (spans::SpanGuard::begin(), Instant::now());
        let timeout = deadline.saturating_duration_since(begun);
        let update = match read_list(session, kind, CallOptions::with_timeout(timeout)).await {
            Ok(update) => update,
            Err(CallError::TimedOut(_)) if Instant::now() >= deadline => {
                ListUpdate::Failed(kind, list_timeout(server, kind, begun.elapsed()))
            }
            Err(error) => {
                if let CallError::Rpc(rpc) = &error {
                    spans::record_code(&tracing::Span::current(), Some(rpc.code));
                }
                ListUpdate::Failed(kind, call_error(server, &error))
            }
        };
        spans::record_list(metrics, server.spec.id.as_str(), update.size(), guard);
        update
    }
    .instrument(span)
    .await
}

/// Requests one list with all its pages.
async fn read_list(session: &Session, kind: ListKind, options: CallOptions) -> Result<ListUpdate, CallError> {
    Ok(match kind {
        ListKind::Tool => ListUpdate::Tools(session.list_tools_with(options).await?),
        ListKind::Prompt => ListUpdate::Prompts(session.list_prompts_with(options).await?),
        ListKind::Resource => {
            let (resources, templates) = tokio::join!(
                session.list_resources_with(options.clone()),
                session.list_resource_templates_with(options)
            );
            let (resources, mut empty) = (resources?, ListResult::empty());
            let templates = match templates {
                Ok(templates) => templates,
                // A server may have resources but no templates.
                Err(CallError::Rpc(error)) => {
                    tracing::debug!(%error, "no resource templates");
                    empty
                }
                Err(error @ (CallError::Closed(_) | CallError::NotSent(_))) => return Err(error),
                Err(error) => {
                    empty.defect = Some(ListDefect::TemplatesFailed(error.to_string()));
                    empty
                }
            };
            ListUpdate::Resources(resources, templates)
        }
    })
}

/// Returns the error of a list that was not read in time.
fn list_timeout(server: &ResolvedServer, kind: ListKind, after: Duration) -> HostError {
    let Limits { startup, .. } = &server.spec.limits;
    let own = server.spec.origin.start_limit.map(|it| format!(" with {it}")).unwrap_or_default();
    let help =
        format!("increase its start-up limit of {} s{own} if the server is only slow", startup.as_secs_f64());
    let message = format!("it did not list its {} within {:.1} s", plural_name(kind), after.as_secs_f64());
    HostError { help: Some(help), ..server_error(server, ErrorKind::Timeout, message) }
}

/// Returns the error of a list that a start no longer waits for.
fn late_list_error(server: &ResolvedServer, kind: ListKind, after: Duration) -> HostError {
    let message = format!(
        "it has not listed its {} after {:.1} s; they are added when they arrive",
        plural_name(kind),
        after.as_secs_f64()
    );
    server_error(server, ErrorKind::Timeout, message)
}
