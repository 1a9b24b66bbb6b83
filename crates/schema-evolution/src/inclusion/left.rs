//! The left side of an inclusion: a conjunction of schemas that hold at one location.

use std::rc::Rc;

use crate::document::Node;
use crate::keyword::{self, Types, is_definitions};

/// A conjunction of schemas, without `allOf` and references.
#[derive(Clone)]
pub(crate) struct Left<'a> {
    pub nodes: Vec<Node<'a>>,
    pub types: Types,
    /// Whether one of the schemas is `false`.
    pub is_impossible: bool,
    /// Whether a reference has no target, so that `nodes` are not all.
    pub is_partial: bool,
    /// The lists of alternatives of which one is chosen already, by address.
    pub chosen: Vec<usize>,
    /// Schemas that no valid value matches.
    pub excluded: Vec<Node<'a>>,
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    /// A key that the schema does not name.
    AnyKey(String),
    Index(usize),
    /// The name of a key, not its value.
    Name,
}

/// A location in a document, with the schemas on the way to it.
pub(crate) struct Frame<'a> {
    pub left: Rc<Left<'a>>,
    pub step: Step,
    pub parent: Site<'a>,
}

/// A location; `None` is the root.
pub(crate) type Site<'a> = Option<Rc<Frame<'a>>>;

/// The text of a location, such as `servers.*.args[]`; `(root)` for the root.
pub(crate) fn location(site: &Site<'_>) -> String {
    let mut steps = Vec::new();
    let mut current = site;
    while let Some(frame) = current {
        steps.push(match &frame.step {
            Step::Key(name) => format!(".{name}"),
            Step::AnyKey(_) => ".*".to_owned(),
            Step::Index(_) => "[]".to_owned(),
            Step::Name => ".(names)".to_owned(),
        });
        current = &frame.parent;
    }
    steps.reverse();
    let text = steps.concat();
    if text.is_empty() { "(root)".to_owned() } else { text.trim_start_matches('.').to_owned() }
}

const MAX_NODES: usize = 2_000;

impl<'a> Left<'a> {
    pub(crate) fn of(nodes: Vec<Node<'a>>) -> Self {
        let mut res = Self {
            nodes: Vec::new(),
            types: keyword::ALL,
            is_impossible: false,
            is_partial: false,
            chosen: Vec::new(),
            excluded: Vec::new(),
        };
        nodes.into_iter().for_each(|node| res.add(node));
        res
    }

    /// Adds a schema, its references and its `allOf`.
    pub(crate) fn add(&mut self, node: Node<'a>) {
        let mut open = vec![node];
        let mut seen = std::collections::HashSet::new();
        while let Some(node) = open.pop() {
            let Some(keywords) = node.keywords() else {
                self.is_impossible |= node.value == &serde_json::Value::Bool(false);
                continue;
            };
            if self.nodes.len() > MAX_NODES {
                self.is_partial = true;
                return;
            }
            if self.nodes.iter().any(|it| it.id() == node.id()) || !seen.insert(node.id()) {
                continue;
            }
            if node.reference().is_some() {
                match node.target() {
                    Some(target) => open.push(target),
                    None => self.is_partial = true,
                }
                if node.document.reference_hides_siblings() {
                    continue;
                }
            }
            self.is_partial |= keywords.contains_key("$dynamicRef") || keywords.contains_key("$recursiveRef");
            self.types &= keyword::types(keywords);
            if let Some(values) = keyword::values(keywords) {
                self.types &= values.iter().fold(0, |res, it| res | keyword::type_of(it));
            }
            open.extend(node.list("allOf"));
            self.excluded.extend(node.child("not"));
            if !is_plain_reference(&node) {
                self.nodes.push(node);
            }
        }
    }

    /// This conjunction and more schemas.
    pub(crate) fn with(&self, nodes: impl IntoIterator<Item = Node<'a>>) -> Self {
        let mut res = self.clone();
        nodes.into_iter().for_each(|node| res.add(node));
        res
    }

