//! Writes values: as literals, with references, or not at all.

use mcp_host_model::{ConfigValue, Dialect, Profile, TemplatePart};

use crate::diagnostic::quoted;
use crate::dialect::write::report::{Reason, WriteReport};
use crate::profile::rules::ProfileRules;
use crate::syntax::output::OutputValue;
use crate::syntax::template::{
    ReferenceRule, USER_HOME, WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, has_reference, parse_value, split,
};

/// A value as one text, with references if the rule replaces them.
pub(crate) fn reference_text(value: &ConfigValue, rule: ReferenceRule) -> Result<String, Reason> {
    const TAKEN: Reason = "the text contains `${…}`, which would be replaced there";
    let literal = |text: &str| if has_reference(text, rule) { Err(TAKEN) } else { Ok(text.to_owned()) };
    let reference = |text: String| {
        let whole = matches!(
            split(&text, rule)[..],
            [TemplatePart::Variable(_)
                | TemplatePart::VariableOr { .. }
                | TemplatePart::Input(_)
                | TemplatePart::File(_)]
        );
        if whole { Ok(text) } else { Err(unsupported_reason(rule)) }
    };
    let variable = |name: &str| match rule {
        ReferenceRule::Expand if name == WORKSPACE_FOLDER => Err("it does not support `${workspaceFolder}`"),
        ReferenceRule::Expand | ReferenceRule::ExpandWithFolder if is_editor_reference(name) => {
            Err("only editors support this reference")
        }
        ReferenceRule::Literal
        | ReferenceRule::Expand
        | ReferenceRule::ExpandWithFolder
        | ReferenceRule::Editor
        | ReferenceRule::EditorAndShell
        | ReferenceRule::Opencode => reference(format!("${{{name}}}")),
    };
    match value {
        ConfigValue::Literal(text) => literal(text.expose()),
        ConfigValue::HostEnv { name, prefix } => Ok(literal(prefix.expose())? + &variable(name)?),
        ConfigValue::Template(parts) => {
            let part = |it: &TemplatePart| match it {
                TemplatePart::Text(text) => literal(text.expose()),
                TemplatePart::Variable(name) => variable(name),
                TemplatePart::VariableOr { name, default } => {
                    reference(format!("${{{name}:-{}}}", default.expose()))
                }
                TemplatePart::Input(id) => reference(format!("${{input:{id}}}")),
                TemplatePart::File(path) => reference(format!("${{file:{path}}}")),
            };
            parts.iter().map(part).collect()
        }
    }
}

/// A text of the model, such as a working directory, which may contain references of its source dialect.
pub(crate) fn rewrite_text(text: &str, origin: Dialect, rule: ReferenceRule) -> Result<String, Reason> {
    let read_by = ProfileRules::for_profile(Profile::default_for(origin)).variables;
    reference_text(&parse_value(text, read_by), rule)
}

fn unsupported_reason(rule: ReferenceRule) -> Reason {
    match rule {
        ReferenceRule::Literal => "variables are not supported there",
        ReferenceRule::Expand
        | ReferenceRule::ExpandWithFolder
        | ReferenceRule::Editor
        | ReferenceRule::EditorAndShell
        | ReferenceRule::Opencode => "this reference cannot be written there",
    }
}

/// Returns whether an editor defines this variable itself.
fn is_editor_reference(name: &str) -> bool {
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
    const ELSEWHERE: Reason = "only a single variable with a prefix is supported there";
    match value {
        ConfigValue::Literal(text) => Ok(OutputValue::text(text.expose())),
        ConfigValue::HostEnv { name, prefix } => Ok(variable(name, prefix.expose())),
        ConfigValue::Template(parts) => match &parts[..] {
            [TemplatePart::Variable(name)] if name != WORKSPACE_FOLDER && !is_editor_reference(name) => {
                Ok(variable(name, ""))
            }
            [TemplatePart::Text(prefix), TemplatePart::Variable(name)]
                if name != WORKSPACE_FOLDER && !is_editor_reference(name) =>
            {
                Ok(variable(name, prefix.expose()))
            }
            _ => Err(ELSEWHERE),
        },
    }
}

/// Names and values that can be written; the others are reported as `field.NAME`.
pub(crate) fn entry_list(
    field: &str,
    entries: &[(String, ConfigValue)],
    report: &mut WriteReport<'_>,
    write: impl Fn(&ConfigValue) -> Result<OutputValue, Reason>,
) -> Vec<(String, OutputValue)> {
    let mut res = Vec::new();
    for (name, value) in entries {
        match write(value) {
            Ok(value) => res.push((name.clone(), value)),
            Err(why) => report.omitted(format!("{field}.{}", quoted(name)), why),
        }
    }
    res
}

/// Like [`entry_list`] for a map: of a repeated name the last value counts, at the position of the first.
pub(crate) fn entry_map(
    field: &str,
    entries: &[(String, ConfigValue)],
    report: &mut WriteReport<'_>,
    write: impl Fn(&ConfigValue) -> Result<OutputValue, Reason>,
) -> Vec<(String, OutputValue)> {
    let mut res: Vec<(String, OutputValue)> = Vec::new();
    for (name, value) in entry_list(field, entries, report, write) {
        match res.iter_mut().find(|it| it.0 == name) {
            Some(first) => {
                first.1 = value;
                report.omitted(
                    format!("{field}.{}", quoted(&name)),
                    "the name appears twice; the last value counts",
                );
            }
            None => res.push((name, value)),
        }
    }
    res
}
