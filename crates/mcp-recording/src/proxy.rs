//! A proxy that starts a server, passes bytes between it and a client unchanged, and records them.
//!
//! The server is a child in this process's group, so it receives the signals that are sent to the group. Its
//! standard error is ours.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{EnvInheritance, Secret};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::connection_log::ConnectionLog;
use crate::recorder::Recorder;
use crate::system;
use mcp_host_transport::internal::argument_secrets;
use mcp_host_transport::internal::{Line, LineBuffer};
use mcp_host_transport::secret_parts;

/// Maximum length of a recorded line.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Size of the copy buffer.
const CHUNK_BYTES: usize = 64 << 10;

/// How long the server may take to exit after its input was closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for output that a server wrote before it exited.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(200);

/// Variables that describe the shell; they are not secret.
const SHELL_VARIABLES: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// The server to run and record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordingProxy {
    /// The server's name in the recording.
    pub server: String,
    /// The program, searched in `PATH`.
    pub command: String,
    /// The arguments.
    pub arguments: Vec<Secret>,
    /// Further secrets to redact, see [`environment_secrets`].
    pub secrets: Vec<Secret>,
}

impl RecordingProxy {
    /// A proxy of a command without arguments and secrets.
    pub fn new(server: impl Into<String>, command: impl Into<String>) -> RecordingProxy {
        RecordingProxy {
            server: server.into(),
            command: command.into(),
            arguments: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

/// Why the proxy failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The server could not be started.
    #[error("could not start {command}")]
    Start {
        /// The program.
        command: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Waiting for the server failed.
    #[error("could not wait for {command}")]
    Wait {
        /// The program.
        command: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The values of environment variables that may be secret: all except those that every child inherits and those that
/// describe the shell.
pub fn environment_secrets(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Secret> {
    let variables_as_text =
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let specific = variables_as_text.filter(|(name, _)| {
        !EnvInheritance::Safe.inherits(name) && !SHELL_VARIABLES.contains(&name.as_str())
    });
    specific.flat_map(|(_, value)| secret_parts(&Secret::new(value))).collect()
}

impl RecordingProxy {
    /// Starts the server and passes bytes from `reader` to it and from it to `writer`, until it exits: by
    /// itself, after `reader` has ended, or after `stop` resolves. Returns its exit status.
    pub async fn run(
        self,
        recorder: &Recorder,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        stop: impl Future<Output = ()>,
    ) -> Result<ExitStatus, ProxyError> {
        let RecordingProxy { server, command, arguments, mut secrets } = self;
        secrets.extend(argument_secrets(&command, &arguments).flat_map(secret_parts));
        let log = recorder.connection_recorder(&server, &secrets).start();
        let mut child = Command::new(system::program_path(&command))
            .args(arguments.iter().map(Secret::expose))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| ProxyError::Start { command: command.clone(), source })?;
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let client_to_server =
            copy_and_record(reader, stdin, LineRecorder::new(&log, ConnectionLog::record_client_frame));
        let server_to_client = copy_and_record(
            stdout,
            writer,
            LineRecorder::new(&log, |log, line| log.record_server_frame(line, None)),
        );
        {
            tokio::pin!(client_to_server, server_to_client, stop);
            let mut client_closed = false;
            loop {
                tokio::select! {
                    biased;
                    // The server closed its output, or the client closed its input.
                    () = &mut server_to_client => break,
                    () = &mut stop => break,
                    () = &mut client_to_server, if !client_closed => client_closed = true,
                    _ = child.wait() => {
                        // A child of the server may hold the pipe open; the server's own output is still in it.
                        let _ = tokio::time::timeout(FINAL_READ_TIMEOUT, &mut server_to_client).await;
                        break;
                    }
                }
            }
            // This block drops both pipes, so the server sees the end of its input.
        }
        shut_down(&mut child).await.map_err(|source| ProxyError::Wait { command, source })
    }
}

/// Waits for a server whose pipes are closed, then terminates and finally kills it.
async fn shut_down(child: &mut Child) -> io::Result<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
        return status;
    }
    if let Some(process) = child.id() {
        system::terminate(process);
    }
    if let Ok(status) = tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
        return status;
    }
    child.start_kill()?;
    child.wait().await
}

/// Copies bytes until one end is closed. Bytes are recorded before they are written, so no response is recorded before
/// its request.
async fn copy_and_record<W: AsyncWrite + Unpin, F: FnMut(&mut ConnectionLog, &[u8])>(
    mut reader: impl AsyncRead + Unpin,
    mut writer: W,
    mut recorder: LineRecorder<F>,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = reader.read(&mut chunk).await {
        recorder.record(&chunk[..count]);
        if writer.write_all(&chunk[..count]).await.is_err() || writer.flush().await.is_err() {
            break;
        }
    }
    let _ = writer.shutdown().await;
}

/// Splits bytes into lines and records them.
struct LineRecorder<F> {
    lines: LineBuffer,
    log: Arc<Mutex<ConnectionLog>>,
    record_line: F,
}

impl<F: FnMut(&mut ConnectionLog, &[u8])> LineRecorder<F> {
    fn new(log: &Arc<Mutex<ConnectionLog>>, record_line: F) -> LineRecorder<F> {
        LineRecorder { lines: LineBuffer::new(MAX_LINE_BYTES), log: Arc::clone(log), record_line }
    }

    /// Records the lines that these bytes complete.
    fn record(&mut self, bytes: &[u8]) {
        self.lines.read_buffer().extend_from_slice(bytes);
        while let Some(line) = self.lines.next_line() {
            let mut log = self.log.lock();
            match line {
                Line::Whole(line) => (self.record_line)(&mut log, &line),
                Line::TooLong(line) => {
                    // The request that it responds to is not recorded then.
                    if let Some(id) = line.response_id() {
                        log.remove_request(&id.to_string());
                    }
                }
            }
        }
    }
}
