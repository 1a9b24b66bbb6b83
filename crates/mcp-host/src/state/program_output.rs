//! Runs a program of the user and reads its output, bounded in time and bytes. No shell is used.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What a program may print, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputLimits {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

/// Why a program has no output. The output and the standard error are not part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramOutputError {
    #[error("cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("did not end within {0} s")]
    Late(u64),
    #[error("printed more than {0} bytes")]
    TooLong(usize),
    #[error("has failed ({0})")]
    Failed(ExitStatus),
}

/// Runs a program with this standard input, and returns its standard output. Its standard error is not read. Blocks. A
/// program that exceeds a limit is killed.
pub(crate) fn program_output(
    mut command: Command,
    input: &str,
    limits: OutputLimits,
) -> Result<Vec<u8>, ProgramOutputError> {
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = KilledOnDrop(command.spawn().map_err(ProgramOutputError::NotStarted)?);
    if let Some(mut stdin) = child.0.stdin.take() {
        // A program that does not read it may succeed nevertheless. The text is smaller than a pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output =
        child.0.stdout.take().ok_or_else(|| ProgramOutputError::Unreadable(io::ErrorKind::Other.into()))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    // One byte more shows that it is too long.
    let limit = u64::try_from(limits.bytes).unwrap_or(u64::MAX).saturating_add(1);
    let read = move || {
        let mut bytes = Vec::new();
        let read = output.take(limit).read_to_end(&mut bytes).map(|_| bytes);
        let _ = sender.send(read);
    };
    thread::Builder::new()
        .name("program-output".to_owned())
        .spawn(read)
        .map_err(ProgramOutputError::Unreadable)?;
    let late = |_| ProgramOutputError::Late(limits.time.as_secs());
    let bytes = receiver.recv_timeout(limits.time).map_err(late)?.map_err(ProgramOutputError::Unreadable)?;
    if bytes.len() > limits.bytes {
        return Err(ProgramOutputError::TooLong(limits.bytes));
    }
    let status = child.0.wait().map_err(ProgramOutputError::Unreadable)?;
    if status.success() { Ok(bytes) } else { Err(ProgramOutputError::Failed(status)) }
}

/// A process that is killed and reaped when it is dropped.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
