//! Expands the obstacles of a comparison to all locations that have them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::conjunction::{Location, LocationNode};
use super::obstacle::{ComparisonKey, Obstacle, ObstacleKind};

/// The maximum number of locations that are found for one pair of schemas.
pub(crate) const MAX_LOCATIONS: usize = 64;

/// The obstacles of a comparison of two schemas at the location where it was made.
pub(super) struct FailedComparison<'a> {
    pub location: Location<'a>,
    pub obstacles: Vec<Obstacle<'a>>,
}

/// The location at which one comparison leads to another.
struct ComparisonReference<'a> {
    /// The comparison that has the location; `None` for that of the roots.
    owner: Option<ComparisonKey>,
    location: Location<'a>,
}

/// Expands repeated comparisons once each. Each obstacle gets the locations of all repetitions.
pub(super) fn expand<'a>(
    first: Vec<Obstacle<'a>>,
    failed: &HashMap<ComparisonKey, FailedComparison<'a>>,
) -> Vec<Obstacle<'a>> {
    let mut references: Vec<(ComparisonKey, ComparisonReference<'a>)> = Vec::new();
    let mut found: Vec<(Option<ComparisonKey>, Obstacle<'a>)> = Vec::new();
    let mut pending: Vec<(Option<ComparisonKey>, Obstacle<'a>)> =
        first.into_iter().map(|it| (None, it)).collect();
    let mut expanded = HashSet::new();
    while let Some((owner, obstacle)) = pending.pop() {
        let ObstacleKind::Repeated(key) = &obstacle.kind else {
            found.push((owner, obstacle));
            continue;
        };
        references.push((key.clone(), ComparisonReference { owner, location: obstacle.location.clone() }));
        if expanded.insert(key.clone()) {
            let inner = failed.get(key).map_or(&[][..], |it| &it.obstacles);
            pending.extend(inner.iter().map(|it| (Some(key.clone()), it.clone())));
        }
    }
    let locations = find_locations(&references, failed);
    let with_others = |(owner, mut obstacle): (Option<ComparisonKey>, Obstacle<'a>)| {
        if let Some(failed) = owner.as_ref().and_then(|it| failed.get(it)) {
            let own = obstacle.location_text();
            let all = owner.as_ref().and_then(|it| locations.get(it)).into_iter().flatten();
            let moved = all.map(|it| rebase(&obstacle.location, &failed.location, it));
            let mut texts = HashSet::from([own]);
            obstacle.other_locations =
                moved.filter(|it| texts.insert(super::conjunction::location_text(it))).collect();
        }
        obstacle
    };
    found.into_iter().map(with_others).collect()
}

/// Finds the locations of each comparison, the nearest to the root first. Cycles of references are followed once.
fn find_locations<'a>(
    references: &[(ComparisonKey, ComparisonReference<'a>)],
    failed: &HashMap<ComparisonKey, FailedComparison<'a>>,
) -> HashMap<ComparisonKey, Vec<Location<'a>>> {
    let mut by_owner: HashMap<Option<&ComparisonKey>, Vec<(&ComparisonKey, &Location<'a>)>> = HashMap::new();
    for (key, reference) in references {
        by_owner.entry(reference.owner.as_ref()).or_default().push((key, &reference.location));
    }
    let mut res: HashMap<ComparisonKey, Vec<Location<'a>>> = HashMap::new();
    // A visit is a comparison, its location, and the visit before it.
    let mut visits: Vec<(&ComparisonKey, usize)> = Vec::new();
    let mut pending: VecDeque<(Option<&ComparisonKey>, Location<'a>, usize)> =
        VecDeque::from([(None, None, usize::MAX)]);
    while let Some((owner, at, visit)) = pending.pop_front() {
        let origin = owner.and_then(|it| failed.get(it)).and_then(|it| it.location.clone());
        for (key, location) in by_owner.get(&owner).into_iter().flatten() {
            let mut ancestor = visit;
            let mut is_cycle = false;
            while let Some((visited, before)) = visits.get(ancestor) {
                is_cycle |= visited == key;
                ancestor = *before;
            }
            let known = res.entry((*key).clone()).or_default();
            if is_cycle || known.len() >= MAX_LOCATIONS {
                continue;
            }
            let moved = rebase(location, &origin, &at);
            known.push(moved.clone());
            pending.push_back((Some(key), moved, visits.len()));
            visits.push((key, visit));
        }
    }
    res
}

/// Moves the part of a location below `origin` to another location.
fn rebase<'a>(location: &Location<'a>, origin: &Location<'a>, onto: &Location<'a>) -> Location<'a> {
    match (location, origin) {
        (Some(one), Some(other)) if Rc::ptr_eq(one, other) => onto.clone(),
        (None, _) => onto.clone(),
        (Some(frame), _) => Some(Rc::new(LocationNode {
            left: Rc::clone(&frame.left),
            step: frame.step.clone(),
            parent: rebase(&frame.parent, origin, onto),
        })),
    }
}
