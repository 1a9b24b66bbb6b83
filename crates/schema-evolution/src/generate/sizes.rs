//! Allowed sizes of texts, arrays and objects.

use crate::inclusion::conjunction::Conjunction;
use crate::keyword::{Domain, MEASURES};
use crate::samples::ChoiceSource;

/// The largest size that is generated, in items, keys or characters.
pub(super) const MAX_SIZE: usize = 5_000;

/// The smallest and the largest allowed size. `lower` is the index in `MEASURES` of the lower bound; the upper one
/// follows it.
pub(super) fn size_bounds(schemas: &Conjunction<'_>, lower: usize) -> (usize, usize) {
    let whole = |it: f64| it.clamp(0.0, 1e9) as usize;
    let bounds = |index: usize| {
        let measure = MEASURES[index];
        schemas
            .nodes
            .iter()
            .filter_map(move |it| Some(measure.bound(it.keywords()?, Domain::Reals)?.limit))
            .map(whole)
    };
    let min = bounds(lower).max().unwrap_or(0);
    let max = bounds(lower + 1).min().unwrap_or(usize::MAX);
    (min, max)
}

/// Chooses a size at or near a bound.
pub(super) fn choose_size(schemas: &Conjunction<'_>, lower: usize, choices: &mut ChoiceSource) -> usize {
    if let Some(size) = choices.size.take() {
        return size.min(MAX_SIZE);
    }
    let (min, max) = size_bounds(schemas, lower);
    if choices.is_large() {
        return min;
    }
    let near = min.saturating_add(choices.pick(3)).min(max);
    match choices.pick(4) {
        0 => min,
        1 if max <= MAX_SIZE => max,
        _ => near,
    }
}
