//! `call`: calls one tool and prints its result.

mod images;
mod save;

use std::path::Path;
use std::sync::Arc;

use mcp_config::Colour;
use mcp_host::{Approval, DesiredServers, Host, HostSnapshot, ServerState, Supervision, ToolCall};
use mcp_model::{CallFailure, CallResult, ErrorKind};
use mcp_registry::ToolLookup;
use mcp_transport::OnProgress;

use crate::args::{CallArgs, Format};
use crate::call_arguments::{self, ArgumentError, CallArguments};
use crate::config::context::Context;
use crate::config::lock::load_approval;
use crate::config::refusal::{StartRefusal, failed_call};
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::with_servers;
use crate::output::console::Report;
use crate::output::progress::{Progress, fraction, progress_text};
use crate::output::{json, sanitize, style};
use crate::render::call_result::result_text;
use crate::render::suggestions::quote_path;
use crate::runtime::blocking;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, unless_signalled};

/// The arguments of the call and the servers to start.
struct PreparedCall {
    arguments: CallArguments,
    wanted: DesiredServers,
    approval: Option<Approval>,
}

/// Calls one tool of the configured servers.
pub(crate) async fn run(context: &Context, args: &CallArgs, signals: &mut Signals) -> Exit {
    let PreparedCall { arguments, wanted, approval } =
        match unless_signalled(signals, prepare(context, args)).await {
            Err(signal) => return Exit::Signal(signal),
            Ok(Err(exit)) => return exit,
            Ok(Ok(prepared)) => prepared,
        };
    let invalid_entries: Vec<String> = wanted.failed.iter().map(|entry| entry.id.clone()).collect();
    with_servers(wanted, (Supervision::Off, approval), signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::Tool(&args.tool)).await;
        let published = host.snapshot();
        let result = call(host, &context.progress(), &args.tool, &arguments).await;
        let exit = exit(&result, reachability(&published, &invalid_entries, &args.tool));
        let mut report = save_content(report(context, args, &result, exit), &result, args).await;
        if let (Exit::Success, Format::Text) = (exit, context.format) {
            let file = quote_path(&args.file);
            report.after = context.console.suggestion(&format!(
                "`mcp-host convert {file} --to DIALECT` writes the configuration for another program"
            ));
        }
        let exit = context.print(report).await;
        draw_images(context, &result).await;
        exit
    })
    .await
}

async fn prepare(context: &Context, args: &CallArgs) -> Result<PreparedCall, Exit> {
    let words = args.arguments.clone();
    let arguments = match blocking(move || call_arguments::parse(&words)).await {
        Ok(arguments) => arguments,
        Err(ArgumentError { message, help }) => {
            return Err(context.fail(Exit::Usage, &message, Some(help)).await);
        }
    };
    let file = match context.open_and_report(&args.file).await {
        Ok(file) => file,
        Err(error) => return Err(refuse(context, args, StartRefusal::for_unreadable(error)).await),
    };
    if let Some(refusal) = StartRefusal::for_config(&file) {
        return Err(refuse(context, args, refusal).await);
    }
    let approval = match load_approval(context, &file.path).await {
        Ok(approval) => approval,
        Err(error) => return Err(refuse(context, args, StartRefusal::for_unreadable(error)).await),
    };
    let mut wanted = file.loaded.desired;
    if args.save.is_some() {
        // The result limit keeps results small for models. Saved content must be complete.
        for server in &mut wanted.servers {
            server.spec.limits.result_bytes = server.spec.limits.message_bytes;
        }
    }
    Ok(PreparedCall { arguments, wanted, approval })
}

/// Saves binary content to the folder of `--save`, if there is one, and adds the file names to the report.
async fn save_content(report: Report, result: &CallResult, args: &CallArgs) -> Report {
    let Some(folder) = args.save.clone() else { return report };
    let (result, tool) = (result.clone(), args.tool.clone());
    let saved = blocking(move || save::save_binary_blocks(&result.content, &folder, &tool)).await;
    let exit = if saved.has_failed && report.exit == Exit::Success { Exit::Failure } else { report.exit };
    Report { err: report.err + &saved.text, exit, ..report }
}

