//! The effect of each rule on one name, for `explain`.
//!
//! The result must agree with [`CompiledRules::decide`]. It is separate because a reload decides on ten thousand
//! names, while this runs once, for a person.

use mcp_host_model::{ExposureRules, NameClass, NamePolicy, NameTransform};
use serde::Serialize;

use super::{CompiledRules, apply_transforms};
use crate::lists::ListKind;
use crate::name::display::quote;
use crate::name::exposed_name::{is_valid, normalise, pattern_text, qualify, shorten, slug};

/// The effect of one rule on a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleStep {
    /// The rule.
    pub rule: RuleKind,
    /// The effect, as text.
    pub message: String,
    /// The name after the rule; `None` if the rule hides the item. That is the last step.
    pub name: Option<String>,
}

/// The kinds of rules, in order of application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RuleKind {
    /// The format of the original name (DM-047).
    Original,
    /// The whitelist and the blacklist (DM-036 to DM-041).
    Filter,
    /// One transform (DM-042 to DM-046).
    Transform,
    /// The naming policy (HD-114, X-03, DM-048).
    Naming,
    /// The length limit.
    Limit,
}

impl RuleKind {
    /// `original`, `filter`, `transform`, `naming` or `limit`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl CompiledRules<'_> {
    /// Returns the effect of each rule on a name of `list`, in order, without regard to collisions. The last step
    /// hides the name or gives the exposed name. A resource's name is a label without name rules.
    pub fn explain(&self, list: ListKind, original: &str) -> Vec<RuleStep> {
        let mut recorder = StepRecorder { steps: Vec::new(), name: original.to_owned() };
        // `None` means that the last step hides the name, which the step says too.
        let _ = self.record_steps(&mut recorder, list, original);
        recorder.steps
    }

    /// Records the steps. Returns `None` after a step that hides the name.
    fn record_steps(&self, recorder: &mut StepRecorder, list: ListKind, original: &str) -> Option<()> {
        let ExposureRules { filter: _, transforms, naming, limit, .. } = self.rules;
        let is_name = match list {
            ListKind::Tool | ListKind::Prompt => true,
            ListKind::Resource => false,
        };
        if is_name && original.is_empty() {
            return recorder.hide(RuleKind::Original, "a name must not be empty".to_owned());
        }
        if is_name && *naming == NamePolicy::Reject {
            if !is_valid(*limit, original) {
                return recorder.hide(RuleKind::Original, format!("it must match {}", pattern_text(*limit)));
            }
            recorder.keep(RuleKind::Original, format!("it matches {}", pattern_text(*limit)));
        }
        match self.filter_reason(original) {
            Ok(why) => recorder.keep(RuleKind::Filter, why.into_owned()),
            Err((_, why)) => return recorder.hide(RuleKind::Filter, why.into_owned()),
        }
        for it in transforms {
            let description = transform_message(it, &recorder.name);
            let changed = apply_transforms(std::slice::from_ref(it), &recorder.name).into_owned();
            recorder.change(RuleKind::Transform, description, changed);
        }
        if !is_name {
            return Some(());
        }
        let (description, named) = match *naming {
            NamePolicy::Reject if is_valid(*limit, &recorder.name) => {
                (format!("it matches {}", pattern_text(*limit)), None)
            }
            NamePolicy::Reject => {
                return recorder.hide(RuleKind::Naming, format!("it must match {}", pattern_text(*limit)));
            }
            NamePolicy::Pass if recorder.name.is_empty() => (String::new(), Some(String::new())),
            NamePolicy::Pass => ("names stay as they are".to_owned(), None),
            NamePolicy::Normalise { class } => (
                format!("what is not of {} becomes `-`", class_description(class)),
                Some(normalise(class, &recorder.name)),
            ),
            NamePolicy::Slug => (
                format!(
                    "what is not of {} becomes one `_`, none at its ends",
                    class_description(NameClass::Strict)
                ),
                Some(slug(&recorder.name)),
            ),
            NamePolicy::Qualify { class } => {
                let description =
                    format!("`<server>__<name>`; what is not of {} becomes `-`", class_description(class));
                (description, Some(qualify(class, self.server.as_str(), &recorder.name)))
            }
        };
        let Some(named) = named else {
            recorder.keep(RuleKind::Naming, description);
            return Some(());
        };
        if named.is_empty() {
            return recorder.hide(RuleKind::Naming, "the transforms leave nothing of the name".to_owned());
        }
        recorder.change(RuleKind::Naming, description, named);
        let short = shorten(recorder.name.clone(), limit.bytes());
        if short != recorder.name {
            let description = format!("longer than {} bytes: cut, and ended by its hash", limit.bytes());
            recorder.change(RuleKind::Limit, description, short);
        }
        Some(())
    }
}

