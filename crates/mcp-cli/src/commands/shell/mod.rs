//! `shell`: a prompt in front of a configuration's servers, or, where nobody types, a script of the same lines.
//!
//! Ctrl-C ends the call that runs, at its server too; with none running it ends the line. Ctrl-D ends the shell. In a
//! script the exit code is that of the last line that failed.

mod command;
mod complete;
mod editor;
mod show;
pub(crate) mod words;

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use mcp_host::{
    FollowHandle, FollowRequest, Host, HostOptions, HostSnapshot, LoadRequest, ServerState, ServerStatus,
    Supervision, recording_dialer,
};
use mcp_transport::recording::Recorder;
use tokio::sync::mpsc;

use crate::args::{Format, Reader};
use crate::commands::refused::Refusal;
use crate::commands::status;
use crate::commands::watch::lines::{self, Line};
use crate::context::Context;
use crate::exit::Exit;
use crate::hosted;
use crate::locked::{approval, followed};
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::signals::{Signal, Signals};
use crate::starting::{Wanting, started};
use crate::target::{Target, locate};
use command::{Command, command};
use editor::Typed;
use show::act;
use words::words;

/// What stands before what is typed.
const PROMPT: &str = "mcp> ";
/// The longest line of a script, in bytes.
const LONGEST: u64 = 16 << 20;
/// How many events of the files are kept until they are told.
const UNTOLD: usize = 256;

/// What is asked for.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    file: Option<PathBuf>,
    /// Write the session to this file in the end, without secrets, for `replay`
    #[arg(long, value_name = "OUT")]
    record: Option<PathBuf>,
}

/// Where lines come from.
enum Source {
    Terminal(editor::Lines),
    Script(mpsc::Receiver<io::Result<String>>),
}

/// A session at the prompt.
struct Shell<'a> {
    context: &'a Context,
    host: &'a Host,
    request: FollowRequest,
    following: FollowHandle,
    /// What was told of last.
    told: Arc<HostSnapshot>,
    untold: VecDeque<Line>,
}

/// Runs until the lines end, or a signal comes.
pub(crate) async fn run(context: &Context, asked: Words, signals: &mut Signals) -> Exit {
    let Words { file, record } = asked;
    if let Some(Err(message)) = record.as_deref().map(crate::commands::record::has_place) {
        return context.tell(context.console.failure(Exit::Usage, &message, None)).await;
    }
    let Target { path, found } = match locate(file.as_deref().unwrap_or(Path::new(""))) {
        Ok(target) => target,
        Err(message) => return context.tell(context.console.failure(Exit::Wrong, &message, None)).await,
    };
    let note = match found {
        true => {
            let note = paint::paint(context.console.err, paint::NOTE, "note");
            format!("{note}: reading {}\n", plain::line(&path.display().to_string()))
        }
        false => String::new(),
    };
    context.tell(Report { out: String::new(), err: note, exit: Exit::Done, after: String::new() }).await;
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    // A person may mend the file and go on; the lines of a script would fail one by one.
    if !interactive {
        let refusal = match context.open(&path).await {
            Ok(source) => Refusal::of(&source),
            Err(unreadable) => Some(Refusal::unreadable(unreadable)),
        };
        if let Some(Refusal { failure, .. }) = refusal {
            let message = plain::line(&failure.to_string());
            let refused = context.console.failure(Exit::Wrong, &message, failure.help.as_deref());
            return context.tell(refused).await;
        }
    }
    let Reader { dialect, profile } = context.reader;
    let approval = match approval(context, &path).await {
        Ok(approval) => approval,
        Err(unreadable) => {
            let help = unreadable.help.as_deref();
            return context.tell(context.console.failure(Exit::Wrong, &unreadable.message, help)).await;
        }
    };
    let lock = followed(context, &path);
    let request = LoadRequest { path, dialect, profile, env_file: context.env_file.clone() };
    let request = FollowRequest { lock, ..FollowRequest::new(vec![request]) };
    let recorder = record.as_ref().map(|_| Recorder::default());
    let options = HostOptions { approval, ..hosted::options(Supervision::default()) };
    let host = match &recorder {
        Some(recorder) => Host::with_dialer(options, recording_dialer(recorder)),
        None => Host::start(options),
    };
    let exit = session(context, &host, (request, interactive), signals).await;
    let exit = hosted::stop(&host, exit, signals).await;
    match (record, recorder) {
        (Some(out), Some(recorder)) => {
            crate::commands::record::told(context, &out, &recorder.recording(), exit).await
        }
        (_, _) => exit,
    }
}

async fn session(
    context: &Context,
    host: &Host,
    (request, interactive): (FollowRequest, bool),
    signals: &mut Signals,
) -> Exit {
    let told = host.snapshot();
    let following = tokio::select! {
        biased;
        signal = signals.next() => return Exit::Signal(signal),
        following = host.follow(request.clone()) => following,
    };
    let mut shell = Shell { context, host, request, following, told, untold: VecDeque::new() };
    let progress = context.progress();
    tokio::select! {
        biased;
        signal = signals.next() => match (signal, interactive) {
            // Who does not want to wait goes on with what is there.
            (Signal::Interrupt, true) => {}
            (Signal::Interrupt | Signal::HangUp | Signal::Terminate, _) => return Exit::Signal(signal),
        },
        () = started(host, &progress, Wanting::All) => {}
    }
    progress.clear();
    shell.tell_beginning(interactive).await;
    let source = match interactive {
        true => {
            let history = hosted::state("history", &|name| std::env::var_os(name));
            match editor::Lines::begin(host.subscribe(), history, context.console.out) {
                Ok(lines) => Source::Terminal(lines),
                Err(error) => {
                    let message = format!("the terminal cannot be used: {error}");
                    return context.tell(context.console.failure(Exit::Wrong, &message, None)).await;
                }
            }
        }
        false => Source::Script(script()),
    };
    shell.go_on(source, signals).await
}

