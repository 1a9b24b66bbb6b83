//! Fixes: edits of the text that correct a mistake.
//!
//! The code that finds a mistake states the intended change as a [`FixIntent`]; `read::fix_plan` turns it
//! into edits. No edit inserts text that may be a secret: a value that stays is left untouched.

use std::ops::Range;

/// How certain a fix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Applicability {
    /// The fix is what the author meant. It may be applied without confirmation.
    Certain,
    /// The fix is a guess, or changes behaviour. A person should review it.
    Suggested,
}

/// Edits that correct a mistake.
///
/// Invariant: the edits are inside the text of the diagnostic, on character boundaries, ordered and disjoint.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub struct Fix {
    pub(crate) title: String,
    pub(crate) applicability: Applicability,
    pub(crate) edits: Vec<TextEdit>,
    /// Pointers to the changed values: in the old text, and in the new text. A key may contain a secret (`KEY=value`).
    #[debug(skip)]
    pub(crate) changed: [Vec<String>; 2],
}

impl Fix {
    /// What the fix does, in the imperative: `write "command"`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How certain the fix is.
    pub fn applicability(&self) -> Applicability {
        self.applicability
    }

    /// The edits in text order.
    pub fn edits(&self) -> &[TextEdit] {
        &self.edits
    }
}

/// A replacement of some bytes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextEdit {
    /// The replaced bytes, on character boundaries; empty for an insertion.
    pub span: Range<usize>,
    /// The new text.
    pub text: String,
}

/// The change that would correct a mistake, independent of how the file is formatted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FixIntent {
    /// Renames the key at the diagnostic's pointer.
    RenameKey(String, Applicability),
    /// Replaces the scalar.
    ReplaceScalar(String, Applicability),
    /// Quotes the key or the scalar.
    Quote,
    /// Replaces a string by the value that it spells.
    Unquote(ScalarKind),
    /// Wraps the value in a list.
    WrapInList,
    /// Replaces the scheme of a URL: from, to.
    ReplaceScheme(&'static str, &'static str),
    /// Removes the member at this pointer.
    RemoveMember(String, Applicability),
    /// Adds members to the mapping at `mapping`: after the key `after`, or first.
    AddMembers {
        mapping: String,
        after: Option<&'static str>,
        members: Vec<(&'static str, serde_json::Value)>,
        applicability: Applicability,
    },
}

/// The type of value that a string spells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Boolean,
    Integer,
    Number,
}

/// Applies edits to a text. Returns `None` if two edits overlap or one does not fit the text. Equal edits count once.
pub(crate) fn apply_edits<'a>(text: &str, edits: impl IntoIterator<Item = &'a TextEdit>) -> Option<String> {
    let mut edits: Vec<&TextEdit> = edits.into_iter().collect();
    edits.sort_by_key(|it| (it.span.start, it.span.end));
    edits.dedup();
    let mut res = String::with_capacity(text.len());
    let mut at = 0;
    let mut last_empty = None;
    for TextEdit { span, text: new } in edits {
        // The order of two insertions at one position would be arbitrary.
        if span.start < at || last_empty == Some(span.start) {
            return None;
        }
        res.push_str(text.get(at..span.start)?);
        text.get(span.clone())?;
        res.push_str(new);
        at = span.end;
        last_empty = Some(span.end).filter(|_| span.is_empty());
    }
    res.push_str(text.get(at..)?);
    Some(res)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(edits: &[(Range<usize>, &str)], want: Option<&str>) {
        let edits: Vec<_> = edits
            .iter()
            .map(|(span, text)| TextEdit { span: span.clone(), text: (*text).to_owned() })
            .collect();
        assert_eq!(apply_edits("aébc", &edits).as_deref(), want, "{edits:?}");
    }

    #[test]
    fn edits_apply_in_any_order_and_overlaps_are_refused() {
        check(&[], Some("aébc"));
        check(&[(4..5, "C"), (0..1, "A")], Some("AébC"));
        check(&[(0..1, "A"), (1..3, "e"), (5..5, "!")], Some("Aebc!"));
        check(&[(0..3, "x"), (0..3, "x")], Some("xbc"));
        check(&[(0..3, "x"), (1..4, "y")], None);
        check(&[(1..1, "x"), (1..1, "y")], None);
        check(&[(0..2, "x")], None);
        check(&[(5..9, "x")], None);
    }
}
