//! What each rule does to one name, one after the other: for whoever asks why.
//!
//! It must end where [`CompiledRules::decide`] ends; the rows of both are the same. It is told apart because deciding is
//! done ten thousand times in a reload, and this once, for a person.

use mcp_model::{NameClass, NamePolicy, Rules, Transform};
use serde::Serialize;

use super::{CompiledRules, transform};
use crate::catalog::lists::ListKind;
use crate::name::display::quote;
use crate::name::exposed_name::{is_valid, normalise, pattern_text, qualify, shorten, slug};

/// What one rule says of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleStep {
    /// Which rule it is.
    pub rule: RuleKind,
    /// What it says, in words.
    pub message: String,
    /// The name after it; `None` where it hides the item, and then it is the last.
    pub name: Option<String>,
}

/// The rules in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// Whether the server's own name is one that providers take (DM-047).
    Original,
    /// The whitelist and the blacklist (DM-036 to DM-041).
    Filter,
    /// One change of the list of changes (DM-042 to DM-046).
    Transform,
    /// What the policy makes of the name (HD-114, X-03, DM-048).
    Naming,
    /// How long a name may be.
    Limit,
}

impl RuleKind {
    /// `original`, `filter`, `transform`, `naming` or `limit`.
    pub fn as_str(self) -> &'static str {
        match self {
            RuleKind::Original => "original",
            RuleKind::Filter => "filter",
            RuleKind::Transform => "transform",
            RuleKind::Naming => "naming",
            RuleKind::Limit => "limit",
        }
    }
}

impl CompiledRules<'_> {
    /// What each rule does to a name of `list`, in their order, as if no other name existed. Ends with the rule that
    /// hides it, or with the name it is shown under; a resource's is a label, and no rule about names asks for it.
    pub fn explain(&self, list: ListKind, original: &str) -> Vec<RuleStep> {
        let mut walk = StepRecorder { stages: Vec::new(), name: original.to_owned() };
        // An early end is an end like any other: the last stage tells which.
        let _ = self.run(&mut walk, list, original);
        walk.stages
    }

    fn run(&self, walk: &mut StepRecorder, list: ListKind, original: &str) -> Option<()> {
        let Rules { filter: _, transforms, naming, limit } = self.rules;
        let is_name = match list {
            ListKind::Tool | ListKind::Prompt => true,
            ListKind::Resource => false,
        };
        if is_name && original.is_empty() {
            return walk.hide(RuleKind::Original, "a name must not be empty".to_owned());
        }
        if is_name && *naming == NamePolicy::Reject {
            if !is_valid(*limit, original) {
                return walk.hide(RuleKind::Original, format!("it must match {}", pattern_text(*limit)));
            }
            walk.keep(RuleKind::Original, format!("it matches {}", pattern_text(*limit)));
        }
        match self.filter_reason(original) {
            Ok(why) => walk.keep(RuleKind::Filter, why.into_owned()),
            Err((_, why)) => return walk.hide(RuleKind::Filter, why.into_owned()),
        }
        for it in transforms {
            let said = transform_message(it, &walk.name);
            let changed = transform(std::slice::from_ref(it), &walk.name).into_owned();
            walk.change(RuleKind::Transform, said, changed);
        }
        if !is_name {
            return Some(());
        }
        let (said, named) = match *naming {
            NamePolicy::Reject if is_valid(*limit, &walk.name) => {
                (format!("it matches {}", pattern_text(*limit)), None)
            }
            NamePolicy::Reject => {
                return walk.hide(RuleKind::Naming, format!("it must match {}", pattern_text(*limit)));
            }
            NamePolicy::Pass if walk.name.is_empty() => (String::new(), Some(String::new())),
            NamePolicy::Pass => ("names stay as they are".to_owned(), None),
            NamePolicy::Normalise { class } => (
                format!("what is not of {} becomes `-`", class_text(class)),
                Some(normalise(class, &walk.name)),
            ),
            NamePolicy::Slug => (
                format!("what is not of {} becomes one `_`, none at its ends", class_text(NameClass::Strict)),
                Some(slug(&walk.name)),
            ),
            NamePolicy::Qualify { class } => {
                let said = format!("`<server>__<name>`; what is not of {} becomes `-`", class_text(class));
                (said, Some(qualify(class, self.server.as_str(), &walk.name)))
            }
        };
        let Some(named) = named else {
            walk.keep(RuleKind::Naming, said);
            return Some(());
        };
        if named.is_empty() {
            return walk.hide(RuleKind::Naming, "the transforms leave nothing of the name".to_owned());
        }
        walk.change(RuleKind::Naming, said, named);
        let short = shorten(walk.name.clone(), limit.bytes());
        if short != walk.name {
            let said = format!("longer than {} bytes: cut, and ended by its hash", limit.bytes());
            walk.change(RuleKind::Limit, said, short);
        }
        Some(())
    }
}

