//! The stdio wire: a child process that speaks on its standard streams, one message a line.
//!
//! The command and its arguments are handed to the system as they are; there is no shell. The child leads a process
//! group of its own, and whatever way this wire ends — asked to, by the child's exit, by being dropped — the whole
//! group ends with it. The child's exit is watched, not only its output: a grandchild may hold the pipe open.

mod encoding;
mod group;
mod lines;
mod receipt;
mod spawn;
mod stderr;

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, Bytes, BytesMut};
use mcp_model::{EnvInherit, Limits, Secret, StdioEndpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::redact::Redactor;
use crate::scan::{Id, Scanned, scan};
use crate::{
    ConnectError, Dial, EndReason, Ended, Evidence, Fault, Inbox, Lane, LaneEnd, Link, Opening, Out,
    OutQueue, RequestId, StartFailure, Transport,
};
use encoding::{StreamDecoder, StreamEncoding};
use group::Group;
use lines::{Line, Lines};
pub use receipt::{Reaped, Receipts};
use spawn::Started;
use stderr::Tail;

/// How many messages are written at once, and how large they may be together before they are written one by one.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 64 << 10;

/// How long what a process wrote before its end may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long a process that does not read any more may go on talking.
const DEAF: Duration = Duration::from_secs(1);

/// How long the rest of a group may take to end after its leader did so by itself.
const AFTERLIFE: Duration = Duration::from_millis(200);

/// Where a stdio server can be had.
pub(crate) struct StdioDial {
    endpoint: Arc<StdioEndpoint>,
    encoding: StreamEncoding,
    redactor: Arc<Redactor>,
    message_bytes: usize,
    stall: Duration,
    receipts: Option<Receipts>,
}

impl StdioDial {
    pub(crate) fn new(
        endpoint: &StdioEndpoint,
        limits: &Limits,
        receipts: Option<Receipts>,
    ) -> Result<StdioDial, ConnectError> {
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
        Ok(StdioDial {
            redactor: Arc::new(Redactor::new(
                endpoint.env.iter().map(|it| &it.1).chain(secret_arguments(endpoint)),
            )),
            endpoint: Arc::new(endpoint.clone()),
            encoding,
            message_bytes: limits.message_bytes,
            stall: limits.request,
            receipts,
        })
    }
}

impl Dial for StdioDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(StdioWire {
            endpoint: Arc::clone(&self.endpoint),
            encoding: self.encoding,
            redactor: Arc::clone(&self.redactor),
            message_bytes: self.message_bytes,
            stall: self.stall,
            receipts: self.receipts.clone(),
        })
    }

    fn label(&self) -> String {
        self.endpoint.command.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.redactor.clean(text, 2000)
    }

    fn opening(&self) -> Opening {
        Opening::Negotiate
    }
}

/// The arguments that may be secrets: all but flags, and the first other one, which names the package, the script or
/// the command to run.
fn secret_arguments(endpoint: &StdioEndpoint) -> impl Iterator<Item = &Secret> {
    let is_flag = |it: &&Secret| it.expose().starts_with('-') && !it.expose().contains('=');
    let mut named = false;
    endpoint.args.iter().filter(move |it| {
        if is_flag(it) {
            return false;
        }
        // The name of a thing has no scheme and no assignment in it, and no line break.
        let is_name = !it.expose().contains("://") && !it.expose().contains(['=', '\n', ' ']);
        named || !is_name || !std::mem::replace(&mut named, true)
    })
}

struct StdioWire {
    endpoint: Arc<StdioEndpoint>,
    encoding: StreamEncoding,
    redactor: Arc<Redactor>,
    message_bytes: usize,
    stall: Duration,
    receipts: Option<Receipts>,
}

#[async_trait]
impl Transport for StdioWire {
    async fn run(self: Box<Self>, link: Link) -> Ended {
        let mut evidence = Evidence::default();
        let reason = match self.start().await {
            Ok(process) => process.live(&self, link, &mut evidence).await,
            Err(failure) => EndReason::NotStarted(failure),
        };
        Ended { reason, evidence }
    }
}

/// A child that runs.
struct Process {
    child: Child,
    // Declared after the child: the leader is killed first, then whatever is left of its group.
    group: Group,
    _receipt: Option<receipt::Held>,
    pid: u32,
}

