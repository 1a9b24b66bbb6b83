//! Fixes applied, and the proof that they did what they say and nothing else.

use crate::diagnostic::RawDiagnostic;
use crate::diagnostic::{Applicability, apply_edits};
use crate::diagnostic::{Code, Diagnostic};
use crate::profile::policy::Policy;
use crate::read::{Document, read};
use crate::syntax;
use crate::syntax::{ChangedPointers, difference};

/// Why fixes were not applied. Nothing of them was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FixError {
    /// Two fixes want the same bytes, or one was made for another text.
    #[error("two fixes overlap, or one was made for another text")]
    Overlap,
    /// The mistake is still there.
    #[error("{code} is still there at '{pointer}'")]
    NotFixed {
        /// Which mistake.
        code: Code,
        /// Where.
        pointer: String,
    },
    /// Something else would say something else.
    #[error("the value at '{pointer}' would change too")]
    OtherValueChanged {
        /// Where.
        pointer: String,
    },
    /// The text could not be read any more, or had another mistake.
    #[error("the text would be no longer readable")]
    Unreadable,
}

/// Applies the fixes of these diagnostics, those that have one, to the text they were made from.
///
/// The new text is read again: every one of the mistakes is gone from its place, and no value says anything else than
/// before, but for those that the fixes are about.
pub fn apply_fixes<'a>(
    document: &Document<'_>,
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
) -> Result<String, FixError> {
    let fixed: Vec<_> = diagnostics.into_iter().filter_map(|it| Some((it, it.fix.as_ref()?))).collect();
    // The same fix of two mistakes, in a value that stands in two places, is one.
    let edits = fixed.iter().flat_map(|it| &it.1.edits);
    let text = apply_edits(document.text, edits).ok_or(FixError::Overlap)?;
    let mut touched = ChangedPointers::default();
    for (_, fix) in &fixed {
        touched.old.extend(fix.changed[0].iter().cloned());
        touched.new.extend(fix.changed[1].iter().cloned());
    }
    let syntax = Policy::for_profile(document.profile).syntax;
    let (old, new) = (syntax::parse_as(document.text, syntax), syntax::parse_as(&text, syntax));
    let known = |it: &RawDiagnostic| {
        old.diagnostics.iter().any(|old| (old.code, &old.pointer) == (it.code, &it.pointer))
    };
    if !new.diagnostics.iter().all(known) {
        return Err(FixError::Unreadable);
    }
    let (Some(old), Some(new)) = (old.root, new.root) else { return Err(FixError::Unreadable) };
    if let Some(pointer) = difference(&old, &new, &touched) {
        return Err(FixError::OtherValueChanged { pointer });
    }
    let again = read(&Document { text: &text, ..*document });
    for (diagnostic, _) in &fixed {
        let same = |it: &&Diagnostic| it.code == diagnostic.code && it.pointer == diagnostic.pointer;
        if again.diagnostics.iter().any(|it| same(&it)) {
            let Diagnostic { code, pointer, .. } = (*diagnostic).clone();
            return Err(FixError::NotFixed { code, pointer });
        }
    }
    Ok(text)
}

/// A text with what could be fixed fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedFile {
    /// The new text; the old one where nothing was fixed.
    pub text: String,
    /// The mistakes that are gone, as they were found: a place is one of the text at that moment.
    pub fixed: Vec<Diagnostic>,
}

/// How often a text is read again for what a fix brought to light.
const MAX_ROUNDS: usize = 4;
/// How many fixes of one round are tried one by one.
const MAX_SINGLE_FIXES: usize = 50;

/// Applies every fix that is at least as sure as asked for, over and over, until nothing is left to be fixed. A fix that
/// cannot be proved to be right is left out.
pub fn fix_all(document: &Document<'_>, least: Applicability) -> FixedFile {
    let mut res = FixedFile { text: document.text.to_owned(), fixed: Vec::new() };
    for _ in 0..MAX_ROUNDS {
        let now = Document { text: &res.text, ..*document };
        let wanted: Vec<Diagnostic> =
            read(&now).diagnostics.into_iter().filter(|it| is_selected(it, least)).collect();
        if wanted.is_empty() {
            break;
        }
        if let Ok(text) = apply_fixes(&now, &wanted) {
            res.text = text;
            res.fixed.extend(wanted);
            continue;
        }
        // One of them spoils the others: as many as go together, in the order of the text.
        let mut chosen: Vec<Diagnostic> = Vec::new();
        let mut text = None;
        for diagnostic in wanted.into_iter().take(MAX_SINGLE_FIXES) {
            chosen.push(diagnostic);
            match apply_fixes(&now, &chosen) {
                Ok(new) => text = Some(new),
                Err(_) => {
                    chosen.pop();
                }
            }
        }
        let Some(text) = text else { break };
        res.text = text;
        res.fixed.extend(chosen);
    }
    res
}

fn is_selected(diagnostic: &Diagnostic, least: Applicability) -> bool {
    diagnostic.fix.as_ref().is_some_and(|it| it.applicability <= least)
}
