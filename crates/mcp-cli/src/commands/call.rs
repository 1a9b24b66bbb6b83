//! `call`: one tool, one answer.

use std::path::Path;
use std::sync::Arc;

use mcp_config::Colour;
use mcp_host::{Approval, DesiredServers, Host, HostSnapshot, ServerState, Supervision, ToolCall};
use mcp_model::{CallFailure, CallResult, ErrorKind, RawJson};
use mcp_registry::ToolLookup;
use mcp_transport::OnProgress;

use crate::args::Format;
use crate::commands::arguments::{self, Typed, Unusable};
use crate::commands::refused::{self, Refusal};
use crate::commands::{content, inline, kept, next, pairs};
use crate::context::{Context, blocking, unless_signalled};
use crate::exit::Exit;
use crate::hosted;
use crate::locked::approval;
use crate::output::console::Report;
use crate::output::progress::{Progress, share, step};
use crate::output::{json, paint, plain};
use crate::signals::Signals;
use crate::starting::{Wanting, started};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The configuration.
    pub(crate) file: &'a Path,
    /// The tool's name.
    pub(crate) tool: &'a str,
    /// Its arguments as typed.
    pub(crate) arguments: &'a [String],
    /// Where what is no text is kept.
    pub(crate) save: Option<&'a Path>,
}

/// Calls one tool of a configuration's servers.
pub(crate) async fn run(context: &Context, request: Request<'_>, signals: &mut Signals) -> Exit {
    match unless_signalled(signals, prepare(context, request)).await {
        Err(signal) => Exit::Signal(signal),
        Ok(Err(exit)) => exit,
        Ok(Ok((arguments, wanted, approval))) => {
            let rejected: Vec<String> = wanted.failed.iter().map(|it| it.id.clone()).collect();
            hosted::with(wanted, (Supervision::Off, approval), signals, async |host| {
                started(host, &context.progress(), Wanting::Tool(request.tool)).await;
                let published = host.snapshot();
                let result = match fitted(&published, request.tool, arguments) {
                    Ok(arguments) => {
                        call(host, &context.progress(), ToolCall::new(request.tool, arguments)).await
                    }
                    Err(unusable) => refused::result(request.tool, ErrorKind::Validation, unusable.message),
                };
                let exit = exit(&result, reach(&published, &rejected, request.tool));
                let mut report = kept(report(context, request, &result, exit), &result, request).await;
                if let (Exit::Done, Format::Text) = (exit, context.format) {
                    let file = next::file(request.file);
                    let words = format!(
                        "`mcp-host convert {file} --to DIALECT` writes the servers for another program"
                    );
                    report.after = context.console.next(&words);
                }
                let exit = context.tell(report).await;
                draw(context, &result).await;
                exit
            })
            .await
        }
    }
}

/// The arguments as the tool wants them: its schema says what a word is.
pub(super) fn fitted(published: &HostSnapshot, tool: &str, arguments: Typed) -> Result<RawJson, Unusable> {
    match (arguments, published.catalog.find(tool)) {
        (Typed::Object(json), _) => Ok(json),
        (Typed::Pairs(pairs), ToolLookup::Found(it)) => pairs::fit(&pairs, Some(&it.tool.input_schema)),
        (Typed::Pairs(pairs), ToolLookup::Ambiguous(_) | ToolLookup::Missing { nearest: _ }) => {
            pairs::fit(&pairs, None)
        }
    }
}

