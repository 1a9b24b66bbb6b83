//! The stdio transport: a child process with one JSON-RPC message per line on its standard streams.
//!
//! The command and its arguments are passed to the system unchanged; there is no shell. The child leads its own process
//! group, on Windows in a job object. The whole group ends with the transport: on shutdown, when the child exits, or
//! when the transport is dropped. The child's exit is watched as well as its output, because a grandchild may hold the
//! pipe open.

mod encoding;
mod line_buffer;
mod lookup;
mod process_identity;
mod program;
mod receipt;
mod regular_file;
mod server;
mod spawn;
mod stderr;
mod stdout;
mod stdout_pipe;
mod system;
mod temporary_folder;
mod write_buffer;
mod writer;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{EnvInheritance, Secret, StdioEndpoint};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::error::evidence::Evidence;
use crate::error::sandbox_error::SandboxError;
use crate::redact::{Redactor, inherited_secrets, stdio_secrets};
use crate::transport::stderr_tail::StderrTail;
use crate::transport::{Dial, Link, Transport};
use encoding::StreamEncoding;
pub use line_buffer::{Line, LineBuffer};
pub use lookup::{ProgramSearch, ProgramSearchResult, find_missing_script, find_program};
pub use process_identity::ProcessIdentity;
use program::ChildCommand;
pub use program::TOKEN_VARIABLE;
pub use receipt::{ReapedGroup, ReceiptDirectory};
pub use regular_file::{open_for_appending, open_lock_file, open_named_file, open_regular_file};
pub(crate) use server::StdioOptions;
use server::StdioServer;
use stderr::StderrReader;
use stdout::StdoutReader;
pub use system::raise_descriptor_limit;
use system::{Child, DEFAULT_PATH};
use temporary_folder::{TEMPORARY_FOLDER_VARIABLE, TemporaryFolder};
use write_buffer::WriteBuffer;

/// How long to wait for output that a process wrote before it ended.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(100);

/// How often that wait is repeated while more output arrives.
const MAX_FINAL_READS: u32 = 20;

/// How long a process may run after it closed its standard input.
const CLOSED_STDIN_GRACE: Duration = Duration::from_secs(1);

/// How long the rest of a group may run after its leader exited by itself.
const GROUP_GRACE: Duration = Duration::from_millis(200);

/// Dials a stdio server.
pub(crate) struct StdioDial(Arc<StdioServer>);

impl StdioDial {
    pub(crate) fn new(endpoint: &StdioEndpoint, options: &StdioOptions) -> Result<StdioDial, ConnectError> {
        let encoding = StreamEncoding::for_label(&endpoint.encoding)
            .ok_or_else(|| ConnectError::Invalid(format!("unknown encoding {:?}", endpoint.encoding)))?;
        let texts = std::iter::once(endpoint.command.as_str())
            .chain(endpoint.args.iter().map(Secret::expose))
            .chain(endpoint.env.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]));
        if texts.into_iter().any(|it| it.contains('\0')) {
            return Err(ConnectError::Invalid(
                "the command, an argument or an environment variable contains a NUL byte".to_owned(),
            ));
        }
        if endpoint.env.iter().any(|(name, _)| name.is_empty() || name.contains('=')) {
            return Err(ConnectError::Invalid(
                "an environment variable's name is empty or contains `=`".to_owned(),
            ));
        }
        let mut secrets = stdio_secrets(endpoint);
        secrets.extend(inherited_secrets(inherited_env(endpoint)));
        Ok(StdioDial(Arc::new(StdioServer {
            redactor: Arc::new(Redactor::new(secrets.iter().chain(&options.extra_secrets))),
            endpoint: endpoint.clone(),
            encoding,
            options: options.clone(),
        })))
    }
}

