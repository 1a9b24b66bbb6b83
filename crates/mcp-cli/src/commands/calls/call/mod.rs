//! `call`: calls one tool and prints its result.

mod base64_data;
mod detach;
mod images;
mod save;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::Colour;
use mcp_host_model::{CallFailure, CallMetadata, CallResult, ErrorKind, Limits, ServerName, Severity};
use mcp_host_registry::ToolLookup;
use mcp_host_runtime::{
    Approval, DesiredServers, Host, HostSnapshot, RulePolicy, ServerState, SpillLifetime, SpillPolicy,
    Supervision, ToolCall,
};
use mcp_host_transport::{Caller, OnProgress};

use crate::args::{CallArgs, Format};
use crate::call_arguments::{self, CallArguments};
use crate::commands::calls::elicitation::terminal_caller;
use crate::config::call_rules::read_rules;
use crate::config::context::Context;
use crate::config::file::UsedServers;
use crate::config::refusal::{StartRefusal, failed_call_result, open_with_lock};
use crate::host::call_prompt::call_prompt;
use crate::host::known_tools::remember_tools;
use crate::host::tool_owners::{StartedServers, ToolOwners};
use crate::host::{self, select_server, with_host};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::progress::{ProgressDisplay, fraction, progress_text};
use crate::output::{json, sanitize, style};
use crate::render::call_result::result_text;
use crate::render::status::server_lines_where;
use crate::render::suggestions::{SuggestedFile, quote_path};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

/// The arguments of the call and the servers to start.
struct PreparedCall {
    arguments: CallArguments,
    path: PathBuf,
    /// The file in suggestions.
    file: SuggestedFile,
    desired: DesiredServers,
    approval: Option<Approval>,
}

/// Calls one tool of the configured servers.
pub(crate) async fn run(context: &Context, args: &CallArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let PreparedCall { arguments, path, file, desired, approval } =
        run_until_signal(signals, prepare(context, args)).await??;
    let invalid_entries: Vec<ServerName> = desired.failed.iter().map(|entry| entry.id.clone()).collect();
    let stdio_servers = detach::stdio_servers(&desired);
    let ToolOwners { first, others } = ToolOwners::find(desired, &args.tool);
    let mut options = host::options(Supervision::Off);
    options.catalog.approval = approval;
    let progress = context.progress();
    let mut rules = run_until_signal(signals, read_rules(&args.rules)).await??;
    rules.prompt = Some(call_prompt(context, &progress));
    let caller = terminal_caller(context, &progress, &mut options);
    options.calls = Arc::new(RulePolicy::new(rules));
    let requested = args.max_result.or(args.save.is_some().then_some(usize::MAX));
    options.result_bytes = requested.or_else(|| context.default_result_bytes());
    options.spill = args.spill.as_deref().map(|folder| {
        let mut spill = SpillPolicy::in_directory(folder);
        spill.lifetime = SpillLifetime::Kept;
        spill
    });
    let exit = with_host(Host::start(options), first, signals, async |host| {
        let started = others.wait_for_tool(host, &context.progress(), &args.tool).await;
        if args.detach {
            let detached = detach::detach(context, host, args, &arguments, &stdio_servers).await;
            return context.print_result(detached).await;
        }
        let published = host.snapshot();
        if started == StartedServers::All && args.server.is_none() && context.command_line.is_none() {
            remember_tools(&path, &published).await;
        }
        let result = call(host, &progress, caller, &args.tool, &arguments).await;
        let exit = exit_code(&result, look_up_tool(&published, &invalid_entries, &args.tool));
        let report = call_report(context, &file, &args.tool, &result);
        let mut report = save_content(Report { exit, ..report }, &result, args).await;
        report.err.push_str(&unavailable_servers(&published, &result, context.console.err_colour));
        if let (Exit::Success, Format::Text) = (exit, context.format) {
            let suggestion = if file.is_command_line() {
                format!("`{}` adds the server to a configuration", file.command("add"))
            } else {
                let file = quote_path(&args.config.file);
                format!("`mcp-host convert {file} --to DIALECT` writes the configuration for another program")
            };
            report.after = context.console.suggestion(&suggestion);
        }
        let exit = context.print(report).await;
        draw_images(context, &result).await;
        exit
    });
    Ok(exit.await)
}

/// Parses the arguments and reads the configuration.
async fn prepare(context: &Context, args: &CallArgs) -> Result<PreparedCall, Failure> {
    let words = args.arguments.clone();
    let arguments = run_blocking(move || call_arguments::parse(&words)).await?;
    let used = match &args.server {
        Some(server) => UsedServers::Named(server),
        None => UsedServers::OwnersOf(&args.tool),
    };
    let (file, approval) = open_with_lock(context, Some(&args.config.file), used)
        .await
        .map_err(|refusal| refusal_report(context, args, &refusal))?;
    let named = SuggestedFile::requested(context, &args.config.file);
    let (file, named) = run_blocking(move || {
        let named = named.with_approvals_of(&file);
        (file, named)
    })
    .await;
    let path = file.path;
    let mut desired = select_server(file.loaded.desired, args.server.as_deref())?;
    if let Some(seconds) = args.timeout {
        for server in &mut desired.servers {
            limit_durations(&mut server.spec.limits, Duration::from_secs(seconds));
        }
    }
    Ok(PreparedCall { arguments, path, file: named, desired, approval })
}