/// The arguments, and what is to be started; or the end, where that is nothing.
async fn prepare(
    context: &Context,
    request: Request<'_>,
) -> Result<(Typed, DesiredServers, Option<Approval>), Exit> {
    let colour = context.console.err;
    let words = request.arguments.to_vec();
    let arguments = match blocking(move || arguments::read(&words)).await {
        Ok(arguments) => arguments,
        Err(Unusable { message, help }) => {
            return Err(context.tell(context.console.failure(Exit::Usage, &message, Some(help))).await);
        }
    };
    let source = match context.open(request.file).await {
        Ok(source) => source,
        Err(unreadable) => return Err(refuse(context, request, Refusal::unreadable(unreadable)).await),
    };
    let err = source.taken(colour) + &source.complaints(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    if let Some(refusal) = Refusal::of(&source) {
        return Err(refuse(context, request, refusal).await);
    }
    match approval(context, &source.file).await {
        Ok(approval) => Ok((arguments, roomy(source.loaded.desired, request.save), approval)),
        Err(unreadable) => Err(refuse(context, request, Refusal::unreadable(unreadable)).await),
    }
}

/// What is to be kept in files must not be cut for a model's sake.
fn roomy(mut wanted: DesiredServers, save: Option<&Path>) -> DesiredServers {
    if save.is_some() {
        for it in &mut wanted.servers {
            it.spec.limits.result_bytes = it.spec.limits.message_bytes;
        }
    }
    wanted
}

/// Keeps what is no text, where that was asked for, and says under which names.
async fn kept(report: Report, result: &CallResult, request: Request<'_>) -> Report {
    let Some(folder) = request.save.map(Path::to_path_buf) else { return report };
    let (result, tool) = (result.clone(), request.tool.to_owned());
    let told = blocking(move || kept::keep(&result.content, &folder, &tool)).await;
    let exit = if told.failed && report.exit == Exit::Done { Exit::Wrong } else { report.exit };
    Report { err: report.err + &told.text, exit, ..report }
}

/// Shows the images of an answer, where the terminal can.
async fn draw(context: &Context, result: &CallResult) {
    let console = context.console;
    let protocol = inline::protocol().filter(|_| console.terminal && context.format == Format::Text);
    if let Some(protocol) = protocol {
        let content = result.content.clone();
        blocking(move || console.draw(&inline::drawn(&content, protocol))).await;
    }
}

async fn refuse(context: &Context, request: Request<'_>, refusal: Refusal) -> Exit {
    let result = refusal.result(request.tool);
    let mut report = report(context, request, &result, Exit::Wrong);
    if let Some(help) = &refusal.failure.help {
        report.err.push_str(&paint::help(context.console.err, help));
    }
    context.tell(report).await
}

pub(super) async fn call(host: &Host, progress: &Progress, call: ToolCall) -> CallResult {
    let tool = call.name.clone();
    progress.say(&format!("calling {tool}"));
    let shown = progress.clone();
    let heard: OnProgress = Arc::new(move |it| {
        let text = format!("{tool}: {}", step(it.progress, it.total, it.message.as_deref()));
        shown.hear(&text, share(it.progress, it.total));
    });
    let _ongoing = progress.until_dropped();
    host.call(ToolCall { progress: Some(heard), ..call }).await
}

/// Was the server of a tool there when the call was made?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The tool was, or it is clear that nobody has it.
    Known,
    /// It was not, and a server that may have it could not be reached; but a name much like it is there.
    Doubtful,
    /// It was not, and a server that may have it could not be reached.
    Missed,
}

fn reach(published: &HostSnapshot, rejected: &[String], tool: &str) -> Reach {
    let missed = |state| match state {
        ServerState::Starting
        | ServerState::Restarting
        | ServerState::Failed
        | ServerState::Disabled
        | ServerState::Stopped => true,
        ServerState::Ready => false,
    };
    let some_missed = published.servers.iter().any(|it| missed(it.state) && !rejected.contains(&it.id));
    match published.catalog.find(tool) {
        ToolLookup::Found(_) | ToolLookup::Ambiguous(_) => Reach::Known,
        ToolLookup::Missing { .. } if !some_missed => Reach::Known,
        ToolLookup::Missing { nearest: Some(_) } => Reach::Doubtful,
        ToolLookup::Missing { nearest: None } => Reach::Missed,
    }
}

fn exit(result: &CallResult, reach: Reach) -> Exit {
    let Some(CallFailure { kind, message: _ }) = &result.error else { return Exit::Done };
    match (kind, reach) {
        (_, Reach::Known) | (ErrorKind::ToolNotFound, Reach::Doubtful) => Exit::Wrong,
        (ErrorKind::ToolNotFound, Reach::Missed)
        | (
            ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::Protocol,
            Reach::Doubtful | Reach::Missed,
        ) => Exit::Unreachable,
        (
            ErrorKind::Config
            | ErrorKind::McpConfig
            | ErrorKind::MissingTransportField
            | ErrorKind::Validation
            | ErrorKind::Tool
            | ErrorKind::OutcomeUnknown,
            Reach::Doubtful | Reach::Missed,
        ) => Exit::Wrong,
    }
}