/// Draws the images of a result if the terminal can display them.
async fn draw_images(context: &Context, result: &CallResult) {
    let console = context.console;
    let protocol = images::protocol().filter(|_| console.out_is_terminal && context.format == Format::Text);
    if let Some(protocol) = protocol {
        let content = result.content.clone();
        blocking(move || console.write_raw(&images::escape_sequences(&content, protocol))).await;
    }
}

/// Prints the refusal as the result of a failed call.
async fn refuse(context: &Context, args: &CallArgs, refusal: StartRefusal) -> Exit {
    let result = refusal.call_result(&args.tool);
    let mut report = report(context, args, &result, Exit::Failure);
    if let Some(help) = &refusal.failure.help {
        report.err.push_str(&style::help(context.console.err_colour, help));
    }
    context.print(report).await
}

/// Calls a tool and shows its progress.
pub(super) async fn call(
    host: &Host,
    progress: &Progress,
    tool: &str,
    arguments: &CallArguments,
) -> CallResult {
    let arguments = match arguments.to_json(&host.snapshot(), tool) {
        Ok(arguments) => arguments,
        Err(error) => return failed_call(tool, ErrorKind::Validation, error.message),
    };
    progress.show(&format!("calling {tool}"));
    let (display, name) = (progress.clone(), tool.to_owned());
    let on_progress: OnProgress = Arc::new(move |update| {
        let text = progress_text(update.progress, update.total, update.message.as_deref());
        display.show_server_progress(&format!("{name}: {text}"), fraction(update.progress, update.total));
    });
    let _clear = progress.clear_on_drop();
    host.call(ToolCall { progress: Some(on_progress), ..ToolCall::new(tool, arguments) }).await
}

/// Whether an unreachable server could have the tool of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reachability {
    /// It could not: the tool exists, or all servers are reachable and none has it.
    Known,
    /// It probably could not: the tool is missing and a server is unreachable, but another tool has a similar
    /// name.
    SimilarName,
    /// It could: the tool is missing, a server is unreachable, and no other tool has a similar name.
    Unknown,
}

/// Determines whether an unreachable server could have the tool. An invalid entry does not count as unreachable:
/// it is a mistake in the file.
fn reachability(published: &HostSnapshot, invalid_entries: &[String], tool: &str) -> Reachability {
    let is_unreachable = |state: ServerState| state != ServerState::Ready;
    let any_unreachable = published
        .servers
        .iter()
        .any(|status| is_unreachable(status.state) && !invalid_entries.contains(&status.id));
    match published.catalog.find(tool) {
        ToolLookup::Found(_) | ToolLookup::Ambiguous(_) => Reachability::Known,
        ToolLookup::Missing { .. } if !any_unreachable => Reachability::Known,
        ToolLookup::Missing { nearest: Some(_) } => Reachability::SimilarName,
        ToolLookup::Missing { nearest: None } => Reachability::Unknown,
    }
}

/// The exit code of a call: [`Exit::Unreachable`] if the call failed and its tool may be on an unreachable server.
fn exit(result: &CallResult, reachability: Reachability) -> Exit {
    let Some(CallFailure { kind, message: _ }) = &result.error else { return Exit::Success };
    match (kind, reachability) {
        (_, Reachability::Known) | (ErrorKind::ToolNotFound, Reachability::SimilarName) => Exit::Failure,
        (ErrorKind::ToolNotFound | ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::Protocol, _) => {
            Exit::Unreachable
        }
        (
            ErrorKind::Config
            | ErrorKind::McpConfig
            | ErrorKind::MissingTransportField
            | ErrorKind::Validation
            | ErrorKind::Tool
            | ErrorKind::OutcomeUnknown,
            Reachability::SimilarName | Reachability::Unknown,
        ) => Exit::Failure,
    }
}

