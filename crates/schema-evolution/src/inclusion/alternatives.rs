//! Alternatives, negation and conditions.

use std::rc::Rc;

use serde_json::Value;

use super::left::Left;
use super::obstacle::{Kind, Obstacle};
use super::pair::Pair;
use super::prover::{Prover, Scope};
use crate::document::Node;
use crate::keyword::{self, canonical, names};

/// The number of cases into which one left side is split.
const MAX_CASES: usize = 400;

impl<'a> Prover<'a> {
    pub(super) fn alternatives(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let mut res = Vec::new();
        for keyword in ["anyOf", "oneOf"] {
            let Some(list) = pair.right.child(keyword) else { continue };
            if self.has_equal_list(pair, keyword) {
                continue;
            }
            let mut scope = scope.clone();
            scope.skipped.push(list.id());
            let choice = Choice { keyword, branches: pair.right.list(keyword), scope };
            let mut budget = MAX_CASES;
            res.extend(self.cases(pair, &choice, &mut budget));
        }
        if let Some(refused) = pair.right.child("not")
            && !self.are_disjoint(&pair.left, &refused)
        {
            let mut obstacle = pair.obstacle(Kind::Refused, "not");
            obstacle.left = Rc::new(pair.left.with([refused]));
            res.push(obstacle);
        }
        res
    }

    fn has_equal_list(&mut self, pair: &Pair<'a>, keyword: &str) -> bool {
        let wanted = pair.right.list(keyword);
        pair.left.nodes.iter().any(|node| {
            let own = node.list(keyword);
            own.len() == wanted.len()
                && own.iter().zip(&wanted).all(|(one, other)| self.identity.of(one, other))
        })
    }

    /// Proves that each case of the left side is in a branch of the right side.
    fn cases(&mut self, pair: &Pair<'a>, choice: &Choice<'a>, budget: &mut usize) -> Vec<Obstacle<'a>> {
        let mut best: Option<(usize, Vec<Obstacle<'a>>)> = None;
        for branch in &choice.branches {
            if are_apart(&pair.left, &Left::of(vec![*branch]), 0) {
                continue;
            }
            let mut scope = choice.scope.clone();
            scope.chosen.push(*branch);
            let chosen = pair.with_right(*branch);
            let mut found = self.guarded(&chosen, &scope, false);
            found.extend(self.ignored_keys(&chosen, &scope));
            if choice.keyword == "oneOf" && self.has_only_added_keys(&found) {
                let others = choice.branches.iter().filter(|it| it.id() != branch.id());
                if others.into_iter().any(|other| !self.are_disjoint(&pair.left, other)) {
                    found.push(pair.obstacle(Kind::Refused, "oneOf"));
                }
            }
            if self.has_only_added_keys(&found) {
                return found;
            }
            let size = self.size(&found) + usize::from(!is_namesake(&pair.left, branch)) * 1_000;
            if best.as_ref().is_none_or(|it| size < it.0) {
                best = Some((size, found));
            }
        }
        if let Some(cases) = split(&pair.left)
            && *budget > cases.len()
        {
            *budget -= cases.len();
            return cases
                .into_iter()
                .flat_map(|it| self.cases(&pair.with_left(it), choice, budget))
                .collect();
        }
        match best {
            Some((size, found)) if size < 1_000 || (size < 1_003 && choice.branches.len() < 3) => found,
            _ => vec![pair.obstacle(Kind::Refused, choice.keyword)],
        }
    }

