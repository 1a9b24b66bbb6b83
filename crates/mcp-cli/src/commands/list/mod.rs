//! `tools`, `prompts` and `resources`: starts the servers, lists what they offer, and stops them.

pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod tools;

use std::path::PathBuf;
use std::time::SystemTime;

use mcp_host::{Approval, DesiredServers, HostSnapshot, ServerState, Supervision};

use crate::args::{Format, ServerArgs};
use crate::call_arguments::schema::with_schema_problems;
use crate::commands::list::tools::ToolsView;
use crate::config::context::Context;
use crate::config::refusal::{StartRefusal, open_approved};
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::{select_server, with_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;
use crate::output::table::TableStyle;
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
    desired: DesiredServers,
    path: PathBuf,
    approval: Option<Approval>,
}

/// Starts the servers of a configuration and lists what they offer.
pub(crate) async fn run(
    context: &Context,
    servers: &ServerArgs,
    target: ListTarget<'_>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let PreparedList { desired, path, approval } =
        unless_signalled(signals, prepare(context, servers, target)).await??;
    let invalid_entries = desired.failed.len();
    let exit = with_servers(desired, (Supervision::Off, approval), signals, async |host| {
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
    });
    Ok(exit.await)
}

async fn prepare(
    context: &Context,
    servers: &ServerArgs,
    target: ListTarget<'_>,
) -> Result<PreparedList, Failure> {
    let ServerArgs { file, server } = servers;
    let (file, approval) = open_approved(context, file.as_deref())
        .await
        .map_err(|refusal| refusal_report(context, target, refusal))?;
    let (mut desired, path) = (file.loaded.desired, file.path);
    if let Some(name) = server {
        desired = select_server(desired, name)?;
    }
    Ok(PreparedList { desired, path, approval })
}

fn refusal_report(context: &Context, target: ListTarget<'_>, refusal: StartRefusal) -> Report {
    let out = match context.format {
        Format::Json => document(target, &refusal.published(SystemTime::now())),
        Format::Text => String::new(),
    };
    Report { out, ..Failure::from(refusal).report(&context.console) }
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
                    let failure = Failure::with_exit(exit, message).report(&context.console);
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