fn report(context: &Context, request: Request<'_>, result: &CallResult, exit: Exit) -> Report {
    let out = match context.format {
        Format::Json => json::document(result),
        Format::Text => content::text(result),
    };
    let err = match &result.error {
        Some(failure) => complaint(failure, request, context.console.err),
        None => String::new(),
    };
    Report { out, err, exit, after: String::new() }
}

/// `<kind>: <message>`, and what to do about it.
fn complaint(failure: &CallFailure, request: Request<'_>, colour: Colour) -> String {
    let CallFailure { kind, message } = failure;
    let kind_shown = paint::paint(colour, paint::BAD, kind.as_str());
    let mut res = format!("{kind_shown}: {}\n", plain::block(message).trim_end());
    let Request { file, tool, arguments: _, save: _ } = request;
    let file = file.display();
    let help = match kind {
        ErrorKind::ToolNotFound => Some(format!("`mcp-host tools {file}` shows the names that there are")),
        ErrorKind::Validation => {
            Some(format!("`mcp-host tools {file} --schema {}` shows what the tool takes", plain::line(tool)))
        }
        ErrorKind::OutcomeUnknown => Some("look whether it has happened before you call again".to_owned()),
        ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::Protocol => {
            Some(format!("`mcp-host doctor {file}` examines the servers step by step"))
        }
        ErrorKind::Config | ErrorKind::McpConfig | ErrorKind::MissingTransportField => {
            Some(format!("`mcp-host check {file}` shows every mistake with its line"))
        }
        ErrorKind::Tool => None,
    };
    if let Some(help) = help {
        res.push_str(&paint::help(colour, &help));
    }
    res
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_model::CallMetadata;

    use super::*;
    use crate::fixture::published;

    #[track_caller]
    fn check(servers: &[(&str, ServerState)], rejected: &[&str], error: Option<ErrorKind>, want: Exit) {
        let published = published(servers);
        let rejected: Vec<String> = rejected.iter().map(|it| (*it).to_owned()).collect();
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
        assert_eq!(exit(&result, reach(&published, &rejected, "t")), want);
    }

    #[test]
    fn a_call_fails_otherwise_when_its_server_was_never_there() {
        use ServerState::{Failed, Ready};
        check(&[("a", Ready)], &[], None, Exit::Done);
        check(&[("a", Ready), ("b", Failed)], &[], None, Exit::Done);
        check(&[("a", Ready)], &[], Some(ErrorKind::ToolNotFound), Exit::Wrong);
        check(&[("a", Ready), ("b", Failed)], &[], Some(ErrorKind::ToolNotFound), Exit::Unreachable);
        check(&[("b", Failed)], &[], Some(ErrorKind::Connection), Exit::Unreachable);
        check(&[("b", Failed)], &["b"], Some(ErrorKind::McpConfig), Exit::Wrong);
        check(&[("b", Failed)], &["b"], Some(ErrorKind::ToolNotFound), Exit::Wrong);
        check(&[], &[], Some(ErrorKind::ToolNotFound), Exit::Wrong);
    }

    #[test]
    fn a_failure_is_its_kind_and_its_message() {
        let failure = CallFailure { kind: ErrorKind::Tool, message: "it \u{1b}[31mbroke\n".into() };
        let request = Request { file: Path::new("a.yaml"), tool: "t", arguments: &[], save: None };
        assert_eq!(complaint(&failure, request, Colour::Never), "MCPToolError: it broke\n");
        let failure = CallFailure { kind: ErrorKind::ToolNotFound, message: "no".into() };
        assert_eq!(
            complaint(&failure, request, Colour::Never),
            "MCPToolNotFoundError: no\n  help: `mcp-host tools a.yaml` shows the names that there are\n"
        );
    }
}
