//! What can be done about a mistake without asking: edits of the text, by its bytes.
//!
//! Whoever finds a mistake says what is meant ([`Repair`]); only here is it known how that is written. No edit puts
//! anything into a text that may be a secret: what stays is kept by not touching it.

mod apply;
mod plan;

use std::ops::Range;

pub use apply::{FixError, FixedFile, apply_fixes, fix_all};
pub(crate) use plan::SourceTree;

use crate::write::OutputValue;

/// How sure a fix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Applicability {
    /// It says what the text was meant to say, and may be applied without asking.
    Sure,
    /// It is a guess, or changes what is done: somebody should look at it.
    Suggested,
}

/// A way to put a mistake right.
///
/// Invariant: the edits lie inside the text that the diagnostic was made from, on character borders, in order and apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Fix {
    title: String,
    applicability: Applicability,
    edits: Vec<TextEdit>,
    /// The places that are changed: in the old text, and in the new one.
    changed: [Vec<String>; 2],
}

impl std::fmt::Debug for Fix {
    /// Without the places: a key may hold a secret (`KEY=value`).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fix { title, applicability, edits, changed: _ } = self;
        let mut res = f.debug_struct("Fix");
        res.field("title", title).field("applicability", applicability).field("edits", edits);
        res.finish_non_exhaustive()
    }
}

impl Fix {
    /// What it does, as an order: `write "command"`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How sure it is.
    pub fn applicability(&self) -> Applicability {
        self.applicability
    }

    /// Its edits, in the order of the text.
    pub fn edits(&self) -> &[TextEdit] {
        &self.edits
    }
}

/// Another text in place of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes that go, on character borders; empty where something is only put in.
    pub span: Range<usize>,
    /// What comes.
    pub text: String,
}

/// What is meant instead of a mistake.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FixIntent {
    /// Another key, of the member at the problem's pointer.
    RenameKey(String, Applicability),
    /// Another word in place of the scalar.
    ReplaceScalar(String, Applicability),
    /// The key, or the scalar, as text.
    Quote,
    /// The text as the value that it says.
    Unquote(ScalarKind),
    /// A list of the one value.
    WrapInList,
    /// Another beginning of a URL.
    ReplaceScheme(&'static str, &'static str),
    /// Nothing: the member at this pointer goes.
    RemoveMember(String, Applicability),
    /// More members, behind one of the mapping at this pointer, or before all.
    AddMembers {
        mapping: String,
        after: Option<&'static str>,
        members: Vec<(&'static str, OutputValue)>,
        applicability: Applicability,
    },
}

/// What a text may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Boolean,
    Integer,
    Number,
}

/// Puts edits into a text. `None` where two of them overlap, or one does not fit the text. The same edit twice is one.
pub(crate) fn apply_edits<'a>(text: &str, edits: impl IntoIterator<Item = &'a TextEdit>) -> Option<String> {
    let mut edits: Vec<&TextEdit> = edits.into_iter().collect();
    edits.sort_by_key(|it| (it.span.start, it.span.end));
    edits.dedup();
    let mut res = String::with_capacity(text.len());
    let mut at = 0;
    let mut last_empty = None;
    for TextEdit { span, text: new } in edits {
        // Two texts for one place would stand in an order that nobody chose.
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
    fn edits_apply_in_any_order_and_never_over_one_another() {
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
