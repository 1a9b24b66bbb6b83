//! Characters that hide text or change how it is displayed.

use std::ops::Range;

use mcp_host_model::is_invisible;

use super::finding::{FindingKind, FindingSeverity, FindingText, Match};
use super::tokens::look_alike;

/// A run of blanks or line ends that moves text out of sight. Indented text has shorter ones.
const MIN_PADDING: usize = 120;

/// The number of line ends that move text out of sight.
const MIN_EMPTY_LINES: usize = 20;

/// A run of invisible characters from this length on carries data.
const MIN_HIDDEN_RUN: usize = 4;

/// Finds such characters.
pub(super) fn find(text: &str, kind: FindingText, matches: &mut Vec<Match>) {
    if text.bytes().all(|it| matches!(it, b'\n' | b'!'..=b'~')) {
        return;
    }
    find_runs(text, matches);
    find_padding(text, matches);
    find_look_alikes(text, kind, matches);
}

/// Finds runs of invisible characters and of control characters.
fn find_runs(text: &str, matches: &mut Vec<Match>) {
    let is_control = |it: char| it.is_control() && !matches!(it, '\n' | '\t' | '\r');
    let is_special = |it: char| is_invisible(it) || is_control(it);
    let mut start = 0;
    while let Some(at) = text[start..].find(is_special) {
        let begin = start + at;
        let end = text[begin..].find(|it| !is_special(it)).map_or(text.len(), |it| begin + it);
        let (before, after) = (text[..begin].chars().next_back(), text[end..].chars().next());
        let run = &text[begin..end];
        if run.contains(is_control) {
            let is_sequence = run.contains(['\u{1b}', '\u{8}', '\u{90}', '\u{9b}', '\u{9d}']);
            let severity = if is_sequence { FindingSeverity::Hard } else { FindingSeverity::Soft };
            // A few characters after it show what the sequence does.
            let end = text[end..].char_indices().nth(24).map_or(text.len(), |it| end + it.0);
            let found =
                Match { kind: FindingKind::ControlCharacters, severity, span: begin..end, evidence: None };
            matches.push(found);
        } else if let Some(severity) = run_severity(run, before, after) {
            matches.push(hidden_run(text, begin..end, severity));
        }
        start = end;
    }
}

/// The severity of a run of invisible characters between the characters `before` and `after`; `None` for one that emoji
/// and scripts need.
fn run_severity(run: &str, before: Option<char>, after: Option<char>) -> Option<FindingSeverity> {
    let is_letter = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let count = run.chars().count();
    let is_tag = |it: char| matches!(it, '\u{e0000}'..='\u{e007f}');
    if run.contains(is_tag) {
        // The flags of England, Scotland and Wales are written with tags.
        let is_flag = before == Some('\u{1f3f4}') && run.ends_with('\u{e007f}') && count <= 7;
        return (!is_flag).then_some(FindingSeverity::Hard);
    }
    if run.contains(['\u{202d}', '\u{202e}']) || count >= MIN_HIDDEN_RUN {
        return Some(FindingSeverity::Hard);
    }
    if run.chars().all(|it| matches!(it, '\u{fe0e}' | '\u{fe0f}' | '\u{200d}')) && !is_letter(before) {
        return None;
    }
    // Within a word of Latin letters it hides the word from filters. A soft hyphen is a hint for line breaks.
    let splits_word = is_letter(before) && is_letter(after) && !run.contains('\u{ad}');
    Some(if splits_word { FindingSeverity::Hard } else { FindingSeverity::Soft })
}

/// A run of invisible characters. Tags are shown as the ASCII text that they encode.
fn hidden_run(text: &str, span: Range<usize>, severity: FindingSeverity) -> Match {
    let tag_text: String = text[span.clone()]
        .chars()
        .filter_map(|it| u32::from(it).checked_sub(0xe0000).and_then(char::from_u32))
        .filter(|it| matches!(it, ' '..='~'))
        .collect();
    let evidence = if tag_text.is_empty() {
        let begin = text[..span.start].char_indices().rev().nth(11).map_or(0, |it| it.0);
        let end = text[span.end..].char_indices().nth(12).map_or(text.len(), |it| span.end + it.0);
        text[begin..end].to_owned()
    } else {
        format!("hidden text: {tag_text}")
    };
    Match { kind: FindingKind::HiddenCharacters, severity, span, evidence: Some(evidence) }
}

/// Finds long runs of white space before more text.
fn find_padding(text: &str, matches: &mut Vec<Match>) {
    let mut start = 0;
    while let Some(at) = text[start..].find(char::is_whitespace) {
        let begin = start + at;
        let end = text[begin..].find(|it: char| !it.is_whitespace()).map_or(text.len(), |it| begin + it);
        let run = &text[begin..end];
        let longest_line = run.split('\n').map(|it| it.chars().count()).max().unwrap_or_default();
        let is_padding = longest_line >= MIN_PADDING || run.matches('\n').count() >= MIN_EMPTY_LINES;
        if is_padding && begin > 0 && end < text.len() {
            let after = text[end..].char_indices().nth(80).map_or(text.len(), |it| end + it.0);
            let evidence = format!("{} blanks, then: {}", run.chars().count(), &text[end..after]);
            matches.push(Match {
                kind: FindingKind::Padding,
                severity: FindingSeverity::Hard,
                span: begin..end,
                evidence: Some(evidence),
            });
            return;
        }
        start = end;
    }
}

/// Finds words of Latin letters and ones that look like them. In a name this is a hard finding, because the name looks
/// like another one.
fn find_look_alikes(text: &str, kind: FindingText, matches: &mut Vec<Match>) {
    if text.is_ascii() {
        return;
    }
    let mut start = 0;
    while let Some(at) = text[start..].find(char::is_alphabetic) {
        let begin = start + at;
        let end = text[begin..].find(|it: char| !it.is_alphabetic()).map_or(text.len(), |it| begin + it);
        let word = &text[begin..end];
        let (latin, alike) = word.chars().fold((0, 0), |(latin, alike), it| {
            (latin + usize::from(it.is_ascii_alphabetic()), alike + usize::from(look_alike(it).is_some()))
        });
        if latin >= 2 && alike > 0 && latin + alike == word.chars().count() {
            let is_name = kind == FindingText::Name || !text.contains(char::is_whitespace);
            let severity = if is_name { FindingSeverity::Hard } else { FindingSeverity::Soft };
            let evidence = word.chars().map(|it| match look_alike(it) {
                Some(latin) => format!("{it}(U+{:04X}, not {latin})", u32::from(it)),
                None => it.to_string(),
            });
            let evidence = Some(evidence.collect());
            matches.push(Match { kind: FindingKind::LookAlike, severity, span: begin..end, evidence });
            return;
        }
        start = end;
    }
}