/// Replaces the time limits of a start and of a call. Progress does not extend them.
fn limit_durations(limits: &mut Limits, timeout: Duration) {
    limits.startup = timeout;
    limits.connect = limits.connect.min(timeout);
    limits.request = timeout;
    limits.idle = None;
}

/// Saves binary content to the folder of `--save`, if there is one, and adds the file names to the report.
async fn save_content(report: Report, result: &CallResult, args: &CallArgs) -> Report {
    let Some(folder) = args.save.clone() else { return report };
    let (result, tool) = (result.clone(), args.tool.clone());
    let saved = run_blocking(move || save::save_binary_blocks(&result.content, &folder, &tool)).await;
    let exit = if saved.has_failed && report.exit == Exit::Success { Exit::Failure } else { report.exit };
    Report { err: report.err + &saved.text, exit, ..report }
}

/// Draws the images of a result if the terminal can display them.
async fn draw_images(context: &Context, result: &CallResult) {
    let console = context.console;
    let protocol =
        images::detect_protocol().filter(|_| console.out_is_terminal && context.format == Format::Text);
    if let Some(protocol) = protocol {
        let content = result.content.clone();
        run_blocking(move || console.write_raw(&images::escape_sequences(&content, protocol))).await;
    }
}

/// The refusal as the result of a failed call.
fn refusal_report(context: &Context, args: &CallArgs, refusal: &StartRefusal) -> Report {
    let result = refusal.call_result(&args.tool);
    let file = SuggestedFile::requested(context, &args.config.file);
    let report = call_report(context, &file, &args.tool, &result);
    let mut report = Report { exit: Exit::Failure, ..report };
    if let Some(help) = &refusal.failure.help {
        report.err.push_str(&style::help(context.console.err_colour, help));
    }
    report
}

/// Calls a tool and shows its progress. The caller answers questions of the server.
pub(super) async fn call(
    host: &Host,
    progress: &ProgressDisplay,
    caller: Option<Arc<Caller>>,
    tool: &str,
    arguments: &CallArguments,
) -> CallResult {
    let arguments = match arguments.to_json(&host.snapshot(), tool) {
        Ok(arguments) => arguments,
        Err(error) => return failed_call_result(tool, ErrorKind::Validation, error.message),
    };
    progress.resume();
    progress.show(&format!("calling {tool}"));
    let (display, name) = (progress.clone(), tool.to_owned());
    let on_progress: OnProgress = Arc::new(move |update| {
        let text = progress_text(update.progress, update.total, update.message.as_deref());
        display.show_server_progress(&format!("{name}: {text}"), fraction(update.progress, update.total));
    });
    let _clear = progress.clear_on_drop();
    let mut call = ToolCall::new(tool, arguments);
    call.options.context.progress = Some(on_progress);
    call.options.context.caller = caller;
    host.call(call).await
}

/// Whether the tool of a call exists, by the catalog of the reachable servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolPresence {
    /// It exists, or it is missing although all servers are reachable.
    Certain,
    /// It is missing, and another tool has a similar name. The user has probably misspelled it.
    Misspelled,
    /// It is missing, and an unreachable server may have it.
    Unknown,
}

/// Looks up the tool of a call. An invalid entry does not count as an unreachable server: it is a mistake in the file.
fn look_up_tool(published: &HostSnapshot, invalid_entries: &[ServerName], tool: &str) -> ToolPresence {
    let any_unreachable = published
        .servers
        .iter()
        .any(|status| status.state != ServerState::Ready && !invalid_entries.contains(&status.id));
    match published.catalog.find(tool) {
        ToolLookup::Missing { nearest: Some(_) } if any_unreachable => ToolPresence::Misspelled,
        ToolLookup::Missing { nearest: None } if any_unreachable => ToolPresence::Unknown,
        ToolLookup::Found(_) | ToolLookup::Ambiguous(_) | ToolLookup::Missing { .. } => ToolPresence::Certain,
    }
}

/// The exit code of a call: [`Exit::Unreachable`] if the call failed and its tool may be on an unreachable server.
fn exit_code(result: &CallResult, presence: ToolPresence) -> Exit {
    let Some(CallFailure { kind, message: _, .. }) = &result.error else { return Exit::Success };
    let is_unreachable = match kind {
        ErrorKind::Connection | ErrorKind::Replaced | ErrorKind::Timeout | ErrorKind::Protocol => {
            presence != ToolPresence::Certain
        }
        ErrorKind::ToolNotFound => presence == ToolPresence::Unknown,
        _ => false,
    };
    if is_unreachable { Exit::Unreachable } else { Exit::Failure }
}

