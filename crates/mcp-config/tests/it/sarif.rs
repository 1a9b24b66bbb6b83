//! SARIF and GitHub output: the structure of the SARIF standard, and snapshots.

use mcp_host_config::{CheckOutcome, CheckedFile, Profile, SarifTool, render_github, render_sarif};
use serde_json::{Value, json};

use crate::read_text;

const AGENT: &str = "\
tools:
  - name: a
    description: d
    type: mcp
    server: s
    command: npx
    envFile: .env
    env_file: .env
    request_timeout: 30000
";

fn sarif_document() -> Value {
    let reading = read_text(Profile::HoloDeck, AGENT);
    let read = CheckOutcome::Read { text: AGENT, diagnostics: &reading.diagnostics };
    let unreadable = CheckOutcome::Unreadable { message: "cannot read it", help: Some("name another") };
    let checked = [CheckedFile::new("an agent.yaml", read), CheckedFile::new("gone.yaml", unreadable)];
    render_sarif(&SarifTool::new("mcp-host", "1.2.3"), &checked)
}

/// The parts of SARIF 2.1.0 that we write: required and optional members.
fn sarif_schema() -> Value {
    let object = |required: &[&str], properties: Value| {
        json!({
            "type": "object", "required": required, "properties": properties, "additionalProperties": false
        })
    };
    let line = json!({ "type": "integer", "minimum": 1 });
    let level = json!({ "enum": ["none", "note", "warning", "error"] });
    let text = object(&["text"], json!({ "text": { "type": "string" }, "markdown": { "type": "string" } }));
    let artifact = object(&["uri"], json!({ "uri": { "type": "string", "format": "uri-reference" } }));
    let region = object(
        &["startLine"],
        json!({ "startLine": line, "startColumn": line, "endLine": line, "endColumn": line }),
    );
    let physical =
        object(&["artifactLocation"], json!({ "artifactLocation": artifact, "region": region.clone() }));
    let logical = object(
        &[],
        json!({ "name": { "type": "string" }, "fullyQualifiedName": { "type": "string" },
            "kind": { "type": "string" } }),
    );
    let location = object(
        &["physicalLocation"],
        json!({
            "id": { "type": "integer", "minimum": 0 },
            "physicalLocation": physical,
            "logicalLocations": { "type": "array", "items": logical, "uniqueItems": true },
            "message": text,
        }),
    );
    let locations = json!({ "type": "array", "items": location });
    let replacement = object(
        &["deletedRegion"],
        json!({ "deletedRegion": region, "insertedContent": object(&["text"],
            json!({ "text": { "type": "string" } })) }),
    );
    let change = object(
        &["artifactLocation", "replacements"],
        json!({
            "artifactLocation": artifact,
            "replacements": { "type": "array", "minItems": 1, "items": replacement },
        }),
    );
    let fix = object(
        &["artifactChanges"],
        json!({ "description": text, "artifactChanges": { "type": "array", "minItems": 1, "items": change } }),
    );
    let result = object(
        &["message"],
        json!({
            "ruleId": { "type": "string" },
            "ruleIndex": { "type": "integer", "minimum": 0 },
            "level": level,
            "message": text,
            "locations": locations,
            "relatedLocations": { "type": "array", "items": location, "uniqueItems": true },
            "partialFingerprints": { "type": "object", "additionalProperties": { "type": "string" } },
            "fixes": { "type": "array", "items": fix, "uniqueItems": true },
        }),
    );
    let rule = object(
        &["id"],
        json!({
            "id": { "type": "string" },
            "name": { "type": "string" },
            "shortDescription": text,
            "fullDescription": text,
            "help": text,
            "defaultConfiguration": object(&[], json!({ "level": level })),
        }),
    );
    let driver = object(
        &["name"],
        json!({
            "name": { "type": "string" },
            "semanticVersion": { "type": "string" },
            "rules": { "type": "array", "items": rule, "uniqueItems": true },
        }),
    );
    let notification =
        object(&["message"], json!({ "level": level, "message": text, "locations": locations }));
    let invocation = object(
        &["executionSuccessful"],
        json!({
            "executionSuccessful": { "type": "boolean" },
            "toolExecutionNotifications": { "type": "array", "items": notification },
        }),
    );
    let run = object(
        &["tool"],
        json!({
            "tool": object(&["driver"], json!({ "driver": driver })),
            "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
            "invocations": { "type": "array", "items": invocation },
            "results": { "type": "array", "items": result },
        }),
    );
    object(
        &["version", "runs"],
        json!({
            "$schema": { "type": "string", "format": "uri" },
            "version": { "const": "2.1.0" },
            "runs": { "type": "array", "items": run },
        }),
    )
}

#[test]
fn a_sarif_document_has_the_structure_of_its_standard() {
    let validator = jsonschema::validator_for(&sarif_schema()).unwrap();
    let document = sarif_document();
    let errors: Vec<_> =
        validator.iter_errors(&document).map(|it| format!("{} {it}", it.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let run = &document["runs"][0];
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    }
}

#[test]
fn sarif_results_have_locations_and_fixes() {
    let document = sarif_document();
    let results = &document["runs"][0]["results"];
    assert_eq!(results.as_array().unwrap().len(), 2);
    insta::assert_snapshot!("sarif-results", serde_json::to_string_pretty(results).unwrap());
    let notifications = &document["runs"][0]["invocations"][0];
    insta::assert_snapshot!("sarif-invocation", serde_json::to_string_pretty(notifications).unwrap());
}

#[test]
fn github_annotations_match_their_snapshot() {
    let reading = read_text(Profile::HoloDeck, AGENT);
    let outcome = CheckOutcome::Read { text: AGENT, diagnostics: &reading.diagnostics };
    insta::assert_snapshot!("github", render_github(&[CheckedFile::new("an agent.yaml", outcome)]));
}