/// The variables of this process that a server inherits. In a sandbox these are the safe ones and those that it names.
fn inherited_env(endpoint: &StdioEndpoint) -> impl Iterator<Item = (OsString, OsString)> + '_ {
    let variables = std::env::vars_os().map(|(name, value)| (system::environment_name(name), value));
    let (inherit, named) = match (&endpoint.sandbox, endpoint.inherit) {
        (Some(sandbox), EnvInheritance::All) => (EnvInheritance::Safe, &sandbox.env[..]),
        (Some(sandbox), inherit) => (inherit, &sandbox.env[..]),
        (None, inherit) => (inherit, &[][..]),
    };
    variables.filter(move |(name, _)| {
        name.to_str().map_or(inherit == EnvInheritance::All, |name| {
            inherit.inherits(name)
                || system::REQUIRED_VARIABLES.contains(&name)
                || named.iter().any(|it| it == name)
        })
    })
}

impl Dial for StdioDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(StdioTransport(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        self.0.endpoint.command.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.0.redactor.clean(text, 2000)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.0.redactor.redact_json(json)
    }
}

struct StdioTransport(Arc<StdioServer>);

#[async_trait]
impl Transport for StdioTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let mut evidence = Evidence::default();
        let reason = match self.0.start().await {
            Ok(process) => process.run(&self.0, link, &mut evidence).await,
            Err(failure) => DisconnectReason::NotStarted(failure),
        };
        Disconnect { reason, evidence }
    }
}

/// A running child process.
struct ServerProcess {
    child: Child,
    /// Dropped after the process.
    _temporary_folder: Option<TemporaryFolder>,
    _receipt: Option<receipt::ReceiptGuard>,
}

impl StdioServer {
    /// Starts a process of this server.
    async fn start(&self) -> Result<ServerProcess, StartError> {
        let endpoint = &self.endpoint;
        // A missing directory and a missing program give the same error, so the directory is checked first.
        if let Some(cwd) = &endpoint.cwd
            && !cwd.is_dir()
        {
            return Err(StartError::NoDirectory(cwd.display().to_string()));
        }
        if endpoint.sandbox.is_some() && !system::HAS_SANDBOX {
            return Err(StartError::Sandbox(SandboxError::NoSystem));
        }
        let token = receipt::new_token();
        let temporary_folder = endpoint.sandbox.as_ref().map(|_| TemporaryFolder::create(&token)).transpose();
        let temporary_folder = temporary_folder.map_err(|error| {
            StartError::System(format!("its temporary folder cannot be created: {error}"))
        })?;
        let mut env: BTreeMap<_, _> = inherited_env(endpoint).collect();
        let own = endpoint.env.iter();
        env.extend(own.map(|(name, value)| (system::environment_name(name.into()), value.expose().into())));
        env.insert(TOKEN_VARIABLE.into(), token.clone().into());
        if let Some(folder) = &temporary_folder {
            env.insert(TEMPORARY_FOLDER_VARIABLE.into(), folder.path().into());
        }
        let path = env.get(OsStr::new("PATH")).and_then(|it| it.to_str()).unwrap_or(DEFAULT_PATH).to_owned();
        let program = ChildCommand {
            command: endpoint.command.clone(),
            args: endpoint.args.iter().map(|it| it.expose().to_owned()).collect(),
            env,
            cwd: endpoint.cwd.clone(),
            sandbox: endpoint.sandbox.clone(),
        };
        let log_receipt_error =
            |error: &io::Error| tracing::warn!("no receipt for {}: {error}", endpoint.command);
        let mut receipt = self
            .options
            .receipts
            .as_ref()
            .filter(|_| !system::ENDS_GROUPS_WITH_HOST)
            .and_then(|it| it.write(&token, &endpoint.command).inspect_err(log_receipt_error).ok());
        let child = spawn::spawn(program, token).await.map_err(|error| self.start_error(&error, &path))?;
        self.options.process.set(child.pid);
        if let Some(receipt) = &mut receipt {
            let _ = receipt.record_group(child.pid).inspect_err(log_receipt_error);
        }
        Ok(ServerProcess { child, _temporary_folder: temporary_folder, _receipt: receipt })
    }

