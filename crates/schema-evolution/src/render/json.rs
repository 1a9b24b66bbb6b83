//! Renders a comparison as JSON.

use serde_json::{Value, json};

use crate::change::{Change, Comparison, SchemaUser};

/// Renders the changes as an object with `for`, `verdict` and `changes`.
///
/// A change has `location`, `keyword`, `description`, `direction`, `verdict`, `old` and `new` (JSON pointers into the
/// schemas). It has `otherLocations` and `moreLocations`, a number, if other locations have the same schema, and
/// `witness` if it breaks.
pub fn render_json(comparison: &Comparison, user: SchemaUser) -> Value {
    let changes: Vec<Value> =
        comparison.by_severity(user).into_iter().map(|it| change_json(it, user)).collect();
    json!({ "for": user, "verdict": comparison.verdict(user), "changes": changes })
}

fn change_json(change: &Change, user: SchemaUser) -> Value {
    let effect = change.effect(user);
    let mut res = json!({
        "location": change.location,
        "keyword": change.keyword,
        "description": change.description,
        "direction": change.direction,
        "verdict": effect.verdict,
        "old": change.old_pointer,
        "new": change.new_pointer,
    });
    if !change.other_locations.is_empty() {
        res["otherLocations"] = json!(change.other_locations);
        res["moreLocations"] = json!(change.more_locations);
    }
    if let Some(witness) = &effect.witness {
        res["witness"] = witness.clone();
    }
    res
}
