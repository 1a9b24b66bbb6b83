//! Compares the keywords that contain no schemas: types, values, bounds, patterns, formats, multiples and unique items.

use serde_json::{Map, Value};

use super::conjunction::Conjunction;
use super::obstacle::{Obstacle, ObstacleKind};
use super::pair::Pair;
use super::prover::Prover;
use crate::document::Node;
use crate::keyword::{self, Domain, MEASURES, Measure, PatternMatch};
use crate::samples::sample_of_type;

impl<'a> Prover<'a> {
    /// Compares these keywords. Returns an obstacle for each keyword of the right side that may refuse a value of the
    /// left side.
    pub(super) fn compare_scalars(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(keywords) = right.keywords() else { return Vec::new() };
        let finite = left.values();
        let mut res: Vec<Obstacle<'a>> = Vec::new();
        res.extend(compare_types(pair, keywords, finite.as_deref()));
        res.extend(compare_values(pair, keywords, finite.as_deref()));
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
            && left.types & keyword::STRING != 0
            && !left.nodes.iter().any(|it| it.get("pattern").and_then(Value::as_str) == Some(pattern))
        {
            let is_lost = |it: &&Value| {
                it.as_str().is_some_and(|text| keyword::match_pattern(pattern, text) != PatternMatch::Yes)
            };
            match &finite {
                Some(values) if !values.iter().any(is_lost) => {}
                _ => res.push(refusal(pair, "pattern", Vec::new())),
            }
        }
        if let Some(format) = keyword::format(right)
            && left.types & keyword::STRING != 0
            && !left.nodes.iter().any(|it| keyword::format(it) == Some(format))
        {
            res.push(refusal(pair, "format", vec!["?".into(), "not such a format".into(), "%".into()]));
        }
        if let Some(step) = keywords.get("multipleOf").and_then(Value::as_f64)
            && left.types & keyword::NUMBER != 0
            && !is_multiple(left, step)
        {
            res.push(refusal(pair, "multipleOf", Vec::new()));
        }
        if keywords.get("uniqueItems") == Some(&Value::Bool(true))
            && left.types & keyword::ARRAY != 0
            && !left.nodes.iter().any(|it| it.get("uniqueItems") == Some(&Value::Bool(true)))
        {
            res.push(refusal(pair, "uniqueItems", Vec::new()));
        }
        for measure in MEASURES {
            res.extend(compare_bound(measure, pair, keywords, finite.as_deref()));
        }
        res
    }
}

/// The keywords of a schema.
type Keywords = Map<String, Value>;

/// The obstacle that a keyword of the right side may refuse these values.
fn refusal<'a>(pair: &Pair<'a>, keyword: &str, samples: Vec<Value>) -> Obstacle<'a> {
    let mut obstacle = pair.obstacle(ObstacleKind::Refused, keyword);
    obstacle.samples = samples;
    obstacle
}

/// Compares the allowed types. `finite` has all values of the left side, if it lists them.
fn compare_types<'a>(
    pair: &Pair<'a>,
    keywords: &Keywords,
    finite: Option<&[&Value]>,
) -> Option<Obstacle<'a>> {
    let lost = pair.left.types & !keyword::allowed_types(keywords);
    if lost == 0 {
        return None;
    }
    let samples = match finite {
        Some(values) => {
            let of_type = values.iter().filter(|it| keyword::type_of(it) & lost != 0);
            of_type.map(|it| (*it).clone()).collect()
        }
        None => keyword::SINGLE_TYPES.into_iter().filter(|it| it & lost != 0).map(sample_of_type).collect(),
    };
    Some(refusal(pair, "type", samples))
}

/// Compares the values that `const` or `enum` allows. `finite` has all values of the left side, if it lists them.
fn compare_values<'a>(
    pair: &Pair<'a>,
    keywords: &Keywords,
    finite: Option<&[&Value]>,
) -> Option<Obstacle<'a>> {
    let allowed = keyword::allowed_values(keywords)?;
    let allowed: Vec<String> = allowed.into_iter().map(keyword::canonical).collect();
    let is_lost = |it: &Value| !allowed.contains(&keyword::canonical(it));
    let keyword = if keywords.contains_key("const") { "const" } else { "enum" };
    match finite.map(<[_]>::to_vec).or_else(|| small_type_values(&pair.left)) {
        Some(values) => {
            let lost: Vec<Value> = values.into_iter().filter(|it| is_lost(it)).cloned().collect();
            (!lost.is_empty()).then(|| refusal(pair, keyword, lost))
        }
        None => Some(refusal(pair, keyword, Vec::new())),
    }
}

