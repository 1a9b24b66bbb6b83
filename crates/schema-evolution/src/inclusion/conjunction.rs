//! A conjunction of schemas that apply to one location: the left side of an inclusion.

use std::rc::Rc;

use crate::document::Node;
use crate::keyword::{self, PatternMatch, TypeSet, is_definitions};

/// A conjunction of schemas, without `allOf` and references.
#[derive(Clone)]
pub(crate) struct Conjunction<'a> {
    pub nodes: Vec<Node<'a>>,
    /// The types that all schemas allow.
    pub types: TypeSet,
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
pub(crate) enum LocationStep {
    Key(String),
    /// A key that the schema does not name, with a sample of such a key.
    AnyKey(String),
    Index(usize),
    /// The name of a key, not its value.
    Name,
}

/// One step of a location, with the schemas of the value that it starts from.
pub(crate) struct LocationNode<'a> {
    pub left: Rc<Conjunction<'a>>,
    pub step: LocationStep,
    pub parent: Location<'a>,
}

/// A location in a document: its last step, which refers to the steps before it. `None` is the root.
pub(crate) type Location<'a> = Option<Rc<LocationNode<'a>>>;

/// The text of a location, such as `servers.*.args[]`; `(root)` for the root.
pub(crate) fn location_text(location: &Location<'_>) -> String {
    let mut steps = Vec::new();
    let mut current = location;
    while let Some(frame) = current {
        steps.push(match &frame.step {
            LocationStep::Key(name) => format!(".{name}"),
            LocationStep::AnyKey(_) => ".*".to_owned(),
            LocationStep::Index(_) => "[]".to_owned(),
            LocationStep::Name => ".(names)".to_owned(),
        });
        current = &frame.parent;
    }
    steps.reverse();
    let text = steps.concat();
    if text.is_empty() { "(root)".to_owned() } else { text.trim_start_matches('.').to_owned() }
}

/// The maximum number of schemas in a conjunction. Beyond it, the conjunction is partial.
const MAX_NODES: usize = 2_000;

impl<'a> Conjunction<'a> {
    pub(crate) fn new(nodes: Vec<Node<'a>>) -> Self {
        let mut res = Self {
            nodes: Vec::new(),
            types: keyword::ALL_TYPES,
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
            self.types &= keyword::allowed_types(keywords);
            if let Some(values) = keyword::allowed_values(keywords) {
                self.types &= values.iter().fold(0, |res, it| res | keyword::type_of(it));
            }
            open.extend(node.child_list("allOf"));
            self.excluded.extend(node.child("not"));
            if !is_plain_reference(&node) {
                self.nodes.push(node);
            }
        }
    }

    /// A conjunction of these schemas and `nodes`.
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
        let lists: Vec<_> =
            self.nodes.iter().filter_map(|it| keyword::allowed_values(it.keywords()?)).collect();
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
            let patterns = node.child_map("patternProperties");
            let matching: Vec<_> =
                patterns.iter().map(|it| (keyword::match_pattern(it.0, key), &it.1)).collect();
            let is_rest = named.is_none() && matching.iter().all(|it| it.0 == PatternMatch::No);
            res.extend(named);
            res.extend(matching.into_iter().filter(|it| it.0 == PatternMatch::Yes).map(|it| *it.1));
            if is_rest {
                res.extend(rest_schema(node));
            }
        }
        res
    }

    /// The schemas of values under keys that no schema names.
    pub(crate) fn unnamed(&self) -> Vec<Node<'a>> {
        self.nodes.iter().filter_map(rest_schema).collect()
    }

    /// The schemas of the item at an index.
    pub(crate) fn item(&self, index: usize) -> Vec<Node<'a>> {
        let of = |node: &Node<'a>| {
            let (prefix, rest) = item_schemas(node);
            prefix.get(index).cloned().or(rest)
        };
        self.nodes.iter().filter_map(of).collect()
    }

    /// The number of items that have schemas of their own.
    pub(crate) fn prefix_length(&self) -> usize {
        self.nodes.iter().map(|it| item_schemas(it).0.len()).max().unwrap_or(0)
    }

    /// The names that some schema lists.
    pub(crate) fn names(&self) -> Vec<&'a str> {
        let mut res: Vec<&str> =
            self.nodes.iter().flat_map(|it| it.child_map("properties")).map(|(name, _)| name).collect();
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
pub(crate) fn rest_schema<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    node.child("additionalProperties").or_else(|| {
        let is_alone = !has_applicators(node) && !node.document.reference_hides_siblings();
        node.child("unevaluatedProperties").filter(|_| is_alone)
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
pub(crate) fn item_schemas<'a>(node: &Node<'a>) -> (Vec<Node<'a>>, Option<Node<'a>>) {
    match node.get("items") {
        Some(serde_json::Value::Array(_)) => (node.child_list("items"), node.child("additionalItems")),
        _ => {
            let rest = node.child("items");
            let is_alone = !has_applicators(node)
                && node.get("contains").is_none()
                && !node.document.reference_hides_siblings();
            (
                node.child_list("prefixItems"),
                rest.or_else(|| node.child("unevaluatedItems").filter(|_| is_alone)),
            )
        }
    }
}
