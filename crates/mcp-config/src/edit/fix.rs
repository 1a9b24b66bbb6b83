//! Applies fixes and verifies that they change nothing else.

use crate::diagnostic::{Applicability, Code, Diagnostic, RawDiagnostic, apply_edits};
use crate::profile::rules::ProfileRules;
use crate::read::{Document, read};
use crate::syntax::{self, ChangedPointers, Syntax, find_difference};

/// The reason why fixes were not applied. If one cannot be applied, none is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FixError {
    /// Two fixes overlap, or one was made for another text.
    #[error("two fixes overlap, or one was made for another text")]
    Overlap,
    /// The mistake is still there.
    #[error("{code} is not fixed at '{pointer}'")]
    NotFixed {
        /// The code of the mistake.
        code: Code,
        /// Its pointer.
        pointer: String,
    },
    /// Another value would change.
    #[error("the value at '{pointer}' would change too")]
    OtherValueChanged {
        /// Its pointer.
        pointer: String,
    },
    /// The new text could not be read, or had a new syntax error.
    #[error("the new text could not be read")]
    Unreadable,
}

/// Applies the fixes of these diagnostics to the text that they were made from. Diagnostics without a fix are ignored.
///
/// The new text is read again. Every mistake must have disappeared, and only the values that the fixes name may
/// differ.
pub fn apply_fixes<'a>(
    document: &Document<'_>,
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
) -> Result<String, FixError> {
    let read = |text: &str| read(&document.with_text(text)).diagnostics;
    apply_fixes_to_text(document.text, syntax_of(document), &read, diagnostics)
}

/// The syntax of a document.
fn syntax_of(document: &Document<'_>) -> Syntax {
    ProfileRules::for_profile(document.profile).syntax_of(document.name, document.text)
}

/// Like [`apply_fixes`], for any text. `read` returns the diagnostics of a text.
pub(crate) fn apply_fixes_to_text<'a>(
    text: &str,
    syntax: Syntax,
    read: &dyn Fn(&str) -> Vec<Diagnostic>,
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
) -> Result<String, FixError> {
    let original = text;
    let fixes: Vec<_> = diagnostics.into_iter().filter_map(|it| Some((it, it.fix.as_ref()?))).collect();
    // Two diagnostics about a shared value (an alias) have the same fix; it counts once.
    let edits = fixes.iter().flat_map(|it| &it.1.edits);
    let text = apply_edits(original, edits).ok_or(FixError::Overlap)?;
    let mut changed = ChangedPointers::default();
    for (_, fix) in &fixes {
        changed.old.extend(fix.changed[0].iter().cloned());
        changed.new.extend(fix.changed[1].iter().cloned());
    }
    let (old, new) = (syntax::parse_as(original, syntax), syntax::parse_as(&text, syntax));
    let is_known = |it: &RawDiagnostic| {
        old.diagnostics.iter().any(|old| (old.code, &old.pointer) == (it.code, &it.pointer))
    };
    if !new.diagnostics.iter().all(is_known) {
        return Err(FixError::Unreadable);
    }
    let (Some(old), Some(new)) = (old.root, new.root) else { return Err(FixError::Unreadable) };
    if let Some(pointer) = find_difference(&old, &new, &changed) {
        return Err(FixError::OtherValueChanged { pointer });
    }
    let new_diagnostics = read(&text);
    for (diagnostic, fix) in &fixes {
        // A new name for a key must be a known one.
        let is_same = |it: &Diagnostic| {
            it.code == diagnostic.code
                && (it.pointer == diagnostic.pointer || fix.changed[1].contains(&it.pointer))
        };
        if new_diagnostics.iter().any(is_same) {
            let Diagnostic { code, pointer, .. } = (*diagnostic).clone();
            return Err(FixError::NotFixed { code, pointer });
        }
    }
    Ok(text)
}

/// The result of fixing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FixedFile {
    /// The new text, or the old one if nothing was fixed.
    pub text: String,
    /// The fixed diagnostics. Their positions refer to the text at the time of the fix.
    pub fixed: Vec<Diagnostic>,
}

/// The maximum number of rounds. A fix may reveal further mistakes, which the next round fixes.
const MAX_ROUNDS: usize = 4;
/// The maximum number of fixes of a round that are tried one at a time.
const MAX_SINGLE_FIXES: usize = 50;

/// Applies every fix that is at least as certain as `least`, repeatedly, until none is left. A fix that cannot be
/// verified is skipped.
pub fn fix_all(document: &Document<'_>, least: Applicability) -> FixedFile {
    let read = |text: &str| read(&document.with_text(text)).diagnostics;
    fix_all_in_text(document.text, syntax_of(document), &read, least)
}

/// Like [`fix_all`], for any text. `read` returns the diagnostics of a text.
pub(crate) fn fix_all_in_text(
    text: &str,
    syntax: Syntax,
    read: &dyn Fn(&str) -> Vec<Diagnostic>,
    least: Applicability,
) -> FixedFile {
    let mut res = FixedFile { text: text.to_owned(), fixed: Vec::new() };
    for _ in 0..MAX_ROUNDS {
        let selected: Vec<Diagnostic> =
            read(&res.text).into_iter().filter(|it| is_selected(it, least)).collect();
        if selected.is_empty() {
            break;
        }
        if let Ok(text) = apply_fixes_to_text(&res.text, syntax, read, &selected) {
            res.text = text;
            res.fixed.extend(selected);
            continue;
        }
        // At least one fix fails: add them one at a time, in text order.
        let mut chosen: Vec<Diagnostic> = Vec::new();
        let mut text = None;
        for diagnostic in selected.into_iter().take(MAX_SINGLE_FIXES) {
            chosen.push(diagnostic);
            match apply_fixes_to_text(&res.text, syntax, read, &chosen) {
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

/// Whether a diagnostic has a fix that is at least as certain as `least`.
fn is_selected(diagnostic: &Diagnostic, least: Applicability) -> bool {
    diagnostic.fix.as_ref().is_some_and(|it| it.applicability <= least)
}
