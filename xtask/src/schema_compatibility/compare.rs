//! Comparison of two versions of a schema.
//!
//! The comparison never reports a breaking change as harmless. What it does not understand breaks: an unknown keyword, a
//! changed `if`, branches that cannot be paired. It may be too strict; then a person decides.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::effect::{Change, DocumentPath, Effect};
use super::sets::{self, Bound};

/// The depth of the comparison. Deeper schemas count as different.
const MAX_DEPTH: usize = 64;

/// All changes from `old` to `new`, ordered by location.
pub(super) fn compare(old: &Value, new: &Value) -> Vec<Change> {
    let mut walk = Walk { old, new, seen: BTreeSet::new(), negated: false, depth: 0, found: Vec::new() };
    walk.schema(old, new, &DocumentPath::default());
    let mut res = walk.found;
    res.sort_by(|one, other| (&one.location, &one.description).cmp(&(&other.location, &other.description)));
    res.dedup();
    res
}

/// The keywords of a schema; `true` has none, `false` gives `None`.
fn members(schema: &Value) -> Option<&Map<String, Value>> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match schema {
        Value::Bool(true) => Some(&EMPTY),
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// Whether a schema accepts everything.
fn allows_all(schema: &Value) -> bool {
    members(schema).is_some_and(|it| it.keys().all(|key| sets::ANNOTATIONS.contains(&key.as_str())))
}

struct Walk<'a> {
    old: &'a Value,
    new: &'a Value,
    /// Pairs of definitions that were compared already, each with `negated`.
    seen: BTreeSet<(String, String, bool)>,
    negated: bool,
    depth: usize,
    found: Vec<Change>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, old: &'a Value, new: &'a Value, path: &DocumentPath) {
        // Ends the recursion into `additionalProperties`.
        if old.is_boolean() && old == new {
            return;
        }
        if self.depth == MAX_DEPTH {
            self.note(path, "nested too deeply to be compared", Effect::Breaks);
            return;
        }
        self.depth += 1;
        self.resolved(old, new, path);
        self.depth -= 1;
    }

    /// Compares two schemas that may be references.
    fn resolved(&mut self, old: &'a Value, new: &'a Value, path: &DocumentPath) {
        let (from, to) = (reference(old), reference(new));
        if from.is_none() && to.is_none() {
            return self.inline_schemas(old, new, path);
        }
        let pair = (from.unwrap_or("#").to_owned(), to.unwrap_or("#").to_owned(), self.negated);
        // Annotations next to a reference belong to this location.
        if let (Value::Object(old), Value::Object(new)) = (old, new) {
            self.annotations(old, new, path);
        }
        if from.is_some() && to.is_some() && !self.seen.insert(pair) {
            return;
        }
        let (Some(old), Some(new)) = (target(self.old, old, from), target(self.new, new, to)) else {
            return self.note(path, "a reference has no target", Effect::Breaks);
        };
        self.schema(old, new, path);
    }

    /// Compares two schemas that are not references.
    fn inline_schemas(&mut self, old: &'a Value, new: &'a Value, path: &DocumentPath) {
        match (members(old), members(new)) {
            (Some(old), Some(new)) => {
                if !self.regrouped(old, new, path) {
                    self.keywords(old, new, path);
                }
            }
            (None, Some(_)) => {
                self.note(path, "everything was rejected and some values are allowed", Effect::Widens)
            }
            (Some(_), None) => self.note(path, "everything is rejected", Effect::Narrows),
            (None, None) => {}
        }
    }

    /// Whether a schema became one branch of several, or the reverse.
    fn regrouped(
        &mut self,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
        path: &DocumentPath,
    ) -> bool {
        let (alone, branches, effect) = match (alternatives(old), alternatives(new)) {
            (None, Some(branches)) => (old, branches, Effect::Widens),
            (Some(branches), None) => (new, branches, Effect::Narrows),
            (None, None) | (Some(_), Some(_)) => return false,
        };
        let same = |branch: &Value| {
            let (document_of_alone, document_of_branch) = match effect {
                Effect::Widens => (self.old, self.new),
                Effect::Annotations | Effect::Narrows | Effect::Breaks => (self.new, self.old),
            };
            let found = Walk {
                old: document_of_alone,
                new: document_of_branch,
                seen: BTreeSet::new(),
                negated: false,
                depth: self.depth,
                found: Vec::new(),
            };
            found.differences(alone, branch).iter().all(|it| it.effect == Effect::Annotations)
        };
        if !branches.iter().any(same) {
            return false;
        }
        let what = match effect {
            Effect::Widens => "there are more alternatives",
            Effect::Annotations | Effect::Narrows | Effect::Breaks => "only one alternative is left",
        };
        self.note(path, what, effect);
        true
    }

    fn differences(mut self, alone: &'a Map<String, Value>, branch: &'a Value) -> Vec<Change> {
        match members(target(self.new, branch, reference(branch)).unwrap_or(branch)) {
            Some(branch) => self.keywords(alone, branch, &DocumentPath::default()),
            None => self.note(&DocumentPath::default(), "everything is rejected", Effect::Breaks),
        }
        self.found
    }

    fn annotations(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &DocumentPath) {
        for keyword in sets::ANNOTATIONS {
            if old.get(*keyword) != new.get(*keyword) {
                self.note(path, format!("another `{keyword}`"), Effect::Annotations);
            }
        }
    }

    fn keywords(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, path: &DocumentPath) {
        self.annotations(old, new, path);
        self.step(path, "type", sets::step(Some(&sets::types(old)), Some(&sets::types(new))));
        self.step(
            path,
            "the set of values",
            sets::step(sets::values(old).as_ref(), sets::values(new).as_ref()),
        );
        self.names(old, new, path);
        self.properties(old, new, path);
        self.condition(old, new, path);
        let keywords: BTreeSet<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
        for keyword in keywords {
            self.keyword(keyword, old, new, path);
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
        path: &DocumentPath,
    ) {
        let (before, after) = (old.get(keyword), new.get(keyword));
        if let Some(bound) = Bound::of(keyword) {
            return self.step(path, keyword, bound.step(before, after));
        }
        const ALL: &Value = &Value::Bool(true);
        let (one, other) = (before.unwrap_or(ALL), after.unwrap_or(ALL));
        match keyword {
            // Compared by `keywords`, or through references.
            "type"
            | "enum"
            | "const"
            | "required"
            | "properties"
            | "patternProperties"
            | "additionalProperties"
            | "if"
            | "then"
            | "else"
            | "$defs"
            | "definitions"
            | "$ref" => {}
            _ if sets::ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-") => {}
            "items" => self.schema(one, other, &path.element()),
            "propertyNames" => self.schema(one, other, &path.member("(names)")),
            "not" => match (before, after) {
                (Some(before), Some(after)) => self.inverted(|walk| walk.schema(before, after, path)),
                (None, Some(_)) => self.note(path, "a `not`", Effect::Narrows),
                (Some(_), None) => self.note(path, "no `not` any more", Effect::Widens),
                (None, None) => {}
            },
            "allOf" => self.branches(keyword, (before, after), path, Effect::Narrows),
            "anyOf" => self.branches(keyword, (before, after), path, Effect::Widens),
            "oneOf" => self.one_of((before, after), path),
            "pattern" | "uniqueItems" | "contains" | "dependentRequired" if before.is_none() => {
                self.note(path, format!("a `{keyword}`"), Effect::Narrows);
            }
            "pattern" | "uniqueItems" | "contains" | "dependentRequired" if after.is_none() => {
                self.note(path, format!("no `{keyword}` any more"), Effect::Widens);
            }
            _ if before == after => {}
            _ => self.note(path, format!("another `{keyword}`"), Effect::Breaks),
        }
    }

    fn names(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &DocumentPath) {
        let (old, new) = (sets::names(old.get("required")), sets::names(new.get("required")));
        for name in new.difference(&old) {
            self.note(&path.member(name), "it is required", Effect::Narrows);
        }
        for name in old.difference(&new) {
            self.note(&path.member(name), "it is no longer required", Effect::Widens);
        }
    }

    /// Compares members by name, by pattern and the rest. A member on one side only belongs to the rest of the other.
    fn properties(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, path: &DocumentPath) {
        const ALL: &Value = &Value::Bool(true);
        let rest = |schema: &'a Map<String, Value>| schema.get("additionalProperties").unwrap_or(ALL);
        for keyword in ["properties", "patternProperties"] {
            let listed = |schema: &'a Map<String, Value>| schema.get(keyword).and_then(Value::as_object);
            let (before, after) = (listed(old), listed(new));
            let names: BTreeSet<&String> = before.into_iter().chain(after).flat_map(Map::keys).collect();
            for name in names {
                let at = path.member(name);
                match (before.and_then(|it| it.get(name)), after.and_then(|it| it.get(name))) {
                    (Some(before), Some(after)) => self.schema(before, after, &at),
                    (None, Some(after)) if allows_all(rest(old)) && !allows_all(after) => {
                        self.note(&at, "it was accepted unread and is read now", Effect::Narrows);
                    }
                    (None, Some(after)) if allows_all(rest(old)) && allows_all(after) => {
                        self.note(&at, "it is described", Effect::Annotations);
                    }
                    (None, Some(_)) if rest(old) == &Value::Bool(false) => {
                        self.note(&at, "it is allowed", Effect::Widens);
                    }
                    (None, Some(after)) => self.schema(rest(old), after, &at),
                    (Some(_), None) if allows_all(rest(new)) => {
                        self.note(&at, "it is accepted unread", Effect::Widens);
                    }
                    (Some(_), None) if rest(new) == &Value::Bool(false) => {
                        self.note(&at, "it is no longer allowed", Effect::Narrows);
                    }
                    (Some(before), None) => self.schema(before, rest(new), &at),
                    (None, None) => {}
                }
            }
        }
        self.schema(rest(old), rest(new), &path.any_member());
    }

    /// Compares `if`, `then` and `else`. Under the same `if`, the others are compared as schemas.
    fn condition(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, path: &DocumentPath) {
        const ALL: &Value = &Value::Bool(true);
        match (old.get("if"), new.get("if")) {
            (None, None) => {}
            (None, Some(_)) => self.note(path, "another condition", Effect::Narrows),
            (Some(_), None) => self.note(path, "one condition less", Effect::Widens),
            (Some(before), Some(after)) => {
                let from = self.found.len();
                self.schema(before, after, path);
                // A change of `if` moves documents between the branches.
                let moved = self.found[from..].iter().any(|it| it.effect != Effect::Annotations);
                self.found.truncate(from);
                if moved {
                    self.note(path, "a condition has changed", Effect::Breaks);
                }
                for branch in ["then", "else"] {
                    self.schema(old.get(branch).unwrap_or(ALL), new.get(branch).unwrap_or(ALL), path);
                }
            }
        }
    }

    /// Compares branches in pairs: equal ones first, then the rest in order.
    fn branches(
        &mut self,
        keyword: &str,
        both: (Option<&'a Value>, Option<&'a Value>),
        path: &DocumentPath,
        more: Effect,
    ) {
        let list = |it: Option<&'a Value>| it.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (mut before, mut after): (Vec<_>, Vec<_>) =
            (list(both.0).iter().collect(), list(both.1).iter().collect());
        // Without the keyword everything is allowed.
        let more = match (before.is_empty(), after.is_empty()) {
            (true, true) => return,
            (false, false) => more,
            (true, false) => return self.note(path, format!("an `{keyword}`"), Effect::Narrows),
            (false, true) => return self.note(path, format!("no `{keyword}` any more"), Effect::Widens),
        };
        for one in std::mem::take(&mut before) {
            match after.iter().position(|it| equal_except_annotations(one, it)) {
                Some(at) => {
                    let other = after.remove(at);
                    self.schema(one, other, path);
                }
                None => before.push(one),
            }
        }
        let pairs = before.len().min(after.len());
        for (one, other) in before.iter().zip(&after) {
            self.schema(one, other, path);
        }
        if after.len() > pairs {
            self.note(path, format!("another branch of `{keyword}`"), more);
        }
        if before.len() > pairs {
            self.note(path, format!("one branch of `{keyword}` less"), more.negated());
        }
    }

    /// Compares `oneOf`. Over disjoint branches it means `anyOf`; otherwise every change breaks.
    fn one_of(&mut self, both: (Option<&'a Value>, Option<&'a Value>), path: &DocumentPath) {
        let from = self.found.len();
        self.branches("oneOf", both, path, Effect::Widens);
        let is_disjoint = |document: &Value, list: Option<&Value>| {
            let branches = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let plain: Option<Vec<_>> = branches
                .iter()
                .map(|it| target(document, it, reference(it)).and_then(Value::as_object))
                .collect();
            plain.is_some_and(|branches| sets::are_disjoint(&branches))
        };
        if is_disjoint(self.old, both.0) && is_disjoint(self.new, both.1) {
            return;
        }
        for change in &mut self.found[from..] {
            if change.effect != Effect::Annotations {
                change.effect = Effect::Breaks;
            }
        }
    }

    fn inverted(&mut self, walk: impl FnOnce(&mut Self)) {
        self.negated = !self.negated;
        walk(self);
        self.negated = !self.negated;
    }

    fn step(&mut self, path: &DocumentPath, what: &str, effect: Option<Effect>) {
        let Some(effect) = effect else { return };
        let how = match effect {
            Effect::Widens => "allows more",
            Effect::Narrows => "allows less",
            Effect::Annotations | Effect::Breaks => "allows something else",
        };
        let subject = if what.contains(' ') { what.to_owned() } else { format!("`{what}`") };
        self.note(path, format!("{subject} {how}"), effect);
    }

    fn note(&mut self, path: &DocumentPath, description: impl Into<String>, effect: Effect) {
        let effect = if self.negated { effect.negated() } else { effect };
        self.found.push(Change { location: path.to_string(), description: description.into(), effect });
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

/// The target of a reference, or the schema itself without one.
fn target<'a>(document: &'a Value, schema: &'a Value, reference: Option<&str>) -> Option<&'a Value> {
    match reference {
        None => Some(schema),
        Some(reference) => document.pointer(reference.strip_prefix('#')?),
    }
}

/// The branches of a schema that consists of `anyOf` only.
fn alternatives(schema: &Map<String, Value>) -> Option<&[Value]> {
    let only = schema.keys().all(|key| key == "anyOf" || sets::ANNOTATIONS.contains(&key.as_str()));
    schema.get("anyOf").filter(|_| only)?.as_array().map(Vec::as_slice)
}

/// Whether two branches are equal apart from annotations.
fn equal_except_annotations(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let mut relevant = keys.into_iter().filter(|key| !sets::ANNOTATIONS.contains(&key.as_str()));
            relevant.all(|key| one.get(key) == other.get(key))
        }
        _ => one == other,
    }
}