impl StdioWire {
    async fn start(&self) -> Result<Process, StartFailure> {
        let endpoint = &self.endpoint;
        // A missing directory and a missing program give the same error: the directory is looked at first.
        if let Some(cwd) = &endpoint.cwd
            && !cwd.is_dir()
        {
            return Err(StartFailure::NoDirectory(cwd.display().to_string()));
        }
        let token = receipt::token();
        let mut command = Command::new(&endpoint.command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_clear();
        command.args(endpoint.args.iter().map(Secret::expose));
        let inherit = endpoint.inherit;
        let keeps =
            |name: &std::ffi::OsStr| name.to_str().map_or(inherit == EnvInherit::All, |it| inherit.keeps(it));
        let inherited = std::env::vars_os().filter(|(name, _)| keeps(name));
        command.envs(inherited);
        command.envs(endpoint.env.iter().map(|(name, value)| (name, value.expose())));
        command.env(receipt::TOKEN, &token);
        if let Some(cwd) = &endpoint.cwd {
            command.current_dir(cwd);
        }
        let Started { child, group, pid } =
            spawn::spawn(command, token.clone()).await.map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => StartFailure::CommandNotFound,
                _ => StartFailure::System(error.to_string()),
            })?;
        let receipt = self.receipts.as_ref().and_then(|it| {
            it.write(pid, &token, &endpoint.command)
                .inspect_err(|error| tracing::warn!("no receipt for process group {pid}: {error}"))
                .ok()
        });
        Ok(Process { child, group, _receipt: receipt, pid })
    }
}

impl Process {
    /// Carries messages until the end, then ends the whole group.
    async fn live(mut self, wire: &StdioWire, link: Link, evidence: &mut Evidence) -> EndReason {
        let Link { out, inbox, mut stop } = link;
        evidence.pid = Some(self.pid);
        let stdin = self.child.stdin.take().expect("it was asked for");
        let stdout = self.child.stdout.take().expect("it was asked for");
        let stderr = self.child.stderr.take().expect("it was asked for");
        let tail = Tail::default();
        // Reading, writing and standard error have a task each, so that none waits for another; they end with this set.
        let mut logging = JoinSet::new();
        logging.spawn(stderr::read(
            stderr,
            tail.clone(),
            Arc::clone(&wire.redactor),
            wire.endpoint.command.clone(),
        ));
        let mut writing = JoinSet::new();
        writing.spawn(write(stdin, out, wire.encoding, wire.stall));
        let mut reader = Reader::new(stdout, inbox, wire);

        let (reason, deadline) = tokio::select! {
            deadline = stop.requested() => (EndReason::Stopped, deadline),
            reason = reader.run() => (reason, Instant::now() + AFTERLIFE),
            Some(Ok(stalled)) = writing.join_next() => match stalled {
                Some(reason) => (reason, Instant::now()),
                // It does not read any more; what it still has to say is in its output, or in its end. One that lives
                // on without reading is of no use to anybody.
                None => tokio::select! {
                    deadline = stop.requested() => (EndReason::Stopped, deadline),
                    reason = reader.run() => (reason, Instant::now() + AFTERLIFE),
                    _ = self.child.wait() => (EndReason::PeerClosed, Instant::now() + AFTERLIFE),
                    () = tokio::time::sleep(DEAF) => {
                        let message = "it closed its standard input, and lives on".to_owned();
                        (EndReason::Broken(message), Instant::now() + AFTERLIFE)
                    }
                },
            },
            _ = self.child.wait() => (EndReason::PeerClosed, Instant::now() + AFTERLIFE),
        };
        // Dropping the writer closes the child's standard input: the polite way to ask.
        drop(writing);
        let status = self.end(&mut reader, deadline).await;
        let _ = tokio::time::timeout(LAST_WORDS, logging.join_next()).await;
        evidence.exit = status.map(exit_text);
        evidence.stderr = tail.lines();
        evidence.noise_bytes = reader.noise;
        evidence.noise_sample = reader.sample.take();
        reason
    }

    /// Waits for the leader until `deadline`, with a signal half-way, and sweeps its group.
    async fn end(mut self, reader: &mut Reader, deadline: Instant) -> Option<ExitStatus> {
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let mut status = tokio::select! {
            status = wait_until(&mut self.child, half) => status,
            // Its output is read on, so that it does not hang in a write when it should be ending.
            () = reader.drain() => wait_until(&mut self.child, half).await,
        };
        if status.is_none() {
            self.group.terminate();
            status = tokio::select! {
                status = wait_until(&mut self.child, deadline) => status,
                () = reader.drain() => wait_until(&mut self.child, deadline).await,
            };
        }
        if status.is_none() {
            let _ = self.child.start_kill();
            status = self.child.wait().await.ok();
        }
        let _ = tokio::time::timeout(LAST_WORDS, reader.drain()).await;
        self.group.sweep(deadline).await;
        status
    }
}

async fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    tokio::time::timeout_at(deadline, child.wait()).await.ok()?.ok()
}

/// Writes messages, many at once. Ends with `None` when the process does not read any more or there is nothing left
/// to write, with a reason when it keeps its input open and does not read.
async fn write(
    mut stdin: ChildStdin,
    mut out: OutQueue,
    encoding: StreamEncoding,
    stall: Duration,
) -> Option<EndReason> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut buffer = BytesMut::with_capacity(BATCH_BYTES);
    while out.next_many(&mut batch, BATCH).await > 0 {
        for item in batch.drain(..) {
            let body = encoding.encode(match item {
                Out::Message(message) => message.body,
                Out::Abandon { id: _, notice } => notice,
            });
            if buffer.len() + body.len() > BATCH_BYTES && !buffer.is_empty() {
                match push(&mut stdin, &mut buffer, stall).await {
                    Pushed::All => {}
                    Pushed::Closed => return None,
                    Pushed::Stalled => return Some(EndReason::Stalled(stall)),
                }
            }
            append_line(&mut buffer, &body);
        }
        match push(&mut stdin, &mut buffer, stall).await {
            Pushed::All => {}
            Pushed::Closed => return None,
            Pushed::Stalled => return Some(EndReason::Stalled(stall)),
        }
    }
    None
}

