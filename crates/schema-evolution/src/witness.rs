//! Documents that prove a change.
//!
//! A candidate is built from the location outwards and checked with a validator, so a wrong candidate does no harm.

use std::rc::Rc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use crate::document::escape;
use crate::generate::{choose_branches, generate_object, generate_value};
use crate::inclusion::conjunction::{Conjunction, Location, LocationStep};
use crate::inclusion::{Obstacle, ObstacleKind};
use crate::samples::ChoiceSource;

/// A search for documents that one validator accepts and the other refuses or does not read.
pub(crate) struct WitnessSearch<'v> {
    pub accepting: &'v Validator,
    pub refusing: &'v Validator,
    /// The number of documents that may still be checked.
    pub budget: usize,
}

/// The maximum number of errors of a document that are read.
const MAX_ERRORS: usize = 100;

/// Keywords that refuse a value because of its parts.
const PART_KEYWORDS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "anyOf",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "not",
    "oneOf",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The number of attempts for each obstacle.
const ATTEMPTS: u64 = 24;

/// The number of other locations that are tried if the first one gives no document.
const MAX_OTHERS: usize = 4;

/// The number of attempts at each of them.
const ATTEMPTS_AT_OTHERS: u64 = 8;

impl WitnessSearch<'_> {
    /// Finds a document that proves that an obstacle is real.
    pub(crate) fn find_witness(&mut self, obstacle: &Obstacle<'_>) -> Option<Value> {
        let others = obstacle.other_locations.iter().take(MAX_OTHERS).map(|it| (it, ATTEMPTS_AT_OTHERS));
        let mut locations = std::iter::once((&obstacle.location, ATTEMPTS)).chain(others);
        locations.find_map(|(location, attempts)| self.find_witness_at(obstacle, location, attempts))
    }

    /// Finds such a document for the obstacle at one of its locations.
    fn find_witness_at(
        &mut self,
        obstacle: &Obstacle<'_>,
        location: &Location<'_>,
        attempts: u64,
    ) -> Option<Value> {
        for seed in 0..attempts {
            let mut choices = ChoiceSource::new(seed);
            let mut samples: Vec<Option<Value>> = obstacle.samples.iter().cloned().map(Some).collect();
            if obstacle.keyword == "required" || obstacle.kind == ObstacleKind::Default {
                // The key is left out.
                samples.push(None);
            } else {
                choices.size = obstacle.size;
                samples.extend(generate_value(&obstacle.left, &mut choices, 1).map(Some));
                choices.size = None;
            }
            for sample in samples {
                if self.budget == 0 {
                    return None;
                }
                let Some(document) = embed(sample, location, &mut choices) else { continue };
                self.budget -= 1;
                let is_proof = match obstacle.kind {
                    ObstacleKind::Refused => {
                        self.accepting.is_valid(&document)
                            && self.is_refused_for(&document, obstacle, location)
                    }
                    ObstacleKind::Default => {
                        self.accepting.is_valid(&document) && self.refusing.is_valid(&document)
                    }
                    ObstacleKind::Ignored => self.is_ignored(&document, location),
                    ObstacleKind::Added | ObstacleKind::Repeated(_) => false,
                };
                if is_proof {
                    return Some(document);
                }
            }
        }
        None
    }

    /// Whether a document is refused because of an obstacle, and not because of another change only.
    fn is_refused_for(&self, document: &Value, obstacle: &Obstacle<'_>, location: &Location<'_>) -> bool {
        let refused = RefusedPart { path: location_pointer(location), keyword: &obstacle.keyword };
        self.refusing.iter_errors(document).take(MAX_ERRORS).any(|error| refused.causes(&error))
    }

    /// Whether the refusing validator accepts any value at a location, so that it does not read the value.
    fn is_ignored(&self, document: &Value, location: &Location<'_>) -> bool {
        let any = [
            Value::Null,
            true.into(),
            7.5.into(),
            "?".into(),
            Value::Array(vec![]),
            Value::Object(Map::new()),
        ];
        let mut path = Vec::new();
        let mut current = location;
        while let Some(frame) = current {
            path.push(&frame.step);
            current = &frame.parent;
        }
        path.reverse();
        self.accepting.is_valid(document)
            && any.into_iter().all(|value| {
                let mut changed = document.clone();
                let Some(value_place) = value_at(&mut changed, &path) else { return false };
                *value_place = value;
                self.refusing.is_valid(&changed)
            })
    }
}

