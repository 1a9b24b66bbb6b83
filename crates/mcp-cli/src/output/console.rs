//! The two streams a command writes to, and what is known of them.
//!
//! A reader that went away (`| head`) is no fault: the rest is not written, and nobody is told.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use mcp_config::Colour;

use crate::args::Color;
use crate::exit::Exit;
use crate::output::{paint, plain};

/// The width of a line where there is no terminal to ask.
const WIDTH: usize = 100;

/// How much is said besides the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chatter {
    /// What is good to know, and what goes on.
    Usual,
    /// Errors alone.
    Quiet,
}

/// What is known of the streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// Colours on standard output?
    pub(crate) out: Colour,
    /// Colours on standard error?
    pub(crate) err: Colour,
    /// Is standard error a terminal?
    pub(crate) interactive: bool,
    /// Is standard output a terminal?
    pub(crate) terminal: bool,
    /// How much is said besides the result.
    pub(crate) chatter: Chatter,
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
    /// What is best read last, for standard error.
    pub(crate) after: String,
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
    pub(crate) fn new(color: Color, chatter: Chatter) -> Console {
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
            terminal: io::stdout().is_terminal(),
            chatter,
            width: width(comfy_table::Table::new().width()),
        }
    }

    /// Writes what a command has to say, and gives its end.
    pub(crate) fn tell(&self, report: &Report) -> Exit {
        // Where standard error is gone there is nobody left to tell.
        let _ = io::stderr().write_all(plain::shown(&report.err, self.err).as_bytes());
        match self.write(&report.out) {
            Written::All => {
                let _ = io::stderr().write_all(plain::shown(&report.after, self.err).as_bytes());
                report.exit
            }
            Written::ReaderGone => report.exit,
            Written::Failed => Exit::Wrong,
        }
    }

    /// Writes a part of the result, at once. A failure is told here.
    pub(crate) fn write(&self, text: &str) -> Written {
        // Into a file or another program it goes as it is: a converted configuration is to be that, byte for byte.
        let watched = self.terminal || self.out == Colour::Always;
        let text = if watched { plain::shown(text, self.out) } else { text.to_owned() };
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

    /// Writes what a terminal draws, as it is: escape sequences of our own, for a terminal that understands them.
    pub(crate) fn draw(&self, sequences: &str) {
        let mut out = io::stdout().lock();
        // What cannot be drawn is no failure: a line has told of it.
        let _ = out.write_all(sequences.as_bytes()).and_then(|()| out.flush());
    }

    /// What to do next, for a person who sees both streams: nothing for programs.
    pub(crate) fn next(&self, words: &str) -> String {
        match self.interactive && self.terminal && self.chatter == Chatter::Usual {
            true => format!("{}: {}\n", paint::paint(self.err, paint::NOTE, "next"), plain::line(words)),
            false => String::new(),
        }
    }

    /// The report of a command that could not do its work.
    pub(crate) fn failure(&self, exit: Exit, message: &str, help: Option<&str>) -> Report {
        Report { out: String::new(), err: paint::error(self.err, message, help), exit, after: String::new() }
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