    /// Whether no value is valid. `false` may also mean that this is not known.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_impossible || self.types == 0
    }

    /// The values of which a valid value is one. `None` without `enum` and `const`.
    pub(crate) fn values(&self) -> Option<Vec<&'a serde_json::Value>> {
        let lists: Vec<_> = self.nodes.iter().filter_map(|it| keyword::values(it.keywords()?)).collect();
        let (first, rest) = lists.split_first()?;
        let in_rest = |value: &&serde_json::Value| {
            let text = keyword::canonical(value);
            rest.iter().all(|list| list.iter().any(|it| keyword::canonical(it) == text))
        };
        let typed = |value: &&serde_json::Value| keyword::type_of(value) & self.types != 0;
        Some(first.iter().copied().filter(in_rest).filter(typed).collect())
    }

    /// The schemas of the value under a key.
    pub(crate) fn property(&self, key: &str) -> Vec<Node<'a>> {
        let mut res = Vec::new();
        for node in &self.nodes {
            let named = node.child("properties").and_then(|it| it.child(key));
            let patterns = node.map("patternProperties");
            let matching: Vec<_> = patterns.iter().map(|it| (keyword::matches(it.0, key), &it.1)).collect();
            let is_rest = named.is_none() && matching.iter().all(|it| it.0 == Some(false));
            res.extend(named);
            res.extend(matching.into_iter().filter(|it| it.0 == Some(true)).map(|it| *it.1));
            if is_rest {
                res.extend(rest(node));
            }
        }
        res
    }

    /// The schemas of values under keys that no schema names.
    pub(crate) fn unnamed(&self) -> Vec<Node<'a>> {
        self.nodes.iter().filter_map(rest).collect()
    }

    /// The schemas of the item at an index.
    pub(crate) fn item(&self, index: usize) -> Vec<Node<'a>> {
        let of = |node: &Node<'a>| {
            let (prefix, rest) = items(node);
            prefix.get(index).cloned().or(rest)
        };
        self.nodes.iter().filter_map(of).collect()
    }

    /// The number of items that have schemas of their own.
    pub(crate) fn prefix_length(&self) -> usize {
        self.nodes.iter().map(|it| items(it).0.len()).max().unwrap_or(0)
    }

    /// The names that some schema lists.
    pub(crate) fn names(&self) -> Vec<&'a str> {
        let mut res: Vec<&str> =
            self.nodes.iter().flat_map(|it| it.map("properties")).map(|(name, _)| name).collect();
        res.sort_unstable();
        res.dedup();
        res
    }
}

/// Whether a schema is a reference without other keywords.
pub(crate) fn is_plain_reference(node: &Node<'_>) -> bool {
    let hidden = node.document.reference_hides_siblings();
    let is_plain = |it: &String| it == "$ref" || keyword::is_annotation(it) || is_definitions(it);
    node.reference().is_some() && (hidden || node.keywords().is_some_and(|it| it.keys().all(is_plain)))
}

/// The schema of the values that `properties` and `patternProperties` do not cover.
pub(crate) fn rest<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    node.child("additionalProperties").or_else(|| {
        let alone = !has_applicators(node) && !node.document.reference_hides_siblings();
        node.child("unevaluatedProperties").filter(|_| alone)
    })
}

/// Whether other schemas apply to the same value, so that `unevaluated*` depends on them.
pub(crate) fn has_applicators(node: &Node<'_>) -> bool {
    const APPLICATORS: [&str; 10] = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "not",
        "dependentSchemas",
        "dependencies",
    ];
    APPLICATORS.iter().any(|it| node.get(it).is_some())
}

/// The schemas of the first items, and of the others.
pub(crate) fn items<'a>(node: &Node<'a>) -> (Vec<Node<'a>>, Option<Node<'a>>) {
    match node.get("items") {
        Some(serde_json::Value::Array(_)) => (node.list("items"), node.child("additionalItems")),
        _ => {
            let rest = node.child("items");
            let alone = !has_applicators(node)
                && node.get("contains").is_none()
                && !node.document.reference_hides_siblings();
            (node.list("prefixItems"), rest.or_else(|| node.child("unevaluatedItems").filter(|_| alone)))
        }
    }
}
