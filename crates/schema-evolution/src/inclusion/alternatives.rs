//! Alternatives, negation and conditions.

use std::rc::Rc;

use serde_json::Value;

use super::conjunction::Conjunction;
use super::obstacle::{Obstacle, ObstacleKind};
use super::pair::Pair;
use super::prover::{Prover, Scope};
use crate::document::Node;
use crate::keyword::{self, canonical, string_items};

/// The size that is added for a branch with another name, more than any number of obstacles.
const OTHER_NAME_PENALTY: usize = 1_000;
/// The maximum number of cases into which one left side is split.
const MAX_CASES: usize = 400;

impl<'a> Prover<'a> {
    /// Compares `anyOf`, `oneOf` and `not`.
    pub(super) fn compare_alternatives(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let mut res = Vec::new();
        for keyword in ["anyOf", "oneOf"] {
            let Some(list) = pair.right.child(keyword) else { continue };
            if self.has_equal_list(pair, keyword) {
                continue;
            }
            let mut scope = scope.clone();
            scope.skipped.push(list.id());
            let choice = AlternativeList { keyword, branches: pair.right.child_list(keyword), scope };
            let mut budget = MAX_CASES;
            res.extend(self.compare_cases(pair, &choice, &mut budget));
        }
        if let Some(refused) = pair.right.child("not")
            && !self.are_disjoint(&pair.left, &refused)
        {
            let mut obstacle = pair.obstacle(ObstacleKind::Refused, "not");
            obstacle.left = Rc::new(pair.left.with([refused]));
            res.push(obstacle);
        }
        res
    }

    /// Whether the left side has an equal list of alternatives.
    fn has_equal_list(&mut self, pair: &Pair<'a>, keyword: &str) -> bool {
        let right = pair.right.child_list(keyword);
        pair.left.nodes.iter().any(|node| {
            let own = node.child_list(keyword);
            own.len() == right.len()
                && own.iter().zip(&right).all(|(one, other)| self.equality.are_equal(one, other))
        })
    }

    /// Compares each case of the left side with the branches of the right side. The obstacles are those of the branch
    /// with the fewest.
    fn compare_cases(
        &mut self,
        pair: &Pair<'a>,
        choice: &AlternativeList<'a>,
        budget: &mut usize,
    ) -> Vec<Obstacle<'a>> {
        let mut best: Option<(usize, Vec<Obstacle<'a>>)> = None;
        for branch in &choice.branches {
            if are_obviously_disjoint(&pair.left, &Conjunction::new(vec![*branch]), 0) {
                continue;
            }
            let mut scope = choice.scope.clone();
            scope.chosen.push(*branch);
            let chosen = pair.with_right(*branch);
            let mut found = self.compare_bounded(&chosen, &scope, false);
            found.extend(self.find_ignored_keys(&chosen, &scope));
            if choice.keyword == "oneOf" && self.has_only_added_keys(&found) {
                let others = choice.branches.iter().filter(|it| it.id() != branch.id());
                if others.into_iter().any(|other| !self.are_disjoint(&pair.left, other)) {
                    found.push(pair.obstacle(ObstacleKind::Refused, "oneOf"));
                }
            }
            if self.has_only_added_keys(&found) {
                return found;
            }
            let size = self.count_obstacles(&found)
                + usize::from(!has_same_name(&pair.left, branch)) * OTHER_NAME_PENALTY;
            if best.as_ref().is_none_or(|it| size < it.0) {
                best = Some((size, found));
            }
        }
        if let Some(cases) = split_cases(&pair.left)
            && *budget > cases.len()
        {
            *budget -= cases.len();
            return cases
                .into_iter()
                .flat_map(|it| self.compare_cases(&pair.with_left(it), choice, budget))
                .collect();
        }
        match best {
            Some((size, found))
                if size < OTHER_NAME_PENALTY
                    || (size < OTHER_NAME_PENALTY + 3 && choice.branches.len() < 3) =>
            {
                found
            }
            _ => vec![pair.obstacle(ObstacleKind::Refused, choice.keyword)],
        }
    }

