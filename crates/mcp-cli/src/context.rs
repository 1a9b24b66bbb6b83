//! What every command is given: the streams, the flags, and how files are to be read.

use std::path::{Path, PathBuf};

use tokio::task;

use crate::args::{Format, Global, Reader};
use crate::exit::Exit;
use crate::locked::Locking;
use crate::output::console::{Console, Report};
use crate::output::progress::{Manner, Progress, manner};
use crate::signals::{Signal, Signals};
use crate::source::{Source, Unreadable, open};

/// What every command is given.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The streams.
    pub(crate) console: Console,
    /// A file of variables besides the environment.
    pub(crate) env_file: Option<PathBuf>,
    /// How the result is written.
    pub(crate) format: Format,
    /// How files are to be read.
    pub(crate) reader: Reader,
    /// Whether, and how, a lock counts.
    pub(crate) locking: Locking,
    /// How progress is shown.
    manner: Manner,
}

impl Context {
    /// Puts it together from the flags. Fails with a sentence when they contradict each other.
    pub(crate) fn new(global: &Global, format: Format, console: Console) -> Result<Context, String> {
        Ok(Context {
            console,
            env_file: global.env_file.clone(),
            format,
            reader: global.reader()?,
            locking: Locking::of(global)?,
            manner: manner(console.interactive, global.verbose, console.chatter),
        })
    }

    /// A line about what is going on, with nothing on it yet.
    pub(crate) fn progress(&self) -> Progress {
        Progress::new(self.manner)
    }

    /// Reads the file that `path` means.
    pub(crate) async fn open(&self, path: &Path) -> Result<Source, Unreadable> {
        let (context, path) = (self.clone(), path.to_owned());
        blocking(move || open(&path, &context)).await
    }

    /// Writes what a command has to say, and gives its end. A reader that does not read blocks a thread of its own.
    pub(crate) async fn tell(&self, report: Report) -> Exit {
        let console = self.console;
        blocking(move || console.tell(&report)).await
    }
}

/// Does `work`, which may block, where it blocks nobody.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match task::spawn_blocking(work).await {
        Ok(res) => res,
        // Nobody aborts it, so that it can only have panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// `work`, unless a signal comes first.
pub(crate) async fn unless_signalled<T>(
    signals: &mut Signals,
    work: impl Future<Output = T>,
) -> Result<T, Signal> {
    tokio::select! {
        biased;
        signal = signals.next() => Err(signal),
        res = work => Ok(res),
    }
}
