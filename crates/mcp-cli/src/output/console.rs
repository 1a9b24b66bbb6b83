//! Standard output and standard error.
//!
//! A closed reader (`| head`) is not an error: the rest of the output is dropped silently.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use mcp_host_config::Colour;

use crate::output::table::{TableStyle, UNLIMITED};
use crate::output::{sanitize, style};
use crate::runtime::exit::Exit;

/// How much is printed besides the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Notes, warnings and progress.
    Normal,
    /// Also each step of the progress, and debug messages in logs.
    Verbose,
    /// Only errors.
    Quiet,
}

/// The properties of the two streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// Whether standard output uses colours.
    pub(crate) out_colour: Colour,
    /// Whether standard error uses colours.
    pub(crate) err_colour: Colour,
    /// Whether standard error is a terminal.
    pub(crate) err_is_terminal: bool,
    /// Whether standard output is a terminal.
    pub(crate) out_is_terminal: bool,
    /// How much is printed besides the result.
    pub(crate) verbosity: Verbosity,
    /// The line width of standard output, in columns: that of `COLUMNS`, else that of the terminal, else unlimited.
    pub(crate) width: usize,
}

/// The output and exit code of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Report {
    /// The result, for standard output.
    pub(crate) out: String,
    /// Notes and diagnostics, for standard error.
    pub(crate) err: String,
    /// The exit code.
    pub(crate) exit: Exit,
    /// Text for standard error that is printed after the result.
    pub(crate) after: String,
}

impl Report {
    /// A success with this text on standard output.
    pub(crate) fn out(out: String) -> Report {
        Report { out, ..Report::default() }
    }

    /// A success with this text on standard error.
    pub(crate) fn err(err: String) -> Report {
        Report { err, ..Report::default() }
    }
}

/// The result of a write to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Everything was written.
    Complete,
    /// The reader has closed its end.
    BrokenPipe,
    /// The write failed.
    Failed,
}

impl Console {
    /// Detects the properties of the streams.
    pub(crate) fn new(colour: ColorChoice, verbosity: Verbosity) -> Console {
        colour.write_global();
        Console {
            out_colour: to_colour(AutoStream::choice(&io::stdout())),
            err_colour: to_colour(AutoStream::choice(&io::stderr())),
            err_is_terminal: io::stderr().is_terminal(),
            out_is_terminal: io::stdout().is_terminal(),
            verbosity,
            width: effective_width(
                std::env::var("COLUMNS").ok().as_deref(),
                comfy_table::Table::new().width(),
            ),
        }
    }

    /// The style of tables on standard output.
    pub(crate) fn table_style(&self) -> TableStyle {
        TableStyle { width: self.width, colour: self.out_colour }
    }

    /// Prints a report and returns its exit code.
    pub(crate) fn print(&self, report: &Report) -> Exit {
        // A failed write to standard error cannot be reported.
        let _ = io::stderr().write_all(sanitize::for_terminal(&report.err, self.err_colour).as_bytes());
        match self.write(&report.out) {
            WriteOutcome::Complete => {
                let _ =
                    io::stderr().write_all(sanitize::for_terminal(&report.after, self.err_colour).as_bytes());
                report.exit
            }
            WriteOutcome::BrokenPipe => report.exit,
            WriteOutcome::Failed => Exit::Failure,
        }
    }

    /// Writes a part of the result and flushes it. Prints an error if that fails.
    pub(crate) fn write(&self, text: &str) -> WriteOutcome {
        // A file or another program receives the exact bytes, for example of a converted configuration.
        let is_displayed = self.out_is_terminal || self.out_colour == Colour::Always;
        let text = if is_displayed { sanitize::for_terminal(text, self.out_colour) } else { text.to_owned() };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => WriteOutcome::Complete,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => WriteOutcome::BrokenPipe,
            Err(error) => {
                let text =
                    style::error(self.err_colour, &format!("could not write the result: {error}"), None);
                let _ = io::stderr().write_all(text.as_bytes());
                WriteOutcome::Failed
            }
        }
    }

    /// Writes escape sequences to standard output without sanitizing them.
    pub(crate) fn write_raw(&self, sequences: &str) {
        let mut out = io::stdout().lock();
        // An image that cannot be drawn is not an error: the result has a line about it.
        let _ = out.write_all(sequences.as_bytes()).and_then(|()| out.flush());
    }

    /// A line that suggests the next command. Empty unless both streams are terminals.
    pub(crate) fn suggestion(&self, text: &str) -> String {
        if self.err_is_terminal && self.out_is_terminal && self.verbosity != Verbosity::Quiet {
            format!("{}: {}\n", style::paint(self.err_colour, style::NOTE, "next"), sanitize::line(text))
        } else {
            String::new()
        }
    }

    /// A `note: <text>` line.
    pub(crate) fn note(&self, text: &str) -> String {
        format!("{}: {}\n", style::paint(self.err_colour, style::NOTE, "note"), sanitize::line(text))
    }

    /// A note with the path of a configuration file that was found by search; nothing if the output is quiet.
    pub(crate) fn discovery_note(&self, path: &Path) -> String {
        match self.verbosity {
            Verbosity::Normal | Verbosity::Verbose => self.note(&format!("reading {}", path.display())),
            Verbosity::Quiet => String::new(),
        }
    }
}

/// The line width: that of `COLUMNS`, else that of the terminal. Some terminals report 0.
fn effective_width(columns: Option<&str>, terminal: Option<u16>) -> usize {
    let columns = columns.and_then(|it| it.trim().parse().ok());
    columns.or(terminal).filter(|it| *it > 0).map_or(UNLIMITED, usize::from)
}

fn to_colour(choice: ColorChoice) -> Colour {
    match choice {
        ColorChoice::Never | ColorChoice::Auto => Colour::Never,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => Colour::Always,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_never_zero() {
        assert_eq!(effective_width(None, Some(80)), 80);
        assert_eq!(effective_width(None, Some(0)), UNLIMITED);
        assert_eq!(effective_width(None, None), UNLIMITED);
        assert_eq!(effective_width(Some("40"), Some(80)), 40);
        assert_eq!(effective_width(Some("wide"), Some(80)), 80);
        assert_eq!(effective_width(Some(""), None), UNLIMITED);
    }
}
