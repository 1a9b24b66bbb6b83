//! A schema document: its bounds, its draft and its references.
//!
//! References are resolved inside the document only. Nothing is fetched.

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::error::{Error, Side};

/// The maximum depth of a schema document, counted in nested arrays and objects.
pub const MAX_DEPTH: usize = 100;

/// The maximum number of values in a schema document.
pub const MAX_VALUES: usize = 500_000;

/// A schema document.
pub(crate) struct Document<'a> {
    pub root: &'a Value,
    /// The draft of JSON Schema that its keywords follow.
    pub draft: Draft,
    /// The targets of plain-name fragments.
    anchors: HashMap<&'a str, &'a Value>,
    /// The parent of each value and the step from it, by address.
    parents: HashMap<usize, (usize, PointerStep<'a>)>,
    /// The addresses of embedded schemas with an own `$id`. References below them have another base.
    embedded: HashSet<usize>,
}

/// A step of a JSON pointer.
#[derive(Debug, Clone, Copy)]
enum PointerStep<'a> {
    Key(&'a str),
    Index(usize),
}

/// A schema inside a document.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub document: &'a Document<'a>,
    pub value: &'a Value,
}

/// What a value in a schema document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// A map of schemas, such as the value of `properties`.
    SchemaMap,
    /// A schema.
    Schema,
    /// Plain data, which contains no schema.
    Data,
}

impl<'a> Document<'a> {
    /// Checks the bounds of a document and indexes its values and anchors.
    pub(crate) fn new(root: &'a Value, side: Side) -> Result<Self, Error> {
        if !root.is_object() && !root.is_boolean() {
            return Err(Error::NotASchema {
                side,
                message: "it is neither an object nor a boolean".to_owned(),
            });
        }
        check_bounds(root, side)?;
        let mut res = Self {
            root,
            draft: detect_draft(root),
            anchors: HashMap::new(),
            parents: HashMap::new(),
            embedded: HashSet::new(),
        };
        res.index(root, ValueKind::Schema);
        Ok(res)
    }

