//! What goes on while somebody waits, on standard error.
//!
//! On a terminal it is one line that changes and is gone in the end; with `--verbose` it is lines that stay, between
//! those of the log. Otherwise nobody watches, and only what a server itself reports is written.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::plain;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A line that changes.
    Spinner,
    /// A line for each change.
    Lines,
    /// Not at all.
    Silent,
}

/// Who is watching decides how.
pub(crate) fn manner(interactive: bool, verbose: bool) -> Manner {
    match (interactive, verbose) {
        (_, true) => Manner::Lines,
        (true, false) => Manner::Spinner,
        (false, false) => Manner::Silent,
    }
}

/// Something is going on; its end clears the line. Cheap to clone: all clones are one line.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    manner: Manner,
    bar: ProgressBar,
}

impl Progress {
    /// Shows nothing yet.
    pub(crate) fn new(manner: Manner) -> Progress {
        let bar = match manner {
            Manner::Spinner => ProgressBar::new_spinner(),
            Manner::Lines | Manner::Silent => ProgressBar::hidden(),
        };
        let style =
            ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is a valid one");
        bar.set_style(style);
        Progress { manner, bar }
    }

    /// This is going on now.
    pub(crate) fn say(&self, text: &str) {
        match self.manner {
            Manner::Spinner => self.spin(text),
            Manner::Lines => write(text),
            Manner::Silent => {}
        }
    }

    /// The server says how far it has come: what it takes the trouble to tell is written even where nobody watches.
    pub(crate) fn hear(&self, text: &str) {
        match self.manner {
            Manner::Spinner => self.spin(text),
            Manner::Lines | Manner::Silent => write(text),
        }
    }

    fn spin(&self, text: &str) {
        self.bar.set_message(plain::line(text));
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// It is over: the line is free for other things.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn write(text: &str) {
    // Where standard error is gone, nobody reads it.
    let _ = writeln!(io::stderr(), "{}", plain::line(text));
}

/// How far a call has come: `2/3 reading`, `40% reading`, `7 reading`.
pub(crate) fn step(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let far = match total {
        Some(total) if total > 0.0 && total <= 20.0 => format!("{progress}/{total}"),
        Some(total) if total > 0.0 => format!("{:.0}%", (progress / total * 100.0).clamp(0.0, 100.0)),
        Some(_) | None => progress.to_string(),
    };
    match message {
        Some(message) => format!("{far} {message}"),
        None => far,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_shown_what_nobody_watches() {
        assert_eq!(manner(true, false), Manner::Spinner);
        assert_eq!(manner(true, true), Manner::Lines);
        assert_eq!(manner(false, true), Manner::Lines);
        assert_eq!(manner(false, false), Manner::Silent);
    }

    #[track_caller]
    fn check(progress: f64, total: Option<f64>, message: Option<&str>, want: &str) {
        assert_eq!(step(progress, total, message), want);
    }

    #[test]
    fn a_step_says_how_far_it_is() {
        check(1.0, Some(3.0), Some("step 1 of 3"), "1/3 step 1 of 3");
        check(512.0, Some(2048.0), None, "25%");
        check(3000.0, Some(2048.0), None, "100%");
        check(7.5, None, Some("pages"), "7.5 pages");
        check(7.0, Some(0.0), None, "7");
    }
}