    /// Whether all obstacles are keys that only the right side describes.
    pub(super) fn has_only_added_keys(&self, found: &[Obstacle<'a>]) -> bool {
        let mut open: Vec<&Obstacle<'a>> = found.iter().collect();
        let mut seen = std::collections::HashSet::new();
        while let Some(obstacle) = open.pop() {
            match &obstacle.kind {
                ObstacleKind::Added => {}
                ObstacleKind::Refused | ObstacleKind::Ignored | ObstacleKind::Default => return false,
                ObstacleKind::Repeated(key) => {
                    if seen.insert(key) {
                        open.extend(self.failed.get(key).into_iter().flat_map(|it| &it.obstacles));
                    }
                }
            }
        }
        true
    }

    /// The number of obstacles, those of repeated comparisons included; at most 999.
    pub(super) fn count_obstacles(&self, found: &[Obstacle<'a>]) -> usize {
        let one = |it: &Obstacle<'a>| match &it.kind {
            ObstacleKind::Repeated(key) => self.failed.get(key).map_or(1, |it| it.obstacles.len()),
            ObstacleKind::Refused | ObstacleKind::Added | ObstacleKind::Ignored | ObstacleKind::Default => 1,
        };
        found.iter().map(one).sum::<usize>().min(OTHER_NAME_PENALTY - 1)
    }

    /// Whether it is proven that no value is valid on the left side and for a schema.
    fn are_disjoint(&mut self, left: &Conjunction<'a>, other: &Node<'a>) -> bool {
        if are_obviously_disjoint(left, &Conjunction::new(vec![*other]), 0) {
            return true;
        }
        let inner = Rc::new(Conjunction::new(vec![*other]));
        let excluded = left.excluded.clone();
        excluded.into_iter().any(|it| {
            let scope = Scope { root: it, skipped: Vec::new(), chosen: Vec::new() };
            self.equality_without_defaults.are_equal(other, &it)
                || self
                    .is_included_strictly(Pair { left: Rc::clone(&inner), right: it, location: None }, &scope)
        })
    }

    /// Whether an inclusion is proven without the exception for unknown keys.
    fn is_included_strictly(&mut self, pair: Pair<'a>, scope: &Scope<'a>) -> bool {
        let before = std::mem::replace(&mut self.descriptions, super::obstacle::KeyDescriptions::Optional);
        let res = self.compare_bounded(&pair, scope, false).is_empty();
        self.descriptions = before;
        res
    }

    /// Compares `if`, `then` and `else`.
    pub(super) fn compare_conditions(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(condition) = right.child("if") else { return Vec::new() };
        let same = left.nodes.iter().find(|node| {
            let own = node.child("if");
            own.is_some_and(|it| self.equality_without_defaults.are_equal(&it, &condition))
        });
        let branch = |keyword: &str| same.and_then(|it| it.child(keyword));
        let mut res = Vec::new();
        if let Some(then) = right.child("then")
            && !self.are_disjoint(left, &condition)
        {
            let left = left.with([condition].into_iter().chain(branch("then")));
            res.extend(self.compare_bounded(&pair.with_left(left).with_right(then), scope, false));
        }
        if let Some(otherwise) = right.child("else") {
            let mut left = left.with(branch("else"));
            left.excluded.push(condition);
            res.extend(self.compare_bounded(&pair.with_left(left).with_right(otherwise), scope, false));
        }
        res
    }
}

/// A list of alternatives on the right side.
struct AlternativeList<'a> {
    keyword: &'static str,
    branches: Vec<Node<'a>>,
    scope: Scope<'a>,
}

/// Whether a branch refers to a definition with the name of a schema on the left side.
fn has_same_name(left: &Conjunction<'_>, branch: &Node<'_>) -> bool {
    let Some(name) = branch.reference().and_then(|it| it.rsplit('/').next()) else { return false };
    left.nodes.iter().any(|it| it.key() == Some(name))
}

/// Splits a left side into cases: its alternatives, else its types.
///
/// `None` if there is nothing to split. An empty list proves that no value is valid.
fn split_cases<'a>(left: &Conjunction<'a>) -> Option<Vec<Conjunction<'a>>> {
    if let Some(res) = split_alternatives(left) {
        return Some(res);
    }
    let types = keyword::SINGLE_TYPES.into_iter().filter(|it| left.types & it != 0);
    let res: Vec<Conjunction<'a>> = types.map(|it| Conjunction { types: it, ..left.clone() }).collect();
    (res.len() > 1).then_some(res)
}

/// Splits a left side by the first list of alternatives of which none is chosen.
pub(super) fn split_alternatives<'a>(left: &Conjunction<'a>) -> Option<Vec<Conjunction<'a>>> {
    for node in &left.nodes {
        for keyword in ["anyOf", "oneOf"] {
            let Some(list) = node.child(keyword).filter(|it| !left.chosen.contains(&it.id())) else {
                continue;
            };
            let branches = node.child_list(keyword);
            let case = |at: usize| {
                let mut res = left.with([branches[at]]);
                res.chosen.push(list.id());
                if keyword == "oneOf" {
                    let others = branches.iter().enumerate().filter(|it| it.0 != at);
                    res.excluded.extend(others.map(|it| *it.1));
                }
                res
            };
            return Some((0..branches.len()).map(case).filter(|it| !it.is_empty()).collect());
        }
    }
    None
}

/// Whether no value is valid for both sides, as far as types, values and required keys show.
fn are_obviously_disjoint(one: &Conjunction<'_>, other: &Conjunction<'_>, depth: usize) -> bool {
    let types = one.types & other.types;
    if one.is_empty() || other.is_empty() || types == 0 {
        return true;
    }
    if let (Some(one), Some(other)) = (one.values(), other.values()) {
        let texts: Vec<String> = other.into_iter().map(canonical).collect();
        return !one.into_iter().any(|it| texts.contains(&canonical(it)));
    }
    if depth > 4 {
        return false;
    }
    if types == keyword::OBJECT {
        let required = one.nodes.iter().chain(&other.nodes).flat_map(|it| string_items(it.get("required")));
        for name in required {
            let (inner, outer) =
                (Conjunction::new(one.property(name)), Conjunction::new(other.property(name)));
            if are_obviously_disjoint(&inner, &outer, depth + 1) {
                return true;
            }
        }
    }
    [(one, other), (other, one)].into_iter().any(|(side, opposite)| {
        side.nodes.iter().any(|node| {
            ["anyOf", "oneOf"].into_iter().any(|keyword| {
                let branches = node.child_list(keyword);
                let is_open = node.get(keyword).is_some_and(Value::is_array) && branches.len() < 20;
                is_open
                    && branches
                        .into_iter()
                        .all(|it| are_obviously_disjoint(&Conjunction::new(vec![it]), opposite, depth + 2))
            })
        })
    })
}
