//! Text, JSON and SARIF.

use schema_evolution::{SchemaUser, compare, render_json, render_sarif, render_text};
use serde_json::json;

#[test]
fn a_comparison_is_rendered_in_three_formats() {
    let old = json!({ "properties": { "a": { "type": "string", "title": "A" }, "b": { "customRule": 1 } } });
    let new = json!({ "properties": { "a": { "type": "string", "maxLength": 3, "title": "B" },
        "b": { "customRule": 2 } } });
    let comparison = compare(&old, &new).unwrap();
    assert_eq!(
        render_text(&comparison, SchemaUser::Reader),
        "break: a: `maxLength` is added: 3 (narrowed; #/properties/a/maxLength)\n    for example {\"a\":\"xxxx\"}\n\
         unknown: b: `customRule` changes from 1 to 2 (unknown; #/properties/b/customRule)\n\
         harmless: a: `title` has another text (annotation; #/properties/a)\n\
         for a reader: 1 break, 1 unknown, 1 harmless\n"
    );
    let json = render_json(&comparison, SchemaUser::Writer);
    assert_eq!((&json["for"], &json["verdict"]), (&json!("writer"), &json!("unknown")));
    let json = render_json(&comparison, SchemaUser::Reader);
    assert_eq!(
        json["changes"][0],
        json!({ "location": "a", "keyword": "maxLength", "description": "`maxLength` is added: 3",
            "direction": "narrowed", "verdict": "break", "old": "/properties/a", "new": "/properties/a/maxLength",
            "witness": { "a": "xxxx" } })
    );
    let sarif = render_sarif(&comparison, SchemaUser::Reader, "a folder/new.json");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let levels: Vec<_> = results.iter().map(|it| it["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "warning", "note"]);
    let place = &results[0]["locations"][0];
    assert_eq!(place["physicalLocation"]["artifactLocation"]["uri"], "a%20folder/new.json");
    assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "/properties/a/maxLength");
}

#[test]
fn keys_of_hostile_documents_do_not_reach_a_terminal() {
    let old = json!({ "properties": { "a\u{1b}[2J\nb": { "type": "string" } } });
    let new = json!({ "properties": { "a\u{1b}[2J\nb": { "type": "integer" } } });
    let text = render_text(&compare(&old, &new).unwrap(), SchemaUser::Reader);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(text.lines().filter(|it| it.starts_with("break: ")).count(), 1);
    assert_eq!(text.lines().count(), 3, "{text}");
}
