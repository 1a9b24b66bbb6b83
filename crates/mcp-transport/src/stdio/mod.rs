//! The stdio wire: a child process that speaks on its standard streams, one message a line.
//!
//! The command and its arguments are handed to the system as they are; there is no shell. The child leads a process
//! group of its own, and whatever way this wire ends — asked to, by the child's exit, by being dropped — the whole
//! group ends with it. The child's exit is watched, not only its output: a grandchild may hold the pipe open.

mod batching;
mod child;
mod encoding;
mod group;
#[cfg(target_os = "linux")]
mod launch;
mod lines;
mod owner;
#[cfg(not(target_os = "linux"))]
mod portable;
mod program;
mod reader;
mod receipt;
mod source;
mod spawn;
mod stderr;
mod write_buffer;
mod writer;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_model::{EnvInherit, Secret, StdioEndpoint};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::dial::endpoint::{DialOptions, ProcessIdCell};
use crate::error::ConnectError;
use crate::error::end::{Disconnect, DisconnectReason, Evidence, StartError};
use crate::recording::json_secrets;
use crate::redact::{Redactor, argument_secrets, secret_parts};
use crate::transport::{Dial, HandshakeMode, Link, Transport};
use batching::Turns;
use child::Child;
use encoding::StreamEncoding;
use group::Group;
pub(crate) use lines::{Line, Lines};
pub use owner::ProcessIdentity;
#[cfg(not(target_os = "linux"))]
use portable as launch;
use program::Program;
use reader::Reader;
pub use receipt::{ReapedGroup, ReceiptDirectory};
use spawn::Started;
use stderr::Tail;
use write_buffer::Outbox;

/// How long what a process wrote before its end may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How often that is waited for where there is more of it than is read in one such time.
const MOST_WAITS: u32 = 20;

/// How long a process that does not read any more may go on talking.
const DEAF: Duration = Duration::from_secs(1);

/// How long the rest of a group may take to end after its leader did so by itself.
const AFTERLIFE: Duration = Duration::from_millis(200);

/// Where a stdio server can be had.
pub(crate) struct StdioDial(Arc<Place>);

/// What every connection to one server shares.
struct Place {
    endpoint: StdioEndpoint,
    encoding: StreamEncoding,
    redactor: Arc<Redactor>,
    message_bytes: usize,
    /// How long the process may leave its input unread.
    stall: Duration,
    receipts: Option<ReceiptDirectory>,
    process: ProcessIdCell,
}

impl StdioDial {
    pub(crate) fn new(endpoint: &StdioEndpoint, options: &DialOptions) -> Result<StdioDial, ConnectError> {
        let (limits, receipts, process) = (&options.limits, &options.receipts, &options.process);
        let encoding = StreamEncoding::for_label(&endpoint.encoding)
            .ok_or_else(|| ConnectError::Invalid(format!("unknown encoding {:?}", endpoint.encoding)))?;
        let texts = std::iter::once(endpoint.command.as_str())
            .chain(endpoint.args.iter().map(Secret::expose))
            .chain(endpoint.env.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]));
        if texts.into_iter().any(|it| it.contains('\0')) {
            return Err(ConnectError::Invalid("a NUL byte cannot be given to a process".to_owned()));
        }
        if endpoint.env.iter().any(|(name, _)| name.is_empty() || name.contains('=')) {
            return Err(ConnectError::Invalid(
                "an environment variable's name is empty or contains `=`".to_owned(),
            ));
        }
        let secrets = endpoint.env.iter().map(|it| &it.1).chain(argument_secrets(&endpoint.args));
        // A configuration is handed over in a variable, and each text of it may come back alone.
        let secrets = secrets.flat_map(|it| secret_parts(it).into_iter().chain(json_secrets(it)));
        let secrets: Vec<Secret> = secrets.chain(options.given_secrets()).collect();
        Ok(StdioDial(Arc::new(Place {
            redactor: Arc::new(Redactor::new(secrets.iter())),
            endpoint: endpoint.clone(),
            encoding,
            message_bytes: limits.message_bytes,
            stall: limits.request,
            receipts: receipts.clone(),
            process: process.clone(),
        })))
    }
}

