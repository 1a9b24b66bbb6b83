//! The two streams a command writes to, and what is known of them.
//!
//! A reader that went away (`| head`) is no fault: the rest is not written, and nobody is told.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use mcp_config::Colour;

use crate::args::Color;
use crate::exit::Exit;
use crate::output::paint;

/// The width of a line where there is no terminal to ask.
const WIDTH: usize = 100;

/// What is known of the streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// Colours on standard output?
    pub(crate) out: Colour,
    /// Colours on standard error?
    pub(crate) err: Colour,
    /// Is standard error a terminal?
    pub(crate) interactive: bool,
    /// How many columns a line of standard output has.
    pub(crate) width: usize,
}

/// All that a command has to say, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// The result, for standard output.
    pub(crate) out: String,
    /// What else is to be known, for standard error.
    pub(crate) err: String,
    /// The end.
    pub(crate) exit: Exit,
}

/// What became of something that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is there.
    All,
    /// Nobody reads any more.
    ReaderGone,
    /// It could not be written.
    Failed,
}

impl Console {
    /// Looks at the streams.
    pub(crate) fn new(color: Color) -> Console {
        match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
        .write_global();
        Console {
            out: colour(AutoStream::choice(&io::stdout())),
            err: colour(AutoStream::choice(&io::stderr())),
            interactive: io::stderr().is_terminal(),
            width: width(comfy_table::Table::new().width()),
        }
    }

    /// Writes what a command has to say, and gives its end.
    pub(crate) fn tell(&self, report: &Report) -> Exit {
        // Where standard error is gone there is nobody left to tell.
        let _ = io::stderr().write_all(report.err.as_bytes());
        match self.write(&report.out) {
            Written::All | Written::ReaderGone => report.exit,
            Written::Failed => Exit::Wrong,
        }
    }

    /// Writes a part of the result, at once. A failure is told here.
    pub(crate) fn write(&self, text: &str) -> Written {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Written::All,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Written::ReaderGone,
            Err(error) => {
                let text = paint::error(self.err, &format!("could not write the result: {error}"), None);
                let _ = io::stderr().write_all(text.as_bytes());
                Written::Failed
            }
        }
    }

    /// The report of a command that could not do its work.
    pub(crate) fn failure(&self, exit: Exit, message: &str, help: Option<&str>) -> Report {
        Report { out: String::new(), err: paint::error(self.err, message, help), exit }
    }
}

/// A terminal that does not know its width says 0.
fn width(terminal: Option<u16>) -> usize {
    terminal.filter(|it| *it > 0).map_or(WIDTH, usize::from)
}

fn colour(choice: ColorChoice) -> Colour {
    match choice {
        ColorChoice::Never | ColorChoice::Auto => Colour::Never,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => Colour::Always,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_is_never_nothing() {
        assert_eq!(width(Some(80)), 80);
        assert_eq!(width(Some(0)), WIDTH);
        assert_eq!(width(None), WIDTH);
    }
}
