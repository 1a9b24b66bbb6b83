//! What the editors whose file it is make of references, and where they look for servers (DIA-06, DIA-08).
//!
//! `${NAME}` is a variable to some, `${env:NAME}` to others, to whom the first is a text like any other, and a few replace
//! nothing at all. VS Code asks its user for what stands in `inputs`. Whoever writes such a file asks here and nowhere
//! else; a file whose editor is not known is written as most read it, with `${NAME}`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Data, Report};
use crate::dialect::policy::VariableRule;
use crate::resolve::template::{HOME, Piece, WORKSPACE_FOLDER, WORKSPACE_NAME, cut};
use crate::syntax::{self, Syntax, to_json};

/// What a variable is to an editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variables {
    /// `${NAME}`: Claude Code, Gemini CLI, Kiro, and whoever is not known.
    Bare,
    /// `${env:NAME}`: Cursor, Windsurf, Roo Code, Cline.
    Prefixed,
    /// The same, and `${input:id}` is asked for: VS Code.
    Asked,
    /// Nothing: Claude Desktop and Zed hand every text over as it is.
    Nothing,
}

/// The files of editors that say something else than most: a folder's name or the end of a path, and what holds there.
const EDITORS: &[(&str, Variables, &str)] = &[
    (".vscode/mcp.json", Variables::Asked, "servers"),
    ("Code/User/mcp.json", Variables::Asked, "servers"),
    ("Code - Insiders/User/mcp.json", Variables::Asked, "servers"),
    ("VSCodium/User/mcp.json", Variables::Asked, "servers"),
    (".vscode/settings.json", Variables::Asked, "mcpServers"),
    (".cursor/mcp.json", Variables::Prefixed, "mcpServers"),
    ("windsurf/mcp_config.json", Variables::Prefixed, "mcpServers"),
    (".roo/mcp.json", Variables::Prefixed, "mcpServers"),
    ("mcp_settings.json", Variables::Prefixed, "mcpServers"),
    ("cline_mcp_settings.json", Variables::Prefixed, "mcpServers"),
    ("claude_desktop_config.json", Variables::Nothing, "mcpServers"),
    (".zed/settings.json", Variables::Nothing, "context_servers"),
    ("zed/settings.json", Variables::Nothing, "context_servers"),
];

/// The editor whose file it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Editor {
    variables: Variables,
    /// The key under which it looks for servers.
    pub(crate) key: &'static str,
}

impl Editor {
    /// Whose file this is, by its path.
    pub(crate) fn of(file: &str) -> Editor {
        let path = Path::new(file);
        match EDITORS.iter().find(|it| path.ends_with(it.0)) {
            Some((_, variables, key)) => Editor { variables: *variables, key },
            None => Editor { variables: Variables::Bare, key: "mcpServers" },
        }
    }

    /// Does it ask its user for `${input:id}`?
    pub(crate) fn asks(self) -> bool {
        self.variables == Variables::Asked
    }

    /// Spells the references of an entry as the editor reads them, tells of those that it does not read, and gives the ids
    /// of what it asks for, each once.
    pub(crate) fn spell(self, data: &mut Data, report: &mut Report<'_>) -> Vec<String> {
        let mut seen = Seen::default();
        self.walk(data, &mut seen);
        let Seen { ids, unread } = seen;
        if !unread.is_empty() {
            let done = format!("{} stays as it is: write the value there", unread.join(", "));
            report.instead("variables", "the program whose file it is does not replace this", done);
        }
        ids
    }

    fn walk(self, data: &mut Data, seen: &mut Seen) {
        match data {
            Data::Text(text) => *text = self.text(text, seen),
            Data::List(items) => items.iter_mut().for_each(|it| self.walk(it, seen)),
            Data::Map(members) => members.iter_mut().for_each(|(_, it)| self.walk(it, seen)),
            Data::Word(_) => {}
        }
    }

