//! Generates documents for a schema.
//!
//! The generator is a heuristic. Its documents are checked by a validator before they are used.

mod sizes;
mod strings;

use serde_json::{Map, Value};

use crate::document::{Document, Node, validator};
use crate::error::Side;
use crate::inclusion::left::Left;
use crate::keyword::{self, MEASURES, Types, names};
use crate::samples::{Choices, of_pattern, sample_of_type};
use sizes::{MAX_SIZE, size, sizes};

/// The depth of a generated value.
const MAX_DEPTH: usize = 12;

/// A value for a conjunction of schemas. `None` if the generator finds none.
pub(crate) fn instance(left: &Left<'_>, choices: &mut Choices, depth: usize) -> Option<Value> {
    choices.count_value()?;
    let left = choose_branches(left.clone(), choices)?;
    if left.is_empty() || depth > MAX_DEPTH {
        return None;
    }
    if let Some(values) = left.values() {
        return Some((*values.get(choices.pick(values.len()))?).clone());
    }
    let mut kinds: Vec<Types> = keyword::EACH.into_iter().filter(|it| left.types & it != 0).collect();
    if left.types & keyword::OBJECT != 0
        && left.names().is_empty()
        && !requires_keys(&left)
        && kinds.len() > 2
    {
        kinds.rotate_left(2);
    }
    let kind = kinds[choices.pick(kinds.len())];
    match kind {
        keyword::STRING => strings::string(&left, choices).map(Value::String),
        keyword::INTEGER | keyword::FRACTION => Some(number(&left, kind, choices)),
        keyword::ARRAY => array(&left, choices, depth),
        keyword::OBJECT => object(&left, choices, depth).map(Value::Object),
        keyword::BOOLEAN => Some((choices.pick(2) == 0).into()),
        _ => Some(sample_of_type(kind)),
    }
}

fn requires_keys(left: &Left<'_>) -> bool {
    left.nodes.iter().any(|it| names(it.get("required")).next().is_some())
}

/// Chooses a branch of every list of alternatives and of every condition.
pub(crate) fn choose_branches<'a>(mut left: Left<'a>, choices: &mut Choices) -> Option<Left<'a>> {
    for _ in 0..64 {
        let lists =
            left.nodes.iter().flat_map(|node| ["anyOf", "oneOf"].map(|it| (node.child(it), node.list(it))));
        let open = lists.filter_map(|(list, branches)| list.map(|it| (it.id(), branches)));
        let next = { open }.find(|it| !left.chosen.contains(&it.0));
        if let Some((id, branches)) = next {
            // The first fitting branch from a random one on.
            let (before, after) = branches.split_at(choices.pick(branches.len()));
            let mut candidates = after.iter().chain(before).map(|it| left.with([*it]));
            left = candidates.find(|it| !it.is_empty())?;
            left.chosen.push(id);
            continue;
        }
        let conditions = left.nodes.iter().filter_map(|node| Some((*node, node.child("if")?)));
        let next = { conditions }.find(|it| !left.chosen.contains(&it.1.id()));
        let Some((node, condition)) = next else { return Some(left) };
        left.chosen.push(condition.id());
        let with_then = left.with([condition].into_iter().chain(node.child("then")));
        let with_else = left.with(node.child("else"));
        left = match (with_then.is_empty(), choices.pick(2)) {
            (false, 0) => with_then,
            _ => with_else,
        };
    }
    Some(left)
}

fn number(left: &Left<'_>, kind: Types, choices: &mut Choices) -> Value {
    let integers = kind == keyword::INTEGER;
    let bound =
        |at: usize| left.nodes.iter().filter_map(move |it| MEASURES[at].bound(it.keywords()?, integers));
    let low = bound(0).reduce(|one, other| if MEASURES[0].implies(one, other) { one } else { other });
    let high = bound(1).reduce(|one, other| if MEASURES[1].implies(one, other) { one } else { other });
    let step = left.nodes.iter().filter_map(|it| it.get("multipleOf")?.as_f64()).reduce(f64::max);
    let inner = if integers { 1.0 } else { 0.5 };
    let low = low.map(|it| if it.is_strict { it.limit + inner } else { it.limit });
    let high = high.map(|it| if it.is_strict { it.limit - inner } else { it.limit });
    let mut options = match (low, high) {
        (Some(low), Some(high)) => vec![low, high, (low + high) / 2.0],
        (Some(low), None) => vec![low, low + 1.0, low + 1000.0],
        (None, Some(high)) => vec![high, high - 1.0, high - 1000.0],
        (None, None) => vec![1.0, 0.0, -1.0, 7.0],
    };
    if integers {
        options.iter_mut().for_each(|it| *it = it.round());
    } else {
        options.iter_mut().for_each(|it| *it += if it.fract() == 0.0 { 0.25 } else { 0.0 });
    }
    let value = options[choices.pick(options.len())];
    let value = step.filter(|it| *it > 0.0).map_or(value, |step| (value / step).ceil() * step);
    crate::inclusion::number_value(value)
}