    /// Why the system could not start the program with this `PATH`.
    fn start_error(&self, error: &io::Error, path: &str) -> StartError {
        let inner = error.get_ref().and_then(|it| it.downcast_ref::<SandboxError>());
        if let Some(error) = inner {
            return StartError::Sandbox(error.clone());
        }
        let command = &self.endpoint.command;
        let directory =
            self.endpoint.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let lookup = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                Some(find_program(command, ProgramSearch { path, directory: &directory }))
            }
            _ => None,
        };
        if let (Some(ProgramSearchResult::Found(path)), io::ErrorKind::NotFound) = (&lookup, error.kind()) {
            let path = path.display();
            return StartError::System(format!(
                "{path} was built for another system: its loader does not exist"
            ));
        }
        if let (Some(ProgramSearchResult::Found(path)), Some(sandbox)) = (&lookup, &self.endpoint.sandbox) {
            return StartError::Sandbox(SandboxError::ProgramOutside {
                program: path.display().to_string(),
                sandbox: sandbox.to_string(),
            });
        }
        let known = lookup.and_then(|it| it.start_error());
        known.or_else(|| system::start_error(error)).unwrap_or_else(|| StartError::System(error.to_string()))
    }
}

impl ServerProcess {
    /// Carries messages until the connection ends, then ends the whole group.
    async fn run(mut self, server: &StdioServer, link: Link, evidence: &mut Evidence) -> DisconnectReason {
        let Link { outbound, inbound: sink, mut shutdown } = link;
        evidence.pid = Some(self.child.pid);
        evidence.sandbox = server.endpoint.sandbox.as_ref().map(ToString::to_string);
        let stdin = self.child.stdin.take().expect("it is piped");
        let stdout = self.child.stdout.take().expect("it is piped");
        let stderr = self.child.stderr.take().expect("it is piped");
        let mut reader = StdoutReader::new(stdout, sink, Arc::clone(&outbound.flow), server);
        let tail = StderrTail::default();
        server.options.process.set_stderr(tail.clone());
        // Reading, writing and standard error each have a task, so that none delays the others and this future is not
        // polled for each message. The tasks end with these sets.
        let mut stderr_task = JoinSet::new();
        let stderr_reader =
            StderrReader::new(stderr, server, tail.clone(), Arc::clone(&reader.response_count));
        let (rate_limited, rate_limit_ended) = oneshot::channel();
        stderr_task.spawn(stderr_reader.run(rate_limit_ended));
        let mut stdin_task = JoinSet::new();
        let (writer_stop, writer_stopped) = oneshot::channel();
        stdin_task.spawn(writer::write_messages(
            stdin,
            WriteBuffer::new(outbound, server.encoding),
            writer_stopped,
            server.options.limits.request,
        ));
        let mut stdout_task = JoinSet::new();
        let (reader_stop, reader_stopped) = oneshot::channel::<Infallible>();
        stdout_task.spawn(async move {
            let reason = tokio::select! {
                biased;
                reason = reader.run() => Some(reason),
                _ = reader_stopped => None,
            };
            (reader, reason)
        });
        // The reader, once its task has ended.
        let mut finished_reader = None;

        let (reason, deadline) = tokio::select! {
            deadline = shutdown.requested() => (DisconnectReason::Stopped, deadline),
            reason = read_to_end(&mut stdout_task, &mut finished_reader) => (reason, Instant::now() + GROUP_GRACE),
            Some(Ok(stalled)) = stdin_task.join_next() => match stalled {
                Some(reason) => (reason, Instant::now()),
                // The process closed its input. Its output or its exit tells why; a process that keeps running without
                // reading is of no use.
                None => tokio::select! {
                    deadline = shutdown.requested() => (DisconnectReason::Stopped, deadline),
                    reason = read_to_end(&mut stdout_task, &mut finished_reader) => (reason,
                        Instant::now() + GROUP_GRACE),
                    _ = self.child.wait() => (DisconnectReason::PeerClosed, Instant::now() + GROUP_GRACE),
                    () = tokio::time::sleep(CLOSED_STDIN_GRACE) => {
                        let message = "it closed its standard input and keeps running".to_owned();
                        (DisconnectReason::Broken(message), Instant::now() + GROUP_GRACE)
                    }
                },
            },
            _ = self.child.wait() => (DisconnectReason::PeerClosed, Instant::now() + GROUP_GRACE),
        };
        // The rest of standard error is read without pauses.
        drop(rate_limited);
        // Queued messages are still written, above all cancel notices.
        drop(writer_stop);
        if reason == DisconnectReason::Stopped {
            let until = deadline.min(Instant::now() + FINAL_READ_TIMEOUT);
            let _ = tokio::time::timeout_at(until, stdin_task.join_next()).await;
        }
        // Dropping the writer closes the child's standard input, which asks it to exit.
        drop(stdin_task);
        drop(reader_stop);
        let mut reader = match finished_reader {
            Some(reader) => Some(reader),
            None => stdout_task.join_next().await.and_then(Result::ok).map(|it| it.0),
        };
        let status = self.shut_down(&mut reader, deadline).await;
        read_last_lines(&mut stderr_task, &tail).await;
        evidence.exit = status.and_then(system::process_exit);
        evidence.stderr = tail.snapshot().lines;
        if let Some(reader) = reader {
            evidence.noise_bytes = reader.noise_bytes;
            evidence.noise_sample = reader.noise_sample;
        }
        reason
    }

