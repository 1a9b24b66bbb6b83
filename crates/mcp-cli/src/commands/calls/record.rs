//! `record`: records a session with real servers to a file, which `replay` can serve.
//!
//! Without a command, it starts the servers of a configuration, lists what they offer, and makes the
//! requested calls. With a command, it is a proxy in place of a server: it starts the server and forwards all
//! messages.

use std::path::Path;
use std::sync::Arc;

use mcp_host_model::{CallResult, ErrorKind};
use mcp_host_recording::{Recorder, Recording, RecordingProxy, ServerRecording, environment_secrets};
use mcp_host_runtime::{
    DesiredServers, Host, RulePolicy, ServerState, Supervision, recording_dialer, replace_private,
};
use serde::Serialize;

use crate::args::{CallRuleArgs, Format, RecordArgs};
use crate::call_arguments::{self, CallArguments};
use crate::commands::calls::call;
use crate::commands::calls::shell::tokenize::split_words;
use crate::config::call_rules::read_rules;
use crate::config::context::Context;
use crate::config::refusal::StartRefusal;
use crate::host::call_prompt::NoPrompt;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::{self, select_server};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{count, error_chain, json, sanitize};
use crate::render::call_result::result_text;
use crate::render::status::server_lines;
use crate::runtime::bounded_read::{input_name, read_file};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

/// The maximum size of a file of calls, in bytes.
const MAX_CALLS_FILE: u64 = 16 << 20;

/// A call to make.
struct PlannedCall {
    tool: String,
    arguments: CallArguments,
}

/// The JSON document of `record`.
#[derive(Serialize)]
struct RecordJson<'a> {
    out: String,
    servers: Vec<RecordedServerJson<'a>>,
    calls: &'a [CallResult],
    /// The number of messages that did not fit into the recording.
    #[serde(rename = "left_out")]
    omitted: usize,
}

/// The recording of one server.
#[derive(Serialize)]
struct RecordedServerJson<'a> {
    name: &'a str,
    era: Option<&'static str>,
    requests: usize,
}

/// Records until the calls are made, the server ends, or a signal arrives.
pub(crate) async fn run(
    context: &Context,
    args: &RecordArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    check_output_path(&args.out)?;
    match args.command.split_first() {
        Some((command, arguments)) => record_proxy(context, args, command, arguments, signals).await,
        None => record_servers(context, args, signals).await,
    }
}