fn array(left: &Left<'_>, choices: &mut Choices, depth: usize) -> Option<Value> {
    let needed = usize::from(left.nodes.iter().any(|it| it.get("contains").is_some()));
    let count = size(left, 4, choices).max(needed).min(if depth > 3 { 3 } else { MAX_SIZE });
    let mut items = Vec::new();
    for index in 0..count {
        let mut nodes = left.item(index);
        if index == 0 {
            nodes.extend(left.nodes.iter().filter_map(|it| it.child("contains")));
        }
        items.push(instance(&Left::of(nodes), choices, depth + 1)?);
    }
    Some(items.into())
}

/// An object with the required keys and some of the others.
pub(crate) fn object(left: &Left<'_>, choices: &mut Choices, depth: usize) -> Option<Map<String, Value>> {
    let wanted_size = choices.size.take();
    let left = &choose_branches(left.clone(), choices)?;
    let mut wanted: Vec<String> =
        left.nodes.iter().flat_map(|it| names(it.get("required"))).map(str::to_owned).collect();
    if !choices.is_least() && depth < 6 {
        let optional = left.names().into_iter().filter(|_| choices.optional()).map(str::to_owned);
        wanted.extend({ optional }.collect::<Vec<_>>());
    }
    let mut res = Map::new();
    for name in &wanted {
        // An optional key that cannot be generated is left out; a required one makes the object invalid.
        if let Some(value) = instance(&Left::of(left.property(name)), choices, depth + 1) {
            res.insert(name.clone(), value);
        }
    }
    let patterns: Vec<&str> =
        left.nodes.iter().flat_map(|it| it.map("patternProperties")).map(|it| it.0).collect();
    let is_open = left.nodes.iter().any(|it| it.get("additionalProperties").is_some());
    let least = wanted_size.unwrap_or_else(|| sizes(left, 6).0);
    let more = least.saturating_sub(res.len()).min(MAX_SIZE);
    let more = more.max(usize::from((is_open || !patterns.is_empty()) && choices.optional()));
    for index in 0..more {
        let names: Vec<Node<'_>> = left.nodes.iter().filter_map(|it| it.child("propertyNames")).collect();
        let name = match (names.is_empty(), patterns.get(choices.pick(patterns.len()))) {
            (false, _) => instance(&Left::of(names), choices, depth + 1)?.as_str()?.to_owned(),
            (true, Some(pattern)) => of_pattern(pattern, choices)?,
            (true, None) => format!("key-{index}"),
        };
        if let Some(value) = instance(&Left::of(left.property(&name)), choices, depth + 1) {
            res.insert(name, value);
        }
    }
    Some(res)
}

/// Generates a document that a schema accepts.
///
/// Seed 0 gives a small document, other seeds give random ones with values at the bounds of the schema. The document is
/// checked with a validator. `None` if no document was found: the generator is a heuristic. It generates keys that
/// the schema describes and no others.
pub fn generate(schema: &Value, seed: u64) -> Option<Value> {
    Generator::new(schema)?.document(seed)
}

/// Generates documents for one schema.
pub struct Generator<'a> {
    schema: &'a Value,
    validator: jsonschema::Validator,
}

impl<'a> Generator<'a> {
    /// Prepares the validator. `None` if the schema is invalid, too large, or refers to another document.
    pub fn new(schema: &'a Value) -> Option<Self> {
        let document = Document::new(schema, Side::Old).ok()?;
        Some(Self { schema, validator: validator(&document)? })
    }

    /// A document that the schema accepts, as [`generate`].
    pub fn document(&self, seed: u64) -> Option<Value> {
        let document = Document::new(self.schema, Side::Old).ok()?;
        let left = Left::of(vec![document.node()]);
        let attempts = (0..16)
            .map(|attempt| if seed == 0 { attempt } else { seed.wrapping_mul(16).wrapping_add(attempt) });
        { attempts }.find_map(|attempt| {
            let value = instance(&left, &mut Choices::new(attempt), 0)?;
            self.validator.is_valid(&value).then_some(value)
        })
    }
}