/// Compares a bound. `finite` has all values of the left side, if it lists them.
fn compare_bound<'a>(
    measure: Measure,
    pair: &Pair<'a>,
    keywords: &Keywords,
    finite: Option<&[&Value]>,
) -> Option<Obstacle<'a>> {
    let samples = samples_beyond_bound(measure, &pair.left, &pair.right, finite)?;
    let names = [Some(measure.keyword), measure.exclusive];
    let named = names.into_iter().flatten().find(|it| keywords.contains_key(*it));
    let mut obstacle = refusal(pair, named.unwrap_or(measure.keyword), samples);
    obstacle.size = measure.bound(keywords, Domain::Reals).and_then(|it| size_beyond(measure, it));
    Some(obstacle)
}

/// The length or count next to a bound that the bound refuses; `None` for a bound of numbers, and for a lower bound of
/// 0. A limit above a million counts as a million.
fn size_beyond(measure: Measure, bound: keyword::Bound) -> Option<usize> {
    let limit = bound.limit.clamp(0.0, 1e6) as usize;
    let is_size = measure.types != keyword::NUMBER;
    if measure.is_upper { is_size.then(|| limit + 1) } else { limit.checked_sub(1).filter(|_| is_size) }
}

/// All values of a left side that allows booleans and null only.
fn small_type_values(left: &Conjunction<'_>) -> Option<Vec<&'static Value>> {
    static ALL: [Value; 3] = [Value::Null, Value::Bool(false), Value::Bool(true)];
    let is_small = left.types & !(keyword::NULL | keyword::BOOLEAN) == 0;
    is_small.then(|| ALL.iter().filter(|it| keyword::type_of(it) & left.types != 0).collect())
}

/// Values of the left side that a bound of the right side may refuse; `None` if the left side is within the bound.
/// `finite` has all values of the left side, if it lists them. Empty for a length or count without listed values: see
/// [`size_beyond`].
fn samples_beyond_bound(
    measure: Measure,
    left: &Conjunction<'_>,
    right: &Node<'_>,
    finite: Option<&[&Value]>,
) -> Option<Vec<Value>> {
    let measured = left.types & measure.types;
    if measured == 0 {
        return None;
    }
    let domain = if measured == keyword::INTEGER { Domain::Integers } else { Domain::Reals };
    let wanted = measure.bound(right.keywords()?, domain)?;
    // Sizes are never negative.
    if measure.types != keyword::NUMBER && !measure.is_upper && wanted.limit <= 0.0 {
        return None;
    }
    if let Some(values) = finite {
        let lost: Vec<Value> =
            values.iter().filter(|it| !measure.allows(wanted, it)).map(|it| (*it).clone()).collect();
        return (!lost.is_empty()).then_some(lost);
    }
    let implied = left.nodes.iter().any(|it| {
        let bound = it.keywords().and_then(|it| measure.bound(it, domain));
        bound.is_some_and(|it| measure.implies(it, wanted))
    });
    if implied {
        return None;
    }
    if measure.types != keyword::NUMBER {
        return Some(Vec::new());
    }
    let beyond = if measure.is_upper { 1.0 } else { -1.0 };
    let mut samples = vec![
        number_value(wanted.limit),
        number_value(wanted.limit + beyond),
        number_value(wanted.limit + beyond / 2.0),
    ];
    samples.extend(
        left.nodes.iter().filter_map(|it| Some(number_value(measure.bound(it.keywords()?, domain)?.limit))),
    );
    Some(samples)
}

/// A JSON number without a needless fraction.
pub(crate) fn number_value(value: f64) -> Value {
    let whole = value as i64;
    if value.fract() == 0.0 && value.abs() < 9e15 { whole.into() } else { value.into() }
}

/// Whether every number of the left side is known to be a multiple of `step`.
fn is_multiple(left: &Conjunction<'_>, step: f64) -> bool {
    let steps = left.nodes.iter().filter_map(|it| it.get("multipleOf")?.as_f64());
    let whole = |ratio: f64| ratio.fract() == 0.0 && step.fract() == 0.0;
    steps.into_iter().any(|it| it == step || (it.fract() == 0.0 && whole(it / step)))
        || (left.types & keyword::NUMBER == keyword::INTEGER && step == 1.0)
}
