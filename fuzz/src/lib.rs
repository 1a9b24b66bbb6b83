//! What must hold of any text whatever, in one place: a target only chooses the reader.

#![forbid(unsafe_code)]

use mcp_config::{Applicability, Colour, Document, Profile, Switch, fix, read, render, switch, take};

/// Reads the text by a profile and looks at every place that is named.
pub fn configuration(profile: Profile, bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let reading = read(&Document { name: "fuzzed", text, profile });
    for diagnostic in &reading.diagnostics {
        assert!(text.get(diagnostic.span.clone()).is_some(), "{:?} is no part of the text", diagnostic.span);
        for label in &diagnostic.labels {
            assert!(text.get(label.span.clone()).is_some(), "{:?} is no part of the text", label.span);
        }
    }
    render("fuzzed", text, &reading.diagnostics, Colour::Never);
    for server in &reading.servers {
        assert!(text.get(server.origin.span.clone()).is_some(), "{:?} is no part of the text", server.origin.span);
    }
    // A fix leaves a text that reads, and an edit refuses or leaves one that reads.
    let document = Document { name: "fuzzed", text, profile };
    if text.len() < 4096 && reading.diagnostics.len() < 50 {
        let fixed = fix(&document, Applicability::Suggested);
        read(&Document { text: &fixed.text, ..document });
        if let Some(entry) = reading.entries.first() {
            for edited in [take(&document, &entry.name), switch(&document, &entry.name, Switch::Off)].into_iter().flatten() {
                read(&Document { text: &edited, ..document });
            }
        }
    }
    // Reading has no memory: a second time the same comes out.
    let again = read(&Document { name: "fuzzed", text, profile });
    assert_eq!(reading.servers, again.servers);
    assert_eq!(reading.diagnostics.len(), again.diagnostics.len());
}
