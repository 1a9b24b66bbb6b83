//! Errors that end a command.

use mcp_host_model::ErrorKind;
use mcp_host_runtime::HostError;

use crate::output::console::{Console, Report};
use crate::output::{sanitize, style};
use crate::runtime::exit::Exit;
use crate::runtime::signal::Signal;

/// Why a command ends before it has a result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A signal arrived.
    Signal(Signal),
    /// An error message with an optional help line.
    Error { exit: Exit, message: String, help: Option<String> },
    /// A report that contains more than an error message.
    Report(Report),
}

impl Failure {
    /// An error of the configuration or the call.
    pub(crate) fn new(message: impl AsRef<str>) -> Failure {
        Failure::with_exit(Exit::Failure, message)
    }

    /// An error of the command line.
    pub(crate) fn usage(message: impl AsRef<str>) -> Failure {
        Failure::with_exit(Exit::Usage, message)
    }

    /// An error with its exit code. The message is sanitized and becomes one line.
    pub(crate) fn with_exit(exit: Exit, message: impl AsRef<str>) -> Failure {
        Failure::Error { exit, message: sanitize::line(message.as_ref()), help: None }
    }

    /// An error of a request to a server, which may be unreachable.
    pub(crate) fn from_request_error(error: &HostError) -> Failure {
        let exit = if error.kind.is_a(ErrorKind::Connection) { Exit::Unreachable } else { Exit::Failure };
        Failure::with_exit(exit, error.to_string()).help(error.help.as_deref().map(sanitize::line))
    }

    /// Adds a help line to an error.
    pub(crate) fn help(self, text: Option<impl Into<String>>) -> Failure {
        match self {
            Failure::Error { exit, message, help } => {
                Failure::Error { exit, message, help: text.map(Into::into).or(help) }
            }
            Failure::Signal(_) | Failure::Report(_) => self,
        }
    }

    /// The report of a command that ended with this failure.
    pub(crate) fn report(self, console: &Console) -> Report {
        match self {
            Failure::Signal(signal) => Report { exit: Exit::Signal(signal), ..Report::default() },
            Failure::Error { exit, message, help } => {
                let err = style::error(console.err_colour, &message, help.as_deref());
                Report { err, exit, ..Report::default() }
            }
            Failure::Report(report) => report,
        }
    }
}

impl From<Signal> for Failure {
    fn from(signal: Signal) -> Failure {
        Failure::Signal(signal)
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Failure {
        Failure::Report(report)
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        let help = error.help.as_deref().map(sanitize::line);
        Failure::new(error.to_string()).help(help)
    }
}
