//! Progress on standard error.
//!
//! On a terminal it is one line that is updated and finally cleared. With `--verbose` it is one line per
//! change, between the lines of the log. Otherwise only progress that a server reports is written.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use ratatui::crossterm::terminal;

use crate::output::console::Verbosity;
use crate::output::sanitize;

/// How often the line is drawn.
const REDRAWS_PER_SECOND: u8 = 20;
/// How often the spinner moves.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);
/// The columns that the line leaves free, for the `^C` that a terminal adds. If the line were full, the terminal would
/// begin another one for the `^C`, and this line would not be cleared.
const FREE_COLUMNS: u16 = 4;
/// The width of a terminal that does not report it.
const DEFAULT_WIDTH: u16 = 80;
/// The maximum number of names in a text.
const MAX_NAMES: usize = 6;
/// The largest total that is shown as a number of steps; a larger one is shown as a percentage.
const MAX_STEPS: f64 = 20.0;
/// The length of the progress bar, in steps.
const BAR_LENGTH: u64 = 1000;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    /// One line that is updated.
    Spinner,
    /// One line per change.
    Lines,
    /// Only progress that a server reports.
    ServerOnly,
    /// No progress.
    Off,
}

impl ProgressMode {
    /// The mode for a console.
    pub(crate) fn for_console(is_terminal: bool, verbosity: Verbosity) -> ProgressMode {
        match (verbosity, is_terminal) {
            (Verbosity::Quiet, _) => ProgressMode::Off,
            (Verbosity::Verbose, _) => ProgressMode::Lines,
            (Verbosity::Normal, true) => ProgressMode::Spinner,
            (Verbosity::Normal, false) => ProgressMode::ServerOnly,
        }
    }
}

/// A progress display. Clones share one line.
#[derive(Debug, Clone)]
pub(crate) struct ProgressDisplay {
    mode: ProgressMode,
    bar: ProgressBar,
}

impl ProgressDisplay {
    /// Creates a display that shows nothing yet.
    pub(crate) fn new(mode: ProgressMode) -> ProgressDisplay {
        let bar = match mode {
            ProgressMode::Spinner => ProgressBar::with_draw_target(
                None,
                ProgressDrawTarget::term_like_with_hz(Box::new(ProgressLine), REDRAWS_PER_SECOND),
            ),
            ProgressMode::Lines | ProgressMode::ServerOnly | ProgressMode::Off => ProgressBar::hidden(),
        };
        bar.set_style(spinner_style("{spinner} {wide_msg}"));
        ProgressDisplay { mode, bar }
    }

    /// Shows what the program is doing.
    pub(crate) fn show(&self, text: &str) {
        match self.mode {
            ProgressMode::Spinner => self.spin(text),
            ProgressMode::Lines => write_line(text),
            ProgressMode::ServerOnly | ProgressMode::Off => {}
        }
    }

    /// Shows progress that a server reports, with a bar if the fraction is known. It is shown also without a
    /// terminal.
    pub(crate) fn show_server_progress(&self, text: &str, fraction: Option<f64>) {
        match self.mode {
            ProgressMode::Spinner => {
                if let Some(fraction) = fraction {
                    self.bar.set_length(BAR_LENGTH);
                    self.bar
                        .set_style(spinner_style("{spinner} [{bar:20}] {wide_msg}").progress_chars("=> "));
                    self.bar.set_position((fraction.clamp(0.0, 1.0) * BAR_LENGTH as f64) as u64);
                }
                self.spin(text);
            }
            ProgressMode::Lines | ProgressMode::ServerOnly => write_line(text),
            ProgressMode::Off => {}
        }
    }

    /// Prints a note where [`show`](ProgressDisplay::show) shows nothing, unless the output is quiet.
    pub(crate) fn note(&self, text: &str) {
        if self.mode == ProgressMode::ServerOnly {
            write_line(&format!("note: {text}"));
        }
    }

    /// Runs `print` while the line is hidden. Blocks.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Shows a text with a spinner.
    fn spin(&self, text: &str) {
        self.bar.set_message(sanitize::line(text));
        self.bar.enable_steady_tick(SPINNER_INTERVAL);
    }

    /// Shows progress again after the line was cleared, without a bar.
    pub(crate) fn resume(&self) {
        if self.bar.is_finished() {
            self.bar.set_style(spinner_style("{spinner} {wide_msg}"));
            self.bar.unset_length();
            self.bar.reset();
        }
    }