/// The part of a document that an obstacle is about.
struct RefusedPart<'o> {
    /// A JSON pointer to the part.
    path: String,
    /// The keyword that may refuse it.
    keyword: &'o str,
}

impl RefusedPart<'_> {
    /// Whether this part causes an error.
    fn causes(&self, error: &ValidationError<'_>) -> bool {
        let (at, kind) = (error.instance_path().as_str(), error.kind());
        match kind {
            ValidationErrorKind::Required { property } if self.keyword == "required" => {
                self.path == format!("{at}/{}", escape(property.as_str().unwrap_or_default()))
            }
            _ if at == self.path => true,
            // A value that matches no alternative may have other parts that are wrong.
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }
                if is_inside(&self.path, at) =>
            {
                context.iter().flatten().take(MAX_ERRORS).any(|it| self.causes(it))
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected }
                if is_inside(&self.path, at) =>
            {
                unexpected.iter().any(|key| self.is_at_or_inside(&format!("{at}/{}", escape(key))))
            }
            _ if is_inside(&self.path, at) => {
                PART_KEYWORDS.contains(&kind.keyword()) || kind.keyword() == self.keyword
            }
            _ => is_inside(at, &self.path) && PART_KEYWORDS.contains(&self.keyword),
        }
    }

    /// Whether the part is the value at a pointer, or belongs to it.
    fn is_at_or_inside(&self, pointer: &str) -> bool {
        self.path == pointer || is_inside(&self.path, pointer)
    }
}

/// Whether a JSON pointer points into the value of another one.
fn is_inside(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|it| it.starts_with('/'))
}

/// The JSON pointer of a location in a document.
fn location_pointer(location: &Location<'_>) -> String {
    let Some(frame) = location else { return String::new() };
    let parent = location_pointer(&frame.parent);
    match &frame.step {
        LocationStep::Key(key) | LocationStep::AnyKey(key) => format!("{parent}/{}", escape(key)),
        LocationStep::Index(index) => format!("{parent}/{index}"),
        LocationStep::Name => parent,
    }
}

/// The value at a path.
fn value_at<'v>(mut value: &'v mut Value, path: &[&LocationStep]) -> Option<&'v mut Value> {
    for step in path {
        value = match step {
            LocationStep::Key(key) | LocationStep::AnyKey(key) => value.get_mut(key.as_str())?,
            LocationStep::Index(index) => value.get_mut(*index)?,
            LocationStep::Name => return None,
        };
    }
    Some(value)
}

/// Generates a document with a value at a location. Without a value, the key at the location is left out.
fn embed(sample: Option<Value>, location: &Location<'_>, choices: &mut ChoiceSource) -> Option<Value> {
    let mut value = sample;
    let mut current = location;
    while let Some(frame) = current {
        value = Some(match &frame.step {
            LocationStep::Key(key) | LocationStep::AnyKey(key) => {
                let mut outer = generate_object(&frame.left, choices, 1)?;
                match value {
                    Some(value) => _ = outer.insert(key.clone(), value),
                    None => _ = outer.remove(key),
                }
                outer.into()
            }
            LocationStep::Name => {
                let mut outer = generate_object(&frame.left, choices, 1)?;
                let name = value?.as_str()?.to_owned();
                let inner = generate_value(&Conjunction::new(frame.left.property(&name)), choices, 1)?;
                outer.insert(name, inner);
                outer.into()
            }
            LocationStep::Index(index) => {
                let left = Rc::new(choose_branches((*frame.left).clone(), choices)?);
                let mut items = Vec::new();
                for at in 0..*index {
                    items.push(generate_value(&Conjunction::new(left.item(at)), choices, 1)?);
                }
                items.push(value?);
                items.into()
            }
        });
        current = &frame.parent;
    }
    value
}