    fn text(self, text: &str, seen: &mut Seen) -> String {
        let spell = |piece: Piece<'_>| {
            // Whoever has no name to show has the text.
            let (spelt, is_read) = match piece {
                Piece::Text(text) => return text.to_owned(),
                Piece::Variable(name) if [WORKSPACE_FOLDER, WORKSPACE_NAME, HOME].contains(&name) => {
                    (format!("${{{name}}}"), self.variables != Variables::Nothing)
                }
                Piece::Variable(name) => match self.variables {
                    Variables::Bare => (format!("${{{name}}}"), true),
                    Variables::Prefixed | Variables::Asked => (format!("${{env:{name}}}"), true),
                    Variables::Nothing => (format!("${{{name}}}"), false),
                },
                Piece::Or { name, default } => {
                    let is_read = self.variables == Variables::Bare;
                    if !is_read {
                        seen.unread(format!("${{{name}:-…}}"));
                    }
                    return format!("${{{name}:-{default}}}");
                }
                Piece::Input(id) => {
                    if self.asks() && !seen.ids.iter().any(|it| it == id) {
                        seen.ids.push(id.to_owned());
                    }
                    (format!("${{input:{id}}}"), self.asks())
                }
            };
            if !is_read {
                seen.unread(spelt.clone());
            }
            spelt
        };
        // A separator is read as what it stands for, so that only what is a reference may be cut.
        match cut(text, VariableRule::Editor)[..] {
            [] | [Piece::Text(_)] => text.to_owned(),
            ref pieces => pieces.iter().copied().map(spell).collect(),
        }
    }
}

#[derive(Default)]
struct Seen {
    ids: Vec<String>,
    unread: Vec<String>,
}

impl Seen {
    fn unread(&mut self, reference: String) {
        if !self.unread.contains(&reference) {
            self.unread.push(reference);
        }
    }
}

/// What a file says of the inputs that it declares, by their ids.
#[derive(Debug, Clone, Default)]
pub struct Inputs(BTreeMap<String, Data>);

impl Inputs {
    /// Reads the `inputs` of an editor's file; a text that is none declares nothing.
    pub fn of(text: &str) -> Inputs {
        let Some(root) = syntax::parse_as(text, Syntax::JsonWithComments).root else {
            return Inputs::default();
        };
        let places = [Some(&root), root.get("mcp").map(|it| &it.value)];
        let lists = places.into_iter().flatten().filter_map(|it| it.get("inputs")?.value.items());
        let declared = lists.flatten().filter_map(|item| {
            let id = item.get("id")?.value.text()?.to_owned();
            Some((id, Data::json(&mcp_model::RawJson::parse(to_json(item)?.into()).ok()?)?))
        });
        Inputs(declared.collect())
    }

    /// What is to stand in `inputs` for an id: what was declared, or a question whose answer is not shown.
    pub(crate) fn declaration(&self, id: &str) -> Data {
        let member = |key: &str, value: &str| (key.to_owned(), Data::text(value));
        let question = || {
            Data::Map(vec![
                member("type", "promptString"),
                member("id", id),
                member("description", id),
                ("password".to_owned(), Data::word(true)),
            ])
        };
        self.0.get(id).cloned().unwrap_or_else(question)
    }
}

/// Does the program whose file this is ask its user for what stands as `${input:id}` in it? VS Code does.
pub fn asks_for_inputs(file: &str) -> bool {
    Editor::of(file).asks()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::profile::Profile;
    use crate::write::Loss;

    /// A text in a file, what is written for it, what is asked for, and what is not read.
    #[track_caller]
    fn check(file: &str, text: &str, want: &str, ids: &[&str], unread: &str) {
        let mut data = Data::text(text);
        let mut losses: Vec<Loss> = Vec::new();
        let mut report = Report {
            profile: Profile::McpJson,
            program: &|_| None,
            server: "a".to_owned(),
            losses: &mut losses,
        };
        let asked = Editor::of(file).spell(&mut data, &mut report);
        assert_eq!((data, asked), (Data::text(want), ids.iter().map(|it| (*it).to_owned()).collect()));
        let told: Vec<String> = losses.iter().map(|it| it.done.to_string()).collect();
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
        let declared =
            Inputs::of("{\"inputs\": [{\"id\": \"a\", \"type\": \"pickString\", \"options\": [\"x\"]}, 5]}");
        assert_eq!(
            declared.declaration("a").pretty().join(""),
            r#"{  "id": "a",  "type": "pickString",  "options": ["x"]}"#
        );
        let asked = Inputs::of("not json").declaration("b").pretty().join("");
        assert_eq!(
            asked,
            r#"{  "type": "promptString",  "id": "b",  "description": "b",  "password": true}"#
        );
    }
}
