//! `record`: a session with real servers, written to a file that `replay` is a server of.
//!
//! Either this starts the servers of a configuration, lists what they offer and makes the calls that it is told; or it
//! stands in a configuration itself, in place of a server's command, and passes on whatever a host and the server say.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use mcp_host::{DesiredServers, Host, ServerState, Supervision, ToolCall, recording_dialer, replace};
use mcp_model::{CallResult, ErrorKind};
use mcp_transport::recording::{Recorder, Recording, RecordingProxy, environment_secrets};
use serde::Serialize;

use crate::args::Format;
use crate::commands::arguments::{self, Typed};
use crate::commands::refused::{self, Refusal};
use crate::commands::shell::words::words;
use crate::commands::{call, content, listing};
use crate::context::{Context, blocking, unless_signalled};
use crate::exit::Exit;
use crate::hosted;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::signals::Signals;
use crate::starting::{Wanting, started};

/// The most bytes that a file of calls may have.
const MOST: u64 = 16 << 20;

/// What is asked for.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    file: Option<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
    /// Record only this server; with a COMMAND, the name that the recording gives it
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Call this tool, with one word of arguments as `call` takes them ({} for none); may be given several times
    #[arg(long, num_args = 2, value_names = ["TOOL", "ARGS"])]
    call: Vec<String>,
    /// Make the calls of this file, or of standard input for `-`: on each line a tool and its arguments
    #[arg(long, value_name = "FILE")]
    calls: Option<PathBuf>,
    /// Stand between a host and this server instead: whatever they say passes on as it is, and is recorded
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["file", "call", "calls"])]
    command: Vec<String>,
}

/// One call that is to be made.
struct Wish {
    tool: String,
    arguments: Typed,
}

/// What was written.
#[derive(Serialize)]
struct Document<'a> {
    out: String,
    servers: Vec<Line<'a>>,
    calls: &'a [CallResult],
    left_out: usize,
}

/// What was written of one server.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    era: Option<&'static str>,
    requests: usize,
}

/// Records until the calls are made, the server is gone, or a signal comes.
pub(crate) async fn run(context: &Context, words: Words, signals: &mut Signals) -> Exit {
    if let Err(message) = has_place(&words.out) {
        return context.tell(context.console.failure(Exit::Usage, &message, None)).await;
    }
    match words.command.split_first() {
        Some((command, arguments)) => between(context, &words, (command, arguments), signals).await,
        None => servers(context, &words, signals).await,
    }
}

/// Can there be a file of this name? What is found out only in the end is found out too late.
pub(super) fn has_place(out: &Path) -> Result<(), String> {
    let folder = out.parent().filter(|it| *it != Path::new(""));
    match (folder, out.is_dir()) {
        (_, true) => Err(format!("{} is a folder", out.display())),
        (Some(folder), false) if !folder.is_dir() => Err(format!("there is no folder {}", folder.display())),
        (_, false) => Ok(()),
    }
}

/// Starts a configuration's servers and calls them.
async fn servers(context: &Context, words: &Words, signals: &mut Signals) -> Exit {
    let (wishes, wanted) = match unless_signalled(signals, prepare(context, words)).await {
        Err(signal) => return Exit::Signal(signal),
        Ok(Err(exit)) => return exit,
        Ok(Ok(prepared)) => prepared,
    };
    let recorder = Recorder::default();
    let host = Host::with_dialer(hosted::options(Supervision::Off), recording_dialer(&recorder));
    let mut results = Vec::new();
    let exit = hosted::around(host, wanted, signals, async |host| {
        started(host, &context.progress(), Wanting::All).await;
        let all_ready = host.snapshot().servers.iter().all(|it| it.state == ServerState::Ready);
        let mut exit = if all_ready { Exit::Done } else { Exit::Unreachable };
        let status = crate::commands::status::servers(&host.snapshot(), context.console.err);
        context.tell(Report { out: String::new(), err: status, exit, after: String::new() }).await;
        for wish in wishes {
            let result = made(context, host, wish).await;
            if exit == Exit::Done && !is_recorded(&result) {
                exit = Exit::Wrong;
            }
            tell_result(context, &result).await;
            results.push(result);
        }
        exit
    })
    .await;
    written(context, &words.out, &recorder.recording(), &results, exit).await
}

