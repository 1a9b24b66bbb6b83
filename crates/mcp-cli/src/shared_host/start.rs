//! Connects to the shared host of an identity, and starts it if there is none.
//!
//! The host is started by a process in between, which ends at once. So the host is no descendant of the client, and a
//! client that kills its process tree does not kill the host of others.

use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::control::system::{ShimStream, connect_shared};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::sanitize;
use crate::runtime::exit::Exit;
use crate::runtime::system::{detach, own_program};
use crate::shared_host::greeting::{HostGreeting, MAX_GREETING_BYTES, ShimGreeting};
use crate::shared_host::identity::{HostIdentity, host_variables, host_words_with};
use crate::shared_host::log_file::HostLog;

/// The maximum time until a host accepts the client. The servers start meanwhile.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The pause before the next attempt while another process starts or ends the host.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The line of a host that listens, on its standard output.
pub(crate) const LISTENING: &str = "listening";

/// The line of a host that ends because another process listens.
pub(crate) const TAKEN: &str = "taken";

/// A connection to a shared host that has accepted the client.
pub(crate) struct HostConnection {
    pub(crate) stream: ShimStream,
    /// The process id of the host.
    pub(crate) process: u32,
}

/// Connects to the host, and starts it if there is none. Blocks.
pub(crate) fn connect_or_start(
    identity: &HostIdentity,
    log: Option<&HostLog>,
) -> Result<HostConnection, Failure> {
    let deadline = Instant::now() + START_TIMEOUT;
    let log_start = log.map_or(0, HostLog::size);
    let mut own_host: Option<BufReader<ChildStdout>> = None;
    loop {
        match (connect(identity, deadline), &mut own_host) {
            (Ok(connection), _) => return Ok(connection),
            // The host that was started here ends before it has accepted the client.
            (Err(_), Some(stdout)) => {
                // It keeps its standard output open until it has ended, and so has logged the reason.
                let _ = io::copy(stdout, &mut io::sink());
                return Err(start_failure(log, log_start));
            }
            // There is no host, or it ends.
            (Err(error), None) if is_absent(&error) => {}
            (Err(error), None) => {
                return Err(
                    Failure::new(format!("the shared host cannot be reached: {error}")).help(Some(HELP))
                );
            }
        }
        if Instant::now() > deadline {
            let message = "another process has not finished to start the shared host in time";
            return Err(Failure::new(message).help(Some(HELP)));
        }
        let StartedHost { line, stdout } = start(log).map_err(|error| {
            Failure::new(format!("the shared host cannot be started: {error}")).help(Some(HELP))
        })?;
        match line.trim_end() {
            LISTENING => own_host = Some(stdout),
            TAKEN => thread::sleep(RETRY_PAUSE),
            _ => return Err(start_failure(log, log_start)),
        }
    }
}

const HELP: &str = "without --shared, this client has servers of its own";

/// Whether an error means that no host accepts clients at the socket.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

/// The failure of a host that has ended at its start, with what it logged.
fn start_failure(log: Option<&HostLog>, log_start: u64) -> Failure {
    let text = log.and_then(|log| log.text_from(log_start).ok()).unwrap_or_default();
    let lines: String = text.lines().map(|line| format!("  {}\n", sanitize::line(line))).collect();
    let err = format!("error: the shared host has ended at its start\n{lines}  help: {HELP}\n");
    Failure::Report(Report { err, exit: Exit::Failure, ..Report::default() })
}

/// Connects to the socket and exchanges greetings.
fn connect(identity: &HostIdentity, deadline: Instant) -> io::Result<HostConnection> {
    let mut stream = connect_shared(identity.as_str())?;
    let greeting =
        ShimGreeting { process: std::process::id(), folder: env::current_dir().unwrap_or_default() };
    let mut line = serde_json::to_vec(&greeting)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let wait = deadline.saturating_duration_since(Instant::now()).max(RETRY_PAUSE);
    stream.set_read_timeout(Some(wait))?;
    // The host sends nothing else before the client has sent a message.
    let mut line = Vec::new();
    BufReader::new(&stream).take(MAX_GREETING_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let HostGreeting { process } = serde_json::from_slice(&line)?;
    stream.set_read_timeout(None)?;
    Ok(HostConnection { stream, process })
}

/// A host that was started.
struct StartedHost {
    /// The first line of its standard output; empty if it has ended without one.
    line: String,
    /// The rest of its standard output.
    stdout: BufReader<ChildStdout>,
}

/// Starts the host.
fn start(log: Option<&HostLog>) -> io::Result<StartedHost> {
    let stderr = match log {
        Some(log) => Stdio::from(log.open()?),
        None => Stdio::null(),
    };
    let mut starter = own_program()?
        .args(host_words_with(env::args_os().skip(1), "--detach"))
        .env_clear()
        .envs(host_variables(env::vars_os()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()?;
    let mut stdout = BufReader::new(starter.stdout.take().expect("its standard output is a pipe"));
    let mut line = String::new();
    stdout.by_ref().take(MAX_GREETING_BYTES).read_line(&mut line)?;
    starter.wait()?;
    Ok(StartedHost { line, stdout })
}

/// Starts the host in a session of its own, with the same streams: the process in between.
pub(crate) fn start_detached() -> Result<Report, Failure> {
    let started = detach().and_then(|()| {
        own_program()?.args(host_words_with(env::args_os().skip(1), "--socket")).spawn().map(drop)
    });
    started.map_err(|error| Failure::new(format!("the shared host cannot be started: {error}")))?;
    Ok(Report::default())
}
