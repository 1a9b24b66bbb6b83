//! `shell`: a prompt for the configured servers; without a terminal, a script on standard input.
//!
//! Ctrl-C cancels the running call, and its server is notified; without a call it discards the line. Ctrl-D ends the
//! shell. The exit code of a script is that of the last line that failed.

mod command;
mod complete;
mod editor;
mod execute;
pub(crate) mod tokenize;

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::Arc;

use mcp_host_recording::Recorder;
use mcp_host_runtime::{
    FollowHandle, FollowRequest, Host, HostSnapshot, RulePolicy, ServerState, ServerStatus, Supervision,
    recording_dialer,
};
use tokio::sync::mpsc;

use crate::args::{Format, ShellArgs};
use crate::commands::calls::elicitation::terminal_caller;
use crate::commands::calls::record::{check_output_path, save_recording};
use crate::config::call_rules::read_rules;
use crate::config::context::Context;
use crate::config::follow::{FollowedConfig, follow};
use crate::config::refusal::StartRefusal;
use crate::host;
use crate::host::call_prompt::call_prompt;
use crate::host::known_tools::remember_tools;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{count, json};
use crate::render::events::{EventLine, change_lines, file_event_lines};
use crate::render::status::server_lines_where;
use crate::runtime::exit::Exit;
use crate::runtime::signal::Signal;
use crate::runtime::signals::{Signals, run_until_signal};
use command::ShellCommand;
use editor::{LineReader, LineResult};
use execute::CallTerminal;
use tokenize::split_words;

const PROMPT: &str = "mcp> ";
/// The maximum length of a line in a script, in bytes.
const MAX_SCRIPT_LINE: u64 = 16 << 20;
/// The maximum number of events that are stored until the next prompt.
const MAX_EVENTS: usize = 256;

/// Where lines are read from.
enum LineSource {
    Terminal(LineReader),
    Script(mpsc::Receiver<io::Result<String>>),
}

/// A running shell.
struct Shell<'a> {
    context: &'a Context,
    host: &'a Host,
    request: FollowRequest,
    follow_handle: FollowHandle,
    /// The snapshot whose changes were last printed.
    reported: Arc<HostSnapshot>,
    /// Events to print before the next prompt.
    events: VecDeque<EventLine>,
    terminal: CallTerminal,
}

/// Runs until the lines end or a signal arrives.
pub(crate) async fn run(context: &Context, args: ShellArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let ShellArgs { file, record, rules } = args;
    let mut rules = run_until_signal(signals, read_rules(&rules)).await??;
    record.as_deref().map_or(Ok(()), check_output_path)?;
    let finding = FollowedConfig::find(context, file.as_deref());
    let FollowedConfig { request, approval } = run_until_signal(signals, finding).await??;
    let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    // A user can correct the file while the shell runs, but every line of a script would fail.
    if !is_interactive {
        for file in &request.files {
            let opened = run_until_signal(signals, context.open(&file.path)).await?;
            StartRefusal::check(&opened.map_err(StartRefusal::from)?)?;
        }
    }
    let recorder = record.as_ref().map(|_| Recorder::default());
    let mut options = host::options(Supervision::default());
    options.catalog.approval = approval;
    options.result_bytes = context.default_result_bytes();
    let progress = context.progress();
    rules.prompt = Some(call_prompt(context, &progress));
    let caller = terminal_caller(context, &progress, &mut options);
    options.calls = Arc::new(RulePolicy::new(rules));
    let host = match &recorder {
        Some(recorder) => Host::with_dialer(options, recording_dialer(recorder)),
        None => Host::start(options),
    };
    let running = RunningHost { host: &host, terminal: CallTerminal { progress, caller } };
    let exit = run_shell(context, running, request, is_interactive, signals).await;
    let exit = host::stop(&host, exit, signals).await;
    match (record, recorder) {
        (Some(out), Some(recorder)) => save_recording(context, &out, &recorder.recording(), exit).await,
        (_, _) => Ok(exit),
    }
}

/// A host, and the display of what it does.
struct RunningHost<'a> {
    host: &'a Host,
    terminal: CallTerminal,
}

/// Follows the configuration and executes lines until they end or a signal arrives.
async fn run_shell(
    context: &Context,
    running: RunningHost<'_>,
    request: FollowRequest,
    is_interactive: bool,
    signals: &mut Signals,
) -> Exit {
    let RunningHost { host, terminal } = running;
    let progress = terminal.progress.clone();
    let reported = host.snapshot();
    let follow_handle = tokio::select! {
        biased;
        signal = signals.next() => return Exit::Signal(signal),
        follow_handle = follow(context, host, request.clone()) => follow_handle,
    };
    let events = VecDeque::new();
    let mut shell = Shell { context, host, request, follow_handle, reported, events, terminal };
    tokio::select! {
        biased;
        signal = signals.next() => match (signal, is_interactive) {
            // Ctrl-C skips the wait for the servers.
            (Signal::Interrupt, true) => {}
            (_, _) => return Exit::Signal(signal),
        },
        () = wait_for_servers(host, &progress, WaitFor::All) => {}
    }
    progress.clear();
    // Known tools are stored by file, and the tools of several files cannot be distinguished here.
    if let [file] = shell.request.files.as_slice() {
        remember_tools(&file.path, &host.snapshot()).await;
    }
    shell.print_start_report(is_interactive).await;
    let source = if is_interactive {
        let history = host::state_path("history", &|name| std::env::var_os(name));
        match LineReader::start(host.subscribe(), history, context.console.out_colour) {
            Ok(lines) => LineSource::Terminal(lines),
            Err(error) => {
                return context
                    .print_failure(Failure::new(format!("cannot use the terminal: {error}")))
                    .await;
            }
        }
    } else {
        LineSource::Script(start_script_reader())
    };
    shell.run_lines(source, signals).await
}

