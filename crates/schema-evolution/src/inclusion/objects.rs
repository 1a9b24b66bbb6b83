//! Keys of objects.

use std::rc::Rc;

use serde_json::{Value, json};

use super::left::{Left, Site, Step, has_applicators, rest};
use super::obstacle::{Kind, Obstacle};
use super::prover::{Prover, Scope};
use crate::document::Node;
use crate::keyword::{self, names};
use crate::samples::sample_of_pattern;

impl<'a> Prover<'a> {
    pub(super) fn objects(
        &mut self,
        left: &Rc<Left<'a>>,
        right: &Node<'a>,
        site: &Site<'a>,
        scope: &Scope<'a>,
    ) -> Vec<Obstacle<'a>> {
        let mut res = self.required(left, right, site);
        res.extend(self.named_keys(left, right, site));
        res.extend(self.other_keys(left, right, site));
        res.extend(self.key_names(left, right, site));
        res.extend(self.dependencies(left, right, site, scope));
        if right.get("unevaluatedProperties").is_some_and(|it| it != &Value::Bool(true))
            && has_applicators(right)
        {
            let mut obstacle = self.obstacle(Kind::Refused, "unevaluatedProperties", left, right, site);
            obstacle.samples = vec![json!({ "unlisted-key": 1 }), json!({ "unlisted-key": "x" })];
            res.push(obstacle);
        }
        res
    }

    fn required(&mut self, left: &Rc<Left<'a>>, right: &Node<'a>, site: &Site<'a>) -> Vec<Obstacle<'a>> {
        let has = |name: &str| left.nodes.iter().any(|it| names(it.get("required")).any(|own| own == name));
        let missing = names(right.get("required")).filter(|name| !has(name));
        let frame = |name: &str| super::left::Frame {
            left: Rc::clone(left),
            step: Step::Key(name.to_owned()),
            parent: site.clone(),
        };
        let of = |name: &str| {
            let mut res = self.obstacle(Kind::Refused, "required", left, right, &Some(Rc::new(frame(name))));
            res.values = (None, None);
            res
        };
        missing.map(of).collect()
    }

    /// Compares the keys that the right schema names.
    fn named_keys(&mut self, left: &Rc<Left<'a>>, right: &Node<'a>, site: &Site<'a>) -> Vec<Obstacle<'a>> {
        let mut res = Vec::new();
        for (name, schema) in right.map("properties") {
            let own = left.property(name);
            let is_unknown = own.is_empty() && !super::described::is_described(left, name);
            if is_unknown {
                // Documents with unknown keys are not compared key by key: their authors were warned.
                let frame = super::left::Frame {
                    left: Rc::clone(left),
                    step: Step::Key(name.to_owned()),
                    parent: site.clone(),
                };
                res.push(self.obstacle(Kind::Added, "properties", left, &schema, &Some(Rc::new(frame))));
                continue;
            }
            res.extend(self.changed_default(left, name, &schema, site));
            res.extend(self.part(left, Step::Key(name.to_owned()), own, schema, site));
        }
        res
    }

    fn changed_default(
        &self,
        left: &Rc<Left<'a>>,
        name: &str,
        right: &Node<'a>,
        site: &Site<'a>,
    ) -> Option<Obstacle<'a>> {
        if self.descriptions == super::obstacle::Descriptions::Optional {
            return None;
        }
        let named = left.nodes.iter().filter_map(|it| it.child("properties")?.child(name));
        let stated = |it: Node<'a>| it.get("default").or_else(|| it.target()?.get("default"));
        let (before, after) = ({ named }.find_map(stated), stated(*right));
        let text = |it: Option<&Value>| keyword::canonical(it.unwrap_or(&Value::Null));
        // A default of null is none.
        if text(before) == text(after) {
            return None;
        }
        let frame = super::left::Frame {
            left: Rc::clone(left),
            step: Step::Key(name.to_owned()),
            parent: site.clone(),
        };
        let inner = Rc::new(Left::of(left.property(name)));
        let mut res = self.obstacle(Kind::Default, "default", &inner, right, &Some(Rc::new(frame)));
        res.values = (before, after);
        Some(res)
    }

    /// Compares the keys that the right schema covers by pattern or as the rest.
    fn other_keys(&mut self, left: &Rc<Left<'a>>, right: &Node<'a>, site: &Site<'a>) -> Vec<Obstacle<'a>> {
        let patterns = right.map("patternProperties");
        let named: Vec<&str> = right.map("properties").into_iter().map(|it| it.0).collect();
        let left_patterns: Vec<(&str, Node<'a>)> =
            left.nodes.iter().flat_map(|it| it.map("patternProperties")).collect();
        let mut res = Vec::new();
        for (pattern, schema) in &patterns {
            for name in left.names() {
                if keyword::matches(pattern, name) != Some(false) {
                    res.extend(self.part(
                        left,
                        Step::Key(name.to_owned()),
                        left.property(name),
                        *schema,
                        site,
                    ));
                }
            }
            let sample = sample_of_pattern(pattern).unwrap_or_else(|| "x".to_owned());
            let same: Vec<Node<'a>> =
                left_patterns.iter().filter(|it| it.0 == *pattern).map(|it| it.1).collect();
            // A key matches some patterns of the left side, or none.
            let mut cases = vec![same];
            if cases[0].is_empty() {
                cases = left_patterns.iter().map(|it| vec![it.1]).collect();
                cases.push(left.unnamed());
            }
            for own in cases {
                res.extend(self.part(left, Step::AnyKey(sample.clone()), own, *schema, site));
            }
        }
        let Some(rest) = rest(right) else { return res };
        let is_covered = |name: &str| {
            named.contains(&name) || patterns.iter().any(|it| keyword::matches(it.0, name) == Some(true))
        };
        for name in left.names().into_iter().filter(|it| !is_covered(it)) {
            let own = left.property(name);
            if rest.value == &Value::Bool(false) {
                if !Left::of(own).is_empty() {
                    let frame = super::left::Frame {
                        left: Rc::clone(left),
                        step: Step::Key(name.to_owned()),
                        parent: site.clone(),
                    };
                    let inner = Rc::new(Left::of(left.property(name)));
                    res.push(self.obstacle(
                        Kind::Refused,
                        "properties",
                        &inner,
                        &rest,
                        &Some(Rc::new(frame)),
                    ));
                }
                continue;
            }
            res.extend(self.part(left, Step::Key(name.to_owned()), own, rest, site));
        }
        for (pattern, schema) in &left_patterns {
            // Keys of an equal pattern are covered by it.
            if !patterns.iter().any(|it| it.0 == *pattern) {
                let sample = sample_of_pattern(pattern).unwrap_or_else(|| "x".to_owned());
                res.extend(self.part(left, Step::AnyKey(sample), vec![*schema], rest, site));
            }
        }
        let free = ["unlisted-key", "unlisted_key", "x-unlisted", "Unlisted", "u"].into_iter();
        let free = free.filter(|it| {
            !is_covered(it) && left.property(it).iter().all(|it| it.value != &Value::Bool(false))
        });
        let sample = free.into_iter().next().unwrap_or("unlisted-key").to_owned();
        if rest.value == &Value::Bool(false) {
            let inner = Rc::new(Left::of(left.unnamed()));
            if !inner.is_empty() {
                let frame = super::left::Frame {
                    left: Rc::clone(left),
                    step: Step::AnyKey(sample),
                    parent: site.clone(),
                };
                let mut obstacle =
                    self.obstacle(Kind::Refused, "additionalProperties", left, right, &Some(Rc::new(frame)));
                obstacle.left = inner;
                res.push(obstacle);
            }
            return res;
        }
        res.extend(self.part(left, Step::AnyKey(sample), left.unnamed(), rest, site));
        res
    }

    fn key_names(&mut self, left: &Rc<Left<'a>>, right: &Node<'a>, site: &Site<'a>) -> Vec<Obstacle<'a>> {
        let Some(wanted) = right.child("propertyNames") else { return Vec::new() };
        let own: Vec<Node<'a>> = left.nodes.iter().filter_map(|it| it.child("propertyNames")).collect();
        let frame = super::left::Frame { left: Rc::clone(left), step: Step::Name, parent: site.clone() };
        let mut left_names = Left::of(own);
        left_names.types &= keyword::STRING;
        let scope = Scope { root: wanted, skipped: Vec::new(), chosen: Vec::new() };
        self.guarded(&Rc::new(left_names), &wanted, &Some(Rc::new(frame)), &scope, true)
    }

    fn dependencies(
        &mut self,
        left: &Rc<Left<'a>>,
        right: &Node<'a>,
        site: &Site<'a>,
        scope: &Scope<'a>,
    ) -> Vec<Obstacle<'a>> {
        let mut res = Vec::new();
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (key, wanted) in right.map(keyword) {
                let own: Vec<Node<'a>> = left
                    .nodes
                    .iter()
                    .flat_map(|it| it.map(keyword))
                    .filter(|it| it.0 == key)
                    .map(|it| it.1)
                    .collect();
                let is_proven = match wanted.value {
                    Value::Array(_) => names(Some(wanted.value)).all(|name| {
                        let mut lists = own.iter().map(|it| it.value);
                        lists.any(|it| names(Some(it)).any(|own| own == name))
                            || left.nodes.iter().any(|it| names(it.get("required")).any(|own| own == name))
                    }),
                    _ => {
                        let schemas = own.into_iter().filter(|it| !it.value.is_array());
                        let left = Rc::new(left.with(schemas));
                        self.guarded(&left, &wanted, site, scope, false)
                            .iter()
                            .all(|it| it.kind == Kind::Added)
                    }
                };
                if !is_proven {
                    let mut obstacle = self.obstacle(Kind::Refused, keyword, left, right, site);
                    obstacle.samples = vec![json!({ key: 1 }), json!({ key: "x" })];
                    res.push(obstacle);
                }
            }
        }
        res
    }
}
