//! What the editors whose file it is make of references, and where they look for servers (DIA-06, DIA-08).
//!
//! `${NAME}` is a variable to some, `${env:NAME}` to others, to whom the first is a text like any other, and a few replace
//! nothing at all. VS Code asks its user for what stands in `inputs`. Whoever writes such a file asks here and nowhere
//! else; a file whose editor is not known is written as most read it, with `${NAME}`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::dialect::write::WriteReport;
use crate::syntax;
use crate::syntax::output::OutputValue;
use crate::syntax::template::VariableRule;
use crate::syntax::template::{Piece, USER_HOME, WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, split};
use crate::syntax::{Syntax, to_json};

/// What a variable is to an editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariableSyntax {
    /// `${NAME}`: Claude Code, Gemini CLI, Kiro, and whoever is not known.
    Plain,
    /// `${env:NAME}`: Cursor, Windsurf, Roo Code, Cline.
    EnvPrefix,
    /// The same, and `${input:id}` is asked for: VS Code.
    EnvPrefixAndInputs,
    /// Nothing: Claude Desktop and Zed hand every text over as it is.
    Unsupported,
}

/// The files of editors that say something else than most: a folder's name or the end of a path, and what holds there.
const EDITOR_FILES: &[(&str, VariableSyntax, &str)] = &[
    (".vscode/mcp.json", VariableSyntax::EnvPrefixAndInputs, "servers"),
    ("Code/User/mcp.json", VariableSyntax::EnvPrefixAndInputs, "servers"),
    ("Code - Insiders/User/mcp.json", VariableSyntax::EnvPrefixAndInputs, "servers"),
    ("VSCodium/User/mcp.json", VariableSyntax::EnvPrefixAndInputs, "servers"),
    (".vscode/settings.json", VariableSyntax::EnvPrefixAndInputs, "mcpServers"),
    (".cursor/mcp.json", VariableSyntax::EnvPrefix, "mcpServers"),
    ("windsurf/mcp_config.json", VariableSyntax::EnvPrefix, "mcpServers"),
    (".roo/mcp.json", VariableSyntax::EnvPrefix, "mcpServers"),
    ("mcp_settings.json", VariableSyntax::EnvPrefix, "mcpServers"),
    ("cline_mcp_settings.json", VariableSyntax::EnvPrefix, "mcpServers"),
    ("claude_desktop_config.json", VariableSyntax::Unsupported, "mcpServers"),
    (".zed/settings.json", VariableSyntax::Unsupported, "context_servers"),
    ("zed/settings.json", VariableSyntax::Unsupported, "context_servers"),
];

/// The editor whose file it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EditorFile {
    variables: VariableSyntax,
    /// The key under which it looks for servers.
    pub(crate) key: &'static str,
}

impl EditorFile {
    /// Whose file this is, by its path.
    pub(crate) fn of(file: &str) -> EditorFile {
        let path = Path::new(file);
        match EDITOR_FILES.iter().find(|it| path.ends_with(it.0)) {
            Some((_, variables, key)) => EditorFile { variables: *variables, key },
            None => EditorFile { variables: VariableSyntax::Plain, key: "mcpServers" },
        }
    }

    /// Does it ask its user for `${input:id}`?
    pub(crate) fn prompts_for_inputs(self) -> bool {
        self.variables == VariableSyntax::EnvPrefixAndInputs
    }

    /// Spells the references of an entry as the editor reads them, tells of those that it does not read, and gives the ids
    /// of what it asks for, each once.
    pub(crate) fn rewrite_references(
        self,
        data: &mut OutputValue,
        report: &mut WriteReport<'_>,
    ) -> Vec<String> {
        let mut seen = FoundReferences::default();
        self.rewrite(data, &mut seen);
        let FoundReferences { ids, add_unresolved: unread } = seen;
        if !unread.is_empty() {
            let done = format!("{} stays as it is: write the value there", unread.join(", "));
            report.replaced("variables", "the program whose file it is does not replace this", done);
        }
        ids
    }

    fn rewrite(self, data: &mut OutputValue, seen: &mut FoundReferences) {
        match data {
            OutputValue::Text(text) => *text = self.text(text, seen),
            OutputValue::List(items) => items.iter_mut().for_each(|it| self.rewrite(it, seen)),
            OutputValue::Map(members) => members.iter_mut().for_each(|(_, it)| self.rewrite(it, seen)),
            OutputValue::Scalar(_) => {}
        }
    }

    fn text(self, text: &str, seen: &mut FoundReferences) -> String {
        let spell = |piece: Piece<'_>| {
            // Whoever has no name to show has the text.
            let (spelt, is_read) = match piece {
                Piece::Text(text) => return text.to_owned(),
                Piece::Variable(name)
                    if [WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, USER_HOME].contains(&name) =>
                {
                    (format!("${{{name}}}"), self.variables != VariableSyntax::Unsupported)
                }
                Piece::Variable(name) => match self.variables {
                    VariableSyntax::Plain => (format!("${{{name}}}"), true),
                    VariableSyntax::EnvPrefix | VariableSyntax::EnvPrefixAndInputs => {
                        (format!("${{env:{name}}}"), true)
                    }
                    VariableSyntax::Unsupported => (format!("${{{name}}}"), false),
                },
                Piece::VariableOr { name, default } => {
                    let is_read = self.variables == VariableSyntax::Plain;
                    if !is_read {
                        seen.unresolved(format!("${{{name}:-…}}"));
                    }
                    return format!("${{{name}:-{default}}}");
                }
                Piece::Input(id) => {
                    if self.prompts_for_inputs() && !seen.ids.iter().any(|it| it == id) {
                        seen.ids.push(id.to_owned());
                    }
                    (format!("${{input:{id}}}"), self.prompts_for_inputs())
                }
            };
            if !is_read {
                seen.unresolved(spelt.clone());
            }
            spelt
        };
        // A separator is read as what it stands for, so that only what is a reference may be cut.
        match split(text, VariableRule::Editor)[..] {
            [] | [Piece::Text(_)] => text.to_owned(),
            ref pieces => pieces.iter().copied().map(spell).collect(),
        }
    }
}

