//! A schema document: its bounds, its draft and its references.
//!
//! References are resolved inside the document only. Nothing is fetched.

use std::collections::HashMap;
use std::rc::Rc;

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::error::{Error, Side};

/// The depth of a schema document, counted in nested arrays and objects.
pub const MAX_DEPTH: usize = 100;

/// The number of values in a schema document.
pub const MAX_VALUES: usize = 500_000;

/// A schema document.
pub(crate) struct Document<'a> {
    pub root: &'a Value,
    pub draft: Draft,
    /// The targets of plain-name fragments.
    anchors: HashMap<String, (String, &'a Value)>,
    /// The locations of embedded schemas with an own `$id`. References below them have another base.
    embedded: Vec<String>,
}

/// A schema inside a document.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    pub document: &'a Document<'a>,
    pub value: &'a Value,
    /// A JSON pointer from the root of the document.
    pub pointer: Rc<str>,
}

impl<'a> Document<'a> {
    /// Checks the bounds of a document and indexes its anchors.
    pub(crate) fn new(root: &'a Value, side: Side) -> Result<Self, Error> {
        if !root.is_object() && !root.is_boolean() {
            return Err(Error::NotASchema {
                side,
                message: "it is neither an object nor a boolean".to_owned(),
            });
        }
        measure(root, side)?;
        let draft = draft(root);
        let mut res = Self { root, draft, anchors: HashMap::new(), embedded: Vec::new() };
        res.index(root, String::new());
        Ok(res)
    }

    fn index(&mut self, value: &'a Value, pointer: String) {
        match value {
            Value::Object(members) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str);
                let id = text("$id").or_else(|| (self.draft == Draft::Draft4).then(|| text("id")).flatten());
                if let Some(id) = id {
                    match id.strip_prefix('#') {
                        Some(name) => _ = self.anchors.insert(name.to_owned(), (pointer.clone(), value)),
                        None if !pointer.is_empty() => self.embedded.push(format!("{pointer}/")),
                        None => {}
                    }
                }
                if let Some(name) = text("$anchor") {
                    self.anchors.insert(name.to_owned(), (pointer.clone(), value));
                }
                for (key, member) in members {
                    // Data, not schemas.
                    if !["enum", "const", "default", "examples"].contains(&key.as_str()) {
                        self.index(member, format!("{pointer}/{}", escape(key)));
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.index(item, format!("{pointer}/{at}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The schema of the whole document.
    pub(crate) fn node(&'a self) -> Node<'a> {
        Node { document: self, value: self.root, pointer: Rc::from("") }
    }

    /// Whether the siblings of `$ref` are ignored.
    pub(crate) fn reference_hides_siblings(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }
}

impl<'a> Node<'a> {
    /// The keywords; `None` for a boolean.
    pub(crate) fn keywords(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.value.get(keyword)
    }

    /// A part of this schema under a keyword.
    pub(crate) fn child(&self, keyword: &str) -> Option<Node<'a>> {
        self.get(keyword).map(|value| self.at(keyword, value))
    }

    /// The schemas in a list under a keyword.
    pub(crate) fn list(&self, keyword: &str) -> Vec<Node<'a>> {
        let Some(list) = self.child(keyword) else { return Vec::new() };
        let items = list.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(at, value)| list.at(&at.to_string(), value)).collect()
    }

    /// The schemas in a map under a keyword.
    pub(crate) fn map(&self, keyword: &str) -> Vec<(&'a str, Node<'a>)> {
        let Some(map) = self.child(keyword) else { return Vec::new() };
        let members = map.value.as_object().into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), map.at(key, value))).collect()
    }

    fn at(&self, key: &str, value: &'a Value) -> Node<'a> {
        let pointer = format!("{}/{}", self.pointer, escape(key));
        Node { document: self.document, value, pointer: Rc::from(pointer) }
    }

    /// The identity of the schema: its address.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self.value) as usize
    }

    pub(crate) fn reference(&self) -> Option<&'a str> {
        self.get("$ref")?.as_str()
    }

    /// The target of `$ref`. `None` if it is not in this document.
    pub(crate) fn target(&self) -> Option<Node<'a>> {
        let (document, reference) = (self.document, self.reference()?);
        if document.embedded.iter().any(|it| format!("{}/", self.pointer).starts_with(it.as_str())) {
            return None;
        }
        let own = document.root.get("$id").and_then(Value::as_str).map(|it| it.trim_end_matches('#'));
        let fragment = match own.filter(|it| !it.is_empty()).and_then(|it| reference.strip_prefix(it)) {
            Some("") => "",
            Some(rest) => rest.strip_prefix('#')?,
            None => reference.strip_prefix('#')?,
        };
        let fragment = percent_decode(fragment)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let (pointer, value) = document.anchors.get(&fragment)?;
            return Some(Node { document, value, pointer: Rc::from(pointer.as_str()) });
        }
        let value = document.root.pointer(&fragment)?;
        (value.is_object() || value.is_boolean()).then(|| Node {
            document,
            value,
            pointer: Rc::from(fragment),
        })
    }
}

/// Compiles a schema. `None` if it refers to other documents.
pub(crate) fn validator(document: &Document<'_>) -> Option<jsonschema::Validator> {
    // The validator is built from the same text; the crate has no network access.
    jsonschema::options()
        .with_draft(document.draft)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .offline()
        .build(document.root)
        .ok()
}

/// Escapes a key for a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn percent_decode(text: &str) -> Option<String> {
    let mut res = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |it: &u8| char::from(*it).to_digit(16);
                res.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                tail
            }
            (byte, tail) => {
                res.push(*byte);
                tail
            }
        };
    }
    String::from_utf8(res).ok()
}

fn draft(root: &Value) -> Draft {
    let named = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let known = [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
    ];
    let found = known.into_iter().find(|(name, _)| named.contains(name)).map(|it| it.1);
    // Without `$schema`, `definitions` is a sign of an older draft.
    let older = named.is_empty() && root.get("definitions").is_some() && root.get("$defs").is_none();
    found.unwrap_or(if older { Draft::Draft7 } else { Draft::Draft202012 })
}

/// Checks depth and number of values, without recursion.
fn measure(root: &Value, side: Side) -> Result<(), Error> {
    let mut open = vec![(root, 0)];
    let mut count = 0;
    while let Some((value, depth)) = open.pop() {
        count += 1;
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep { side });
        }
        if count > MAX_VALUES {
            return Err(Error::TooLarge { side });
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|it| (it, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}
