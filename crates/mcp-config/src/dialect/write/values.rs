//! Writes the values of the model as texts of a dialect, with references where the dialect replaces them.

use mcp_host_model::{ConfigValue, Dialect, Profile, TemplatePart};

use crate::diagnostic::quoted;
use crate::dialect::write::report::{Reason, WriteReport};
use crate::profile::rules::ProfileRules;
use crate::syntax::output::{OutputMembers, OutputValue};
use crate::syntax::template::{
    ReferenceRule, USER_HOME, WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, has_reference, parse_value,
    split_references,
};

/// The text of a value. Fails if the rule would read it as another value, or cannot express a reference.
pub(crate) fn value_text(value: &ConfigValue, rule: ReferenceRule) -> Result<String, Reason> {
    const WOULD_BE_REPLACED: Reason = "the text contains `${…}`, which would be replaced there";
    let literal =
        |text: &str| if has_reference(text, rule) { Err(WOULD_BE_REPLACED) } else { Ok(text.to_owned()) };
    let reference = |text: String| {
        let whole = matches!(
            split_references(&text, rule)[..],
            [TemplatePart::Variable(_)
                | TemplatePart::OptionalVariable(_)
                | TemplatePart::VariableOr { .. }
                | TemplatePart::Input(_)
                | TemplatePart::File(_)
                | TemplatePart::Secret(_)]
        );
        if whole { Ok(text) } else { Err(unsupported_reason(rule)) }
    };
    let variable = |name: &str| match rule {
        ReferenceRule::Expand if name == WORKSPACE_FOLDER => Err("it does not support `${workspaceFolder}`"),
        ReferenceRule::Expand | ReferenceRule::ExpandWithFolder if is_editor_variable(name) => {
            Err("only editors support this reference")
        }
        ReferenceRule::Literal
        | ReferenceRule::Secrets
        | ReferenceRule::Expand
        | ReferenceRule::ExpandWithFolder
        | ReferenceRule::Editor
        | ReferenceRule::EditorAndShell
        | ReferenceRule::EditorAndOptionalShell
        | ReferenceRule::Braces => reference(format!("${{{name}}}")),
    };
    match value {
        ConfigValue::Literal(text) => literal(text.expose()),
        ConfigValue::HostEnv { name, prefix } => Ok(literal(prefix.expose())? + &variable(name)?),
        ConfigValue::Template(parts) => {
            let part = |it: &TemplatePart| match it {
                TemplatePart::Text(text) => literal(text.expose()),
                TemplatePart::Variable(name) | TemplatePart::OptionalVariable(name) => variable(name),
                TemplatePart::VariableOr { name, default } => {
                    reference(format!("${{{name}:-{}}}", default.expose()))
                }
                TemplatePart::Input(id) => reference(format!("${{input:{id}}}")),
                TemplatePart::File(path) => reference(format!("${{file:{path}}}")),
                TemplatePart::Secret(name) => reference(format!("${{secret:{name}}}")),
            };
            parts.iter().map(part).collect()
        }
    }
}

/// Rewrites a text of the model, such as a working directory: references of the dialect `origin` become those of
/// `rule`.
pub(crate) fn rewrite_text(text: &str, origin: Dialect, rule: ReferenceRule) -> Result<String, Reason> {
    let source_rule = ProfileRules::for_profile(Profile::default_for(origin)).reference_rule;
    value_text(&parse_value(text, source_rule), rule)
}

/// Why a reference cannot be written.
fn unsupported_reason(rule: ReferenceRule) -> Reason {
    match rule {
        ReferenceRule::Literal | ReferenceRule::Secrets => "variables are not supported there",
        ReferenceRule::Expand
        | ReferenceRule::ExpandWithFolder
        | ReferenceRule::Editor
        | ReferenceRule::EditorAndShell
        | ReferenceRule::EditorAndOptionalShell
        | ReferenceRule::Braces => "this reference cannot be written there",
    }
}

/// Returns whether an editor defines this variable itself.
fn is_editor_variable(name: &str) -> bool {
    [WORKSPACE_FOLDER_NAME, USER_HOME, std::path::MAIN_SEPARATOR_STR].contains(&name)
}

/// A value in Dominds' form: a text, or a variable with a prefix.
pub(crate) fn dominds_value(value: &ConfigValue) -> Result<OutputValue, Reason> {
    let variable = |name: &str, prefix: &str| {
        let mut members = vec![("env".to_owned(), OutputValue::text(name))];
        if !prefix.is_empty() {
            members.insert(0, ("prefix".to_owned(), OutputValue::text(prefix)));
        }
        OutputValue::Map(members)
    };
    const ONLY_ONE_VARIABLE: Reason = "only a single variable with a prefix is supported there";
    match value {
        ConfigValue::Literal(text) => Ok(OutputValue::text(text.expose())),
        ConfigValue::HostEnv { name, prefix } => Ok(variable(name, prefix.expose())),
        ConfigValue::Template(parts) => match &parts[..] {
            [TemplatePart::Variable(name) | TemplatePart::OptionalVariable(name)]
                if name != WORKSPACE_FOLDER && !is_editor_variable(name) =>
            {
                Ok(variable(name, ""))
            }
            [
                TemplatePart::Text(prefix),
                TemplatePart::Variable(name) | TemplatePart::OptionalVariable(name),
            ] if name != WORKSPACE_FOLDER && !is_editor_variable(name) => Ok(variable(name, prefix.expose())),
            _ => value_text(value, ReferenceRule::Secrets)
                .map(OutputValue::text)
                .map_err(|_| ONLY_ONE_VARIABLE),
        },
    }
}

/// The names and values that can be written. Reports the others as `field.NAME`.
pub(crate) fn writable_list(
    field: &str,
    entries: &[(String, ConfigValue)],
    report: &mut WriteReport<'_>,
    write: impl Fn(&ConfigValue) -> Result<OutputValue, Reason>,
) -> OutputMembers {
    let mut res = Vec::new();
    for (name, value) in entries {
        match write(value) {
            Ok(value) => res.push((name.clone(), value)),
            Err(why) => report.add_omitted(format!("{field}.{}", quoted(name)), why),
        }
    }
    res
}

/// Like [`writable_list`] for a map. A repeated name has its last value, at its first position.
pub(crate) fn writable_map(
    field: &str,
    entries: &[(String, ConfigValue)],
    report: &mut WriteReport<'_>,
    write: impl Fn(&ConfigValue) -> Result<OutputValue, Reason>,
) -> OutputMembers {
    let mut res: OutputMembers = Vec::new();
    for (name, value) in writable_list(field, entries, report, write) {
        match res.iter_mut().find(|it| it.0 == name) {
            Some(first) => {
                first.1 = value;
                let why = "the name appears twice; the last value counts";
                report.add_omitted(format!("{field}.{}", quoted(&name)), why);
            }
            None => res.push((name, value)),
        }
    }
    res
}