/// The report with the result on standard output and the error on standard error.
fn report(context: &Context, args: &CallArgs, result: &CallResult, exit: Exit) -> Report {
    let out = match context.format {
        Format::Json => json::document(result),
        Format::Text => result_text(result),
    };
    let err = match &result.error {
        Some(failure) => error_text(failure, &args.file, &args.tool, context.console.err_colour),
        None => String::new(),
    };
    Report { out, err, exit, ..Report::default() }
}

/// The error of a failed call: `<kind>: <message>`, and a help line for most kinds.
fn error_text(failure: &CallFailure, file: &Path, tool: &str, colour: Colour) -> String {
    let file = file.display();
    let help = match failure.kind {
        ErrorKind::ToolNotFound => Some(format!("`mcp-host tools {file}` lists the tools")),
        ErrorKind::Validation => {
            let tool = sanitize::line(tool);
            Some(format!("`mcp-host tools {file} --schema {tool}` shows the arguments of the tool"))
        }
        ErrorKind::OutcomeUnknown => {
            Some("check whether the call took effect before you repeat it".to_owned())
        }
        ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::Protocol => {
            Some(format!("`mcp-host doctor {file}` tests the servers step by step"))
        }
        ErrorKind::Config | ErrorKind::McpConfig | ErrorKind::MissingTransportField => {
            Some(format!("`mcp-host check {file}` reports every mistake with its line"))
        }
        ErrorKind::Tool => None,
    };
    call_error(failure, colour) + &help.map(|help| style::help(colour, &help)).unwrap_or_default()
}

/// The error of a failed call without help: `<kind>: <message>`.
pub(super) fn call_error(failure: &CallFailure, colour: Colour) -> String {
    let CallFailure { kind, message } = failure;
    let kind = style::paint(colour, style::FAILURE, kind.as_str());
    format!("{kind}: {}\n", sanitize::block(message).trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_model::CallMetadata;

    use super::*;
    use crate::tests::published;

    #[track_caller]
    fn check(
        servers: &[(&str, ServerState)],
        invalid_entries: &[&str],
        error: Option<ErrorKind>,
        want: Exit,
    ) {
        let published = published(servers);
        let invalid_entries: Vec<String> = invalid_entries.iter().map(|id| (*id).to_owned()).collect();
        let result = CallResult {
            success: error.is_none(),
            content: Vec::new(),
            error: error.map(|kind| CallFailure { kind, message: String::new() }),
            metadata: CallMetadata {
                server: None,
                tool: "t".into(),
                duration: Duration::ZERO,
                request_id: None,
                structured_content: None,
                warnings: Vec::new(),
            },
        };
        assert_eq!(exit(&result, reachability(&published, &invalid_entries, "t")), want);
    }

    #[test]
    fn unreachable_server_has_its_own_exit_code() {
        use ServerState::{Failed, Ready};
        check(&[("a", Ready)], &[], None, Exit::Success);
        check(&[("a", Ready), ("b", Failed)], &[], None, Exit::Success);
        check(&[("a", Ready)], &[], Some(ErrorKind::ToolNotFound), Exit::Failure);
        check(&[("a", Ready), ("b", Failed)], &[], Some(ErrorKind::ToolNotFound), Exit::Unreachable);
        check(&[("b", Failed)], &[], Some(ErrorKind::Connection), Exit::Unreachable);
        check(&[("b", Failed)], &["b"], Some(ErrorKind::McpConfig), Exit::Failure);
        check(&[("b", Failed)], &["b"], Some(ErrorKind::ToolNotFound), Exit::Failure);
        check(&[], &[], Some(ErrorKind::ToolNotFound), Exit::Failure);
    }

    #[test]
    fn error_text_has_kind_message_and_help() {
        let failure = CallFailure { kind: ErrorKind::Tool, message: "it \u{1b}[31mbroke\n".into() };
        let text = |failure: &CallFailure| error_text(failure, Path::new("a.yaml"), "t", Colour::Never);
        assert_eq!(text(&failure), "MCPToolError: it broke\n");
        let failure = CallFailure { kind: ErrorKind::ToolNotFound, message: "no".into() };
        assert_eq!(
            text(&failure),
            "MCPToolNotFoundError: no\n  help: `mcp-host tools a.yaml` lists the tools\n"
        );
    }
}
