//! `tools`, `prompts` and `resources`: starts the servers, lists what they offer, and stops them.

pub(crate) mod name_filter;
pub(crate) mod prompts;
pub(crate) mod resources;
mod target;
mod tool_stream;
pub(crate) mod tools;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::SystemTime;

use mcp_host_runtime::{Approval, DesiredServers, Host, HostSnapshot, ServerState};

use crate::args::{Format, ServerArgs};
use crate::call_arguments::schema::add_schema_problems;
pub(crate) use crate::commands::servers::list::target::ListTarget;
use crate::commands::servers::list::target::NO_SERVERS;
use crate::commands::servers::list::tool_stream::ToolStream;
use crate::commands::servers::list::tools::ToolsView;
use crate::config::context::Context;
use crate::config::file::UsedServers;
use crate::config::refusal::{StartRefusal, open_with_lock};
use crate::host::known_tools::remember_tools;
use crate::host::startup::{WaitFor, starting_servers, wait_and_show};
use crate::host::tool_owners::{OtherServers, StartedServers, ToolOwners};
use crate::host::{select_server, with_servers_and_signals};
use crate::output::console::{Report, WriteOutcome};
use crate::output::failure::Failure;
use crate::output::json;
use crate::output::table::TableStyle;
use crate::render::status::{problem_lines, server_lines};
use crate::render::suggestions::{SuggestedFile, suggest_call};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

/// The servers to start.
struct PreparedList {
    desired: DesiredServers,
    path: PathBuf,
    /// The file in suggestions.
    file: SuggestedFile,
    approval: Option<Approval>,
}

/// Starts the servers of a configuration and lists what they offer. A signal ends the wait for the servers; what is
/// known then is printed.
pub(crate) async fn run(
    context: &Context,
    servers: &ServerArgs,
    target: ListTarget<'_>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let PreparedList { desired, path, file, approval } =
        run_until_signal(signals, prepare(context, servers, target)).await??;
    let invalid_entries = desired.failed.len();
    let ToolOwners { first, others } = match target {
        ListTarget::Tools(ToolsView::Single(tool), _) => ToolOwners::find(desired, tool),
        ListTarget::Tools(..) | ListTarget::Prompts | ListTarget::Resources => ToolOwners::all(desired),
    };
    let exit = with_servers_and_signals(first, approval, signals, async |host, signals| {
        let mut stream = ToolStream::new(context, target);
        let waiting = wait_and_stream(context, host, target, others, &mut stream);
        let waited = run_until_signal(signals, waiting).await;
        let snapshot = host.snapshot();
        let published = match (target, &waited) {
            (ListTarget::Tools(..), Ok(_)) => add_schema_problems(snapshot).await,
            (ListTarget::Prompts | ListTarget::Resources, _) | (_, Err(_)) => snapshot,
        };
        if servers.server.is_none() && context.command_line.is_none() && waited == Ok(StartedServers::All) {
            remember_tools(&path, &published).await;
        }
        let exit = exit_code(&published, invalid_entries, target);
        let mut report = list_report(context, target, &published, exit, stream);
        match waited {
            Ok(_) => {
                if let (ListTarget::Tools(..), Format::Text) = (target, context.format) {
                    report.after = context.console.suggestion(&suggest_call(&published, &file));
                }
                run_until_signal(signals, context.print(report)).await.unwrap_or_else(Exit::Signal)
            }
            Err(signal) => {
                report.after = interruption_note(context, &published);
                context.print_interrupted(report, signal).await
            }
        }
    });
    Ok(exit.await)
}

/// Waits for the servers, and prints the tools of each one as soon as it is done if the wait is long.
async fn wait_and_stream(
    context: &Context,
    host: &Host,
    target: ListTarget<'_>,
    others: OtherServers,
    stream: &mut Option<ToolStream<'_>>,
) -> StartedServers {
    let progress = context.progress();
    if let ListTarget::Tools(ToolsView::Single(tool), _) = target {
        return others.wait_for_tool(host, &progress, tool).await;
    }
    wait_and_show(host, &progress, WaitFor::All, async |published| {
        let Some(stream) = stream else { return ControlFlow::Continue(()) };
        match context.print_part(&progress, stream.take_part(published)).await {
            WriteOutcome::Complete => ControlFlow::Continue(()),
            WriteOutcome::BrokenPipe | WriteOutcome::Failed => ControlFlow::Break(()),
        }
    })
    .await;
    StartedServers::All
}

/// The line about a wait that a signal has ended.
fn interruption_note(context: &Context, published: &HostSnapshot) -> String {
    match starting_servers(published).as_slice() {
        [] => String::new(),
        names => context.console.note(&format!("interrupted while starting {}", names.join(", "))),
    }
}

/// Reads the configuration and the lock file, and selects the servers.
async fn prepare(
    context: &Context,
    servers: &ServerArgs,
    target: ListTarget<'_>,
) -> Result<PreparedList, Failure> {
    let ServerArgs { file, server, target: _ } = servers;
    let used = match (server.as_deref(), target) {
        (None, ListTarget::Tools(ToolsView::Single(tool), _)) => UsedServers::OwnersOf(tool),
        (server, _) => UsedServers::named(server),
    };
    let (file, approval) = open_with_lock(context, file.as_deref(), used)
        .await
        .map_err(|refusal| refusal_report(context, target, refusal))?;
    let (file, suggested) = run_blocking(move || {
        let suggested = SuggestedFile::read(&file);
        (file, suggested)
    })
    .await;
    let desired = select_server(file.loaded.desired, server.as_deref())?;
    Ok(PreparedList { desired, path: file.path, file: suggested, approval })
}