impl Dial for StdioDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(StdioWire(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        self.0.endpoint.command.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.0.redactor.clean(text, 2000)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.0.redactor.json(json)
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

struct StdioWire(Arc<Place>);

#[async_trait]
impl Transport for StdioWire {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let mut evidence = Evidence::default();
        let reason = match self.0.start().await {
            Ok(process) => process.live(&self.0, link, &mut evidence).await,
            Err(failure) => DisconnectReason::NotStarted(failure),
        };
        Disconnect { reason, evidence }
    }
}

/// A child that runs.
struct Process {
    child: Child,
    // Declared after the child: the leader is killed first, then whatever is left of its group.
    group: Group,
    _receipt: Option<receipt::Held>,
}

impl Place {
    async fn start(&self) -> Result<Process, StartError> {
        let endpoint = &self.endpoint;
        // A missing directory and a missing program give the same error: the directory is looked at first.
        if let Some(cwd) = &endpoint.cwd
            && !cwd.is_dir()
        {
            return Err(StartError::NoDirectory(cwd.display().to_string()));
        }
        let token = receipt::token();
        let inherit = endpoint.inherit;
        let keeps = |name: &std::ffi::OsStr| {
            name.to_str().map_or(inherit == EnvInherit::All, |it| inherit.inherits(it))
        };
        let mut env: BTreeMap<_, _> = std::env::vars_os().filter(|(name, _)| keeps(name)).collect();
        env.extend(endpoint.env.iter().map(|(name, value)| (name.into(), value.expose().into())));
        env.insert(receipt::TOKEN.into(), token.clone().into());
        let program = Program {
            command: endpoint.command.clone(),
            args: endpoint.args.iter().map(|it| it.expose().to_owned()).collect(),
            env,
            cwd: endpoint.cwd.clone(),
        };
        let unkept = |error: &std::io::Error| tracing::warn!("no receipt for {}: {error}", endpoint.command);
        let mut receipt = self
            .receipts
            .as_ref()
            .and_then(|it| it.write(&token, &endpoint.command).inspect_err(unkept).ok());
        let Started { child, group } =
            spawn::spawn(program, token).await.map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => StartError::CommandNotFound,
                _ => StartError::System(error.to_string()),
            })?;
        self.process.set(child.pid);
        if let Some(receipt) = &mut receipt {
            let _ = receipt.started(child.pid).inspect_err(unkept);
        }
        Ok(Process { child, group, _receipt: receipt })
    }
}

