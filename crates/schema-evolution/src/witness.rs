//! Documents that prove a change.
//!
//! A candidate is built from the location outwards and checked with a validator, so a wrong candidate does no harm.

use std::rc::Rc;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::document::escape;
use crate::generate::{choose_branches, instance, object};
use crate::inclusion::left::{Left, Site, Step};
use crate::inclusion::{Kind, Obstacle};
use crate::samples::Choices;

/// Searches documents that one validator accepts and the other refuses or does not read.
pub(crate) struct Search<'v> {
    pub accepts: &'v Validator,
    pub refuses: &'v Validator,
    /// The number of documents that may still be checked.
    pub budget: usize,
}

/// The number of errors of a document that are read.
const MAX_ERRORS: usize = 100;

/// Keywords that refuse a value because of its parts.
const DECIDES_OF_PARTS: &[&str] = &[
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

impl Search<'_> {
    /// A document that proves an obstacle.
    pub(crate) fn witness(&mut self, obstacle: &Obstacle<'_>) -> Option<Value> {
        let others = obstacle.others.iter().take(MAX_OTHERS).map(|it| (it, ATTEMPTS_AT_OTHERS));
        let mut sites = std::iter::once((&obstacle.site, ATTEMPTS)).chain(others);
        sites.find_map(|(site, attempts)| self.witness_at(obstacle, site, attempts))
    }

    fn witness_at(&mut self, obstacle: &Obstacle<'_>, site: &Site<'_>, attempts: u64) -> Option<Value> {
        for seed in 0..attempts {
            let mut choices = Choices::new(seed);
            let mut samples: Vec<Option<Value>> = obstacle.samples.iter().cloned().map(Some).collect();
            if obstacle.keyword == "required" || obstacle.kind == Kind::Default {
                // The key is left out.
                samples.push(None);
            } else {
                choices.size = obstacle.size;
                samples.extend(instance(&obstacle.left, &mut choices, 1).map(Some));
                choices.size = None;
            }
            for sample in samples {
                if self.budget == 0 {
                    return None;
                }
                let Some(document) = wrap(sample, site, &mut choices) else { continue };
                self.budget -= 1;
                let proves = match obstacle.kind {
                    Kind::Refused => {
                        self.accepts.is_valid(&document) && self.is_refused_for(&document, obstacle, site)
                    }
                    Kind::Default => self.accepts.is_valid(&document) && self.refuses.is_valid(&document),
                    Kind::Ignored => self.is_ignored(&document, site),
                    Kind::Added | Kind::Repeated(_) => false,
                };
                if proves {
                    return Some(document);
                }
            }
        }
        None
    }

    /// Whether a document is refused because of an obstacle, and not because of another change only.
    fn is_refused_for(&self, document: &Value, obstacle: &Obstacle<'_>, site: &Site<'_>) -> bool {
        let path = pointer(site);
        self.refuses.iter_errors(document).take(MAX_ERRORS).any(|error| {
            let (at, kind) = (error.instance_path().as_str(), error.kind());
            let decides = DECIDES_OF_PARTS.contains(&kind.keyword());
            if let ValidationErrorKind::Required { property } = kind
                && obstacle.keyword == "required"
            {
                return path == format!("{at}/{}", escape(property.as_str().unwrap_or_default()));
            }
            at == path
                || (is_inside(&path, at) && (decides || kind.keyword() == obstacle.keyword))
                || (is_inside(at, &path) && DECIDES_OF_PARTS.contains(&obstacle.keyword.as_str()))
        })
    }

    /// Whether the value at a location may be anything.
    fn is_ignored(&self, document: &Value, site: &Site<'_>) -> bool {
        let any = [
            Value::Null,
            true.into(),
            7.5.into(),
            "?".into(),
            Value::Array(vec![]),
            Value::Object(Map::new()),
        ];
        let mut path = Vec::new();
        let mut current = site;
        while let Some(frame) = current {
            path.push(&frame.step);
            current = &frame.parent;
        }
        path.reverse();
        self.accepts.is_valid(document)
            && any.into_iter().all(|value| {
                let mut changed = document.clone();
                let Some(place) = place(&mut changed, &path) else { return false };
                *place = value;
                self.refuses.is_valid(&changed)
            })
    }
}

/// Whether a JSON pointer points into the value of another one.
fn is_inside(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|it| it.starts_with('/'))
}

/// The JSON pointer of a location in a document.
fn pointer(site: &Site<'_>) -> String {
    let Some(frame) = site else { return String::new() };
    let parent = pointer(&frame.parent);
    match &frame.step {
        Step::Key(key) | Step::AnyKey(key) => format!("{parent}/{}", escape(key)),
        Step::Index(index) => format!("{parent}/{index}"),
        Step::Name => parent,
    }
}

fn place<'v>(mut value: &'v mut Value, path: &[&Step]) -> Option<&'v mut Value> {
    for step in path {
        value = match step {
            Step::Key(key) | Step::AnyKey(key) => value.get_mut(key.as_str())?,
            Step::Index(index) => value.get_mut(*index)?,
            Step::Name => return None,
        };
    }
    Some(value)
}

/// Puts a value at a location of a document. `None` leaves the key out.
fn wrap(sample: Option<Value>, site: &Site<'_>, choices: &mut Choices) -> Option<Value> {
    let mut value = sample;
    let mut current = site;
    while let Some(frame) = current {
        value = Some(match &frame.step {
            Step::Key(key) | Step::AnyKey(key) => {
                let mut outer = object(&frame.left, choices, 1)?;
                match value {
                    Some(value) => _ = outer.insert(key.clone(), value),
                    None => _ = outer.remove(key),
                }
                outer.into()
            }
            Step::Name => {
                let mut outer = object(&frame.left, choices, 1)?;
                let name = value?.as_str()?.to_owned();
                let inner = instance(&Left::of(frame.left.property(&name)), choices, 1)?;
                outer.insert(name, inner);
                outer.into()
            }
            Step::Index(index) => {
                let left = Rc::new(choose_branches((*frame.left).clone(), choices)?);
                let mut items = Vec::new();
                for at in 0..*index {
                    items.push(instance(&Left::of(left.item(at)), choices, 1)?);
                }
                items.push(value?);
                items.into()
            }
        });
        current = &frame.parent;
    }
    value
}