#[derive(Default)]
struct FoundReferences {
    ids: Vec<String>,
    add_unresolved: Vec<String>,
}

impl FoundReferences {
    fn unresolved(&mut self, reference: String) {
        if !self.add_unresolved.contains(&reference) {
            self.add_unresolved.push(reference);
        }
    }
}

/// What a file says of the inputs that it declares, by their ids.
#[derive(Debug, Clone, Default)]
pub struct InputDeclarations(BTreeMap<String, OutputValue>);

impl InputDeclarations {
    /// Reads the `inputs` of an editor's file; a text that is none declares nothing.
    pub fn parse(text: &str) -> InputDeclarations {
        let Some(root) = syntax::parse_as(text, Syntax::JsonWithComments).root else {
            return InputDeclarations::default();
        };
        let places = [Some(&root), root.get("mcp").map(|it| &it.value)];
        let lists = places.into_iter().flatten().filter_map(|it| it.get("inputs")?.value.items());
        let declared = lists.flatten().filter_map(|item| {
            let id = item.get("id")?.value.text()?.to_owned();
            Some((id, OutputValue::from_json(&mcp_model::RawJson::parse(to_json(item)?.into()).ok()?)?))
        });
        InputDeclarations(declared.collect())
    }

    /// What is to stand in `inputs` for an id: what was declared, or a question whose answer is not shown.
    pub(crate) fn declaration(&self, id: &str) -> OutputValue {
        let member = |key: &str, value: &str| (key.to_owned(), OutputValue::text(value));
        let question = || {
            OutputValue::Map(vec![
                member("type", "promptString"),
                member("id", id),
                member("description", id),
                ("password".to_owned(), OutputValue::scalar(true)),
            ])
        };
        self.0.get(id).cloned().unwrap_or_else(question)
    }
}

/// Does the program whose file this is ask its user for what stands as `${input:id}` in it? VS Code does.
pub fn prompts_for_inputs(file: &str) -> bool {
    EditorFile::of(file).prompts_for_inputs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::write::UnsupportedField;
    use crate::profile::Profile;

    /// A text in a file, what is written for it, what is asked for, and what is not read.
    #[track_caller]
    fn check(file: &str, text: &str, want: &str, ids: &[&str], unread: &str) {
        let mut data = OutputValue::text(text);
        let mut unsupported: Vec<UnsupportedField> = Vec::new();
        let mut report = WriteReport {
            profile: Profile::McpJson,
            program: &|_| None,
            server: "a".to_owned(),
            unsupported: &mut unsupported,
        };
        let asked = EditorFile::of(file).rewrite_references(&mut data, &mut report);
        assert_eq!((data, asked), (OutputValue::text(want), ids.iter().map(|it| (*it).to_owned()).collect()));
        let told: Vec<String> = unsupported.iter().map(|it| it.fallback.to_string()).collect();
        let want = if unread.is_empty() {
            vec![]
        } else {
            vec![format!("{unread} stays as it is: write the value there")]
        };
        assert_eq!(told, want, "{file}");
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
        for file in
            [".mcp.json", "Code/x/.mcp.json", ".gemini/settings.json", ".kiro/settings/mcp.json", "a.json"]
        {
            check(file, "Bearer ${TOKEN}", "Bearer ${TOKEN}", &[], "");
            check(file, "Bearer ${env:TOKEN}", "Bearer ${TOKEN}", &[], "");
        }
        for file in ["Claude/claude_desktop_config.json", ".zed/settings.json", ".config/zed/settings.json"] {
            check(file, "Bearer ${env:TOKEN}", "Bearer ${TOKEN}", &[], "${TOKEN}");
        }
    }

    #[test]
    fn dia_08_only_vs_code_asks() {
        check(".vscode/mcp.json", "${input:key} ${input:key}", "${input:key} ${input:key}", &["key"], "");
        check(".cursor/mcp.json", "${input:key}", "${input:key}", &[], "${input:key}");
        check(".mcp.json", "${input:key}", "${input:key}", &[], "${input:key}");
    }

    #[test]
    fn what_is_no_variable_stays() {
        let file = ".vscode/mcp.json";
        check(file, "${workspaceFolder}/x ${userHome}", "${workspaceFolder}/x ${userHome}", &[], "");
        check(file, "$TOKEN {TOKEN} ${ TOKEN }", "$TOKEN {TOKEN} ${ TOKEN }", &[], "");
        check(file, "${A:-secret}", "${A:-secret}", &[], "${A:-…}");
        check(".mcp.json", "${A:-b}", "${A:-b}", &[], "");
        check(".zed/settings.json", "no", "no", &[], "");
    }

    #[test]
    fn dia_08_what_is_declared_is_kept() {
        let declared = InputDeclarations::parse(
            "{\"inputs\": [{\"id\": \"a\", \"type\": \"pickString\", \"options\": [\"x\"]}, 5]}",
        );
        assert_eq!(
            declared.declaration("a").pretty().join(""),
            r#"{  "id": "a",  "type": "pickString",  "options": ["x"]}"#
        );
        let asked = InputDeclarations::parse("not json").declaration("b").pretty().join("");
        assert_eq!(
            asked,
            r#"{  "type": "promptString",  "id": "b",  "description": "b",  "password": true}"#
        );
    }
}
