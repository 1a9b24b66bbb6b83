//! Writes references in the variable syntax of a program (DIA-06, DIA-08).
//!
//! Some programs replace `${NAME}`, others only `${env:NAME}`, a few nothing. VS Code prompts for `inputs`. A
//! file of an unknown program is written with `${NAME}`, which most programs read.

use std::collections::BTreeMap;

use mcp_host_model::TemplatePart;

use crate::dialect::editor::conventions::{Program, VariableSyntax};
use crate::dialect::editor::server_maps::declared_inputs;
use crate::dialect::write::report::WriteReport;
use crate::syntax::output::OutputValue;
use crate::syntax::template::{
    ReferenceRule, USER_HOME, WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, split_references,
};
use crate::syntax::{self, Syntax, to_json};

impl Program {
    /// Rewrites the references of an entry's members in the syntax of this program. Reports those that it does not
    /// replace. Returns the ids of the inputs that it prompts for, each once.
    pub(crate) fn rewrite_references<'a>(
        &self,
        members: impl IntoIterator<Item = (&'a str, &'a mut OutputValue)>,
        report: &mut WriteReport<'_>,
    ) -> Vec<String> {
        let mut found = FoundReferences::default();
        for (key, value) in members {
            self.rewrite(self.variables_in(key), value, &mut found);
        }
        let FoundReferences { ids, unresolved } = found;
        if !unresolved.is_empty() {
            let done = format!("{} is not replaced: write the value there", unresolved.join(", "));
            report.add_replaced("variables", "the program of this file does not replace it", done);
        }
        ids
    }

    fn rewrite(&self, variables: VariableSyntax, value: &mut OutputValue, found: &mut FoundReferences) {
        match value {
            OutputValue::Text(text) => *text = self.rewrite_text(variables, text, found),
            OutputValue::List(items) => items.iter_mut().for_each(|it| self.rewrite(variables, it, found)),
            OutputValue::Map(members) => {
                members.iter_mut().for_each(|(_, it)| self.rewrite(variables, it, found))
            }
            OutputValue::Scalar(_) => {}
        }
    }

    fn rewrite_text(&self, variables: VariableSyntax, text: &str, found: &mut FoundReferences) -> String {
        let rewrite_part = |part: &TemplatePart| {
            // Texts, and references with a default, return early.
            let (written, is_replaced) = match part {
                TemplatePart::Text(text) => return text.expose().to_owned(),
                TemplatePart::Variable(name)
                    if [WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, USER_HOME].contains(&name.as_str()) =>
                {
                    let is_replaced =
                        ![VariableSyntax::Unsupported, VariableSyntax::Braces, VariableSyntax::Secrets]
                            .contains(&variables);
                    (format!("${{{name}}}"), is_replaced)
                }
                TemplatePart::Variable(name) | TemplatePart::OptionalVariable(name) => {
                    (variables.reference(name), variables != VariableSyntax::Unsupported)
                }
                TemplatePart::VariableOr { name, default } => {
                    let is_replaced = variables == VariableSyntax::Plain;
                    if !is_replaced {
                        found.add_unresolved(format!("${{{name}:-…}}"));
                    }
                    return format!("${{{name}:-{}}}", default.expose());
                }
                TemplatePart::File(path) if variables == VariableSyntax::Braces => {
                    (format!("{{file:{path}}}"), true)
                }
                TemplatePart::File(path) => (format!("${{file:{path}}}"), false),
                TemplatePart::Secret(name) if variables == VariableSyntax::Braces => {
                    (format!("{{secret:{name}}}"), true)
                }
                // Only this host replaces it, in the file of every program.
                TemplatePart::Secret(name) => (format!("${{secret:{name}}}"), true),
                TemplatePart::Input(id) => {
                    if self.prompts_for_inputs() && !found.ids.iter().any(|it| it == id) {
                        found.ids.push(id.to_owned());
                    }
                    (format!("${{input:{id}}}"), self.prompts_for_inputs())
                }
            };
            if !is_replaced {
                found.add_unresolved(written.clone());
            }
            written
        };
        // `${/}` splits into a text, so a text without references must stay unchanged.
        match split_references(text, ReferenceRule::Editor)[..] {
            [] | [TemplatePart::Text(_)] => text.to_owned(),
            ref parts => parts.iter().map(rewrite_part).collect(),
        }
    }
}

/// The references of an entry that need more than rewriting.
#[derive(Default)]
struct FoundReferences {
    /// The ids of the inputs that the program prompts for.
    ids: Vec<String>,
    /// The references that the program does not replace.
    unresolved: Vec<String>,
}

impl FoundReferences {
    fn add_unresolved(&mut self, reference: String) {
        if !self.unresolved.contains(&reference) {
            self.unresolved.push(reference);
        }
    }
}

/// The input declarations of a file, by id.
#[derive(Debug, Clone, Default)]
pub struct InputDeclarations(BTreeMap<String, OutputValue>);

