//! The scan of one text: all rules, and the list of findings that they add to.

use super::finding::{Finding, FindingSeverity, Match, OtherTools, TextPlace, visible};
use super::{characters, encoded, markup, phrases};

/// The maximum number of findings of one definition.
const MAX_FINDINGS: usize = 16;

/// The maximum length of an evidence, in characters.
const MAX_EVIDENCE_CHARS: usize = 160;

/// The findings of a definition.
pub(super) struct Findings<'a> {
    others: &'a OtherTools,
    hard: Vec<Finding>,
    soft: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(others: &'a OtherTools) -> Findings<'a> {
        Findings { others, hard: Vec::new(), soft: Vec::new() }
    }

    /// Applies all rules to a text.
    pub(super) fn scan_text(&mut self, text: &str, place: &TextPlace) {
        let mut matches = Vec::new();
        characters::find(text, place.text, &mut matches);
        phrases::find(text, place.text, self.others, &mut matches);
        if text.len() >= encoded::MIN_BYTES {
            markup::find(text, &mut matches);
            encoded::find(text, &mut matches);
        }
        for found in matches {
            self.add(text, place, found);
        }
    }

    /// Adds a finding, unless there are enough, or one of its kind and severity is in the same text already.
    fn add(&mut self, text: &str, place: &TextPlace, found: Match) {
        let Match { kind, severity, span, evidence } = found;
        let list = match severity {
            FindingSeverity::Hard => &mut self.hard,
            FindingSeverity::Soft => &mut self.soft,
        };
        if list.len() >= MAX_FINDINGS {
            return;
        }
        let pointer = place.pointer();
        if list.iter().any(|it| it.kind == kind && it.pointer == pointer && it.text == place.text) {
            return;
        }
        let evidence = evidence.unwrap_or_else(|| text.get(span.clone()).unwrap_or_default().to_owned());
        let evidence = visible(&evidence, MAX_EVIDENCE_CHARS);
        list.push(Finding { kind, severity, pointer, text: place.text, span, evidence });
    }

    /// Returns the findings, hard ones first. A soft one is left out if the text has a hard one of its kind.
    pub(super) fn into_list(self) -> Vec<Finding> {
        let Findings { others: _, mut hard, soft } = self;
        let is_new =
            |it: &Finding| !hard.iter().any(|other| other.kind == it.kind && other.pointer == it.pointer);
        let soft: Vec<Finding> = soft.into_iter().filter(is_new).collect();
        hard.extend(soft);
        hard.truncate(MAX_FINDINGS);
        hard
    }
}
