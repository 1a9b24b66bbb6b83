//! `tools`, `prompts` and `resources`: starts the servers, lists what they offer, and stops them.

pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod tools;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mcp_host::{Approval, DesiredServers, HostSnapshot, ServerState, Supervision};

use crate::args::{Format, ServerArgs};
use crate::call_arguments::schema::with_schema_problems;
use crate::commands::list::tools::ToolsView;
use crate::config::context::Context;
use crate::config::lock::load_approval;
use crate::config::refusal::StartRefusal;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::{select_server, with_servers};
use crate::output::console::Report;
use crate::output::table::TableStyle;
use crate::output::{json, sanitize};
use crate::render::status::{problem_lines, server_lines};
use crate::render::suggestions::suggest_call;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, unless_signalled};

/// What is listed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListTarget<'a> {
    /// Tools.
    Tools(ToolsView<'a>),
    /// Prompts.
    Prompts,
    /// Resources and resource templates.
    Resources,
}

/// The servers to start.
struct PreparedList {
    wanted: DesiredServers,
    path: PathBuf,
    approval: Option<Approval>,
}

/// Starts the servers of a configuration and lists what they offer.
pub(crate) async fn run(
    context: &Context,
    servers: &ServerArgs,
    target: ListTarget<'_>,
    signals: &mut Signals,
) -> Exit {
    let PreparedList { wanted, path, approval } =
        match unless_signalled(signals, prepare(context, servers, target)).await {
            Err(signal) => return Exit::Signal(signal),
            Ok(Err(exit)) => return exit,
            Ok(Ok(prepared)) => prepared,
        };
    let invalid_entries = wanted.failed.len();
    with_servers(wanted, (Supervision::Off, approval), signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::All).await;
        let published = match target {
            ListTarget::Tools(_) => with_schema_problems(host.snapshot()).await,
            ListTarget::Prompts | ListTarget::Resources => host.snapshot(),
        };
        let exit = exit(&published, invalid_entries);
        let mut report = report(context, target, &published, exit);
        if let (ListTarget::Tools(_), Format::Text) = (target, context.format) {
            report.after = context.console.suggestion(&suggest_call(&published, &path));
        }
        context.print(report).await
    })
    .await
}

async fn prepare(
    context: &Context,
    servers: &ServerArgs,
    target: ListTarget<'_>,
) -> Result<PreparedList, Exit> {
    let ServerArgs { file, server } = servers;
    let file = match context.open_and_report(file.as_deref().unwrap_or(Path::new(""))).await {
        Ok(file) => file,
        Err(error) => return Err(refuse(context, target, &StartRefusal::for_unreadable(error)).await),
    };
    if let Some(refusal) = StartRefusal::for_config(&file) {
        return Err(refuse(context, target, &refusal).await);
    }
    let (mut wanted, path) = (file.loaded.desired, file.path);
    let approval = match load_approval(context, &path).await {
        Ok(approval) => approval,
        Err(error) => return Err(refuse(context, target, &StartRefusal::for_unreadable(error)).await),
    };
    if let Some(name) = server {
        wanted = match select_server(wanted, name) {
            Ok(wanted) => wanted,
            Err(message) => return Err(context.fail(Exit::Usage, &message, None).await),
        };
    }
    Ok(PreparedList { wanted, path, approval })
}

async fn refuse(context: &Context, target: ListTarget<'_>, refusal: &StartRefusal) -> Exit {
    let message = sanitize::line(&refusal.failure.to_string());
    let mut report = context.console.failure(Exit::Failure, &message, refusal.failure.help.as_deref());
    if context.format == Format::Json {
        report.out = document(target, &refusal.published(SystemTime::now()));
    }
    context.print(report).await
}

/// The exit code. An invalid entry takes precedence over a server that is not ready.
fn exit(published: &HostSnapshot, invalid_entries: usize) -> Exit {
    if invalid_entries > 0 {
        Exit::Failure
    } else if published.servers.iter().any(|status| status.state != ServerState::Ready) {
        Exit::Unreachable
    } else {
        Exit::Success
    }
}

fn report(context: &Context, target: ListTarget<'_>, published: &HostSnapshot, exit: Exit) -> Report {
    let style = TableStyle { width: context.console.width, colour: context.console.out_colour };
    let success = |out| Report { out, exit, ..Report::default() };
    let list = match (target, context.format) {
        (ListTarget::Tools(ToolsView::Single(name)), format) => {
            return match (tools::tool_text(published, name, style), format) {
                (Ok(text), Format::Text) => success(text),
                (Ok(_), Format::Json) => success(document(target, published)),
                (Err(message), format) => {
                    let exit = if exit == Exit::Success { Exit::Failure } else { exit };
                    let failure = context.console.failure(exit, &message, None);
                    let out =
                        if format == Format::Json { document(target, published) } else { String::new() };
                    // The missing tool may belong to a server that is not ready.
                    let err = failure.err + &server_lines(published, context.console.err_colour);
                    Report { out, err, ..failure }
                }
            };
        }
        (ListTarget::Tools(ToolsView::Provider(provider)), format) => {
            let projection = published.tools_for(provider);
            let out = match format {
                Format::Text => tools::provider_table(&projection, style),
                Format::Json => document(target, published),
            };
            let err =
                tools::provider_notes(&projection) + &server_lines(published, context.console.err_colour);
            return Report { err, ..success(out) };
        }
        (_, Format::Json) => return success(document(target, published)),
        (ListTarget::Tools(ToolsView::Tree), Format::Text) => tools::tree(published, style),
        (ListTarget::Tools(ToolsView::Table), Format::Text) => tools::tool_table(published, style),
        (ListTarget::Prompts, Format::Text) => prompts::prompt_table(published, style),
        (ListTarget::Resources, Format::Text) => resources::resource_tables(published, style),
    };
    let servers = match target {
        // The tree contains the servers.
        ListTarget::Tools(ToolsView::Tree) => String::new(),
        ListTarget::Tools(_) | ListTarget::Prompts | ListTarget::Resources => {
            server_lines(published, style.colour)
        }
    };
    let mut parts = vec![list, servers, problem_lines(published, style.colour)];
    parts.retain(|part| !part.is_empty());
    success(if parts.is_empty() { "no servers are configured\n".to_owned() } else { parts.join("\n") })
}

fn document(target: ListTarget<'_>, published: &HostSnapshot) -> String {
    match target {
        ListTarget::Tools(ToolsView::Table | ToolsView::Tree) => json::document(published),
        ListTarget::Tools(ToolsView::Single(name)) => tools::tool_document(published, name),
        ListTarget::Tools(ToolsView::Provider(provider)) => {
            json::document(&published.tools_for(provider).to_tools_json())
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
        assert_eq!(exit(&published(&servers), invalid_entries), want);
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