/// The calls, and what is to be started; or the end, where that is nothing.
async fn prepare(context: &Context, words: &Words) -> Result<(Vec<Wish>, DesiredServers), Exit> {
    let (calls, file) = (words.call.clone(), words.calls.clone());
    let wishes = match blocking(move || wishes(&calls, file.as_deref())).await {
        Ok(wishes) => wishes,
        Err(message) => return Err(context.tell(context.console.failure(Exit::Usage, &message, None)).await),
    };
    let refuse = async |refusal: &Refusal| {
        let words = plain::line(&refusal.failure.to_string());
        let err = paint::error(context.console.err, &words, refusal.failure.help.as_deref());
        Err(context.tell(Report { out: String::new(), err, exit: Exit::Wrong, after: String::new() }).await)
    };
    let file = words.file.as_deref().unwrap_or(Path::new(""));
    let source = match context.open(file).await {
        Ok(source) => source,
        Err(unreadable) => return refuse(&Refusal::unreadable(unreadable)).await,
    };
    let colour = context.console.err;
    let err = source.taken(colour) + &source.complaints(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    if let Some(refusal) = Refusal::of(&source) {
        return refuse(&refusal).await;
    }
    let wanted = source.loaded.desired;
    match words.server.as_deref().map(|it| listing::only(wanted.clone(), it)) {
        None => Ok((wishes, wanted)),
        Some(Ok(wanted)) => Ok((wishes, wanted)),
        Some(Err(message)) => Err(context.tell(context.console.failure(Exit::Usage, &message, None)).await),
    }
}

/// The calls that are asked for, those of the command line first. Blocks, where there is a file of them.
fn wishes(calls: &[String], file: Option<&Path>) -> Result<Vec<Wish>, String> {
    let wish = |tool: &str, words: &[String]| match arguments::read(words) {
        Ok(arguments) => Ok(Wish { tool: tool.to_owned(), arguments }),
        Err(unusable) => Err(unusable.message),
    };
    let mut res = Vec::new();
    for pair in calls.chunks_exact(2) {
        res.push(wish(&pair[0], &pair[1..])?);
    }
    let Some(file) = file else { return Ok(res) };
    let (name, text) = match file == Path::new("-") {
        true => ("standard input".to_owned(), bounded(io::stdin().lock())),
        false => (file.display().to_string(), std::fs::File::open(file).and_then(bounded)),
    };
    let text = text.map_err(|it| format!("could not read the calls from {name}: {it}"))?;
    for (at, line) in text.lines().enumerate() {
        let refused = |message: String| format!("{name}, line {}: {message}", at + 1);
        let words = words(line).map_err(|it| refused(it.sentence()))?;
        match words.split_first() {
            None => {}
            Some((tool, _)) if tool.starts_with('#') => {}
            Some((tool, words)) => res.push(wish(tool, words).map_err(refused)?),
        }
    }
    Ok(res)
}

fn bounded(from: impl io::Read) -> io::Result<String> {
    let mut res = String::new();
    let read = io::Read::read_to_string(&mut from.take(MOST + 1), &mut res)?;
    match read as u64 > MOST {
        true => Err(io::Error::other(format!("it is larger than {} MiB", MOST >> 20))),
        false => Ok(res),
    }
}

async fn made(context: &Context, host: &Host, wish: Wish) -> CallResult {
    let Wish { tool, arguments } = wish;
    match call::fitted(&host.snapshot(), &tool, arguments) {
        Ok(arguments) => call::call(host, &context.progress(), ToolCall::new(&tool, arguments)).await,
        Err(unusable) => refused::result(&tool, ErrorKind::Validation, unusable.message),
    }
}

/// Did the call reach its server, and the answer this host? A tool that says that it failed has answered.
fn is_recorded(result: &CallResult) -> bool {
    result.error.as_ref().is_none_or(|it| it.kind == ErrorKind::Tool)
}

async fn tell_result(context: &Context, result: &CallResult) {
    let out = match context.format {
        Format::Text => content::text(result),
        // The one document holds it.
        Format::Json => String::new(),
    };
    let err = result.error.as_ref().map(|it| {
        let kind = paint::paint(context.console.err, paint::BAD, it.kind.as_str());
        format!("{kind}: {}\n", plain::block(&it.message).trim_end())
    });
    context.tell(Report { out, err: err.unwrap_or_default(), exit: Exit::Done, after: String::new() }).await;
}

/// Stands between a host, on our standard streams, and a server that this starts.
async fn between(
    context: &Context,
    words: &Words,
    (command, arguments): (&str, &[String]),
    signals: &mut Signals,
) -> Exit {
    let file_name = Path::new(command).file_name().and_then(|it| it.to_str());
    let server = words.server.clone().unwrap_or_else(|| file_name.unwrap_or("server").to_owned());
    // As in a configuration, this very program stands behind its name.
    let own = std::env::current_exe().ok().and_then(|it| it.into_os_string().into_string().ok());
    let command = own.filter(|_| command == "mcp-host").unwrap_or_else(|| command.to_owned());
    let between = RecordingProxy {
        server,
        command,
        arguments: arguments.iter().map(|it| it.as_str().into()).collect(),
        secrets: environment_secrets(std::env::vars_os()),
    };
    let recorder = Recorder::default();
    let mut signal = None;
    let ended = {
        let stop = async { signal = Some(signals.next().await) };
        between.run(&recorder, (tokio::io::stdin(), tokio::io::stdout()), stop).await
    };
    let exit = match (&ended, signal) {
        (_, Some(signal)) => Exit::Signal(signal),
        (Ok(status), None) if status.success() => Exit::Done,
        (Ok(status), None) => {
            let message = format!("the server ended with {status}");
            context.tell(context.console.failure(Exit::Wrong, &message, None)).await
        }
        (Err(error), None) => {
            let failure = context.console.failure(Exit::Unreachable, &chain(error), None);
            return context.tell(failure).await;
        }
    };
    // Standard output is the host's.
    told(context, &words.out, &recorder.recording(), exit).await
}

/// Writes the file, and says so where nothing else is said.
pub(super) async fn told(context: &Context, out: &Path, recording: &Recording, exit: Exit) -> Exit {
    let report = match save(out, recording).await {
        Ok(()) => Report { out: String::new(), err: summary(out, recording), exit, after: String::new() },
        Err(message) => context.console.failure(worse(exit), &message, None),
    };
    context.tell(report).await
}

/// Writes the file, and says so.
async fn written(
    context: &Context,
    out: &Path,
    recording: &Recording,
    calls: &[CallResult],
    exit: Exit,
) -> Exit {
    if let Err(message) = save(out, recording).await {
        return context.tell(context.console.failure(worse(exit), &message, None)).await;
    }
    let servers = recording.servers().iter().map(|it| Line {
        name: &it.server,
        era: it.version.map(|it| it.era().as_str()),
        requests: it.exchanges.len(),
    });
    let left_out = recording.omitted();
    let report = match context.format {
        Format::Text => {
            Report { out: String::new(), err: summary(out, recording), exit, after: String::new() }
        }
        Format::Json => {
            let servers = servers.collect();
            let out = json::document(&Document { out: out.display().to_string(), servers, calls, left_out });
            Report { out, err: String::new(), exit, after: String::new() }
        }
    };
    context.tell(report).await
}

async fn save(out: &Path, recording: &Recording) -> Result<(), String> {
    let (out, text) = (out.to_owned(), recording.to_text());
    blocking(move || replace(&out, &text)).await.map_err(|it| it.to_string())
}

/// A file that is not there is a failure, whatever went before.
fn worse(exit: Exit) -> Exit {
    match exit {
        Exit::Done => Exit::Wrong,
        Exit::Wrong | Exit::Usage | Exit::Unreachable | Exit::Signal(_) | Exit::Demo(_) => exit,
    }
}

/// `wrote session.jsonl: demo (modern), 5 requests`.
fn summary(out: &Path, recording: &Recording) -> String {
    let one = |it: &std::sync::Arc<mcp_transport::recording::ServerRecording>| {
        let era = it.version.map(|it| format!(" ({})", it.era().as_str())).unwrap_or_default();
        let count = it.exchanges.len();
        format!("{}{era}, {count} request{}", plain::line(&it.server), if count == 1 { "" } else { "s" })
    };
    let servers: Vec<String> = recording.servers().iter().map(one).collect();
    let servers = if servers.is_empty() { "nothing".to_owned() } else { servers.join("; ") };
    let mut res = format!("wrote {}: {servers}\n", plain::line(&out.display().to_string()));
    if recording.omitted() > 0 {
        let count = recording.omitted();
        res.push_str(&format!("{count} messages had no room in it: record less at once\n"));
    }
    res
}
