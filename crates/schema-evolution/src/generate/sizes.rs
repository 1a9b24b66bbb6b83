//! Allowed sizes of texts, arrays and objects.

use crate::inclusion::left::Left;
use crate::keyword::MEASURES;
use crate::samples::Choices;

/// The number of items, keys or characters beyond the least that are generated to reach an upper bound.
pub(super) const MAX_SIZE: usize = 5_000;

/// The smallest and the largest allowed size.
pub(super) fn sizes(left: &Left<'_>, lower: usize) -> (usize, usize) {
    let whole = |it: f64| it.clamp(0.0, 1e9) as usize;
    let bounds = |at: usize| {
        let measure = MEASURES[at];
        left.nodes.iter().filter_map(move |it| Some(measure.bound(it.keywords()?, false)?.limit)).map(whole)
    };
    let least = bounds(lower).max().unwrap_or(0);
    let most = bounds(lower + 1).min().unwrap_or(usize::MAX);
    (least, most)
}

/// A size at a bound.
pub(super) fn size(left: &Left<'_>, lower: usize, choices: &mut Choices) -> usize {
    if let Some(size) = choices.size.take() {
        return size.min(MAX_SIZE);
    }
    let (least, most) = sizes(left, lower);
    if choices.is_large() {
        return least;
    }
    let near = least.saturating_add(choices.pick(3)).min(most);
    match choices.pick(4) {
        0 => least,
        1 if most <= MAX_SIZE => most,
        _ => near,
    }
}