/// Checks before recording whether the output file can be created.
pub(super) fn check_output_path(out: &Path) -> Result<(), Failure> {
    if out.is_dir() {
        return Err(Failure::usage(format!("{} is a folder", out.display())));
    }
    match out.parent().filter(|folder| *folder != Path::new("")) {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::usage(format!("the folder {} does not exist", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Starts the servers of a configuration and calls them.
async fn record_servers(
    context: &Context,
    args: &RecordArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let (calls, desired) = run_until_signal(signals, prepare(context, args)).await??;
    let recorder = Recorder::default();
    let mut options = host::options(Supervision::Off);
    options.result_bytes = context.default_result_bytes();
    let mut rules = run_until_signal(signals, read_rules(&CallRuleArgs::default())).await??;
    rules.prompt = Some(Arc::new(NoPrompt("a recording asks nobody")));
    options.calls = Arc::new(RulePolicy::new(rules));
    let host = Host::with_dialer(options, recording_dialer(&recorder));
    let mut results = Vec::new();
    let exit = host::with_host(host, desired, signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::All).await;
        let published = host.snapshot();
        let all_ready = published.servers.iter().all(|status| status.state == ServerState::Ready);
        let mut exit = if all_ready { Exit::Success } else { Exit::Unreachable };
        context.print(Report::err(server_lines(&published, context.console.err_colour))).await;
        for PlannedCall { tool, arguments } in calls {
            let result = call::call(host, &context.progress(), None, &tool, &arguments).await;
            if exit == Exit::Success && !is_recorded(&result) {
                exit = Exit::Failure;
            }
            print_result(context, &result).await;
            results.push(result);
        }
        exit
    })
    .await;
    save_with_document(context, &args.out, &recorder.recording(), &results, exit).await
}

/// Reads the calls to make and the servers to start.
async fn prepare(
    context: &Context,
    args: &RecordArgs,
) -> Result<(Vec<PlannedCall>, DesiredServers), Failure> {
    let (calls, file) = (args.call.clone(), args.calls.clone());
    let calls =
        run_blocking(move || read_planned_calls(&calls, file.as_deref())).await.map_err(Failure::usage)?;
    let config = context.open_and_report(args.file.as_deref()).await.map_err(StartRefusal::from)?;
    StartRefusal::check(&config)?;
    Ok((calls, select_server(config.loaded.desired, args.server.as_deref())?))
}

/// The calls of the command line, then those of the file. `calls` alternates tools and arguments. Blocks if there is a
/// file.
fn read_planned_calls(calls: &[String], file: Option<&Path>) -> Result<Vec<PlannedCall>, String> {
    let parse_call = |tool: &str, words: &[String]| match call_arguments::parse(words) {
        Ok(arguments) => Ok(PlannedCall { tool: tool.to_owned(), arguments }),
        Err(error) => Err(error.message),
    };
    let mut planned_calls = Vec::new();
    for pair in calls.chunks_exact(2) {
        planned_calls.push(parse_call(&pair[0], &pair[1..])?);
    }
    let Some(file) = file else { return Ok(planned_calls) };
    let name = input_name(file);
    let text = read_file(file, MAX_CALLS_FILE)
        .map_err(|error| format!("could not read the calls from {name}: {error}"))?;
    for (index, line) in text.lines().enumerate() {
        let line_error = |message: String| format!("{name}, line {}: {message}", index + 1);
        let words = split_words(line).map_err(|error| line_error(error.message()))?;
        match words.split_first() {
            None => {}
            Some((tool, _)) if tool.starts_with('#') => {}
            Some((tool, words)) => planned_calls.push(parse_call(tool, words).map_err(line_error)?),
        }
    }
    Ok(planned_calls)
}

/// Whether the call reached its server and returned a result. An error result of the tool is a result.
fn is_recorded(result: &CallResult) -> bool {
    result.error.as_ref().is_none_or(|failure| failure.kind == ErrorKind::Tool)
}

async fn print_result(context: &Context, result: &CallResult) {
    let report = match (&result.error, context.format) {
        (Some(failure), Format::Text) => {
            Report::err(call::call_error(result, failure, context.console.err_colour))
        }
        (None, Format::Text) => Report::out(result_text(result)),
        // The final document contains the result.
        (_, Format::Json) => Report::default(),
    };
    context.print(report).await;
}

/// Starts a server and forwards messages between it and the host on standard input and output.
async fn record_proxy(
    context: &Context,
    args: &RecordArgs,
    command: &str,
    arguments: &[String],
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let file_name = Path::new(command).file_name().and_then(|name| name.to_str());
    let server = args.server.clone().unwrap_or_else(|| file_name.unwrap_or("server").to_owned());
    // As in a configuration, `mcp-host` means this executable.
    let own_path = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let command = own_path.filter(|_| command == "mcp-host").unwrap_or_else(|| command.to_owned());
    let mut proxy = RecordingProxy::new(server, command);
    proxy.arguments = arguments.iter().map(|argument| argument.as_str().into()).collect();
    proxy.secrets = environment_secrets(std::env::vars_os());
    let recorder = Recorder::default();
    let mut signal = None;
    let server_end = {
        let stop = async { signal = Some(signals.next().await) };
        proxy.run(&recorder, tokio::io::stdin(), tokio::io::stdout(), stop).await
    };
    let exit = match (&server_end, signal) {
        (_, Some(signal)) => Exit::Signal(signal),
        (Ok(status), None) if status.success() => Exit::Success,
        (Ok(status), None) => {
            context.print_failure(Failure::new(format!("the server ended with {status}"))).await
        }
        (Err(error), None) => return Err(Failure::with_exit(Exit::Unreachable, error_chain(error))),
    };
    save_recording(context, &args.out, &recorder.recording(), exit).await
}

/// Saves the recording and prints a summary to standard error; standard output belongs to the protocol.
pub(super) async fn save_recording(
    context: &Context,
    out: &Path,
    recording: &Recording,
    exit: Exit,
) -> Result<Exit, Failure> {
    save(out, recording, exit).await?;
    Ok(context.print(Report { err: summary(out, recording), exit, ..Report::default() }).await)
}

/// Saves the recording and prints a summary or the JSON document.
async fn save_with_document(
    context: &Context,
    out: &Path,
    recording: &Recording,
    calls: &[CallResult],
    exit: Exit,
) -> Result<Exit, Failure> {
    if context.format == Format::Text {
        return save_recording(context, out, recording, exit).await;
    }
    save(out, recording, exit).await?;
    let servers = recording.servers().iter().map(|server| RecordedServerJson {
        name: &server.server,
        era: server.version.map(|version| version.era().as_str()),
        requests: server.exchanges.len(),
    });
    let document = RecordJson {
        out: out.display().to_string(),
        servers: servers.collect(),
        calls,
        omitted: recording.omitted(),
    };
    Ok(context.print(Report { out: json::document(&document), exit, ..Report::default() }).await)
}

/// Writes the file. A failure has the exit code of the session, if that failed too.
async fn save(path: &Path, recording: &Recording, exit: Exit) -> Result<(), Failure> {
    let (path, text) = (path.to_owned(), recording.to_text());
    let exit = if exit == Exit::Success { Exit::Failure } else { exit };
    run_blocking(move || replace_private(&path, &text))
        .await
        .map_err(|error| Failure::with_exit(exit, error.to_string()))
}

/// The summary, such as `wrote session.jsonl: demo (modern), 5 requests`.
fn summary(out: &Path, recording: &Recording) -> String {
    let server_text = |server: &Arc<ServerRecording>| {
        let era = server.version.map(|version| format!(" ({})", version.era().as_str())).unwrap_or_default();
        format!("{}{era}, {}", sanitize::line(&server.server), count(server.exchanges.len(), "request"))
    };
    let servers: Vec<String> = recording.servers().iter().map(server_text).collect();
    let servers = if servers.is_empty() { "no servers".to_owned() } else { servers.join("; ") };
    let mut text = format!("wrote {}: {servers}\n", sanitize::line(&out.display().to_string()));
    if recording.omitted() > 0 {
        let omitted = count(recording.omitted(), "message");
        text.push_str(&format!("{omitted} did not fit into the recording: record less at once\n"));
    }
    text
}
