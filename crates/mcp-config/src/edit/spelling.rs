//! How the editors whose file it is spell a variable: `${NAME}` with some, `${env:NAME}` with others, to whom the first is
//! a text like any other.

use std::path::Path;

use crate::policy::VariableRule;
use crate::template::{HOME, Piece, WORKSPACE_FOLDER, WORKSPACE_NAME, cut};
use crate::write::Data;

/// The folders in which files of editors lie that know `${env:NAME}` and no `${NAME}` (DIA-06): VS Code, Cursor, Windsurf
/// and Roo Code. Claude Code, Gemini CLI and Kiro have `${NAME}`.
const FOLDERS: [&str; 4] = [".vscode", ".cursor", "windsurf", ".roo"];
/// The files of the same that lie elsewhere: VS Code's own for the user, and Roo Code's.
const FILES: [&str; 2] = ["Code/User/mcp.json", "mcp_settings.json"];

/// Is it the file of an editor that wants `${env:NAME}`?
pub(super) fn is_prefixed(file: &str) -> bool {
    let path = Path::new(file);
    let folder = path.parent().and_then(Path::file_name).and_then(|it| it.to_str());
    folder.is_some_and(|it| FOLDERS.contains(&it)) || FILES.iter().any(|it| path.ends_with(it))
}

/// Spells every variable as `${env:NAME}`. What editors answer themselves keeps its name.
pub(super) fn prefix(data: &mut Data) {
    match data {
        Data::Text(text) => *text = prefixed(text),
        Data::List(items) => items.iter_mut().for_each(prefix),
        Data::Map(members) => members.iter_mut().for_each(|(_, it)| prefix(it)),
        Data::Word(_) => {}
    }
}

fn prefixed(text: &str) -> String {
    let pieces = cut(text, VariableRule::Editor);
    if !pieces.iter().any(|it| matches!(it, Piece::Variable(_))) {
        return text.to_owned();
    }
    let spelt = |it: &Piece<'_>| match it {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Variable(name) if [WORKSPACE_FOLDER, WORKSPACE_NAME, HOME].contains(name) => {
            format!("${{{name}}}")
        }
        Piece::Variable(name) => format!("${{env:{name}}}"),
        Piece::Or { name, default } => format!("${{{name}:-{default}}}"),
        Piece::Input(id) => format!("${{input:{id}}}"),
    };
    pieces.iter().map(spelt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dia_06_each_editor_has_its_spelling() {
        for file in [
            ".vscode/mcp.json",
            "/home/me/.config/Code/User/mcp.json",
            ".cursor/mcp.json",
            "/home/me/.codeium/windsurf/mcp_config.json",
            ".roo/mcp.json",
        ] {
            assert!(is_prefixed(file), "{file}");
        }
        for file in [".mcp.json", "Code/x/.mcp.json", ".gemini/settings.json", ".kiro/settings/mcp.json"] {
            assert!(!is_prefixed(file), "{file}");
        }
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(prefixed(text), want);
    }

    #[test]
    fn variables_are_prefixed_and_nothing_else() {
        check("Bearer ${TOKEN}", "Bearer ${env:TOKEN}");
        check("${env:TOKEN} ${input:key}", "${env:TOKEN} ${input:key}");
        check("${workspaceFolder}/x ${userHome}", "${workspaceFolder}/x ${userHome}");
        check("$TOKEN {TOKEN} ${ TOKEN }", "$TOKEN {TOKEN} ${ TOKEN }");
    }
}
