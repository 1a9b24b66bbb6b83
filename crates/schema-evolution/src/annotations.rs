//! Changes of annotations, in schemas at the same location.

use std::collections::BTreeSet;

use crate::change::{Change, Direction, Effect};
use crate::document::Node;
use crate::keyword::{is_annotation, is_definitions};

/// The changed annotations, without `default`.
pub(crate) fn annotation_changes(old: &Node<'_>, new: &Node<'_>) -> Vec<Change> {
    let mut res = Vec::new();
    collect_changes(old, new, "", &mut res);
    res
}

/// Collects the changes of two schemas at the same location, and of the schemas below them.
fn collect_changes(old: &Node<'_>, new: &Node<'_>, location: &str, res: &mut Vec<Change>) {
    let (Some(before), Some(after)) = (old.keywords(), new.keywords()) else { return };
    let keywords: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for keyword in keywords {
        if is_annotation(keyword) {
            if keyword != "default" && before.get(keyword) != after.get(keyword) {
                res.push(annotation_change(keyword, old, new, location));
            }
            continue;
        }
        let other = if is_definitions(keyword) && !after.contains_key(keyword) {
            ["$defs", "definitions"].into_iter().find(|it| after.contains_key(*it)).unwrap_or("$defs")
        } else {
            keyword
        };
        match keyword.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                let after = new.child_map(other);
                for (name, one) in old.child_map(keyword) {
                    if let Some((_, other)) = after.iter().find(|it| it.0 == name) {
                        collect_changes(&one, other, &format!("{location}.{name}"), res);
                    }
                }
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                for (one, other) in old.child_list(keyword).iter().zip(&new.child_list(keyword)) {
                    collect_changes(one, other, location, res);
                }
            }
            "additionalProperties"
            | "unevaluatedProperties"
            | "items"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => {
                if let (Some(one), Some(other)) = (old.child(keyword), new.child(keyword)) {
                    let step = match keyword.as_str() {
                        "additionalProperties" | "unevaluatedProperties" => ".*",
                        "items" | "additionalItems" | "unevaluatedItems" | "contains" => "[]",
                        _ => "",
                    };
                    collect_changes(&one, &other, &format!("{location}{step}"), res);
                }
            }
            _ => {}
        }
    }
}

fn annotation_change(keyword: &str, old: &Node<'_>, new: &Node<'_>, location: &str) -> Change {
    let predicate = match (old.get(keyword), new.get(keyword)) {
        (None, _) => "is added",
        (_, None) => "is removed",
        _ => "has another text",
    };
    let location = location.trim_start_matches('.');
    Change {
        location: if location.is_empty() { "(root)" } else { location }.to_owned(),
        other_locations: Vec::new(),
        more_locations: 0,
        keyword: keyword.to_owned(),
        description: format!("`{keyword}` {predicate}"),
        direction: Direction::Annotation,
        old_pointer: old.pointer(),
        new_pointer: new.pointer(),
        reader: Effect::HARMLESS,
        writer: Effect::HARMLESS,
    }
}