/// Records the steps of one name.
struct StepRecorder {
    steps: Vec<RuleStep>,
    /// The name after the last step.
    name: String,
}

impl StepRecorder {
    /// Records a rule that does not change the name.
    fn keep(&mut self, rule: RuleKind, message: String) {
        self.steps.push(RuleStep { rule, message, name: Some(self.name.clone()) });
    }

    /// Records a rule that changes the name to `name`.
    fn change(&mut self, rule: RuleKind, message: String, name: String) {
        self.name = name;
        self.keep(rule, message);
    }

    /// Records a rule that hides the item.
    fn hide(&mut self, rule: RuleKind, message: String) -> Option<()> {
        self.steps.push(RuleStep { rule, message, name: None });
        None
    }
}

/// Describes the effect of a transform on `name`.
fn transform_message(transform: &NameTransform, name: &str) -> String {
    match transform {
        NameTransform::Prefix { remove, add } if remove.is_empty() => {
            format!("{} is put before it", quote(add))
        }
        NameTransform::Prefix { remove, add } if name.starts_with(remove.as_str()) => {
            format!("{} in front becomes {}", quote(remove), quote(add))
        }
        NameTransform::Prefix { remove, add } => {
            format!("it does not begin with {}; {} is put before it", quote(remove), quote(add))
        }
        NameTransform::Suffix(suffix) => format!("{} is put behind it", quote(suffix)),
    }
}

/// The characters of a class, for messages.
fn class_description(class: NameClass) -> &'static str {
    match class {
        NameClass::Strict => "[A-Za-z0-9_-]",
        NameClass::WithDot => "[A-Za-z0-9_.-]",
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::ServerId;

    use super::super::tests::rules;
    use super::*;

    /// Checks the steps, one line each: `<rule>: <message> = <name>`.
    #[track_caller]
    fn check(list: ListKind, naming: NamePolicy, rules_text: &str, original: &str, want: &str) {
        let server = ServerId::parse("my srv").unwrap();
        let steps = CompiledRules::new(&server, &rules(naming, rules_text)).explain(list, original);
        let line = |it: &RuleStep| {
            format!("{}: {} = {}", it.rule.as_str(), it.message, it.name.as_deref().unwrap_or("hidden"))
        };
        assert_eq!(steps.iter().map(line).collect::<Vec<_>>().join("|"), want);
    }

    #[test]
    fn each_rule_describes_its_effect() {
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
    fn hiding_rule_is_the_last_step() {
        let reject = NamePolicy::Reject;
        check(ListKind::Tool, reject, "", "a.b", "original: it must match ^[a-zA-Z0-9_-]{1,64}$ = hidden");
        check(ListKind::Tool, NamePolicy::Pass, "black=a suffix=x", "a", "filter: blacklist `a` = hidden");
        check(
            ListKind::Prompt,
            NamePolicy::Normalise { class: NameClass::Strict },
            "replace=a>",
            "a",
            "filter: no filter = a|transform: `a` in front becomes `` = |naming: the transforms leave nothing of the \
            name = hidden",
        );
    }

    #[test]
    fn resource_names_are_labels() {
        check(
            ListKind::Resource,
            NamePolicy::Reject,
            "prefix=p",
            "a file",
            "filter: no filter = a file|transform: `p` is put before it = pa file",
        );
    }
}
