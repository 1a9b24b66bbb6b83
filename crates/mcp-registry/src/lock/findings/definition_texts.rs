//! The texts of a definition: every string and every name of a member, with their pointers.
//!
//! All members are read, known or not, and duplicates too, because a client may show any of them to a model.

use mcp_host_model::RawJson;
use mcp_host_model::internal::JsonCursor;
use serde_json::Error;

use super::finding::{FindingText, TextPlace};
use super::scan::Findings;

/// The maximum depth that is read. A deeper value is scanned as JSON text.
const MAX_DEPTH: usize = 64;

/// Scans all texts of a definition.
pub(super) fn scan_definition(definition: &RawJson, findings: &mut Findings<'_>) {
    let mut place = TextPlace::instructions();
    let mut cursor = JsonCursor::new(definition.as_str());
    if scan_value(&mut cursor, &mut place, findings).is_err() {
        // No reader of ours fails on a valid document. As text it is scanned in any case.
        findings.scan_text(definition.as_str(), &TextPlace::instructions());
    }
}

fn scan_value(
    cursor: &mut JsonCursor<'_>,
    place: &mut TextPlace,
    findings: &mut Findings<'_>,
) -> Result<(), Error> {
    match cursor.peek_byte() {
        Some(b'{') if place.path.len() < MAX_DEPTH => {
            cursor.read_object(|name, cursor| {
                place.path.push(name.to_string());
                place.text = FindingText::Name;
                findings.scan_text(&name, place);
                place.text = FindingText::Value;
                let read = scan_value(cursor, place, findings);
                place.path.pop();
                read
            })?;
        }
        Some(b'[') if place.path.len() < MAX_DEPTH => {
            let mut index = 0_usize;
            cursor.read_array(|cursor| {
                place.path.push(index.to_string());
                index += 1;
                let read = scan_value(cursor, place, findings);
                place.path.pop();
                read
            })?;
        }
        Some(b'"' | b'{' | b'[') => {
            let slice = cursor.skip_value()?;
            match slice.to_text() {
                Some(text) => findings.scan_text(&text, place),
                None => findings.scan_text(slice.as_str(), place),
            }
        }
        Some(_) | None => drop(cursor.skip_value()?),
    }
    Ok(())
}
