//! Compares the keywords that contain no schemas: types, values, bounds, patterns, formats, multiples and unique items.

use serde_json::Value;

use super::conjunction::Conjunction;
use super::obstacle::{Obstacle, ObstacleKind};
use super::pair::Pair;
use super::prover::Prover;
use crate::document::Node;
use crate::keyword::{self, MEASURES, Measure, PatternMatch};
use crate::samples::sample_of_type;

impl<'a> Prover<'a> {
    /// Compares these keywords. Returns an obstacle for each keyword of the right side that may refuse a value of the
    /// left side.
    pub(super) fn compare_scalars(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(keywords) = right.keywords() else { return Vec::new() };
        let (mut res, mut sizes) = (Vec::new(), Vec::new());
        let mut note = |keyword: &str, samples: Vec<Value>| {
            let mut obstacle = pair.obstacle(ObstacleKind::Refused, keyword);
            obstacle.samples = samples;
            res.push(obstacle);
        };
        let finite = left.values();
        let lost = left.types & !keyword::allowed_types(keywords);
        if lost != 0 {
            let of_type = |it: &&&Value| keyword::type_of(it) & lost != 0;
            let samples = match &finite {
                Some(values) => values.iter().filter(of_type).map(|it| (*it).clone()).collect(),
                None => keyword::SINGLE_TYPES
                    .into_iter()
                    .filter(|it| it & lost != 0)
                    .map(sample_of_type)
                    .collect(),
            };
            note("type", samples);
        }
        if let Some(allowed) = keyword::allowed_values(keywords) {
            let allowed: Vec<String> = allowed.into_iter().map(keyword::canonical).collect();
            let is_lost = |it: &Value| !allowed.contains(&keyword::canonical(it));
            let keyword = if keywords.contains_key("const") { "const" } else { "enum" };
            match finite.clone().or_else(|| small_type_values(left)) {
                Some(values) => {
                    let lost: Vec<Value> = values.into_iter().filter(|it| is_lost(it)).cloned().collect();
                    if !lost.is_empty() {
                        note(keyword, lost);
                    }
                }
                None => note(keyword, Vec::new()),
            }
        }
        for measure in MEASURES {
            if let Some(samples) = samples_beyond_bound(measure, left, right, finite.as_deref()) {
                let names = [Some(measure.keyword), measure.exclusive];
                let named = names.into_iter().flatten().find(|it| keywords.contains_key(*it));
                let mut obstacle = pair.obstacle(ObstacleKind::Refused, named.unwrap_or(measure.keyword));
                obstacle.samples = samples;
                obstacle.size = measure.bound(keywords, false).and_then(|it| size_beyond(measure, it));
                sizes.push(obstacle);
            }
        }
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
            && left.types & keyword::STRING != 0
            && !left.nodes.iter().any(|it| it.get("pattern").and_then(Value::as_str) == Some(pattern))
        {
            let is_lost = |it: &&Value| {
                it.as_str().is_some_and(|text| keyword::match_pattern(pattern, text) != PatternMatch::Yes)
            };
            match &finite {
                Some(values) if !values.iter().any(is_lost) => {}
                _ => note("pattern", Vec::new()),
            }
        }
        if let Some(format) = keyword::format(right)
            && left.types & keyword::STRING != 0
            && !left.nodes.iter().any(|it| keyword::format(it) == Some(format))
        {
            note("format", vec!["?".into(), "not such a format".into(), "%".into()]);
        }
        if let Some(step) = keywords.get("multipleOf").and_then(Value::as_f64)
            && left.types & keyword::NUMBER != 0
            && !is_multiple(left, step)
        {
            note("multipleOf", Vec::new());
        }
        if keywords.get("uniqueItems") == Some(&Value::Bool(true))
            && left.types & keyword::ARRAY != 0
            && !left.nodes.iter().any(|it| it.get("uniqueItems") == Some(&Value::Bool(true)))
        {
            note("uniqueItems", Vec::new());
        }
        res.extend(sizes);
        res
    }
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
    const VALUES: [Value; 3] = [Value::Null, Value::Bool(false), Value::Bool(true)];
    static ALL: [Value; 3] = VALUES;
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
    let integers = measured == keyword::INTEGER;
    let wanted = measure.bound(right.keywords()?, integers)?;
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
        let bound = it.keywords().and_then(|it| measure.bound(it, integers));
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
        left.nodes.iter().filter_map(|it| Some(number_value(measure.bound(it.keywords()?, integers)?.limit))),
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
