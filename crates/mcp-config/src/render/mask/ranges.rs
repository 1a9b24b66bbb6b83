//! Ranges of a text that are shown: references, and a cursor over sorted ranges.

use std::ops::Range;

use mcp_host_model::TemplatePart;

use crate::render::safe_values;
use crate::syntax::template::{ReferenceRule, find_references};

/// The ranges of references that have no value in them, in the forms of all programs, such as `${NAME}`, `${env:NAME}`,
/// `{env:NAME}`, `{file:path}`, `${input:id}` and `${secret:NAME}`.
pub(super) fn reference_ranges(text: &str) -> Vec<Range<usize>> {
    let rules = [ReferenceRule::Editor, ReferenceRule::Braces];
    let found = rules.into_iter().flat_map(|rule| find_references(text, rule));
    let mut res: Vec<_> = found.filter(|(_, part)| is_shown(part)).map(|(range, _)| range).collect();
    res.sort_by_key(|it| it.start);
    res
}

/// Whether a reference is only a name: a default, or an odd path or id, may be a secret.
fn is_shown(part: &TemplatePart) -> bool {
    match part {
        TemplatePart::Variable(_) | TemplatePart::OptionalVariable(_) | TemplatePart::Secret(_) => true,
        TemplatePart::Input(id) => is_input_id(id),
        TemplatePart::File(path) => safe_values::is_path(path) || safe_values::is_plain_words(path),
        TemplatePart::Text(_) | TemplatePart::VariableOr { .. } => false,
    }
}

fn is_input_id(text: &str) -> bool {
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
