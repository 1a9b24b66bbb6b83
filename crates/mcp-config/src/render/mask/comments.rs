//! Shows comments that cannot be secrets.

use super::Masker;
use super::ranges::RangeCursor;
use crate::render::safe_values;
use crate::syntax::Syntax;

impl Masker {
    /// Shows comments that are plain sentences. A comment is outside of all values.
    pub(super) fn show_plain_comments(&mut self, text: &str) {
        let start = match self.syntax {
            Syntax::Yaml | Syntax::Toml => "#",
            Syntax::Json | Syntax::JsonWithComments => "//",
        };
        let mut marked: Vec<_> = self.visible.iter().chain(&self.hidden).cloned().collect();
        marked.sort_by_key(|it| it.start);
        let mut values = RangeCursor::new(&marked);
        let mut line_start = 0;
        let mut shown = Vec::new();
        for line in text.split_inclusive('\n') {
            let is_outside = |at: &usize| !values.covers(line_start + at);
            if let Some(at) = line.match_indices(start).map(|it| it.0).find(is_outside) {
                let comment = line[at..].trim_end();
                if safe_values::is_plain_sentence(comment.trim_start_matches(['#', '/'])) {
                    shown.push(line_start + at..line_start + at + comment.len());
                }
            }
            line_start += line.len();
        }
        self.visible.append(&mut shown);
    }
}
