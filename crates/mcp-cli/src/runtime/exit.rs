//! Exit codes of the process. No other file contains the numbers.

use std::process::ExitCode;

use crate::runtime::signal::Signal;

/// The reason why the process exits, which determines its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Exit {
    /// The command succeeded, with or without warnings.
    #[default]
    Success,
    /// The configuration or the call has an error.
    Failure,
    /// The command line has an error.
    Usage,
    /// A server could not be reached.
    Unreachable,
    /// A signal ended the process.
    Signal(Signal),
    /// A client called the tool of the demo server that ends the process with this code.
    DemoServer(i32),
}

impl Exit {
    /// The code that the shell receives.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            // Signal numbers are below 128.
            Exit::Signal(signal) => 128 + (signal as i32).to_le_bytes()[0],
            // The system keeps only the lowest eight bits of an exit code.
            Exit::DemoServer(code) => code.to_le_bytes()[0],
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(exit: Exit, want: u8) {
        assert_eq!(exit.code(), want);
    }

    #[test]
    fn each_exit_has_its_code() {
        check(Exit::Success, 0);
        check(Exit::Failure, 1);
        check(Exit::Usage, 2);
        check(Exit::Unreachable, 3);
        check(Exit::Signal(Signal::HangUp), 129);
        check(Exit::Signal(Signal::Interrupt), 130);
        check(Exit::Signal(Signal::Terminate), 143);
        check(Exit::DemoServer(7), 7);
        check(Exit::DemoServer(-1), 255);
    }
}
