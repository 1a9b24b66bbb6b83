//! Renders diagnostics as SARIF 2.1.0, for code hosts and editors.
//!
//! The output quotes no lines of a file, so it contains no secrets. Columns count Unicode code points.

use std::collections::BTreeSet;

use mcp_host_model::Severity;
use serde_json::{Value, json};

use crate::diagnostic::{Code, Diagnostic, Fix, LineIndex};
use crate::render::checked_file::{CheckOutcome, CheckedFile, printable};

/// The tool that produced the diagnostics.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SarifTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version, `1.2.3`.
    pub version: &'a str,
}

impl<'a> SarifTool<'a> {
    /// A program with its version.
    pub fn new(name: &'a str, version: &'a str) -> SarifTool<'a> {
        SarifTool { name, version }
    }
}

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Renders diagnostics as one SARIF document with one run. A file that could not be read becomes a notification of
/// the run, not a result.
pub fn render_sarif(program: &SarifTool<'_>, checked: &[CheckedFile<'_>]) -> Value {
    let mut codes = BTreeSet::new();
    let mut results = Vec::new();
    let mut notifications = Vec::new();
    for CheckedFile { name, outcome } in checked {
        if let CheckOutcome::Read { diagnostics, .. } = outcome {
            codes.extend(diagnostics.iter().map(|it| it.code));
        }
        if let CheckOutcome::Unreadable { message, help } = outcome {
            notifications.push(json!({
                "level": "error",
                "message": sarif_message(message, *help),
                "locations": [{ "physicalLocation": { "artifactLocation": artifact_location(name) } }],
            }));
        }
    }
    let codes: Vec<Code> = codes.into_iter().collect();
    for CheckedFile { name, outcome } in checked {
        if let CheckOutcome::Read { text, diagnostics } = outcome {
            let file = SarifFile { name, lines: LineIndex::new(text) };
            results.extend(diagnostics.iter().map(|it| sarif_result(it, &file, &codes)));
        }
    }
    let is_complete = notifications.is_empty();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": program.name,
                "semanticVersion": program.version,
                "rules": codes.into_iter().map(sarif_rule).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": is_complete, "toolExecutionNotifications": notifications }],
            "results": results,
        }],
    })
}

/// A SARIF rule for a diagnostic code.
fn sarif_rule(code: Code) -> Value {
    let explanation = code.explain();
    let first = explanation.split("\n\n").next().unwrap_or_default();
    let short = first.split_inclusive(". ").next().unwrap_or_default().trim();
    json!({
        "id": code.as_str(),
        "name": format!("{code:?}"),
        "shortDescription": { "text": short },
        "fullDescription": { "text": first },
        "help": { "text": explanation, "markdown": explanation },
        "defaultConfiguration": { "level": sarif_level(code.severity()) },
    })
}

/// The SARIF level of a severity.
fn sarif_level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// A file and its line index.
struct SarifFile<'a> {
    name: &'a str,
    lines: LineIndex<'a>,
}

impl SarifFile<'_> {
    fn region(&self, span: &std::ops::Range<usize>) -> Value {
        let span = self.lines.clamp(span.clone());
        let ((line, column), (end_line, end_column)) =
            (self.lines.position(span.start), self.lines.position(span.end));
        json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
    }

    fn physical_location(&self, span: &std::ops::Range<usize>) -> Value {
        json!({ "artifactLocation": artifact_location(self.name), "region": self.region(span) })
    }
}

/// A SARIF result for a diagnostic.
fn sarif_result(diagnostic: &Diagnostic, file: &SarifFile<'_>, codes: &[Code]) -> Value {
    let Diagnostic { severity, code, pointer, span, labels, help, server, fix, .. } = diagnostic;
    let mut location = json!({ "physicalLocation": file.physical_location(span) });
    let mut logical = json!({ "fullyQualifiedName": printable(pointer), "kind": "member" });
    if let Some(server) = server {
        logical["name"] = printable(server).into();
    }
    location["logicalLocations"] = json!([logical]);
    let related: Vec<Value> = labels
        .iter()
        .enumerate()
        .map(|(index, it)| {
            json!({
                "id": index + 1,
                "physicalLocation": file.physical_location(&it.span),
                "message": { "text": printable(&it.text) },
            })
        })
        .collect();
    let mut res = json!({
        "ruleId": code.as_str(),
        "ruleIndex": codes.binary_search(code).ok(),
        "level": sarif_level(*severity),
        "message": sarif_message(&diagnostic.to_string(), help.as_deref()),
        "locations": [location],
        "partialFingerprints": { "place/v1": format!("{code}:{}", printable(pointer)) },
    });
    if !related.is_empty() {
        res["relatedLocations"] = related.into();
    }
    if let Some(fix) = fix {
        res["fixes"] = json!([sarif_fix(fix, file)]);
    }
    res
}

/// A SARIF fix.
fn sarif_fix(fix: &Fix, file: &SarifFile<'_>) -> Value {
    let replacement = |it: &crate::diagnostic::TextEdit| {
        let deleted = file.region(&it.span);
        json!({ "deletedRegion": deleted, "insertedContent": { "text": it.text } })
    };
    json!({
        "description": { "text": printable(fix.title()) },
        "artifactChanges": [{
            "artifactLocation": artifact_location(file.name),
            "replacements": fix.edits().iter().map(replacement).collect::<Vec<_>>(),
        }],
    })
}

/// A SARIF message with the help in a second line.
fn sarif_message(message: &str, help: Option<&str>) -> Value {
    // Braces are placeholders in SARIF messages and must be escaped.
    let escape = |text: &str| printable(text).replace('{', "{{").replace('}', "}}");
    let text = escape(message);
    let text = help.map_or_else(|| text.clone(), |it| format!("{text}\nhelp: {}", escape(it)));
    json!({ "text": text })
}

/// The SARIF location of a file: a relative path as a relative URI, an absolute one as a `file:` URI.
fn artifact_location(name: &str) -> Value {
    let mut uri = String::new();
    for byte in name.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => uri.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    if uri.starts_with('/') {
        uri.insert_str(0, "file://");
    }
    json!({ "uri": uri })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, want: &str) {
        assert_eq!(artifact_location(name)["uri"], want);
    }

    #[test]
    fn path_becomes_a_uri() {
        check(".minds/mcp.yaml", ".minds/mcp.yaml");
        check("/w/a b#1.yaml", "file:///w/a%20b%231.yaml");
        check("c:x", "c%3Ax");
        check("é?%", "%C3%A9%3F%25");
        check("a\\b", "a/b");
    }
}