/// Lines of standard input, read by a thread of their own.
fn script() -> mpsc::Receiver<io::Result<String>> {
    let (tell, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = Read::take(&mut input, LONGEST).read_line(&mut line);
            let line = match read {
                Ok(0) => return,
                Ok(count) if count as u64 == LONGEST => Err(io::Error::other("a line is too long")),
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let failed = line.is_err();
            if tell.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    lines
}

impl Shell<'_> {
    async fn go_on(&mut self, mut source: Source, signals: &mut Signals) -> Exit {
        let mut last = Exit::Done;
        let mut open = String::new();
        loop {
            self.tell_changes().await;
            let typed = tokio::select! {
                biased;
                signal = signals.next() => return Exit::Signal(signal),
                typed = next(&mut source) => typed,
            };
            let line = match typed {
                Ok(Typed::Line(line)) => line,
                Ok(Typed::Nothing) => continue,
                Ok(Typed::End) => {
                    if !open.trim().is_empty() {
                        let missing = words(&open).map_or_else(|it| it.sentence(), |_| String::new());
                        last = self.refuse(&missing).await;
                    }
                    return match source {
                        // The next prompt is a shell's.
                        Source::Terminal(_) => Exit::Done,
                        Source::Script(_) => last,
                    };
                }
                Err(error) => return self.refuse(&format!("could not read standard input: {error}")).await,
            };
            open.push_str(&line);
            let Ok(words) = words(&open) else { continue };
            open.clear();
            let command = match command(words) {
                Ok(Command::Exit) => {
                    return match source {
                        Source::Terminal(_) => Exit::Done,
                        Source::Script(_) => last,
                    };
                }
                Ok(command) => command,
                Err(message) => {
                    last = self.refuse(&message).await;
                    continue;
                }
            };
            let done = tokio::select! {
                biased;
                signal = signals.next() => match (&source, signal) {
                    (Source::Terminal(_), Signal::Interrupt) => {
                        // What was under way is dropped by now, and its server told.
                        let err = "\ncancelled\n".to_owned();
                        self.context.tell(Report { out: String::new(), err, exit: Exit::Wrong, after: String::new() }).await
                    }
                    (_, signal) => return Exit::Signal(signal),
                },
                done = self.act(command) => done,
            };
            if done != Exit::Done {
                last = done;
            }
        }
    }

    async fn act(&mut self, command: Command) -> Exit {
        if command == Command::Reload {
            let again = self.host.follow(self.request.clone()).await;
            std::mem::replace(&mut self.following, again).stop().await;
            self.host.ready().await;
            return Exit::Done;
        }
        act(self.context, self.host, command).await
    }

    /// Tells what there is: to a person all servers, to a script only what is wrong.
    async fn tell_beginning(&mut self, interactive: bool) {
        self.hear().await;
        self.untold.retain(Line::is_mistake);
        self.told = self.host.snapshot();
        let shown = |it: &ServerStatus| interactive || it.state != ServerState::Ready;
        let mut err = status::some(&self.told, shown, self.context.console.err);
        if interactive {
            let tools = self.told.catalog.tools().len();
            err.push_str(&format!("{tools} tools; `help` shows the commands, Ctrl-D ends\n"));
        }
        self.context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    }

    /// Hears what has happened to the files; nothing is waited for.
    async fn hear(&mut self) {
        while let Some(Some(event)) = at_once(self.following.next()).await {
            self.untold.extend(lines::of_event(event));
            while self.untold.len() > UNTOLD {
                self.untold.pop_front();
            }
        }
    }

    /// Tells what has changed since the last prompt.
    async fn tell_changes(&mut self) {
        self.hear().await;
        let now = self.host.snapshot();
        self.untold.extend(lines::between(&self.told, &now));
        self.told = now;
        let colour = self.context.console.err;
        let one = |it: Line| match self.context.format {
            Format::Text => it.text(colour),
            Format::Json => json::line(&it),
        };
        let err: String = self.untold.drain(..).map(one).collect();
        if !err.is_empty() {
            self.context
                .tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() })
                .await;
        }
    }

    async fn refuse(&self, message: &str) -> Exit {
        let failure = self.context.console.failure(
            Exit::Usage,
            &plain::line(message),
            Some("`help` shows the commands"),
        );
        self.context.tell(failure).await
    }
}

/// What a future gives without waiting; `None` where it would wait.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        res = future => Some(res),
        () = std::future::ready(()) => None,
    }
}

async fn next(source: &mut Source) -> io::Result<Typed> {
    match source {
        Source::Terminal(lines) => Ok(lines.next(PROMPT).await),
        Source::Script(lines) => match lines.recv().await {
            Some(line) => line.map(Typed::Line),
            None => Ok(Typed::End),
        },
    }
}