    /// Indexes a value and all its parts.
    fn index(&mut self, value: &'a Value, kind: ValueKind) {
        match value {
            Value::Object(members) => {
                if kind == ValueKind::Schema {
                    self.index_names(value);
                }
                for (key, member) in members {
                    self.parents.insert(address(member), (address(value), PointerStep::Key(key)));
                    self.index(member, kind.kind_of_member(key));
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.parents.insert(address(item), (address(value), PointerStep::Index(at)));
                    self.index(item, kind);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Records a schema's `$anchor` and `$id`. An `$id` of the form `#name` is an anchor (up to draft 7); any other one
    /// marks an embedded schema, unless it is that of the root.
    fn index_names(&mut self, schema: &'a Value) {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let id = text("$id").or_else(|| (self.draft == Draft::Draft4).then(|| text("id")).flatten());
        match id.map(|it| it.strip_prefix('#').ok_or(it)) {
            Some(Ok(name)) => _ = self.anchors.insert(name, schema),
            Some(Err(_)) if address(schema) != address(self.root) => {
                self.embedded.insert(address(schema));
            }
            Some(Err(_)) | None => {}
        }
        if let Some(name) = text("$anchor") {
            self.anchors.insert(name, schema);
        }
    }

    /// The value and its ancestors without the root, innermost first: the address of each, and the step to it from its
    /// parent.
    fn steps_to_root(&self, address: usize) -> impl Iterator<Item = (usize, PointerStep<'a>)> {
        let first = self.parents.get(&address).map(|it| (address, *it));
        let next = |it: &(usize, (usize, PointerStep<'a>))| {
            let parent = it.1.0;
            self.parents.get(&parent).map(|it| (parent, *it))
        };
        std::iter::successors(first, next).map(|(address, (_, segment))| (address, segment))
    }

    /// The schema of the whole document.
    pub(crate) fn node(&'a self) -> Node<'a> {
        Node { document: self, value: self.root }
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

    /// The schema under a keyword.
    pub(crate) fn child(&self, keyword: &str) -> Option<Node<'a>> {
        self.get(keyword).map(|value| self.at(value))
    }

    /// The schemas in a list under a keyword.
    pub(crate) fn child_list(&self, keyword: &str) -> Vec<Node<'a>> {
        let Some(list) = self.child(keyword) else { return Vec::new() };
        let items = list.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().map(|value| list.at(value)).collect()
    }

    /// The schemas in a map under a keyword.
    pub(crate) fn child_map(&self, keyword: &str) -> Vec<(&'a str, Node<'a>)> {
        let Some(map) = self.child(keyword) else { return Vec::new() };
        let members = map.value.as_object().into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), map.at(value))).collect()
    }

    /// Another value of the same document as a schema.
    fn at(&self, value: &'a Value) -> Node<'a> {
        Node { document: self.document, value }
    }

    /// The identity of the schema: its address.
    pub(crate) fn id(&self) -> usize {
        address(self.value)
    }

    /// A JSON pointer from the root of the document.
    pub(crate) fn pointer(&self) -> String {
        let mut steps: Vec<String> = { self.document.steps_to_root(self.id()) }
            .map(|(_, segment)| match segment {
                PointerStep::Key(key) => format!("/{}", escape(key)),
                PointerStep::Index(index) => format!("/{index}"),
            })
            .collect();
        steps.reverse();
        steps.concat()
    }

    /// The key of the schema in the object that contains it.
    pub(crate) fn key(&self) -> Option<&'a str> {
        match self.document.steps_to_root(self.id()).next()?.1 {
            PointerStep::Key(key) => Some(key),
            PointerStep::Index(_) => None,
        }
    }

    pub(crate) fn reference(&self) -> Option<&'a str> {
        self.get("$ref")?.as_str()
    }

    /// The target of `$ref`. `None` if it is not in this document.
    pub(crate) fn target(&self) -> Option<Node<'a>> {
        let (document, reference) = (self.document, self.reference()?);
        if !document.embedded.is_empty()
            && document.steps_to_root(self.id()).any(|it| document.embedded.contains(&it.0))
        {
            return None;
        }
        let own_id = document.root.get("$id").and_then(Value::as_str).map(|it| it.trim_end_matches('#'));
        let fragment = match own_id.filter(|it| !it.is_empty()).and_then(|it| reference.strip_prefix(it)) {
            Some("") => "",
            Some(rest) => rest.strip_prefix('#')?,
            None => reference.strip_prefix('#')?,
        };
        let fragment = percent_decode(fragment)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return document.anchors.get(fragment.as_str()).map(|value| Node { document, value });
        }
        let value = document.root.pointer(&fragment)?;
        (value.is_object() || value.is_boolean()).then_some(Node { document, value })
    }
}

impl ValueKind {
    /// The kind of the value under `key` in a value of this kind.
    fn kind_of_member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Schema, "enum" | "const" | "default" | "examples") | (Self::Data, _) => Self::Data,
            (
                Self::Schema,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
            ) => Self::SchemaMap,
            (Self::Schema | Self::SchemaMap, _) => Self::Schema,
        }
    }
}

/// The address of a value, which identifies it in the document.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Compiles a schema. `None` if it is invalid or refers to other documents.
pub(crate) fn build_validator(document: &Document<'_>) -> Option<jsonschema::Validator> {
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

/// Encodes a JSON pointer for a reference.
pub(crate) fn percent_encode(text: &str) -> String {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-._~/$!&'()*+,;=:@".contains(&it);
    let one = |it: u8| if is_plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") };
    text.bytes().map(one).collect()
}

/// Decodes `%XX` sequences. `None` if one is malformed or the text is not UTF-8.
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

/// The draft that `$schema` names. Without it, the newest draft, or draft 7 if `definitions` is used.
fn detect_draft(root: &Value) -> Draft {
    let named = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let known = [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
    ];
    let found = known.into_iter().find(|(name, _)| named.contains(name)).map(|it| it.1);
    // Without `$schema`, `definitions` is a sign of an older draft.
    let is_older = named.is_empty() && root.get("definitions").is_some() && root.get("$defs").is_none();
    found.unwrap_or(if is_older { Draft::Draft7 } else { Draft::Draft202012 })
}

/// Checks depth and number of values, without recursion.
fn check_bounds(root: &Value, side: Side) -> Result<(), Error> {
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
