//! Generates documents for a schema.
//!
//! The generator is a heuristic. Its documents are checked by a validator before they are used.

mod sizes;
mod strings;

use serde_json::{Map, Value};

use crate::document::{Document, Node, build_validator};
use crate::error::Side;
use crate::inclusion::conjunction::Conjunction;
use crate::keyword::{self, Domain, MEASURES, TypeSet, string_items};
use crate::samples::{ChoiceSource, sample_of_type, text_for_pattern};
use sizes::{MAX_SIZE, choose_size, size_bounds};

/// The maximum number of alternatives and conditions of one value.
const MAX_BRANCHES: usize = 64;
/// The number of documents that are generated for one seed until the validator accepts one.
const ATTEMPTS: u64 = 16;
/// The maximum depth of a generated value.
const MAX_DEPTH: usize = 12;

/// Generates a value for a conjunction of schemas. `None` if the generator finds none.
pub(crate) fn generate_value(
    schemas: &Conjunction<'_>,
    choices: &mut ChoiceSource,
    depth: usize,
) -> Option<Value> {
    choices.count_value()?;
    let schemas = choose_branches(schemas.clone(), choices)?;
    if schemas.is_empty() || depth > MAX_DEPTH {
        return None;
    }
    if let Some(values) = schemas.values() {
        return Some((*values.get(choices.pick(values.len()))?).clone());
    }
    let mut kinds: Vec<TypeSet> =
        keyword::SINGLE_TYPES.into_iter().filter(|it| schemas.types & it != 0).collect();
    if schemas.types & keyword::OBJECT != 0
        && schemas.names().is_empty()
        && !requires_keys(&schemas)
        && kinds.len() > 2
    {
        kinds.rotate_left(2);
    }
    let kind = kinds[choices.pick(kinds.len())];
    match kind {
        keyword::STRING => strings::generate_string(&schemas, choices).map(Value::String),
        keyword::INTEGER | keyword::FRACTION => Some(generate_number(&schemas, kind, choices)),
        keyword::ARRAY => generate_array(&schemas, choices, depth),
        keyword::OBJECT => generate_object(&schemas, choices, depth).map(Value::Object),
        keyword::BOOLEAN => Some((choices.pick(2) == 0).into()),
        _ => Some(sample_of_type(kind)),
    }
}

fn requires_keys(schemas: &Conjunction<'_>) -> bool {
    schemas.nodes.iter().any(|it| string_items(it.get("required")).next().is_some())
}

/// Chooses a branch of every list of alternatives and of every condition.
pub(crate) fn choose_branches<'a>(
    mut schemas: Conjunction<'a>,
    choices: &mut ChoiceSource,
) -> Option<Conjunction<'a>> {
    for _ in 0..MAX_BRANCHES {
        let lists = schemas
            .nodes
            .iter()
            .flat_map(|node| ["anyOf", "oneOf"].map(|it| (node.child(it), node.child_list(it))));
        let open = lists.filter_map(|(list, branches)| list.map(|it| (it.id(), branches)));
        let next = { open }.find(|it| !schemas.chosen.contains(&it.0));
        if let Some((id, branches)) = next {
            // The first fitting branch from a random one on.
            let (before, after) = branches.split_at(choices.pick(branches.len()));
            let mut candidates = after.iter().chain(before).map(|it| schemas.with([*it]));
            schemas = candidates.find(|it| !it.is_empty())?;
            schemas.chosen.push(id);
            continue;
        }
        let conditions = schemas.nodes.iter().filter_map(|node| Some((*node, node.child("if")?)));
        let next = { conditions }.find(|it| !schemas.chosen.contains(&it.1.id()));
        let Some((node, condition)) = next else { return Some(schemas) };
        schemas.chosen.push(condition.id());
        let with_then = schemas.with([condition].into_iter().chain(node.child("then")));
        let with_else = schemas.with(node.child("else"));
        schemas = match (with_then.is_empty(), choices.pick(2)) {
            (false, 0) => with_then,
            _ => with_else,
        };
    }
    Some(schemas)
}

