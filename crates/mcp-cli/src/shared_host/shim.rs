//! `serve --stdio --shared`: connects the client on standard input and output to the shared host.
//!
//! One thread for each direction copies lines. If the host is killed, another one is started: the handshake of the
//! session is repeated there, and requests without a response are answered with an error. No request is sent twice.

use std::io::{self, BufRead, BufReader, BufWriter, Read, StdoutLock, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mcp_host_model::{Method, code};
use serde_json::json;

use crate::args::{GlobalArgs, ServeArgs};
use crate::control::system::ShimStream;
use crate::output::console::{Console, Report, Verbosity};
use crate::output::failure::Failure;
use crate::shared_host::greeting::FAREWELL;
use crate::shared_host::identity::HostIdentity;
use crate::shared_host::log_file::HostLog;
use crate::shared_host::session_record::SessionRecord;
use crate::shared_host::start::{HostConnection, connect_or_start};

/// The maximum size of a message of the client that is read as a whole. A longer one is copied in parts, and its id is
/// not known.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;

/// The size of a buffer that is kept between messages.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// The maximum time for the handshake with another host.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);

/// How many hosts in a row are replaced that have sent no message.
const MAX_SILENT_HOSTS: u32 = 3;

/// What both threads use.
struct Shim {
    console: Console,
    identity: HostIdentity,
    log: Option<HostLog>,
    /// Locked while a message is sent, and while the host is replaced.
    outgoing: Mutex<Outgoing>,
    /// Locked for moments only, so that neither direction waits for the other.
    record: Mutex<SessionRecord>,
}

/// The direction to the host.
struct Outgoing {
    stream: ShimStream,
    /// Whether the client has closed standard input.
    is_closed: bool,
}

/// Why no more messages come from a host.
enum HostEnd {
    /// The host was stopped on purpose.
    Stopped,
    /// The host has ended for another reason, after this many messages.
    Lost { messages: u64 },
    /// The client does not read.
    ClientGone,
}

/// Serves until the client disconnects. Blocks.
pub(crate) fn run(console: Console, global: &GlobalArgs, args: &ServeArgs) -> Result<Report, Failure> {
    let identity = HostIdentity::of_process(global, args)
        .map_err(|error| Failure::new(format!("the shared host cannot be found: {error}")))?;
    let log = HostLog::new(&identity);
    let HostConnection { stream, process } = connect_or_start(&identity, log.as_ref())?;
    let outgoing = stream.try_clone().map_err(|error| connection_failure(&error))?;
    let outgoing = Mutex::new(Outgoing { stream: outgoing, is_closed: false });
    let shim = Arc::new(Shim { console, identity, log, outgoing, record: Mutex::default() });
    shim.note(&format!("using the shared host {process}"));
    let sender = Arc::clone(&shim);
    // It ends with the process: a read of standard input cannot be interrupted.
    thread::spawn(move || sender.copy_to_host());
    shim.copy_to_client(stream)
}

fn connection_failure(error: &io::Error) -> Failure {
    Failure::new(format!("the connection to the shared host failed: {error}"))
}

impl Shim {
    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        // A change under the lock is complete before anything can panic.
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, SessionRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a note for the user of the client, with the path of the log.
    fn note(&self, text: &str) {
        if self.console.verbosity == Verbosity::Quiet {
            return;
        }
        let log = self.log.as_ref().map(|log| format!("; its log is {}", log.path().display()));
        let note = self.console.note(&format!("{text}{}", log.unwrap_or_default()));
        self.console.print(&Report::err(note));
    }

    /// Copies the messages of the client until it closes standard input.
    fn copy_to_host(&self) {
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        let mut is_start = true;
        loop {
            line.clear();
            line.shrink_to(KEPT_BUFFER_BYTES);
            // An error of the input ends it.
            if !matches!(input.by_ref().take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line), Ok(1..)) {
                break;
            }
            let is_whole = is_start && line.ends_with(b"\n");
            is_start = line.ends_with(b"\n");
            let mut outgoing = self.outgoing();
            if is_whole {
                self.record().note_client_message(&line);
            }
            // If the host has ended, the other thread answers the request.
            let _ = outgoing.stream.write_all(&line);
        }
        let mut outgoing = self.outgoing();
        outgoing.is_closed = true;
        let _ = outgoing.stream.shutdown(Shutdown::Write);
    }

    /// Copies the messages of the host, and replaces a host that was lost.
    fn copy_to_client(&self, mut stream: ShimStream) -> Result<Report, Failure> {
        let mut output = BufWriter::with_capacity(KEPT_BUFFER_BYTES, io::stdout().lock());
        let mut silent_hosts = 0;
        loop {
            match self.copy_from(&stream, &mut output) {
                HostEnd::ClientGone => return Ok(Report::default()),
                HostEnd::Stopped => {
                    let failure = Failure::new("the shared host was stopped");
                    return Err(failure.help(Some("start the client again to use its servers")));
                }
                HostEnd::Lost { messages: 0 } => silent_hosts += 1,
                HostEnd::Lost { .. } => silent_hosts = 0,
            }
            let mut outgoing = self.outgoing();
            if outgoing.is_closed {
                return Ok(Report::default());
            }
            stream = self.replace_host(&mut outgoing, &mut output, silent_hosts)?;
        }
    }

    /// Copies the messages of one host until it ends.
    fn copy_from(&self, stream: &ShimStream, output: &mut BufWriter<StdoutLock<'_>>) -> HostEnd {
        let mut input = BufReader::new(stream);
        let mut line = Vec::new();
        let mut messages = 0;
        loop {
            line.clear();
            line.shrink_to(KEPT_BUFFER_BYTES);
            // The host limits the size of its messages. A part of a message is not forwarded.
            match input.read_until(b'\n', &mut line) {
                Ok(1..) if line.ends_with(b"\n") => {}
                Ok(_) | Err(_) => return HostEnd::Lost { messages },
            }
            if line == FAREWELL {
                return HostEnd::Stopped;
            }
            self.record().note_host_message(&line);
            let written = output.write_all(&line);
            // Messages that are there already are written together.
            let written =
                written.and_then(|()| if input.buffer().is_empty() { output.flush() } else { Ok(()) });
            if written.is_err() {
                return HostEnd::ClientGone;
            }
            messages += 1;
        }
    }

    /// Answers the requests that the lost host has not, and continues the session in another host.
    fn replace_host(
        &self,
        outgoing: &mut Outgoing,
        output: &mut BufWriter<StdoutLock<'_>>,
        silent_hosts: u32,
    ) -> Result<ShimStream, Failure> {
        let (unanswered, handshake, has_host_requests) = {
            let mut record = self.record();
            (record.take_unanswered(), record.handshake().cloned(), record.has_host_requests())
        };
        let write = |output: &mut BufWriter<StdoutLock<'_>>, message: &serde_json::Value| {
            writeln!(output, "{message}").and_then(|()| output.flush())
        };
        for id in &unanswered.ids {
            let id: serde_json::Value = serde_json::from_str(id).unwrap_or_default();
            let message = "the shared host of mcp-host has ended during the request, so whether it was executed \
                           is unknown";
            let error = json!({"code": code::INTERNAL_ERROR, "message": message});
            // The end of the client is noticed when it closes standard input.
            let _ = write(output, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        let lost = |reason: &str| {
            let log = self.log.as_ref().map(|log| format!("its log is {}", log.path().display()));
            Failure::new(format!("the shared host has ended, and {reason}")).help(log)
        };
        if has_host_requests {
            return Err(lost("the client is answering a request of it"));
        }
        if silent_hosts > MAX_SILENT_HOSTS {
            return Err(lost("so have others that replaced it"));
        }
        let HostConnection { stream, process } = connect_or_start(&self.identity, self.log.as_ref())?;
        self.note(&format!("the shared host has ended; using {process} instead"));
        outgoing.stream = stream.try_clone().map_err(|error| connection_failure(&error))?;
        if let Some(handshake) = handshake {
            let failed =
                |error: io::Error| Failure::new(format!("the session could not be continued: {error}"));
            stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(failed)?;
            outgoing.stream.write_all(&handshake.initialize).map_err(failed)?;
            // The response is the first message: a host sends others after `notifications/initialized`.
            let mut response = Vec::new();
            let mut byte = [0];
            while response.last() != Some(&b'\n') {
                (&stream).read_exact(&mut byte).map_err(failed)?;
                response.push(byte[0]);
            }
            stream.set_read_timeout(None).map_err(failed)?;
            if unanswered.has_initialize {
                self.record().note_host_message(&response);
                let _ = output.write_all(&response).and_then(|()| output.flush());
            }
            if let Some(initialized) = &handshake.initialized {
                outgoing.stream.write_all(initialized).map_err(failed)?;
                let text = "the servers of mcp-host were started again, so what they kept in memory is lost";
                let params = json!({"level": "warning", "logger": "mcp-host", "data": text});
                let _ = write(
                    output,
                    &json!({"jsonrpc": "2.0", "method": Method::LogMessage.as_str(), "params": params}),
                );
            }
        }
        Ok(stream)
    }
}
