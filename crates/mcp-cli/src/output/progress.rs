//! Progress on standard error.
//!
//! On a terminal it is one line that is updated and finally cleared. With `--verbose` it is one line per change, between
//! the lines of the log. Otherwise only progress that a server reports is written.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::console::Verbosity;
use crate::output::sanitize;

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
    pub(crate) fn for_console(is_terminal: bool, verbose: bool, verbosity: Verbosity) -> ProgressMode {
        match (verbosity, is_terminal, verbose) {
            (Verbosity::Quiet, _, _) => ProgressMode::Off,
            (Verbosity::Normal, _, true) => ProgressMode::Lines,
            (Verbosity::Normal, true, false) => ProgressMode::Spinner,
            (Verbosity::Normal, false, false) => ProgressMode::ServerOnly,
        }
    }
}

/// A progress display. Clones share one line.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    mode: ProgressMode,
    bar: ProgressBar,
}

impl Progress {
    /// Creates a display that shows nothing yet.
    pub(crate) fn new(mode: ProgressMode) -> Progress {
        let bar = match mode {
            ProgressMode::Spinner => ProgressBar::new_spinner(),
            ProgressMode::Lines | ProgressMode::ServerOnly | ProgressMode::Off => ProgressBar::hidden(),
        };
        bar.set_style(style("{spinner} {wide_msg}"));
        Progress { mode, bar }
    }

    /// Shows what the program is doing.
    pub(crate) fn show(&self, text: &str) {
        match self.mode {
            ProgressMode::Spinner => self.spin(text),
            ProgressMode::Lines => write(text),
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
                    self.bar.set_style(style("{spinner} [{bar:20}] {wide_msg}").progress_chars("=> "));
                    self.bar.set_position((fraction.clamp(0.0, 1.0) * BAR_LENGTH as f64) as u64);
                }
                self.spin(text);
            }
            ProgressMode::Lines | ProgressMode::ServerOnly => write(text),
            ProgressMode::Off => {}
        }
    }

    fn spin(&self, text: &str) {
        self.bar.set_message(sanitize::line(text));
        self.bar.enable_steady_tick(Duration::from_millis(100));
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

/// Clears the progress line when it is dropped.
pub(crate) struct ClearOnDrop<'a>(&'a Progress);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are valid")
}

/// The completed fraction, if the server reports a total.
pub(crate) fn fraction(progress: f64, total: Option<f64>) -> Option<f64> {
    total.filter(|total| *total > 0.0).map(|total| progress / total).filter(|it| it.is_finite())
}

fn write(text: &str) {
    // A failed write to standard error cannot be reported.
    let _ = writeln!(io::stderr(), "{}", sanitize::line(text));
}

/// The progress of a call as text: `2/3 reading`, `40% reading`, `7 reading`.
pub(crate) fn progress_text(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let amount = match total {
        Some(total) if total > 0.0 && total <= 20.0 => format!("{progress}/{total}"),
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
    fn mode_depends_on_terminal_and_verbosity() {
        use Verbosity::{Normal, Quiet};
        assert_eq!(ProgressMode::for_console(true, false, Normal), ProgressMode::Spinner);
        assert_eq!(ProgressMode::for_console(true, true, Normal), ProgressMode::Lines);
        assert_eq!(ProgressMode::for_console(false, true, Normal), ProgressMode::Lines);
        assert_eq!(ProgressMode::for_console(false, false, Normal), ProgressMode::ServerOnly);
        assert_eq!(ProgressMode::for_console(true, false, Quiet), ProgressMode::Off);
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