fn refusal_report(context: &Context, target: ListTarget<'_>, refusal: StartRefusal) -> Report {
    let out = match context.format {
        Format::Json => json_document(target, &refusal.to_snapshot(SystemTime::now())),
        Format::Text => String::new(),
    };
    Report { out, ..Failure::from(refusal).report(&context.console) }
}

/// The exit code. An invalid entry takes precedence over a server that is not ready. A tool that is shown needs no
/// other server.
fn exit_code(published: &HostSnapshot, invalid_entries: usize, target: ListTarget<'_>) -> Exit {
    let is_shown = match target {
        ListTarget::Tools(ToolsView::Single(name), _) => published.catalog.tool(name).is_some(),
        ListTarget::Tools(..) | ListTarget::Prompts | ListTarget::Resources => false,
    };
    if invalid_entries > 0 {
        Exit::Failure
    } else if !is_shown && published.servers.iter().any(|status| status.state != ServerState::Ready) {
        Exit::Unreachable
    } else {
        Exit::Success
    }
}

/// The report of what is published. `stream` prints the rest of a table or tree.
fn list_report(
    context: &Context,
    target: ListTarget<'_>,
    published: &HostSnapshot,
    exit: Exit,
    stream: Option<ToolStream<'_>>,
) -> Report {
    let style = context.console.table_style();
    let with_exit = |out| Report { out, exit, ..Report::default() };
    let out = match (target, context.format) {
        (ListTarget::Tools(ToolsView::Single(name), _), format) => {
            return match (tools::tool_text(published, name, style), format) {
                (Ok(text), Format::Text) => with_exit(text),
                (Ok(_), Format::Json) => with_exit(json_document(target, published)),
                (Err(message), format) => {
                    let exit = if exit == Exit::Success { Exit::Failure } else { exit };
                    let failure = Failure::with_exit(exit, message).report(&context.console);
                    let out =
                        if format == Format::Json { json_document(target, published) } else { String::new() };
                    // The missing tool may belong to a server that is not ready.
                    let err = failure.err + &server_lines(published, context.console.err_colour);
                    Report { out, err, ..failure }
                }
            };
        }
        (ListTarget::Tools(ToolsView::Provider(provider), filter), format) => {
            let projection = tools::project_tools(published, provider, filter);
            let out = match format {
                Format::Text => tools::provider_table(&projection, style),
                Format::Json => json_document(target, published),
            };
            let err =
                tools::provider_notes(&projection) + &server_lines(published, context.console.err_colour);
            Report { err, ..with_exit(out) }
        }
        (_, Format::Json) => with_exit(json_document(target, published)),
        (ListTarget::Tools(ToolsView::Tree | ToolsView::Table, _), Format::Text) => {
            with_exit(stream.expect("a table or tree is written in parts").into_rest(published))
        }
        (ListTarget::Prompts, Format::Text) => {
            with_exit(with_server_lines(prompts::prompt_table(published, style), published, style))
        }
        (ListTarget::Resources, Format::Text) => {
            with_exit(with_server_lines(resources::resource_tables(published, style), published, style))
        }
    };
    add_no_match_error(context, target, published, out)
}

/// Adds an error to the report if no tool matches the filter.
fn add_no_match_error(
    context: &Context,
    target: ListTarget<'_>,
    published: &HostSnapshot,
    report: Report,
) -> Report {
    let ListTarget::Tools(_, filter) = target else { return report };
    if filter.is_empty() || published.catalog.tools().iter().any(|tool| filter.accepts(tool)) {
        return report;
    }
    let exit = if report.exit == Exit::Success { Exit::Failure } else { report.exit };
    let failure = Failure::with_exit(exit, format!("no tool matches {filter}")).report(&context.console);
    Report { err: report.err + &failure.err, exit, ..report }
}

/// A list, followed by the server lines and the problems.
fn with_server_lines(list: String, published: &HostSnapshot, style: TableStyle) -> String {
    let mut parts = vec![list, server_lines(published, style.colour), problem_lines(published, style.colour)];
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() { NO_SERVERS.to_owned() } else { parts.join("\n") }
}

fn json_document(target: ListTarget<'_>, published: &HostSnapshot) -> String {
    match target {
        ListTarget::Tools(ToolsView::Table | ToolsView::Tree, filter) => {
            json::document(&tools::ToolsJson(published, filter))
        }
        ListTarget::Tools(ToolsView::Single(name), _) => tools::tool_document(published, name),
        ListTarget::Tools(ToolsView::Provider(provider), filter) => {
            json::document(&tools::project_tools(published, provider, filter).to_tools_json())
        }
        ListTarget::Prompts => json::document(&prompts::PromptsJson(published)),
        ListTarget::Resources => json::document(&resources::ResourcesJson(published)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::published;

    #[track_caller]
    fn check(states: &[ServerState], invalid_entries: usize, want: Exit) {
        let servers: Vec<_> = states.iter().map(|state| ("s", *state)).collect();
        assert_eq!(exit_code(&published(&servers), invalid_entries, ListTarget::Prompts), want);
    }

    #[test]
    fn invalid_entry_takes_precedence_over_unreachable_server() {
        use ServerState::{Failed, Ready, Starting};
        check(&[Ready, Ready], 0, Exit::Success);
        check(&[], 0, Exit::Success);
        check(&[Ready, Failed], 0, Exit::Unreachable);
        check(&[Ready, Starting], 0, Exit::Unreachable);
        check(&[Ready, Failed], 1, Exit::Failure);
        check(&[Failed, Failed], 1, Exit::Failure);
    }
}