struct StepRecorder {
    stages: Vec<RuleStep>,
    name: String,
}

impl StepRecorder {
    fn keep(&mut self, rule: RuleKind, message: String) {
        self.stages.push(RuleStep { rule, message, name: Some(self.name.clone()) });
    }

    fn change(&mut self, rule: RuleKind, message: String, name: String) {
        self.name = name;
        self.keep(rule, message);
    }

    fn hide(&mut self, rule: RuleKind, message: String) -> Option<()> {
        self.stages.push(RuleStep { rule, message, name: None });
        None
    }
}

/// What a transform does to `name`.
fn transform_message(transform: &Transform, name: &str) -> String {
    match transform {
        Transform::Prefix { remove, add } if remove.is_empty() => format!("{} is put before it", quote(add)),
        Transform::Prefix { remove, add } if name.starts_with(remove.as_str()) => {
            format!("{} in front becomes {}", quote(remove), quote(add))
        }
        Transform::Prefix { remove, add } => {
            format!("it does not begin with {}; {} is put before it", quote(remove), quote(add))
        }
        Transform::Suffix(suffix) => format!("{} is put behind it", quote(suffix)),
    }
}

fn class_text(class: NameClass) -> &'static str {
    match class {
        NameClass::Strict => "[A-Za-z0-9_-]",
        NameClass::WithDot => "[A-Za-z0-9_.-]",
    }
}

#[cfg(test)]
mod tests {
    use mcp_model::ServerId;

    use super::super::tests::rules;
    use super::*;

    /// A line for each stage: `<rule>: <message> = <name>`.
    #[track_caller]
    fn check(list: ListKind, naming: NamePolicy, rules_text: &str, original: &str, want: &str) {
        let server = ServerId::parse("my srv").unwrap();
        let stages = CompiledRules::new(&server, &rules(naming, rules_text)).explain(list, original);
        let line = |it: &RuleStep| {
            format!("{}: {} = {}", it.rule.as_str(), it.message, it.name.as_deref().unwrap_or("hidden"))
        };
        assert_eq!(stages.iter().map(line).collect::<Vec<_>>().join("|"), want);
    }

    #[test]
    fn each_rule_says_what_it_does() {
        let reject = NamePolicy::Reject;
        check(
            ListKind::Tool,
            reject,
            "white=a* prefix=p_ replace=p_a>q suffix=_z",
            "ab",
            concat!(
                "original: it matches ^[a-zA-Z0-9_-]{1,64}$ = ab|filter: whitelist `a*` = ab|",
                "transform: `p_` is put before it = p_ab|transform: `p_a` in front becomes `q` = qb|",
                "transform: `_z` is put behind it = qb_z|naming: it matches ^[a-zA-Z0-9_-]{1,64}$ = qb_z",
            ),
        );
        check(
            ListKind::Tool,
            NamePolicy::Qualify { class: NameClass::Strict },
            "replace=x>y",
            "read.file",
            concat!(
                "filter: no filter = read.file|",
                "transform: it does not begin with `x`; `y` is put before it = yread.file|",
                "naming: `<server>__<name>`; what is not of [A-Za-z0-9_-] becomes `-` = my-srv__yread-file",
            ),
        );
    }

    #[test]
    fn the_rule_that_hides_is_the_last() {
        let reject = NamePolicy::Reject;
        check(ListKind::Tool, reject, "", "a.b", "original: it must match ^[a-zA-Z0-9_-]{1,64}$ = hidden");
        check(ListKind::Tool, NamePolicy::Pass, "black=a suffix=x", "a", "filter: blacklist `a` = hidden");
        check(
            ListKind::Prompt,
            NamePolicy::Normalise { class: NameClass::Strict },
            "replace=a>",
            "a",
            "filter: no filter = a|transform: `a` in front becomes `` = |naming: the transforms leave nothing of the name = hidden",
        );
    }

    #[test]
    fn a_resources_name_is_a_label() {
        check(
            ListKind::Resource,
            NamePolicy::Reject,
            "prefix=p",
            "a file",
            "filter: no filter = a file|transform: `p` is put before it = pa file",
        );
    }
}
