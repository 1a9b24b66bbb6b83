//! Findings in the texts of servers, for reports.
//!
//! Evidence is text of a server: each line of it begins with a sign that this module adds.

use std::fmt::Write as _;

use mcp_host_registry::{FindingSeverity, ItemFinding};
use serde::Serialize;

use crate::output::sanitize;

/// A finding in a JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct FindingJson<'a> {
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    item: &'static str,
    /// The key of the item; `None` for instructions.
    name: Option<&'a str>,
    kind: &'static str,
    /// `hard` or `soft`.
    severity: &'static str,
    /// The JSON pointer in the definition.
    pointer: &'a str,
    /// Whether the value at the pointer or its name is the text: `value` or `name`.
    text: &'static str,
    /// The range in the decoded text, in bytes.
    start: usize,
    end: usize,
    evidence: &'a str,
}

impl<'a> FindingJson<'a> {
    pub(crate) fn new(found: &'a ItemFinding) -> FindingJson<'a> {
        let ItemFinding { item, finding, .. } = found;
        FindingJson {
            item: item.as_ref().map_or("instructions", |it| it.0.as_str()),
            name: item.as_ref().map(|it| it.1.as_str()),
            kind: finding.kind.as_str(),
            severity: finding.severity.as_str(),
            pointer: &finding.pointer,
            text: finding.text.as_str(),
            start: finding.span.start,
            end: finding.span.end,
            evidence: &finding.evidence,
        }
    }
}

/// Whether a finding needs a decision.
pub(crate) fn is_hard(found: &ItemFinding) -> bool {
    found.finding.severity == FindingSeverity::Hard
}

/// What a finding is and where, in one line.
pub(crate) fn finding_title(found: &ItemFinding) -> String {
    let severity = found.finding.severity.as_str();
    sanitize::line(&format!("{severity} finding in {}: {}", found.place(), found.finding.kind.description()))
}

/// Appends the lines of a finding.
pub(crate) fn push_finding(output: &mut String, found: &ItemFinding) {
    let _ = writeln!(output, "  {}", finding_title(found));
    let _ = writeln!(output, "    ! {}", sanitize::line(&found.finding.evidence));
}