impl InputDeclarations {
    /// Reads the `inputs` of an editor's file. A text that cannot be parsed declares nothing.
    pub fn parse(text: &str) -> InputDeclarations {
        let Some(root) = syntax::parse_as(text, Syntax::JsonWithComments).root else {
            return InputDeclarations::default();
        };
        let declared = declared_inputs(&root).filter_map(|item| {
            let id = item.text_of("id")?.to_owned();
            Some((id, OutputValue::from_json(&mcp_host_model::RawJson::parse(to_json(item)?.into()).ok()?)?))
        });
        InputDeclarations(declared.collect())
    }

    /// The declaration for an id: the one in the file, or a prompt with a hidden answer.
    pub(crate) fn declaration(&self, id: &str) -> OutputValue {
        let member = |key: &str, value: &str| (key.to_owned(), OutputValue::text(value));
        let prompt = || {
            OutputValue::Map(vec![
                member("type", "promptString"),
                member("id", id),
                member("description", id),
                ("password".to_owned(), OutputValue::scalar(true)),
            ])
        };
        self.0.get(id).cloned().unwrap_or_else(prompt)
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::Profile;

    use super::*;
    use crate::dialect::write::report::UnsupportedField;

    /// Checks the text that is written to a file, the ids it prompts for, and the references it does not replace.
    #[track_caller]
    fn check(file: &str, text: &str, want: &str, ids: &[&str], unresolved: &str) {
        let mut value = OutputValue::text(text);
        let mut unsupported: Vec<UnsupportedField> = Vec::new();
        let mut report = WriteReport {
            profile: Profile::McpJson,
            find_program: &|_| None,
            server: "a".to_owned(),
            unsupported: &mut unsupported,
        };
        let input_ids =
            Program::of_file(file).unwrap().rewrite_references([("args", &mut value)], &mut report);
        assert_eq!(
            (value, input_ids),
            (OutputValue::text(want), ids.iter().map(|it| (*it).to_owned()).collect())
        );
        let fallbacks: Vec<String> = unsupported.iter().map(|it| it.fallback.to_string()).collect();
        let want = if unresolved.is_empty() {
            vec![]
        } else {
            vec![format!("{unresolved} is not replaced: write the value there")]
        };
        assert_eq!(fallbacks, want, "{file}");
    }

    #[test]
    fn dia_06_each_editor_has_its_spelling() {
        for file in [
            ".vscode/mcp.json",
            "/home/me/.config/Code/User/mcp.json",
            ".cursor/mcp.json",
            "/home/me/.codeium/windsurf/mcp_config.json",
            ".roo/mcp.json",
            "x/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ] {
            check(file, "Bearer ${TOKEN}", "Bearer ${env:TOKEN}", &[], "");
        }
        for file in [
            ".mcp.json",
            "Code/x/.mcp.json",
            ".gemini/settings.json",
            ".kiro/settings/mcp.json",
            "a/mcp.json",
        ] {
            check(file, "Bearer ${TOKEN}", "Bearer ${TOKEN}", &[], "");
            check(file, "Bearer ${env:TOKEN}", "Bearer ${TOKEN}", &[], "");
        }
        for file in ["Claude/claude_desktop_config.json", ".zed/settings.json", ".config/zed/settings.json"] {
            check(file, "Bearer ${env:TOKEN}", "Bearer ${TOKEN}", &[], "${TOKEN}");
        }
    }

    #[test]
    fn dia_06_opencode_has_braces() {
        check("opencode.json", "Bearer ${TOKEN}", "Bearer {env:TOKEN}", &[], "");
        check("opencode.json", "${file:~/key}", "{file:~/key}", &[], "");
        check(".mcp.json", "${file:~/key}", "${file:~/key}", &[], "${file:~/key}");
        check("opencode.jsonc", "${userHome}/x", "${userHome}/x", &[], "${userHome}");
    }

    #[test]
    fn dia_08_only_vs_code_prompts_for_inputs() {
        check(".vscode/mcp.json", "${input:key} ${input:key}", "${input:key} ${input:key}", &["key"], "");
        check(".cursor/mcp.json", "${input:key}", "${input:key}", &[], "${input:key}");
        check(".mcp.json", "${input:key}", "${input:key}", &[], "${input:key}");
    }

    #[test]
    fn text_without_variables_is_unchanged() {
        let file = ".vscode/mcp.json";
        check(file, "${workspaceFolder}/x ${userHome}", "${workspaceFolder}/x ${userHome}", &[], "");
        check(file, "$TOKEN {TOKEN} ${ TOKEN }", "$TOKEN {TOKEN} ${ TOKEN }", &[], "");
        check(file, "${A:-secret}", "${A:-secret}", &[], "${A:-…}");
        check(".mcp.json", "${A:-b}", "${A:-b}", &[], "");
        check(".zed/settings.json", "no", "no", &[], "");
    }

    #[test]
    fn dia_08_declared_inputs_are_kept() {
        let declared = InputDeclarations::parse(
            "{\"inputs\": [{\"id\": \"a\", \"type\": \"pickString\", \"options\": [\"x\"]}, 5]}",
        );
        assert_eq!(
            declared.declaration("a").to_json_lines().join(""),
            r#"{  "id": "a",  "type": "pickString",  "options": ["x"]}"#
        );
        let declaration = InputDeclarations::parse("not json").declaration("b").to_json_lines().join("");
        assert_eq!(
            declaration,
            r#"{  "type": "promptString",  "id": "b",  "description": "b",  "password": true}"#
        );
    }
}
