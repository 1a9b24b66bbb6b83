//! `call --detach`: prints the task that the server makes of a call, instead of waiting for its result.

use mcp_host_model::{RawJson, ResultKind, ServerId, TaskSupport, TransportKind, read_created_task};
use mcp_host_registry::ToolLookup;
use mcp_host_runtime::{DesiredServers, Host, TaskHandling, ToolCall};

use crate::args::CallArgs;
use crate::call_arguments::CallArguments;
use crate::commands::calls::tasks::{render_task, result_report};
use crate::config::context::Context;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::sanitize;
use crate::render::status::failure_with_servers;
use crate::render::suggestions::SuggestedFile;

/// The servers over stdio, which are child processes of this command.
pub(super) fn stdio_servers(desired: &DesiredServers) -> Vec<ServerId> {
    let servers = desired.servers.iter().filter(|it| it.spec.transport.kind() == TransportKind::Stdio);
    servers.map(|it| it.spec.id.clone()).collect()
}

/// Calls the tool and reports its task, or its result if the server has made no task of the call.
pub(super) async fn detach(
    context: &Context,
    host: &Host,
    args: &CallArgs,
    arguments: &CallArguments,
    stdio_servers: &[ServerId],
) -> Result<Report, Failure> {
    let snapshot = host.snapshot();
    let arguments = arguments.to_json(&snapshot, &args.tool).map_err(|error| Failure::new(error.message))?;
    let mut call = ToolCall::new(args.tool.as_str(), arguments);
    call.tasks = TaskHandling::Return;
    // The host reports an unknown tool.
    if let ToolLookup::Found(tool) = snapshot.catalog.find(&args.tool) {
        if stdio_servers.contains(&tool.server) {
            let message =
                format!("server '{}' is a process of this command, so its tasks end with it", tool.server);
            return Err(Failure::new(message).help(Some("leave out --detach to wait for the result")));
        }
        if tool.tool.task_support != TaskSupport::Forbidden {
            call.options.context.extra_params = RawJson::parse(r#"{"task":{}}"#.into()).ok();
        }
    }
    let result = host
        .call_raw(call)
        .await
        .map_err(|it| failure_with_servers(Failure::from(it.error), &host.snapshot(), &context.console))?;
    let server = &result.server;
    let parse_failure = |error: serde_json::Error| Failure::new(format!("server '{server}': {error}"));
    match result.info.kind {
        ResultKind::Task => {
            let task = read_created_task(result.result.as_bytes()).map_err(parse_failure)?;
            let after = context.console.suggestion(&format!(
                "`{}` waits for the result",
                SuggestedFile::requested(context, &args.config.file)
                    .command_with("tasks", &format!("{} --server {server} --wait", sanitize::line(&task.id))),
            ));
            Ok(Report { out: render_task(context, server, &task), after, ..Report::default() })
        }
        _ => Ok(result_report(context, server, result.result.read().map_err(parse_failure)?)),
    }
}