/// Starts a thread that reads the lines of standard input.
fn start_script_reader() -> mpsc::Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = String::new();
            let line = match Read::take(&mut input, MAX_SCRIPT_LINE).read_line(&mut line) {
                Ok(0) => return,
                Ok(length) if length as u64 == MAX_SCRIPT_LINE => Err(io::Error::other("a line is too long")),
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let has_failed = line.is_err();
            if sender.blocking_send(line).is_err() || has_failed {
                return;
            }
        }
    });
    lines
}

impl Shell<'_> {
    /// Executes each line, until `exit`, the end of the lines or a signal.
    async fn run_lines(&mut self, mut source: LineSource, signals: &mut Signals) -> Exit {
        let mut last_failure = Exit::Success;
        // The beginning of a command that spans several lines.
        let mut pending = String::new();
        loop {
            self.print_changes().await;
            let input = tokio::select! {
                biased;
                signal = signals.next() => return Exit::Signal(signal),
                input = read_line(&mut source) => input,
            };
            let line = match input {
                Ok(LineResult::Line(line)) => line,
                Ok(LineResult::Cancelled) => continue,
                Ok(LineResult::End) => {
                    if !pending.trim().is_empty()
                        && let Err(error) = split_words(&pending)
                    {
                        last_failure = self.print_usage_error(&error.message()).await;
                    }
                    return final_exit(&source, last_failure);
                }
                Err(error) => {
                    return self.print_usage_error(&format!("could not read standard input: {error}")).await;
                }
            };
            pending.push_str(&line);
            // A line that is incomplete continues on the next one.
            let Ok(words) = split_words(&pending) else { continue };
            pending.clear();
            let command = match command::parse(words) {
                Ok(ShellCommand::Exit) => return final_exit(&source, last_failure),
                Ok(command) => command,
                Err(message) => {
                    last_failure = self.print_usage_error(&message).await;
                    continue;
                }
            };
            let exit = tokio::select! {
                biased;
                signal = signals.next() => match (&source, signal) {
                    (LineSource::Terminal(_), Signal::Interrupt) => {
                        // Dropping the call has sent the cancellation to its server.
                        let err = "\ncancelled\n".to_owned();
                        self.context.print(Report { err, exit: Exit::Failure, ..Report::default() }).await
                    }
                    (_, signal) => return Exit::Signal(signal),
                },
                exit = self.execute(command) => exit,
            };
            if exit != Exit::Success {
                last_failure = exit;
            }
        }
    }

    async fn execute(&mut self, command: ShellCommand) -> Exit {
        if command == ShellCommand::Reload {
            // `follow` returns when the files have been read again, which a reload trigger does not wait for. The
            // previous task ends afterwards, so no change is missed.
            let follow_handle = self.host.follow(self.request.clone()).await;
            std::mem::replace(&mut self.follow_handle, follow_handle).stop().await;
            self.host.wait_until_ready().await;
            return Exit::Success;
        }
        execute::execute(self.context, self.host, &self.terminal, command).await
    }

    /// Prints the problems of the files, and the servers: all for a user, those that are not ready for a script.
    async fn print_start_report(&mut self, is_interactive: bool) {
        self.collect_file_events().await;
        self.events.retain(EventLine::is_file_problem);
        self.reported = self.host.snapshot();
        let is_printed = |status: &ServerStatus| is_interactive || status.state != ServerState::Ready;
        let mut err = server_lines_where(&self.reported, is_printed, self.context.console.err_colour);
        if is_interactive {
            let tools = count(self.reported.catalog.tools().len(), "tool");
            err.push_str(&format!("{tools}; `help` lists the commands, Ctrl-D ends the shell\n"));
        }
        self.context.print(Report::err(err)).await;
    }

    /// Stores the file events that have arrived. Does not wait.
    async fn collect_file_events(&mut self) {
        while let Some(Some(event)) = poll_once(self.follow_handle.next()).await {
            self.events.extend(file_event_lines(event));
            while self.events.len() > MAX_EVENTS {
                self.events.pop_front();
            }
        }
    }

    /// Prints what has changed since the last prompt.
    async fn print_changes(&mut self) {
        self.collect_file_events().await;
        let now = self.host.snapshot();
        self.events.extend(change_lines(&self.reported, &now));
        self.reported = now;
        let colour = self.context.console.err_colour;
        let text = |event: EventLine| match self.context.format {
            Format::Text => event.text(colour),
            Format::Json => json::line(&event),
        };
        let err: String = self.events.drain(..).map(text).collect();
        if !err.is_empty() {
            self.context.print(Report::err(err)).await;
        }
    }

    async fn print_usage_error(&self, message: &str) -> Exit {
        self.context.print_failure(Failure::usage(message).help(Some("`help` lists the commands"))).await
    }
}

/// The exit code of the shell. In a terminal, failed lines have no effect on it.
fn final_exit(source: &LineSource, last_failure: Exit) -> Exit {
    match source {
        LineSource::Terminal(_) => Exit::Success,
        LineSource::Script(_) => last_failure,
    }
}

/// Polls a future once and returns its output if it is ready.
async fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

async fn read_line(source: &mut LineSource) -> io::Result<LineResult> {
    match source {
        LineSource::Terminal(lines) => Ok(lines.read_line(PROMPT).await),
        LineSource::Script(lines) => match lines.recv().await {
            Some(line) => line.map(LineResult::Line),
            None => Ok(LineResult::End),
        },
    }
}
