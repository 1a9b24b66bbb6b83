//! `acp-proxy COMMAND [ARGUMENT…]`: stands between an ACP client and the agent that COMMAND starts.
//!
//! What may pass, [`gate`] decides; all that does passes byte for byte. The agent has a process group of its own, which
//! ends with this process: at the end of the client's input, on SIGTERM, SIGINT and SIGHUP, or with the agent itself.
//! An agent whose proxy is killed by force, or by a signal in the moment of the start, sees the end of its input.
//! Threads, and no runtime: two pipes need none. No thread waits for a lock while it holds another, and none holds one
//! while it writes, but that of the output it writes to. So neither direction waits for the other, but for a
//! refusal, which the client has to take before more of it is read.

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

use crate::gate::{Gate, Refused};
use crate::group::{Agent, GRACE};
use crate::lines::{Line, Lines};

/// The longest message of either side that is looked at, in bytes. A longer one of the client's is refused; one of the
/// agent's passes, for nothing that is to be learnt from it is so long.
const LONGEST: usize = 64 << 20;

/// Why the proxy ends.
enum End {
    /// The client has closed its side.
    Client,
    /// The agent has ended with this code.
    Agent(u8),
    /// Somebody wants this process to end.
    Signal(Signal),
}

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(command) = arguments.next() else {
        eprintln!("usage: acp-proxy COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let mut program = Command::new(&command);
    program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let (agent, input, output) = match Agent::start(&mut program) {
        Ok(started) => started,
        Err(error) => {
            eprintln!("acp-proxy: {} cannot be started: {error}", command.display());
            return ExitCode::from(127);
        }
    };
    // A child inherits the mask as a thread does: the agent is there already, the threads are not.
    let awaited = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    if let Err(error) = awaited.thread_block() {
        eprintln!("acp-proxy: signals cannot be waited for: {error}");
        agent.watch(drop).end();
        return ExitCode::FAILURE;
    }

    let (ends, ended) = mpsc::channel();
    let gate = Arc::new(Mutex::new(Gate::default()));
    let to_client = Arc::new(Mutex::new(io::stdout()));
    let (looking, out, said) = (Arc::clone(&gate), Arc::clone(&to_client), ends.clone());
    thread::spawn(move || {
        if let Err(error) = ask(io::stdin(), input, &looking, &out) {
            eprintln!("acp-proxy: what the client says cannot be passed on: {error}");
        }
        let _ = said.send(End::Client);
    });
    let (over, all_said) = mpsc::channel();
    thread::spawn(move || {
        if let Err(error) = answer(output, &gate, &to_client) {
            eprintln!("acp-proxy: what the agent says cannot be passed on: {error}");
        }
        let _ = over.send(());
    });
    let said = ends.clone();
    thread::spawn(move || {
        if let Ok(signal) = awaited.wait() {
            let _ = said.send(End::Signal(signal));
        }
    });
    let exit = agent.watch(move |code| drop(ends.send(End::Agent(code))));

    let code = match ended.recv().expect("whoever says why keeps a sender") {
        End::Agent(code) => Some(code),
        End::Client => exit.code(),
        // As a shell tells of a program that a signal ended.
        End::Signal(signal) => Some(128 + signal as u8),
    };
    exit.end();
    let code = code.or_else(|| exit.code()).unwrap_or(1);
    // The pipe ends with the group, unless somebody has left it, or the client reads no more.
    let _ = all_said.recv_timeout(GRACE);
    ExitCode::from(code)
}

/// From the client to the agent, until either is gone.
fn ask(
    from: impl Read,
    mut to: ChildStdin,
    gate: &Mutex<Gate>,
    client: &Mutex<impl Write>,
) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(from), LONGEST);
    while let Some(line) = lines.next()? {
        let judged = match line {
            Line::Whole(line) => {
                // The gate is free again before the agent takes the line, which it may do late.
                let judged = lock(gate).admit(line);
                if judged.is_ok() {
                    to.write_all(line).and_then(|()| to.flush())?;
                }
                judged
            }
            Line::Part(_) => lines.skip().map(|()| Err(Refused::too_long(LONGEST)))?,
        };
        let Err(Refused { answer, error }) = judged else { continue };
        eprintln!("acp-proxy: refused: {error}");
        if let Some(answer) = answer {
            let mut client = lock(client);
            client.write_all(answer.as_bytes()).and_then(|()| client.flush())?;
        }
    }
    Ok(())
}

/// From the agent to the client, until either is gone.
fn answer(from: impl Read, gate: &Mutex<Gate>, client: &Mutex<impl Write>) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::new(from), LONGEST);
    while let Some(line) = lines.next()? {
        if let Line::Whole(line) = line {
            lock(gate).learn(line);
        }
        let mut to = lock(client);
        match line {
            Line::Whole(line) => to.write_all(line)?,
            Line::Part(line) => {
                to.write_all(line)?;
                // Until the line is over, nobody writes between.
                lines.copy_rest(&mut *to)?;
            }
        }
        to.flush()?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Neither a gate nor an output is left half changed by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
