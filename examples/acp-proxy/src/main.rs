//! `acp-proxy [--lenient] COMMAND [ARGUMENT…]`: a proxy between an ACP client and the agent that COMMAND starts.
//! `--lenient` accepts commands that are not absolute paths, and missing lists.
//!
//! [`gate`] decides which messages pass; they pass byte for byte. The agent runs in its own process group, which ends
//! with this process: at the end of the client's input, on SIGTERM, SIGINT and SIGHUP, or with the agent. If the
//! proxy is killed with SIGKILL, or during the start, the agent sees the end of its input. There is no async runtime:
//! two pipes need only threads. No thread waits for a lock while it holds another, and none holds a lock while it
//! writes, except that of the output. So neither direction blocks the other, except for a refusal, which the client
//! must read before more of its input is read.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stderr,
    reason = "standard error is where a program on standard output speaks to people"
)]

mod gate;
mod group;
mod lines;

use std::io::{self, BufReader, Read, Write};
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::{env, thread};

use nix::sys::signal::{SigSet, Signal};

use crate::gate::{Gate, Refusal};
use crate::group::{Agent, EXIT_TIMEOUT};
use crate::lines::{Line, Lines};

/// The maximum size of an inspected message in bytes. A larger one of the client is refused; a larger one of the
/// agent passes, because no inspected message is that large.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// The reason why the proxy ends.
enum EndReason {
    /// The client closed its input.
    Client,
    /// The agent exited with this code.
    Agent(u8),
    /// A signal requests termination.
    Signal(Signal),
}

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).peekable();
    let gate = match arguments.next_if(|argument| argument == "--lenient") {
        Some(_) => Gate::lenient(),
        None => Gate::default(),
    };
    // Any other option is a mistake: no program has such a name.
    let command = arguments.next().filter(|command| !command.as_encoded_bytes().starts_with(b"-"));
    let Some(command) = command else {
        eprintln!("usage: acp-proxy [--lenient] COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let mut program = Command::new(&command);
    program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let (agent, input, output) = match Agent::start(&mut program) {
        Ok(started) => started,
        Err(error) => {
            eprintln!("acp-proxy: cannot start {}: {error}", command.display());
            return ExitCode::from(127);
        }
    };
    // A child inherits the signal mask: the agent was started before, the threads start after.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    if let Err(error) = signals.thread_block() {
        eprintln!("acp-proxy: cannot wait for signals: {error}");
        agent.watch(drop).end();
        return ExitCode::FAILURE;
    }

    let (end_sender, end_reasons) = mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let to_client = Arc::new(Mutex::new(io::stdout()));
    let (client_gate, client_output, client_end) =
        (Arc::clone(&gate), Arc::clone(&to_client), end_sender.clone());
    thread::spawn(move || {
        if let Err(error) = forward_to_agent(io::stdin(), input, &client_gate, &client_output) {
            eprintln!("acp-proxy: cannot forward messages of the client: {error}");
        }
        let _ = client_end.send(EndReason::Client);
    });
    let (output_ended, output_end) = mpsc::channel();
    thread::spawn(move || {
        if let Err(error) = forward_to_client(output, &gate, &to_client) {
            eprintln!("acp-proxy: cannot forward messages of the agent: {error}");
        }
        let _ = output_ended.send(());
    });
    let signal_end = end_sender.clone();
    thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            let _ = signal_end.send(EndReason::Signal(signal));
        }
    });
    let exit = agent.watch(move |code| drop(end_sender.send(EndReason::Agent(code))));

    let code = match end_reasons.recv().expect("each task sends its result before it drops its sender") {
        EndReason::Agent(code) => Some(code),
        EndReason::Client => exit.code(),
        // As a shell reports a program that a signal killed.
        EndReason::Signal(signal) => Some(128 + signal as u8),
    };
    exit.end();
    let code = code.or_else(|| exit.code()).unwrap_or(1);
    // The pipe ends with the group, unless a process has left it, or the client does not read.
    let _ = output_end.recv_timeout(EXIT_TIMEOUT);
    ExitCode::from(code)
}

/// Forwards from the client to the agent, until either has ended.
fn forward_to_agent(
    from: impl Read,
    mut to: ChildStdin,
    gate: &Mutex<Gate>,
    client: &Mutex<impl Write>,
) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(from), MAX_MESSAGE_BYTES);
    while let Some(line) = lines.next()? {
        let checked = match line {
            Line::Whole(line) => {
                // The lock of the gate is released before the agent reads the line, which may be late.
                let checked = lock(gate).admit(line);
                if checked.is_ok() {
                    to.write_all(line).and_then(|()| to.flush())?;
                }
                checked
            }
            Line::Part(_) => lines.skip().map(|()| Err(Refusal::too_long(MAX_MESSAGE_BYTES)))?,
        };
        let Err(Refusal { response, error }) = checked else { continue };
        eprintln!("acp-proxy: refused a message of the client: {error}");
        if let Some(response) = response {
            let mut client = lock(client);
            client.write_all(response.as_bytes()).and_then(|()| client.flush())?;
        }
    }
    Ok(())
}

/// Forwards from the agent to the client, until either has ended.
fn forward_to_client(from: impl Read, gate: &Mutex<Gate>, client: &Mutex<impl Write>) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(from), MAX_MESSAGE_BYTES);
    while let Some(line) = lines.next()? {
        if let Line::Whole(line) = line {
            lock(gate).observe(line);
        }
        let mut to = lock(client);
        match line {
            Line::Whole(line) => to.write_all(line)?,
            Line::Part(line) => {
                to.write_all(line)?;
                // The output stays locked until the line is complete.
                lines.copy_rest(&mut *to)?;
            }
        }
        to.flush()?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves neither a gate nor an output inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