/// A caller's JSON may have line breaks between its tokens; on this wire they would cut the message in two.
fn append_line(buffer: &mut BytesMut, body: &Bytes) {
    let start = buffer.len();
    buffer.extend_from_slice(body);
    let added = &mut buffer[start..];
    if memchr::memchr2(b'\n', b'\r', added).is_some() {
        for byte in added {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    buffer.extend_from_slice(b"\n");
}

enum Pushed {
    All,
    Closed,
    Stalled,
}

async fn push(stdin: &mut ChildStdin, buffer: &mut BytesMut, stall: Duration) -> Pushed {
    while !buffer.is_empty() {
        match tokio::time::timeout(stall, stdin.write(buffer)).await {
            Ok(Ok(0) | Err(_)) => return Pushed::Closed,
            Ok(Ok(written)) => buffer.advance(written),
            Err(_) => return Pushed::Stalled,
        }
    }
    Pushed::All
}

/// Reads messages and hands them to the engine.
struct Reader {
    stdout: ChildStdout,
    inbox: Arc<dyn Inbox>,
    lines: Lines,
    decoder: Option<(StreamDecoder, BytesMut)>,
    redactor: Arc<Redactor>,
    noise: u64,
    sample: Option<String>,
}

impl Reader {
    fn new(stdout: ChildStdout, inbox: Arc<dyn Inbox>, wire: &StdioWire) -> Reader {
        Reader {
            stdout,
            inbox,
            lines: Lines::new(wire.message_bytes),
            decoder: wire.encoding.decoder().map(|it| (it, BytesMut::with_capacity(BATCH_BYTES))),
            redactor: Arc::clone(&wire.redactor),
            noise: 0,
            sample: None,
        }
    }

    /// Reads until the stream ends. Cancel-safe: what was read is in `lines`.
    async fn run(&mut self) -> EndReason {
        loop {
            let read = match &mut self.decoder {
                None => self.stdout.read_buf(self.lines.room()).await,
                Some((decoder, raw)) => {
                    raw.clear();
                    let read = self.stdout.read_buf(raw).await;
                    decoder.decode(raw, self.lines.room());
                    read
                }
            };
            match read {
                Ok(0) => {
                    // Half a line is no message.
                    if let Some(rest) = self.lines.rest() {
                        self.noise(&rest);
                    }
                    return EndReason::PeerClosed;
                }
                Ok(_) => {}
                Err(error) => return EndReason::Broken(format!("reading from it failed: {error}")),
            }
            while let Some(line) = self.lines.next() {
                self.take(line);
            }
        }
    }

    /// Reads on while the process ends: answers that still come are delivered.
    async fn drain(&mut self) {
        self.run().await;
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Whole(line) => match line.iter().find(|it| !it.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.inbox.deliver(Lane::Shared, line),
                _ => self.noise(&line),
            },
            Line::TooLong { head, tail, len } => {
                self.noise(&head);
                self.noise += (len - head.len()) as u64;
                self.inbox.noise(len - head.len());
                // The call that it answered need not wait for its deadline.
                if let Some(id) = whose_answer(&head, &tail) {
                    let message = "its answer is larger than a message may be".to_owned();
                    self.inbox.lane_ended(id, LaneEnd::Lost(Fault { status: None, message, error: None }));
                }
            }
        }
    }

    fn noise(&mut self, bytes: &[u8]) {
        self.noise += bytes.len() as u64;
        self.inbox.noise(bytes.len());
        self.sample.get_or_insert_with(|| self.redactor.clean(&String::from_utf8_lossy(bytes), 120));
    }
}

/// Which request a message answers of which only the ends are known: servers write the id before the result, or last.
fn whose_answer(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    if let Scanned::Response { id: Id::Number(id), .. } = scan(head) {
        return Some(id);
    }
    let begin = head.strip_prefix(b"{")?;
    let begin = begin.strip_prefix(br#""jsonrpc":"2.0","#).unwrap_or(begin);
    if !begin.starts_with(br#""result":"#) && !begin.starts_with(br#""error":"#) {
        return None;
    }
    let tail = String::from_utf8_lossy(tail.trim_ascii_end());
    let tail = tail.strip_suffix('}')?;
    let tail = tail.strip_suffix(r#","jsonrpc":"2.0""#).unwrap_or(tail);
    let (_, id) = tail.rsplit_once(r#","id":"#)?;
    id.parse().ok()
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