    /// Waits for the leader to exit until `deadline`, asks its group to end halfway, kills it at the end, and ends the
    /// rest of its group. Returns the exit status of the leader, if it is known.
    async fn shut_down(mut self, reader: &mut Option<StdoutReader>, deadline: Instant) -> Option<ExitStatus> {
        let halfway = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let mut status = tokio::select! {
            status = wait_until(&mut self.child, halfway) => status,
            // The output of the child is read meanwhile, so that it does not block in a write instead of exiting.
            () = drain(reader) => wait_until(&mut self.child, halfway).await,
        };
        if status.is_none() {
            self.child.terminate();
            status = tokio::select! {
                status = wait_until(&mut self.child, deadline) => status,
                () = drain(reader) => wait_until(&mut self.child, deadline).await,
            };
        }
        if status.is_none() {
            // The rest of the group too, so that none holds the output while it is read.
            self.child.kill();
            status = self.child.wait().await;
        }
        let _ = tokio::time::timeout(FINAL_READ_TIMEOUT, drain(reader)).await;
        self.child.end_group(deadline).await;
        status
    }
}

/// Waits until the output has been read, and takes the reader back.
async fn read_to_end(
    stdout_task: &mut JoinSet<(StdoutReader, Option<DisconnectReason>)>,
    finished_reader: &mut Option<StdoutReader>,
) -> DisconnectReason {
    let reading_failed = || DisconnectReason::Broken("reading its output failed".to_owned());
    match stdout_task.join_next().await {
        Some(Ok((reader, reason))) => {
            *finished_reader = Some(reader);
            reason.unwrap_or_else(reading_failed)
        }
        Some(Err(_)) | None => reading_failed(),
    }
}

/// Reads the remaining output if there is a reader.
async fn drain(reader: &mut Option<StdoutReader>) {
    if let Some(reader) = reader {
        reader.drain().await;
    }
}

/// Waits until standard error has been read, but only while more arrives: another process may hold the pipe.
async fn read_last_lines(stderr_task: &mut JoinSet<()>, tail: &StderrTail) {
    for _ in 0..MAX_FINAL_READS {
        let count = tail.snapshot().count;
        let is_read = tokio::time::timeout(FINAL_READ_TIMEOUT, stderr_task.join_next()).await.is_ok();
        if is_read || tail.snapshot().count == count {
            return;
        }
    }
}

/// Waits for the exit of a child until `deadline`. `None` if it is still running or its status is unknown.
async fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    tokio::time::timeout_at(deadline, child.wait()).await.ok()?
}