    /// Whether only unknown keys got a description.
    pub(super) fn has_only_added_keys(&self, found: &[Obstacle<'a>]) -> bool {
        let mut open: Vec<&Obstacle<'a>> = found.iter().collect();
        let mut seen = std::collections::HashSet::new();
        while let Some(obstacle) = open.pop() {
            match &obstacle.kind {
                Kind::Added => {}
                Kind::Refused | Kind::Ignored | Kind::Default => return false,
                Kind::Repeated(key) => {
                    if seen.insert(key) {
                        open.extend(self.failed.get(key).into_iter().flat_map(|it| &it.obstacles));
                    }
                }
            }
        }
        true
    }

    pub(super) fn size(&self, found: &[Obstacle<'a>]) -> usize {
        let one = |it: &Obstacle<'a>| match &it.kind {
            Kind::Repeated(key) => self.failed.get(key).map_or(1, |it| it.obstacles.len()),
            Kind::Refused | Kind::Added | Kind::Ignored | Kind::Default => 1,
        };
        found.iter().map(one).sum::<usize>().min(999)
    }

    /// Proves that no value is valid on the left and matches a schema.
    fn are_disjoint(&mut self, left: &Left<'a>, other: &Node<'a>) -> bool {
        if are_apart(left, &Left::of(vec![*other]), 0) {
            return true;
        }
        let inner = Rc::new(Left::of(vec![*other]));
        let excluded = left.excluded.clone();
        excluded.into_iter().any(|it| {
            let scope = Scope { root: it, skipped: Vec::new(), chosen: Vec::new() };
            self.validity.of(other, &it)
                || self.strict(Pair { left: Rc::clone(&inner), right: it, site: None }, &scope)
        })
    }

    /// Proves an inclusion without the exception for unknown keys.
    fn strict(&mut self, pair: Pair<'a>, scope: &Scope<'a>) -> bool {
        let before = std::mem::replace(&mut self.descriptions, super::obstacle::Descriptions::Optional);
        let res = self.guarded(&pair, scope, false).is_empty();
        self.descriptions = before;
        res
    }

    pub(super) fn conditions(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(condition) = right.child("if") else { return Vec::new() };
        let same = left.nodes.iter().find(|node| {
            let own = node.child("if");
            own.is_some_and(|it| self.validity.of(&it, &condition))
        });
        let branch = |keyword: &str| same.and_then(|it| it.child(keyword));
        let mut res = Vec::new();
        if let Some(then) = right.child("then")
            && !self.are_disjoint(left, &condition)
        {
            let left = left.with([condition].into_iter().chain(branch("then")));
            res.extend(self.guarded(&pair.with_left(left).with_right(then), scope, false));
        }
        if let Some(otherwise) = right.child("else") {
            let mut left = left.with(branch("else"));
            left.excluded.push(condition);
            res.extend(self.guarded(&pair.with_left(left).with_right(otherwise), scope, false));
        }
        res
    }
}

/// A list of alternatives on the right side.
struct Choice<'a> {
    keyword: &'static str,
    branches: Vec<Node<'a>>,
    scope: Scope<'a>,
}

/// Whether a branch has the name of a schema on the left.
fn is_namesake(left: &Left<'_>, branch: &Node<'_>) -> bool {
    let Some(name) = branch.reference().and_then(|it| it.rsplit('/').next()) else { return false };
    left.nodes.iter().any(|it| it.key() == Some(name))
}

/// The cases of a left side: its alternatives, else its types.
///
/// `None` if there is nothing to split. An empty list proves that no value is valid.
fn split<'a>(left: &Left<'a>) -> Option<Vec<Left<'a>>> {
    if let Some(res) = split_alternatives(left) {
        return Some(res);
    }
    let types = keyword::EACH.into_iter().filter(|it| left.types & it != 0);
    let res: Vec<Left<'a>> = types.map(|it| Left { types: it, ..left.clone() }).collect();
    (res.len() > 1).then_some(res)
}

/// The cases of the first list of alternatives of which none is chosen.
pub(super) fn split_alternatives<'a>(left: &Left<'a>) -> Option<Vec<Left<'a>>> {
    for node in &left.nodes {
        for keyword in ["anyOf", "oneOf"] {
            let Some(list) = node.child(keyword).filter(|it| !left.chosen.contains(&it.id())) else {
                continue;
            };
            let branches = node.list(keyword);
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

/// Whether no value is valid for both sides, by types, values and required keys.
fn are_apart(one: &Left<'_>, other: &Left<'_>, depth: usize) -> bool {
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
        let required = one.nodes.iter().chain(&other.nodes).flat_map(|it| names(it.get("required")));
        for name in required {
            let (inner, outer) = (Left::of(one.property(name)), Left::of(other.property(name)));
            if are_apart(&inner, &outer, depth + 1) {
                return true;
            }
        }
    }
    [(one, other), (other, one)].into_iter().any(|(side, opposite)| {
        side.nodes.iter().any(|node| {
            ["anyOf", "oneOf"].into_iter().any(|keyword| {
                let branches = node.list(keyword);
                let is_open = node.get(keyword).is_some_and(Value::is_array) && branches.len() < 20;
                is_open && branches.into_iter().all(|it| are_apart(&Left::of(vec![it]), opposite, depth + 2))
            })
        })
    })
}
