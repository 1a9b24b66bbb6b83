//! What goes on while somebody waits, on standard error.
//!
//! On a terminal it is one line that changes and is gone in the end; with `--verbose` it is lines that stay, between
//! those of the log. Otherwise nobody watches, and only what a server itself reports is written.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::console::Chatter;
use crate::output::plain;

/// The length of a bar, in parts.
const WHOLE: u64 = 1000;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A line that changes.
    Spinner,
    /// A line for each change.
    Lines,
    /// Only what a server itself reports.
    Silent,
    /// Not at all.
    Nothing,
}

/// Who is watching decides how.
pub(crate) fn manner(interactive: bool, verbose: bool, chatter: Chatter) -> Manner {
    match (chatter, interactive, verbose) {
        (Chatter::Quiet, _, _) => Manner::Nothing,
        (Chatter::Usual, _, true) => Manner::Lines,
        (Chatter::Usual, true, false) => Manner::Spinner,
        (Chatter::Usual, false, false) => Manner::Silent,
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
            Manner::Lines | Manner::Silent | Manner::Nothing => ProgressBar::hidden(),
        };
        bar.set_style(style("{spinner} {wide_msg}"));
        Progress { manner, bar }
    }

    /// This is going on now.
    pub(crate) fn say(&self, text: &str) {
        match self.manner {
            Manner::Spinner => self.spin(text),
            Manner::Lines => write(text),
            Manner::Silent | Manner::Nothing => {}
        }
    }

    /// The server says how far it has come, and where it says of how much, a bar shows it: what it takes the trouble to
    /// tell is written even where nobody watches.
    pub(crate) fn hear(&self, text: &str, far: Option<f64>) {
        match self.manner {
            Manner::Spinner => {
                if let Some(far) = far {
                    self.bar.set_length(WHOLE);
                    self.bar.set_style(style("{spinner} [{bar:20}] {wide_msg}").progress_chars("=> "));
                    // Between nothing and all of it, so that it is a number of that size.
                    self.bar.set_position((far.clamp(0.0, 1.0) * WHOLE as f64) as u64);
                }
                self.spin(text);
            }
            Manner::Lines | Manner::Silent => write(text),
            Manner::Nothing => {}
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

    /// It is over when this goes, be it because nobody waits for it any more.
    pub(crate) fn until_dropped(&self) -> Ongoing<'_> {
        Ongoing(self)
    }
}

/// Something that goes on as long as this is there.
pub(crate) struct Ongoing<'a>(&'a Progress);

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("our templates are valid ones")
}

/// How much of the whole is done, where the server says how much that is.
pub(crate) fn share(progress: f64, total: Option<f64>) -> Option<f64> {
    total.filter(|it| *it > 0.0).map(|it| progress / it).filter(|it| it.is_finite())
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
        use Chatter::{Quiet, Usual};
        assert_eq!(manner(true, false, Usual), Manner::Spinner);
        assert_eq!(manner(true, true, Usual), Manner::Lines);
        assert_eq!(manner(false, true, Usual), Manner::Lines);
        assert_eq!(manner(false, false, Usual), Manner::Silent);
        assert_eq!(manner(true, false, Quiet), Manner::Nothing);
        assert_eq!(
            (share(1.0, Some(4.0)), share(1.0, Some(0.0)), share(1.0, None)),
            (Some(0.25), None, None)
        );
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
