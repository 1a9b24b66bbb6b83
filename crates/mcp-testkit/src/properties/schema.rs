//! Properties of schema-evolution.

use schema_evolution::{Generator, SchemaUser, Verdict, compare, render_json, render_sarif, render_text};
use serde_json::{Deserializer, Value};

/// The number of documents that are tried for each direction.
const DOCUMENTS: u64 = 8;

/// Input: two schemas. Compares them, and checks with a validator that a harmless change refuses no document.
pub fn schema_change(bytes: &[u8]) {
    let mut values = Deserializer::from_slice(bytes).into_iter::<Value>();
    let (Some(Ok(old)), Some(Ok(new))) = (values.next(), values.next()) else { return };
    let Ok(comparison) = compare(&old, &new) else { return };
    for side in [SchemaUser::Reader, SchemaUser::Writer] {
        let text = render_text(&comparison, side);
        assert!(text.contains('\n') || comparison.changes.is_empty(), "{text}");
        assert!(render_json(&comparison, side).is_object());
        assert!(render_sarif(&comparison, side, "schema.json").is_object());
    }
    // A reader must accept the old documents, a reader of what is written the new ones.
    for (side, from, to) in [(SchemaUser::Reader, &old, &new), (SchemaUser::Writer, &new, &old)] {
        if comparison.verdict(side) == Verdict::Harmless {
            check_accepted(from, to);
        }
    }
}

/// Checks that `to` accepts documents that `from` accepts.
fn check_accepted(from: &Value, to: &Value) {
    let Some(generator) = Generator::new(from) else { return };
    let options = jsonschema::options().should_validate_formats(true).should_ignore_unknown_formats(true);
    let Ok(validator) = options.offline().build(to) else { return };
    for document in (0..DOCUMENTS).filter_map(|seed| generator.document(seed)) {
        assert!(validator.is_valid(&document), "{to} refuses {document}");
    }
}
