//! Redacts text that arrives line by line, where a secret may continue in the next line.

use std::ops::Range;
use std::sync::Arc;

use super::{Redactor, mask, without_control_characters};

/// The minimum length of the beginning of a secret that is redacted at the end of a line. A shorter one could be any
/// word.
const MIN_BEGINNING_BYTES: usize = 6;

/// Redacts the lines of one stream.
pub(crate) struct LineCleaner {
    redactor: Arc<Redactor>,
    /// The end of the earlier lines without line breaks, as long as the longest secret.
    before: String,
}

impl LineCleaner {
    pub(crate) fn new(redactor: Arc<Redactor>) -> LineCleaner {
        LineCleaner { redactor, before: String::new() }
    }

    /// Returns the next line, redacted and without control characters, cut to `limit` bytes.
    ///
    /// All parts of a secret in several lines are redacted, except a first one that is less than half of it.
    pub(crate) fn clean(&mut self, line: &str, limit: usize) -> String {
        let visible = without_control_characters(line);
        let content = visible.trim();
        let indent = visible.len() - visible.trim_start().len();
        let (start, joined) = (self.before.len(), format!("{}{content}", self.before));
        let (mut found, mut longest) = (Vec::new(), 0);
        for secret in self.redactor.secrets() {
            let secret = secret.expose();
            longest = longest.max(secret.len());
            found.extend(joined.match_indices(secret).map(|(at, _)| at..at + secret.len()));
            found.extend(beginning_at_end(&joined, secret));
        }
        let in_line = found.into_iter().filter(|range| range.end > start);
        let in_line =
            in_line.map(|range| indent + range.start.saturating_sub(start)..indent + range.end - start);
        let masked = mask(&visible, in_line.collect());
        let kept =
            (joined.len().saturating_sub(longest)..joined.len()).find(|at| joined.is_char_boundary(*at));
        self.before = kept.map(|at| joined[at..].to_owned()).unwrap_or_default();
        self.redactor.clean(&masked, limit)
    }
}

/// Finds the beginning of a secret at the end of a text: at least half of it, but not all.
fn beginning_at_end(text: &str, secret: &str) -> Option<Range<usize>> {
    let min = MIN_BEGINNING_BYTES.max(secret.len().div_ceil(2));
    let length =
        (min..secret.len()).rev().find(|it| secret.is_char_boundary(*it) && text.ends_with(&secret[..*it]));
    length.map(|length| text.len() - length..text.len())
}

#[cfg(test)]
mod tests {
    use mcp_host_model::Secret;

    use super::*;

    #[track_caller]
    fn check(lines: &[&str], want: &[&str]) {
        let secrets = [Secret::new("hunter2-and-more"), Secret::new("p\u{e4}sswort")];
        let mut cleaner = LineCleaner::new(Arc::new(Redactor::new(secrets.iter())));
        let got: Vec<String> = lines.iter().map(|line| cleaner.clean(line, 40)).collect();
        assert_eq!(got, want);
    }

    // RPT-264
    #[test]
    fn secret_in_several_lines_of_a_stream_is_redacted() {
        check(&["it is hunter2-and", "-more, see"], &["it is ***", "***, see"]);
        check(&["it is hunt", "  er2-and-more", "done"], &["it is hunt", "  ***", "done"]);
        check(&["hunter2-", "and-", "more"], &["***", "***", "***"]);
        check(&["hun\u{1b}[0mter2-and", "-more"], &["***", "***"]);
        check(&["the p\u{e4}ssw", "ort"], &["the ***", "***"]);
        check(&["a hunter2", "b hunter2-and-more"], &["a hunter2", "b ***"]);
        check(&["hunter2-and", "", "-more"], &["***", "", "***"]);
        check(&["and-more", "hunter"], &["and-more", "hunter"]);
    }
}