/// Generates a number within the bounds, often at one of them.
fn generate_number(schemas: &Conjunction<'_>, kind: TypeSet, choices: &mut ChoiceSource) -> Value {
    let domain = if kind == keyword::INTEGER { Domain::Integers } else { Domain::Reals };
    // The indices in `MEASURES`: 0 is `minimum`, 1 is `maximum`.
    let bounds = |index: usize| {
        schemas.nodes.iter().filter_map(move |it| MEASURES[index].bound(it.keywords()?, domain))
    };
    let low = bounds(0).reduce(|one, other| if MEASURES[0].implies(one, other) { one } else { other });
    let high = bounds(1).reduce(|one, other| if MEASURES[1].implies(one, other) { one } else { other });
    let step = schemas.nodes.iter().filter_map(|it| it.get("multipleOf")?.as_f64()).reduce(f64::max);
    let margin = if domain == Domain::Integers { 1.0 } else { 0.5 };
    let low = low.map(|it| if it.is_strict { it.limit + margin } else { it.limit });
    let high = high.map(|it| if it.is_strict { it.limit - margin } else { it.limit });
    let mut options = match (low, high) {
        (Some(low), Some(high)) => vec![low, high, (low + high) / 2.0],
        (Some(low), None) => vec![low, low + 1.0, low + 1000.0],
        (None, Some(high)) => vec![high, high - 1.0, high - 1000.0],
        (None, None) => vec![1.0, 0.0, -1.0, 7.0],
    };
    if domain == Domain::Integers {
        options.iter_mut().for_each(|it| *it = it.round());
    } else {
        options.iter_mut().for_each(|it| *it += if it.fract() == 0.0 { 0.25 } else { 0.0 });
    }
    let value = options[choices.pick(options.len())];
    let value = step.filter(|it| *it > 0.0).map_or(value, |step| (value / step).ceil() * step);
    crate::inclusion::number_value(value)
}

/// Generates an array; its first item satisfies `contains`.
fn generate_array(schemas: &Conjunction<'_>, choices: &mut ChoiceSource, depth: usize) -> Option<Value> {
    let min_count = usize::from(schemas.nodes.iter().any(|it| it.get("contains").is_some()));
    let count = choose_size(schemas, 4, choices).max(min_count).min(if depth > 3 { 3 } else { MAX_SIZE });
    let mut items = Vec::new();
    for index in 0..count {
        let mut nodes = schemas.item(index);
        if index == 0 {
            nodes.extend(schemas.nodes.iter().filter_map(|it| it.child("contains")));
        }
        items.push(generate_value(&Conjunction::new(nodes), choices, depth + 1)?);
    }
    Some(items.into())
}

/// Generates an object with the required keys and some of the others.
pub(crate) fn generate_object(
    schemas: &Conjunction<'_>,
    choices: &mut ChoiceSource,
    depth: usize,
) -> Option<Map<String, Value>> {
    let requested_size = choices.size.take();
    let schemas = &choose_branches(schemas.clone(), choices)?;
    let mut keys: Vec<String> =
        schemas.nodes.iter().flat_map(|it| string_items(it.get("required"))).map(str::to_owned).collect();
    if !choices.is_minimal() && depth < 6 {
        let optional = schemas.names().into_iter().filter(|_| choices.includes_optional()).map(str::to_owned);
        keys.extend({ optional }.collect::<Vec<_>>());
    }
    let mut res = Map::new();
    for name in &keys {
        // An optional key that cannot be generated is schemas out; a required one makes the object invalid.
        if let Some(value) = generate_value(&Conjunction::new(schemas.property(name)), choices, depth + 1) {
            res.insert(name.clone(), value);
        }
    }
    let patterns: Vec<&str> =
        schemas.nodes.iter().flat_map(|it| it.child_map("patternProperties")).map(|it| it.0).collect();
    let is_open = schemas.nodes.iter().any(|it| it.get("additionalProperties").is_some());
    let min_size = requested_size.unwrap_or_else(|| size_bounds(schemas, 6).0);
    let more = min_size.saturating_sub(res.len()).min(MAX_SIZE);
    let more = more.max(usize::from((is_open || !patterns.is_empty()) && choices.includes_optional()));
    for index in 0..more {
        let names: Vec<Node<'_>> = schemas.nodes.iter().filter_map(|it| it.child("propertyNames")).collect();
        let name = match (names.is_empty(), patterns.get(choices.pick(patterns.len()))) {
            (false, _) => generate_value(&Conjunction::new(names), choices, depth + 1)?.as_str()?.to_owned(),
            (true, Some(pattern)) => text_for_pattern(pattern, choices)?,
            (true, None) => format!("key-{index}"),
        };
        if let Some(value) = generate_value(&Conjunction::new(schemas.property(&name)), choices, depth + 1) {
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
        Some(Self { schema, validator: build_validator(&document)? })
    }

    /// A document that the schema accepts, as [`generate`].
    pub fn document(&self, seed: u64) -> Option<Value> {
        let document = Document::new(self.schema, Side::Old).ok()?;
        let schemas = Conjunction::new(vec![document.node()]);
        let attempts = (0..ATTEMPTS).map(|attempt| {
            if seed == 0 { attempt } else { seed.wrapping_mul(ATTEMPTS).wrapping_add(attempt) }
        });
        { attempts }.find_map(|attempt| {
            let value = generate_value(&schemas, &mut ChoiceSource::new(attempt), 0)?;
            self.validator.is_valid(&value).then_some(value)
        })
    }
}