    /// Clears the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// A guard that clears the line when it is dropped, also when the operation is cancelled.
    pub(crate) fn clear_on_drop(&self) -> ClearOnDrop<'_> {
        ClearOnDrop(self)
    }
}

/// The line on standard error.
#[derive(Debug)]
struct ProgressLine;

impl TermLike for ProgressLine {
    fn width(&self) -> u16 {
        let columns = terminal::size().ok().map(|(columns, _)| columns).filter(|columns| *columns > 0);
        columns.unwrap_or(DEFAULT_WIDTH).saturating_sub(FREE_COLUMNS)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.move_cursor(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.move_cursor(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{text}")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        write!(io::stderr(), "{text}")
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl ProgressLine {
    fn move_cursor(&self, count: usize, direction: char) -> io::Result<()> {
        if count == 0 { Ok(()) } else { self.write_str(&format!("\u{1b}[{count}{direction}")) }
    }
}

/// Clears the progress line when it is dropped.
pub(crate) struct ClearOnDrop<'a>(&'a ProgressDisplay);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

fn spinner_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are valid")
}

/// The text about the servers that are waited for: `starting a`, or `starting 2 of 5 servers: a, b`.
pub(crate) fn waiting_text(verb: &str, names: &[&str], total: usize) -> String {
    let more = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ") + &more;
    match total {
        0 | 1 => format!("{verb} {listed}"),
        _ => format!("{verb} {} of {total} servers: {listed}", names.len()),
    }
}

/// The completed fraction, if the server reports a total.
pub(crate) fn fraction(progress: f64, total: Option<f64>) -> Option<f64> {
    total.filter(|total| *total > 0.0).map(|total| progress / total).filter(|it| it.is_finite())
}

fn write_line(text: &str) {
    // A failed write to standard error cannot be reported.
    let _ = writeln!(io::stderr(), "{}", sanitize::line(text));
}

/// The progress of a call as text: `2/3 reading`, `40% reading`, `7 reading`.
pub(crate) fn progress_text(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let amount = match total {
        Some(total) if total > 0.0 && total <= MAX_STEPS => format!("{progress}/{total}"),
        Some(total) if total > 0.0 => format!("{:.0}%", (progress / total * 100.0).clamp(0.0, 100.0)),
        Some(_) | None => progress.to_string(),
    };
    match message {
        Some(message) => format!("{amount} {message}"),
        None => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awaited_servers_are_named() {
        assert_eq!(waiting_text("starting", &["a"], 1), "starting a");
        assert_eq!(waiting_text("testing", &["a", "b"], 5), "testing 2 of 5 servers: a, b");
        let many = ["a", "b", "c", "d", "e", "f", "g", "h"];
        assert_eq!(
            waiting_text("starting", &many, 8),
            "starting 8 of 8 servers: a, b, c, d, e, f and 2 more"
        );
    }

    #[test]
    fn mode_depends_on_terminal_and_verbosity() {
        use Verbosity::{Normal, Quiet, Verbose};
        assert_eq!(ProgressMode::for_console(true, Normal), ProgressMode::Spinner);
        assert_eq!(ProgressMode::for_console(true, Verbose), ProgressMode::Lines);
        assert_eq!(ProgressMode::for_console(false, Verbose), ProgressMode::Lines);
        assert_eq!(ProgressMode::for_console(false, Normal), ProgressMode::ServerOnly);
        assert_eq!(ProgressMode::for_console(true, Quiet), ProgressMode::Off);
        assert_eq!(
            (fraction(1.0, Some(4.0)), fraction(1.0, Some(0.0)), fraction(1.0, None)),
            (Some(0.25), None, None)
        );
    }

    #[track_caller]
    fn check(progress: f64, total: Option<f64>, message: Option<&str>, want: &str) {
        assert_eq!(progress_text(progress, total, message), want);
    }

    #[test]
    fn progress_has_a_text() {
        check(1.0, Some(3.0), Some("step 1 of 3"), "1/3 step 1 of 3");
        check(512.0, Some(2048.0), None, "25%");
        check(3000.0, Some(2048.0), None, "100%");
        check(7.5, None, Some("pages"), "7.5 pages");
        check(7.0, Some(0.0), None, "7");
    }
}