impl Process {
    /// Carries messages until the end, then ends the whole group.
    async fn live(mut self, place: &Place, link: Link, evidence: &mut Evidence) -> DisconnectReason {
        let Link { outbound: out, inbound: inbox, shutdown: mut stop } = link;
        evidence.pid = Some(self.child.pid);
        let stdin = self.child.stdin.take().expect("it was asked for");
        let stdout = self.child.stdout.take().expect("it was asked for");
        let stderr = self.child.stderr.take().expect("it was asked for");
        let mut reader = Reader::new(stdout, inbox, Turns::of(&out), place);
        let tail = Tail::default();
        // Reading, writing and standard error have a task each, so that none waits for another; they end with these sets.
        // What is looked at here is not looked at again with each message that comes.
        let mut logging = JoinSet::new();
        let errors = stderr::Reader::new(stderr, place, tail.clone(), Arc::clone(&reader.awaited));
        let (live, is_live) = oneshot::channel();
        logging.spawn(errors.run(is_live));
        let mut writing = JoinSet::new();
        let (more, last) = oneshot::channel();
        writing.spawn(writer::write(stdin, Outbox::of(out, place.encoding), last, place.stall));
        let mut reading = JoinSet::new();
        let (on, over) = oneshot::channel::<Infallible>();
        reading.spawn(async move {
            let reason = tokio::select! {
                biased;
                reason = reader.run() => Some(reason),
                _ = over => None,
            };
            (reader, reason)
        });
        // The reader, once it has come to the end by itself.
        let mut ended = None;

        let (reason, deadline) = tokio::select! {
            deadline = stop.requested() => (DisconnectReason::Stopped, deadline),
            reason = read_to_end(&mut reading, &mut ended) => (reason, Instant::now() + AFTERLIFE),
            Some(Ok(stalled)) = writing.join_next() => match stalled {
                Some(reason) => (reason, Instant::now()),
                // It does not read any more; what it still has to say is in its output, or in its end. One that lives
                // on without reading is of no use to anybody.
                None => tokio::select! {
                    deadline = stop.requested() => (DisconnectReason::Stopped, deadline),
                    reason = read_to_end(&mut reading, &mut ended) => (reason, Instant::now() + AFTERLIFE),
                    _ = self.child.wait() => (DisconnectReason::PeerClosed, Instant::now() + AFTERLIFE),
                    () = tokio::time::sleep(DEAF) => {
                        let message = "it closed its standard input, and lives on".to_owned();
                        (DisconnectReason::Broken(message), Instant::now() + AFTERLIFE)
                    }
                },
            },
            _ = self.child.wait() => (DisconnectReason::PeerClosed, Instant::now() + AFTERLIFE),
        };
        drop(live);
        // What was said before the end is still to be heard: above all that calls were given up.
        drop(more);
        if reason == DisconnectReason::Stopped {
            let until = deadline.min(Instant::now() + LAST_WORDS);
            let _ = tokio::time::timeout_at(until, writing.join_next()).await;
        }
        // Dropping the writer closes the child's standard input: the polite way to ask.
        drop(writing);
        drop(on);
        let mut reader = match ended {
            Some(reader) => Some(reader),
            None => reading.join_next().await.and_then(Result::ok).map(|it| it.0),
        };
        let status = self.end(&mut reader, deadline).await;
        last_lines(&mut logging, &tail).await;
        evidence.exit = status.map(exit_text);
        evidence.stderr = tail.lines();
        if let Some(reader) = reader {
            evidence.noise_bytes = reader.noise;
            evidence.noise_sample = reader.sample;
        }
        reason
    }

    /// Waits for the leader until `deadline`, with a signal half-way, and sweeps its group.
    async fn end(mut self, reader: &mut Option<Reader>, deadline: Instant) -> Option<ExitStatus> {
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let mut status = tokio::select! {
            status = wait_until(&mut self.child, half) => status,
            // Its output is read on, so that it does not hang in a write when it should be ending.
            () = drain(reader) => wait_until(&mut self.child, half).await,
        };
        if status.is_none() {
            self.group.terminate();
            status = tokio::select! {
                status = wait_until(&mut self.child, deadline) => status,
                () = drain(reader) => wait_until(&mut self.child, deadline).await,
            };
        }
        if status.is_none() {
            self.child.kill();
            status = self.child.wait().await;
        }
        let _ = tokio::time::timeout(LAST_WORDS, drain(reader)).await;
        self.group.sweep(deadline).await;
        status
    }
}

/// Waits until the output is read to its end, and takes the reader back.
async fn read_to_end(
    reading: &mut JoinSet<(Reader, Option<DisconnectReason>)>,
    ended: &mut Option<Reader>,
) -> DisconnectReason {
    let unread = || DisconnectReason::Broken("its output is read no more".to_owned());
    match reading.join_next().await {
        Some(Ok((reader, reason))) => {
            *ended = Some(reader);
            reason.unwrap_or_else(unread)
        }
        Some(Err(_)) | None => unread(),
    }
}

/// Reads on, where there is somebody to read.
async fn drain(reader: &mut Option<Reader>) {
    if let Some(reader) = reader {
        reader.drain().await;
    }
}

/// Waits until standard error is read to its end: at most as long as something comes, for somebody else may hold the pipe.
async fn last_lines(logging: &mut JoinSet<()>, tail: &Tail) {
    for _ in 0..MOST_WAITS {
        let before = tail.count();
        let is_read = tokio::time::timeout(LAST_WORDS, logging.join_next()).await.is_ok();
        if is_read || tail.count() == before {
            return;
        }
    }
}

async fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    tokio::time::timeout_at(deadline, child.wait()).await.ok()?
}

fn exit_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match nix::sys::signal::Signal::try_from(signal) {
            Ok(name) => format!("signal {signal} ({name})"),
            Err(_) => format!("signal {signal}"),
        },
        (None, None) => "an unknown status".to_owned(),
    }
}
