//! How the program ends: one word for each exit code, so that no number stands anywhere else.

use std::process::ExitCode;

use crate::signals::Signal;

/// The end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done. Warnings do not change it.
    Done,
    /// The configuration, or the call, is wrong.
    Wrong,
    /// The command line is wrong.
    Usage,
    /// A server could not be reached.
    Unreachable,
    /// The user, or the system, wanted the end.
    Signal(Signal),
    /// The demo server was asked to end with this code.
    Demo(i32),
}

impl Exit {
    /// The code that a shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Wrong => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::Signal(signal) => 128 + signal.number(),
            // A shell sees the lowest eight bits of whatever a process ends with.
            Exit::Demo(code) => code.to_le_bytes()[0],
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
    fn every_end_has_its_code() {
        check(Exit::Done, 0);
        check(Exit::Wrong, 1);
        check(Exit::Usage, 2);
        check(Exit::Unreachable, 3);
        check(Exit::Signal(Signal::HangUp), 129);
        check(Exit::Signal(Signal::Interrupt), 130);
        check(Exit::Signal(Signal::Terminate), 143);
        check(Exit::Demo(7), 7);
        check(Exit::Demo(-1), 255);
    }
}
