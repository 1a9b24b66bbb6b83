//! Renders a comparison as SARIF 2.1.0, for code hosts and editors.

use serde_json::{Value, json};

use crate::change::{Change, Comparison, SchemaUser, Verdict};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The rules, one for each verdict: the verdict, the id, the level and the description.
const RULES: [(Verdict, &str, &str, &str); 3] = [
    (Verdict::Harmless, "schema-harmless", "note", "A change that affects no document."),
    (Verdict::Unknown, "schema-unknown", "warning", "A change that could not be decided."),
    (Verdict::Break, "schema-break", "error", "A change that a document proves to break."),
];

/// Renders the changes as one SARIF document with one run, with the verdicts for this user of the schema. Each result
/// is about `file`, the relative path of the new schema.
pub fn render_sarif(comparison: &Comparison, user: SchemaUser, file: &str) -> Value {
    let rules = RULES.map(|(_, id, level, text)| {
        json!({ "id": id, "shortDescription": { "text": text }, "defaultConfiguration": { "level": level } })
    });
    let results: Vec<Value> =
        comparison.by_severity(user).into_iter().map(|it| sarif_result(it, user, file)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": env!("CARGO_PKG_NAME"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

fn sarif_result(change: &Change, user: SchemaUser, file: &str) -> Value {
    let effect = change.effect(user);
    let index = RULES.iter().position(|it| it.0 == effect.verdict).unwrap_or(0);
    let (_, id, level, _) = RULES[index];
    let witness = effect.witness.as_ref().map(|it| format!(" For example: {it}")).unwrap_or_default();
    let others = change.other_locations_text().map(|it| format!(" Also at {it}.")).unwrap_or_default();
    json!({
        "ruleId": id,
        "ruleIndex": index,
        "level": level,
        "message": { "text": format!("{}: {}.{others}{witness}", change.location, change.description) },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": uri_reference(file) } },
            "logicalLocations": [{ "fullyQualifiedName": change.new_pointer, "kind": "member" }],
        }],
        "partialFingerprints": { "change/v1": format!("{}:{}", change.location, change.keyword) },
    })
}

/// A path as a URI reference.
fn uri_reference(path: &str) -> String {
    let keep = |it: u8| it.is_ascii_alphanumeric() || b"-._~/:".contains(&it);
    let one = |it: u8| if keep(it) { char::from(it).to_string() } else { format!("%{it:02X}") };
    path.replace('\\', "/").bytes().map(one).collect()
}
