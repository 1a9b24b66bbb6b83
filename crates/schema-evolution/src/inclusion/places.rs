//! The obstacles of a comparison, with all locations that reach them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::left::{Frame, Site};
use super::obstacle::{Key, Kind, Obstacle};

/// The number of locations that are found for one pair of schemas.
pub(crate) const MAX_LOCATIONS: usize = 64;

/// The obstacles of a comparison of two schemas at the location where it was made.
pub(super) struct Failed<'a> {
    pub site: Site<'a>,
    pub obstacles: Vec<Obstacle<'a>>,
}

/// A location that leads to a comparison, inside another one. `None` is the comparison of the roots.
struct Reference<'a> {
    owner: Option<Key>,
    site: Site<'a>,
}

/// Expands repeated comparisons once each. Each obstacle gets the locations of all repetitions.
pub(super) fn expand<'a>(first: Vec<Obstacle<'a>>, failed: &HashMap<Key, Failed<'a>>) -> Vec<Obstacle<'a>> {
    let mut references: Vec<(Key, Reference<'a>)> = Vec::new();
    let mut found: Vec<(Option<Key>, Obstacle<'a>)> = Vec::new();
    let mut pending: Vec<(Option<Key>, Obstacle<'a>)> = first.into_iter().map(|it| (None, it)).collect();
    let mut expanded = HashSet::new();
    while let Some((owner, obstacle)) = pending.pop() {
        let Kind::Repeated(key) = &obstacle.kind else {
            found.push((owner, obstacle));
            continue;
        };
        references.push((key.clone(), Reference { owner, site: obstacle.site.clone() }));
        if expanded.insert(key.clone()) {
            let inner = failed.get(key).map_or(&[][..], |it| &it.obstacles);
            pending.extend(inner.iter().map(|it| (Some(key.clone()), it.clone())));
        }
    }
    let sites = sites(&references, failed);
    let with_others = |(owner, mut obstacle): (Option<Key>, Obstacle<'a>)| {
        if let Some(failed) = owner.as_ref().and_then(|it| failed.get(it)) {
            let own = obstacle.location();
            let all = owner.as_ref().and_then(|it| sites.get(it)).into_iter().flatten();
            let moved = all.map(|it| rebase(&obstacle.site, &failed.site, it));
            let mut texts = HashSet::from([own]);
            obstacle.others = moved.filter(|it| texts.insert(super::left::location(it))).collect();
        }
        obstacle
    };
    found.into_iter().map(with_others).collect()
}

/// The locations of each comparison, the nearest to the root first. Cycles of references are followed once.
fn sites<'a>(
    references: &[(Key, Reference<'a>)],
    failed: &HashMap<Key, Failed<'a>>,
) -> HashMap<Key, Vec<Site<'a>>> {
    let mut by_owner: HashMap<Option<&Key>, Vec<(&Key, &Site<'a>)>> = HashMap::new();
    for (key, reference) in references {
        by_owner.entry(reference.owner.as_ref()).or_default().push((key, &reference.site));
    }
    let mut res: HashMap<Key, Vec<Site<'a>>> = HashMap::new();
    // A visit is a comparison, its location, and the visit before it.
    let mut visits: Vec<(&Key, usize)> = Vec::new();
    let mut pending: VecDeque<(Option<&Key>, Site<'a>, usize)> = VecDeque::from([(None, None, usize::MAX)]);
    while let Some((owner, at, visit)) = pending.pop_front() {
        let origin = owner.and_then(|it| failed.get(it)).and_then(|it| it.site.clone());
        for (key, site) in by_owner.get(&owner).into_iter().flatten() {
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
            let moved = rebase(site, &origin, &at);
            known.push(moved.clone());
            pending.push_back((Some(key), moved, visits.len()));
            visits.push((key, visit));
        }
    }
    res
}

/// Moves the part of a location below `origin` to another location.
fn rebase<'a>(site: &Site<'a>, origin: &Site<'a>, onto: &Site<'a>) -> Site<'a> {
    match (site, origin) {
        (Some(one), Some(other)) if Rc::ptr_eq(one, other) => onto.clone(),
        (None, _) => onto.clone(),
        (Some(frame), _) => Some(Rc::new(Frame {
            left: Rc::clone(&frame.left),
            step: frame.step.clone(),
            parent: rebase(&frame.parent, origin, onto),
        })),
    }
}
