//! Ranges of a text that are shown: references, and a cursor over sorted ranges.

use std::ops::Range;

use crate::syntax::template::{BorrowedTemplatePart, split_holodeck};

/// The ranges of `${NAME}`, `${env:NAME}`, `{env:NAME}` and `${input:id}`.
pub(super) fn reference_ranges(text: &str) -> Vec<Range<usize>> {
    let mut res = prefixed_references(text);
    let mut at = 0;
    for piece in split_holodeck(text) {
        match piece {
            BorrowedTemplatePart::Text(text) => at += text.len(),
            // Only in editor files, where references are masked like other text.
            BorrowedTemplatePart::VariableOr { .. }
            | BorrowedTemplatePart::Input(_)
            | BorrowedTemplatePart::File(_) => {}
            BorrowedTemplatePart::Variable(name) => {
                let length = name.len() + "${}".len();
                res.push(at..at + length);
                at += length;
            }
        }
    }
    res.sort_by_key(|it| it.start);
    res
}

/// The ranges of `${env:NAME}`, `{env:NAME}` and `${input:id}`.
fn prefixed_references(text: &str) -> Vec<Range<usize>> {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    let found = text.match_indices('{').filter_map(|(brace, _)| {
        let inner = &text[brace + "{".len()..];
        let has_dollar = text[..brace].ends_with('$');
        let start = brace - usize::from(has_dollar);
        let input = || inner.strip_prefix("input:").filter(|_| has_dollar);
        let name = inner.strip_prefix("env:").or_else(input)?;
        let length = name.bytes().take_while(|it| is_part(*it)).count();
        let whole = (1..=64).contains(&length) && name[length..].starts_with('}');
        whole.then(|| start..brace + "{".len() + (inner.len() - name.len()) + length + "}".len())
    });
    found.collect()
}

/// Sorted ranges, queried with increasing offsets.
pub(super) struct RangeCursor<'a> {
    ranges: &'a [Range<usize>],
    /// The largest end of the ranges that have started.
    end: usize,
}

impl<'a> RangeCursor<'a> {
    pub(super) fn new(ranges: &'a [Range<usize>]) -> RangeCursor<'a> {
        RangeCursor { ranges, end: 0 }
    }

    pub(super) fn covers(&mut self, offset: usize) -> bool {
        while let [first, rest @ ..] = self.ranges
            && first.start <= offset
        {
            self.end = self.end.max(first.end);
            self.ranges = rest;
        }
        offset < self.end
    }
}
