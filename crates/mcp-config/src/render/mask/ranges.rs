//! Ranges of a text that are shown: references, and a cursor over sorted ranges.

use std::ops::Range;

use mcp_host_model::TemplatePart;

use crate::render::safe_values;
use crate::syntax::template::{ReferenceRule, split_references};

/// The ranges of `${NAME}`, `${env:NAME}`, `{env:NAME}`, `{file:path}`, `${input:id}` and `${secret:NAME}`.
pub(super) fn reference_ranges(text: &str) -> Vec<Range<usize>> {
    let mut res = prefixed_references(text);
    let mut at = 0;
    for part in split_references(text, ReferenceRule::Expand) {
        match part {
            TemplatePart::Text(text) => at += text.expose().len(),
            TemplatePart::Secret(name) => at += name.len() + "${secret:}".len(),
            // Only in editor files, where references are masked like other text.
            TemplatePart::OptionalVariable(_)
            | TemplatePart::VariableOr { .. }
            | TemplatePart::Input(_)
            | TemplatePart::File(_) => {}
            TemplatePart::Variable(name) => {
                let length = name.len() + "${}".len();
                res.push(at..at + length);
                at += length;
            }
        }
    }
    res.sort_by_key(|it| it.start);
    res
}

/// The ranges of `${env:NAME}`, `{env:NAME}`, `{file:path}`, `${input:id}` and `${secret:NAME}`.
fn prefixed_references(text: &str) -> Vec<Range<usize>> {
    /// The maximum length of a name or path.
    const MAX_LENGTH: usize = 192;
    let found = text.match_indices('{').filter_map(|(brace, _)| {
        let inner = &text[brace + "{".len()..];
        let has_dollar = text[..brace].ends_with('$');
        let start = brace - usize::from(has_dollar);
        let end = inner.bytes().take(MAX_LENGTH).position(|it| it == b'}')?;
        let (kind, name) = inner[..end].split_once(':')?;
        let is_shown = match kind {
            "env" | "secret" => is_name(name),
            "input" => has_dollar && is_name(name),
            "file" => safe_values::is_path(name) || safe_values::is_plain_words(name),
            _ => false,
        };
        is_shown.then(|| start..brace + "{".len() + end + "}".len())
    });
    found.collect()
}

/// The name of a variable, or the id of an input.
fn is_name(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(is_part)
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

    /// Whether a range contains this offset, which must not be smaller than the one before.
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
