//! What has changed between two schemas of one dialect, place by place.
//!
//! It must never call a change harmless that is not, so whatever it does not understand breaks: a keyword that it does
//! not know, another `if`, branches that cannot be paired. The other way round it may be too strict; then a person
//! looks, which is what a failing check is for.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::effect::{Change, Effect, Place};
use super::sets::{self, Bound};

/// How deep two schemas are compared; deeper, they are taken to differ.
const MAX_DEPTH: usize = 64;

/// All changes from `old` to `new`, in the order of the places.
pub(super) fn compare(old: &Value, new: &Value) -> Vec<Change> {
    let mut walk = Walk { old, new, seen: BTreeSet::new(), negated: false, depth: 0, found: Vec::new() };
    walk.schema(old, new, &Place::default());
    let mut res = walk.found;
    res.sort_by(|one, other| (&one.place, &one.what).cmp(&(&other.place, &other.what)));
    res.dedup();
    res
}

/// What a boolean schema or a missing one stands for.
fn members(schema: &Value) -> Option<&Map<String, Value>> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match schema {
        Value::Bool(true) => Some(&EMPTY),
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// Whether a schema lets everything through.
fn allows_all(schema: &Value) -> bool {
    members(schema).is_some_and(|it| it.keys().all(|key| sets::WORDS.contains(&key.as_str())))
}

struct Walk<'a> {
    old: &'a Value,
    new: &'a Value,
    /// Pairs of definitions that are compared already or being so, each with the side of a negation it stands on.
    seen: BTreeSet<(String, String, bool)>,
    negated: bool,
    depth: usize,
    found: Vec<Change>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, old: &'a Value, new: &'a Value, place: &Place) {
        // Every schema has a rest that is compared, too, down to the one that says nothing.
        if old.is_boolean() && old == new {
            return;
        }
        if self.depth == MAX_DEPTH {
            self.note(place, "it is nested too deeply to be compared", Effect::Breaks);
            return;
        }
        self.depth += 1;
        self.followed(old, new, place);
        self.depth -= 1;
    }

    /// Two schemas, of which either may be a reference.
    fn followed(&mut self, old: &'a Value, new: &'a Value, place: &Place) {
        let (from, to) = (reference(old), reference(new));
        if from.is_none() && to.is_none() {
            return self.plain(old, new, place);
        }
        let pair = (from.unwrap_or("#").to_owned(), to.unwrap_or("#").to_owned(), self.negated);
        // Words beside a reference are words of this place.
        if let (Value::Object(old), Value::Object(new)) = (old, new) {
            self.words(old, new, place);
        }
        if from.is_some() && to.is_some() && !self.seen.insert(pair) {
            return;
        }
        let (Some(old), Some(new)) = (target(self.old, old, from), target(self.new, new, to)) else {
            return self.note(place, "a reference leads nowhere", Effect::Breaks);
        };
        self.schema(old, new, place);
    }

    /// Two schemas, neither of which is a reference.
    fn plain(&mut self, old: &'a Value, new: &'a Value, place: &Place) {
        match (members(old), members(new)) {
            (Some(old), Some(new)) => {
                if !self.regrouped(old, new, place) {
                    self.keywords(old, new, place);
                }
            }
            (None, Some(_)) => self.note(place, "what was refused is allowed", Effect::Widens),
            (Some(_), None) => self.note(place, "it is refused", Effect::Narrows),
            (None, None) => {}
        }
    }

    /// A schema that became one branch of several, or the other way round.
    fn regrouped(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, place: &Place) -> bool {
        let (alone, branches, effect) = match (alternatives(old), alternatives(new)) {
            (None, Some(branches)) => (old, branches, Effect::Widens),
            (Some(branches), None) => (new, branches, Effect::Narrows),
            (None, None) | (Some(_), Some(_)) => return false,
        };
        let same = |branch: &Value| {
            let (document_of_alone, document_of_branch) = match effect {
                Effect::Widens => (self.old, self.new),
                Effect::Words | Effect::Narrows | Effect::Breaks => (self.new, self.old),
            };
            let found = Walk {
                old: document_of_alone,
                new: document_of_branch,
                seen: BTreeSet::new(),
                negated: false,
                depth: self.depth,
                found: Vec::new(),
            };
            found.differences(alone, branch).iter().all(|it| it.effect == Effect::Words)
        };
        if !branches.iter().any(same) {
            return false;
        }
        let what = match effect {
            Effect::Widens => "there are other ways to write it",
            Effect::Words | Effect::Narrows | Effect::Breaks => "there is only one way left to write it",
        };
        self.note(place, what, effect);
        true
    }

    fn differences(mut self, alone: &'a Map<String, Value>, branch: &'a Value) -> Vec<Change> {
        match members(target(self.new, branch, reference(branch)).unwrap_or(branch)) {
            Some(branch) => self.keywords(alone, branch, &Place::default()),
            None => self.note(&Place::default(), "it is refused", Effect::Breaks),
        }
        self.found
    }

    fn words(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &Place) {
        for keyword in sets::WORDS {
            if old.get(*keyword) != new.get(*keyword) {
                self.note(place, format!("another `{keyword}`"), Effect::Words);
            }
        }
    }

    fn keywords(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, place: &Place) {
        self.words(old, new, place);
        self.step(place, "type", sets::step(Some(&sets::types(old)), Some(&sets::types(new))));
        self.step(
            place,
            "the set of values",
            sets::step(sets::values(old).as_ref(), sets::values(new).as_ref()),
        );
        self.names(old, new, place);
        self.properties(old, new, place);
        self.condition(old, new, place);
        let keywords: BTreeSet<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
        for keyword in keywords {
            self.keyword(keyword, old, new, place);
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
        place: &Place,
    ) {
        let (before, after) = (old.get(keyword), new.get(keyword));
        if let Some(bound) = Bound::of(keyword) {
            return self.step(place, keyword, bound.step(before, after));
        }
        const ALL: &Value = &Value::Bool(true);
        let (one, other) = (before.unwrap_or(ALL), after.unwrap_or(ALL));
        match keyword {
            // Compared by `keywords` itself, or reached through references.
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
            _ if sets::WORDS.contains(&keyword) || keyword.starts_with("x-") => {}
            "items" => self.schema(one, other, &place.element()),
            "propertyNames" => self.schema(one, other, &place.member("(names)")),
            "not" => match (before, after) {
                (Some(before), Some(after)) => self.inverted(|walk| walk.schema(before, after, place)),
                (None, Some(_)) => self.note(place, "something is excluded", Effect::Narrows),
                (Some(_), None) => self.note(place, "something is no longer excluded", Effect::Widens),
                (None, None) => {}
            },
            "allOf" => self.branches(keyword, (before, after), place, Effect::Narrows),
            "anyOf" => self.branches(keyword, (before, after), place, Effect::Widens),
            "oneOf" => self.one_of((before, after), place),
            "pattern" | "uniqueItems" | "contains" | "dependentRequired" if before.is_none() => {
                self.note(place, format!("a `{keyword}`"), Effect::Narrows);
            }
            "pattern" | "uniqueItems" | "contains" | "dependentRequired" if after.is_none() => {
                self.note(place, format!("no `{keyword}` any more"), Effect::Widens);
            }
            _ if before == after => {}
            _ => self.note(place, format!("another `{keyword}`"), Effect::Breaks),
        }
    }

    fn names(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &Place) {
        let (old, new) = (sets::names(old.get("required")), sets::names(new.get("required")));
        for name in new.difference(&old) {
            self.note(&place.member(name), "it is required", Effect::Narrows);
        }
        for name in old.difference(&new) {
            self.note(&place.member(name), "it is no longer required", Effect::Widens);
        }
    }

    /// Members by name, by pattern, and the rest: a member that stands on one side only was, or will be, one of the rest.
    fn properties(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, place: &Place) {
        const ALL: &Value = &Value::Bool(true);
        let rest = |schema: &'a Map<String, Value>| schema.get("additionalProperties").unwrap_or(ALL);
        for keyword in ["properties", "patternProperties"] {
            let listed = |schema: &'a Map<String, Value>| schema.get(keyword).and_then(Value::as_object);
            let (before, after) = (listed(old), listed(new));
            let names: BTreeSet<&String> = before.into_iter().chain(after).flat_map(Map::keys).collect();
            for name in names {
                let at = place.member(name);
                match (before.and_then(|it| it.get(name)), after.and_then(|it| it.get(name))) {
                    (Some(before), Some(after)) => self.schema(before, after, &at),
                    (None, Some(after)) if allows_all(rest(old)) && !allows_all(after) => {
                        self.note(&at, "it was let through, and is read now", Effect::Narrows);
                    }
                    (None, Some(after)) if allows_all(rest(old)) && allows_all(after) => {
                        self.note(&at, "it is described", Effect::Words);
                    }
                    (None, Some(_)) if rest(old) == &Value::Bool(false) => {
                        self.note(&at, "it can be written", Effect::Widens);
                    }
                    (None, Some(after)) => self.schema(rest(old), after, &at),
                    (Some(_), None) if allows_all(rest(new)) => {
                        self.note(&at, "it is no longer read, and let through", Effect::Widens);
                    }
                    (Some(_), None) if rest(new) == &Value::Bool(false) => {
                        self.note(&at, "it can no longer be written", Effect::Narrows);
                    }
                    (Some(before), None) => self.schema(before, rest(new), &at),
                    (None, None) => {}
                }
            }
        }
        self.schema(rest(old), rest(new), &place.any_member());
    }

    /// `if`, `then` and `else` hang together: under the same `if`, the two others are schemas like any.
    fn condition(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, place: &Place) {
        const ALL: &Value = &Value::Bool(true);
        match (old.get("if"), new.get("if")) {
            (None, None) => {}
            (None, Some(_)) => self.note(place, "another condition", Effect::Narrows),
            (Some(_), None) => self.note(place, "one condition less", Effect::Widens),
            (Some(before), Some(after)) => {
                let from = self.found.len();
                self.schema(before, after, place);
                // Whatever changes in an `if` moves documents from one branch to the other.
                let moved = self.found[from..].iter().any(|it| it.effect != Effect::Words);
                self.found.truncate(from);
                if moved {
                    self.note(place, "a condition asks for something else", Effect::Breaks);
                }
                for branch in ["then", "else"] {
                    self.schema(old.get(branch).unwrap_or(ALL), new.get(branch).unwrap_or(ALL), place);
                }
            }
        }
    }

    /// Branches in pairs: first those that are written alike, then the rest in order.
    fn branches(
        &mut self,
        keyword: &str,
        both: (Option<&'a Value>, Option<&'a Value>),
        place: &Place,
        more: Effect,
    ) {
        let list = |it: Option<&'a Value>| it.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (mut before, mut after): (Vec<_>, Vec<_>) =
            (list(both.0).iter().collect(), list(both.1).iter().collect());
        // The keyword itself: without `anyOf` everything is allowed, with one branch only that.
        let more = match (before.is_empty(), after.is_empty()) {
            (true, true) => return,
            (false, false) => more,
            (true, false) => return self.note(place, format!("an `{keyword}`"), Effect::Narrows),
            (false, true) => return self.note(place, format!("no `{keyword}` any more"), Effect::Widens),
        };
        for one in std::mem::take(&mut before) {
            match after.iter().position(|it| same_but_words(one, it)) {
                Some(at) => {
                    let other = after.remove(at);
                    self.schema(one, other, place);
                }
                None => before.push(one),
            }
        }
        let pairs = before.len().min(after.len());
        for (one, other) in before.iter().zip(&after) {
            self.schema(one, other, place);
        }
        if after.len() > pairs {
            self.note(place, format!("another branch of `{keyword}`"), more);
        }
        if before.len() > pairs {
            self.note(place, format!("one branch of `{keyword}` less"), more.negated());
        }
    }

    /// `oneOf` over branches that exclude each other is `anyOf`; over others, nobody can tell from the parts.
    fn one_of(&mut self, both: (Option<&'a Value>, Option<&'a Value>), place: &Place) {
        let from = self.found.len();
        self.branches("oneOf", both, place, Effect::Widens);
        let apart = |document: &Value, list: Option<&Value>| {
            let branches = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let plain: Option<Vec<_>> = branches
                .iter()
                .map(|it| target(document, it, reference(it)).and_then(Value::as_object))
                .collect();
            plain.is_some_and(|it| sets::apart(&it))
        };
        if apart(self.old, both.0) && apart(self.new, both.1) {
            return;
        }
        for change in &mut self.found[from..] {
            if change.effect != Effect::Words {
                change.effect = Effect::Breaks;
            }
        }
    }

    fn inverted(&mut self, walk: impl FnOnce(&mut Self)) {
        self.negated = !self.negated;
        walk(self);
        self.negated = !self.negated;
    }

    fn step(&mut self, place: &Place, what: &str, effect: Option<Effect>) {
        let Some(effect) = effect else { return };
        let how = match effect {
            Effect::Widens => "allows more",
            Effect::Narrows => "allows less",
            Effect::Words | Effect::Breaks => "allows something else",
        };
        let named = match what.contains(' ') {
            true => what.to_owned(),
            false => format!("`{what}`"),
        };
        self.note(place, format!("{named} {how}"), effect);
    }

    fn note(&mut self, place: &Place, what: impl Into<String>, effect: Effect) {
        let effect = if self.negated { effect.negated() } else { effect };
        self.found.push(Change { place: place.to_string(), what: what.into(), effect });
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

/// What a reference names; the schema itself where it is none.
fn target<'a>(document: &'a Value, schema: &'a Value, reference: Option<&str>) -> Option<&'a Value> {
    match reference {
        None => Some(schema),
        Some(reference) => document.pointer(reference.strip_prefix('#')?),
    }
}

/// The branches of a schema that is nothing but alternatives.
fn alternatives(schema: &Map<String, Value>) -> Option<&[Value]> {
    let only = schema.keys().all(|key| key == "anyOf" || sets::WORDS.contains(&key.as_str()));
    schema.get("anyOf").filter(|_| only)?.as_array().map(Vec::as_slice)
}

/// Whether two branches are the same thing to a validator as far as they are written out here.
fn same_but_words(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let mut spoken = keys.into_iter().filter(|key| !sets::WORDS.contains(&key.as_str()));
            spoken.all(|key| one.get(key) == other.get(key))
        }
        _ => one == other,
    }
}