/// The report of a call. A result is on standard output; a failure as text is on standard error.
fn call_report(context: &Context, file: &SuggestedFile, tool: &str, result: &CallResult) -> Report {
    let (out, err) = match (context.format, &result.error) {
        (Format::Json, _) => (json::document(result), String::new()),
        (Format::Text, None) => (result_text(result), warning_lines(result, context.console.err_colour)),
        (Format::Text, Some(failure)) => {
            let colour = context.console.err_colour;
            (String::new(), call_error(result, failure, colour) + &error_help(failure, file, tool, colour))
        }
    };
    Report { out, err, ..Report::default() }
}

/// The warnings about a result, and how to get all of one that was cut.
fn warning_lines(result: &CallResult, colour: Colour) -> String {
    let CallMetadata { warnings, full_bytes, .. } = &result.metadata;
    let label = style::severity(colour, Severity::Warning);
    let warning = |it: &String| format!("{label}: {}\n", sanitize::line(it));
    let mut text: String = warnings.iter().map(warning).collect();
    if let Some(bytes) = full_bytes {
        text.push_str(&format!("{label}: the result has {bytes} bytes, of which a part is printed\n"));
        let help = "`--max-result SIZE`, `--format json` or a pipe gives all of it; `--spill FOLDER` writes the \
                    rest to files";
        text.push_str(&style::help(colour, help));
    }
    text
}

/// The servers that are not ready, with their errors, if a tool was not found: one of them may have it.
pub(super) fn unavailable_servers(published: &HostSnapshot, result: &CallResult, colour: Colour) -> String {
    match &result.error {
        Some(CallFailure { kind: ErrorKind::ToolNotFound, message: _, .. }) => {
            server_lines_where(published, |status| status.state != ServerState::Ready, colour)
        }
        Some(_) | None => String::new(),
    }
}

/// The help line for most kinds of errors.
fn error_help(failure: &CallFailure, file: &SuggestedFile, tool: &str, colour: Colour) -> String {
    let help = match failure.kind {
        ErrorKind::ToolNotFound => Some(format!("`{}` lists the tools", file.command("tools"))),
        ErrorKind::Validation => {
            let tools = file.command_with("tools", &format!("--schema {}", sanitize::line(tool)));
            Some(format!("`{tools}` shows the arguments of the tool"))
        }
        ErrorKind::OutcomeUnknown => {
            Some("check whether the call took effect before you repeat it".to_owned())
        }
        ErrorKind::Connection | ErrorKind::Replaced | ErrorKind::Timeout | ErrorKind::Protocol => {
            Some(format!("`{}` tests the servers step by step", file.command("doctor")))
        }
        // The error of a server that is not approved says what to do.
        ErrorKind::McpConfig if file.is_waiting() => None,
        ErrorKind::Config | ErrorKind::McpConfig if file.is_command_line() => None,
        ErrorKind::Config | ErrorKind::McpConfig | ErrorKind::MissingTransportField => {
            Some(format!("`{}` reports every mistake with its line", file.command("check")))
        }
        _ => None,
    };
    help.map(|help| style::help(colour, &help)).unwrap_or_default()
}

/// The error of a failed call without help: `<kind>: <message>`. The content of a failed result is its message.
pub(super) fn call_error(result: &CallResult, failure: &CallFailure, colour: Colour) -> String {
    let CallFailure { kind, message, .. } = failure;
    let kind = style::paint(colour, style::FAILURE, kind.as_str());
    let content = result_text(result);
    let text = if content.trim().is_empty() { sanitize::block(message) } else { content };
    format!("{kind}: {}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mcp_host_model::{CallMetadata, Content};

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
        let invalid_entries: Vec<ServerName> = invalid_entries.iter().map(|id| (*id).into()).collect();
        let metadata = CallMetadata::new("t");
        let result = match error {
            Some(kind) => CallResult::failure(CallFailure::new(kind, ""), metadata),
            None => CallResult::success(Vec::new(), metadata),
        };
        assert_eq!(exit_code(&result, look_up_tool(&published, &invalid_entries, "t")), want);
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
    fn error_has_kind_message_and_help() {
        let text = |failure: CallFailure, content: &[&str]| {
            let content = content.iter().map(|it| Content::Text((*it).into())).collect();
            let mut result = failed_call_result("t", failure.kind, String::new());
            result.content = content;
            call_error(&result, &failure, Colour::Never)
                + &error_help(&failure, &SuggestedFile::named(Path::new("a.yaml")), "t", Colour::Never)
        };
        let failure = |kind, message: &str| CallFailure::new(kind, message);
        assert_eq!(text(failure(ErrorKind::Tool, "it \u{1b}[31mbroke\n"), &[]), "MCPToolError: it broke\n");
        // The message is an excerpt of the content.
        assert_eq!(
            text(failure(ErrorKind::Tool, "it…"), &["it\u{1b}[2J broke", "twice"]),
            "MCPToolError: it broke\ntwice\n"
        );
        assert_eq!(
            text(failure(ErrorKind::ToolNotFound, "no"), &[]),
            "MCPToolNotFoundError: no\n  help: `mcp-host tools a.yaml` lists the tools\n"
        );
    }
}
