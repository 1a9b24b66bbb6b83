//! `tasks`: shows a task that a server runs, waits for its result, or cancels it.

use std::sync::Arc;

use mcp_host_model::{Method, ServerId, Task, ToolResult};
use mcp_host_runtime::{Host, RequestFailure, RequestOptions};
use mcp_host_transport::OnProgress;
use serde_json::json;

use crate::args::{Format, TasksArgs};
use crate::config::context::Context;
use crate::host::{open_servers, report_with_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{json, sanitize, style};
use crate::render::call_result::{result_text, tool_call_result};
use crate::runtime::exit::Exit;
use crate::runtime::signals::Signals;

/// Starts the server of a task, and sends one request about the task.
pub(crate) async fn run(context: &Context, args: &TasksArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let (desired, approval) =
        open_servers(context, Some(&args.config.file), args.server.as_deref(), signals).await?;
    let [server] = desired.servers.as_slice() else {
        let names: Vec<&str> = desired.servers.iter().map(|it| it.spec.id.as_str()).collect();
        let message = format!("a task belongs to one server; name it with --server: {}", names.join(", "));
        return Err(Failure::usage(message));
    };
    let server = server.spec.id.clone();
    let exit = report_with_servers(context, desired, approval, signals, async |host| {
        send_request(context, host, &server, args).await
    });
    Ok(exit.await)
}

/// Sends the request that the arguments select, and renders its result.
async fn send_request(
    context: &Context,
    host: &Host,
    server: &ServerId,
    args: &TasksArgs,
) -> Result<Report, Failure> {
    let progress = context.progress();
    let display = progress.clone();
    let on_progress: OnProgress = Arc::new(move |update| {
        display.show(&sanitize::line(update.message.as_deref().unwrap_or("working")));
    });
    let mut options = RequestOptions::default();
    options.server = Some(server.clone());
    options.context.progress = Some(on_progress);
    let _clear = progress.clear_on_drop();
    let request_failure = |error: RequestFailure| Failure::from_request_error(&error.error);
    let parse_failure = |error: serde_json::Error| Failure::new(format!("server '{server}': {error}"));
    if args.wait {
        let result = host.wait_for_task_result(&args.id, options).await.map_err(request_failure)?.result;
        let result: ToolResult = result.read().map_err(parse_failure)?;
        return Ok(result_report(context, server, result));
    }
    let method = if args.cancel { Method::CancelTask } else { Method::GetTask };
    let result =
        host.send_task_request_raw(method, &args.id, None, options).await.map_err(request_failure)?.result;
    if args.cancel {
        let out = match context.format {
            Format::Json => json::document(&json!({"server": server, "taskId": args.id, "cancelled": true})),
            Format::Text => "the server was asked to cancel the task\n".to_owned(),
        };
        return Ok(Report::out(out));
    }
    let task: Task = result.read().map_err(parse_failure)?;
    Ok(Report::out(render_task(context, server, &task)))
}

/// Renders a task as text or JSON.
pub(super) fn render_task(context: &Context, server: &ServerId, task: &Task) -> String {
    let Task { id, status, message, created_at, .. } = task;
    match context.format {
        Format::Json => json::document(&json!({
            "server": server,
            "taskId": id,
            "status": status.as_str(),
            "statusMessage": message,
            "createdAt": created_at,
        })),
        Format::Text => {
            let message =
                message.as_deref().map(|it| format!(": {}", sanitize::line(it))).unwrap_or_default();
            format!("{}  {}{message}\n", sanitize::line(id), status.as_str())
        }
    }
}

/// Renders a task result like `mcp-host call` does.
pub(super) fn result_report(context: &Context, server: &ServerId, result: ToolResult) -> Report {
    let result = tool_call_result(server, result);
    let exit = if result.success { Exit::Success } else { Exit::Failure };
    let colour = context.console.err_colour;
    let (out, err) = match (context.format, &result.error) {
        (Format::Json, _) => (json::document(&result), String::new()),
        (Format::Text, None) => (result_text(&result), String::new()),
        (Format::Text, Some(failure)) => {
            (String::new(), style::error(colour, &sanitize::block(&failure.message), None))
        }
    };
    Report { out, err, exit, ..Report::default() }
}
