//! The signals that end the process.
//!
//! Installing the handlers disables the default action of these signals. The caller must therefore await
//! [`Signals::next`] in every phase: while it reads files, starts servers, writes output and stops servers.

use std::io;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::runtime::signal::Signal;
use crate::runtime::system::{HangUp, TerminationSignals};

/// The installed handlers of the signals.
pub(crate) struct Signals {
    /// `None` if it does not end the process.
    hang_up: Option<HangUp>,
    termination: TerminationSignals,
}

impl Signals {
    /// Installs the handlers. Fails if the system refuses.
    pub(crate) fn install() -> io::Result<Signals> {
        Ok(Signals { hang_up: Some(HangUp::install()?), termination: TerminationSignals::install()? })
    }

    /// Gives SIGHUP another meaning: it no longer ends the process.
    pub(crate) fn take_hang_up(&mut self) -> Option<HangUp> {
        self.hang_up.take()
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        let Signals { hang_up, termination } = self;
        let hung_up = async {
            match hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hung_up => Signal::HangUp,
            signal = termination.next() => signal,
        }
    }
}

/// Serves until `serving` ends or a signal arrives. After a signal, sends it to `stop_sender` and waits for `serving`
/// to end, at most for `drain`; another signal ends the wait. Returns the first signal as the error.
pub(crate) async fn serve_until_signal<T>(
    signals: &mut Signals,
    stop_sender: oneshot::Sender<Signal>,
    drain: Duration,
    serving: impl Future<Output = T>,
) -> Result<T, Signal> {
    tokio::pin!(serving);
    let signal = tokio::select! {
        biased;
        signal = signals.next() => signal,
        served = &mut serving => return Ok(served),
    };
    // Fails if `serving` ends at the same time.
    let _ = stop_sender.send(signal);
    tokio::select! {
        biased;
        _ = signals.next() => {}
        _ = timeout(drain, &mut serving) => {}
    }
    Err(signal)
}

/// Awaits `work`. If a signal arrives first, drops `work` and returns the signal as the error.
pub(crate) async fn run_until_signal<T>(
    signals: &mut Signals,
    work: impl Future<Output = T>,
) -> Result<T, Signal> {
    tokio::select! {
        biased;
        signal = signals.next() => Err(signal),
        result = work => Ok(result),
    }
}
