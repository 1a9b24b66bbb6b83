//! The signals that ask for the end.
//!
//! From the moment they are listened to they kill nothing by themselves, so whoever installs them must keep listening
//! in every phase: while a file is read, while servers start, while output is written, while servers stop.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// One request for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The terminal is gone.
    HangUp,
    /// Ctrl-C.
    Interrupt,
    /// A polite `kill`.
    Terminate,
}

impl Signal {
    /// The signal's number, the same on every Unix.
    pub(crate) fn number(self) -> u8 {
        match self {
            Signal::HangUp => 1,
            Signal::Interrupt => 2,
            Signal::Terminate => 15,
        }
    }
}

/// The three of them, listened to.
pub(crate) struct Signals {
    hang_up: unix::Signal,
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// Begins to listen. Fails when the system refuses.
    pub(crate) fn install() -> io::Result<Signals> {
        Ok(Signals {
            hang_up: unix::signal(SignalKind::hangup())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    /// Resolves with the next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hang_up.recv() => Signal::HangUp,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
