//! Variable references in texts.
//!
//! A reference is `${`, a name of `[A-Za-z_][A-Za-z0-9_]*`, and `}` (HD-050 to HD-056). Editor files have more forms
//! (DIA-06): `${env:NAME}`, `${NAME:-text}`, `${input:id}`, `${file:path}`, Gemini's `$NAME`, and opencode's `{env:NAME}`
//! and `{file:path}`. Everything else is literal, there is no escape, and replaced values are not expanded again.

use std::borrow::Cow;
use std::path::MAIN_SEPARATOR_STR;

use mcp_model::{ConfigValue, Secret, TemplatePart};

/// The variable for the workspace folder.
pub(crate) const WORKSPACE_FOLDER: &str = "workspaceFolder";
/// Editors' variable for the name of the workspace folder.
pub(crate) const WORKSPACE_FOLDER_NAME: &str = "workspaceFolderBasename";
/// Editors' variable for the user's home.
pub(crate) const USER_HOME: &str = "userHome";

/// Gemini CLI's variable for the workspace folder.
pub(crate) const WORKSPACE_PATH: &str = "workspacePath";
/// Gemini CLI's variable for the folder of an extension, which has the `gemini-extension.json`.
pub(crate) const EXTENSION_PATH: &str = "extensionPath";
/// Claude Code's variable for the folder of a plugin, which has the `.mcp.json`.
pub(crate) const PLUGIN_ROOT: &str = "CLAUDE_PLUGIN_ROOT";
/// The variables for folders in editor files.
pub(crate) const EDITOR_FOLDERS: [&str; 5] =
    [WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, USER_HOME, WORKSPACE_PATH, EXTENSION_PATH];

/// How `${VAR}` in a text is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableRule {
    /// As literal text.
    Literal,
    /// Replaced by the variable's value.
    Expand,
    /// Replaced; `workspaceFolder` is the folder of the file.
    ExpandWithFolder,
    /// As in editors: `${NAME}`, `${NAME:-text}`, `${env:NAME}`, `${input:id}`, `${file:path}`, and their folders.
    Editor,
    /// Like `Editor`, and `$NAME`, as in Gemini CLI's `env`, `headers` and URLs.
    EditorAndShell,
    /// As in opencode: `{env:NAME}` and `{file:path}`.
    Braces,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// The name of a variable.
    Variable(&'a str),
    /// The name of a variable, and the default.
    VariableOr {
        /// The name.
        name: &'a str,
        /// The default.
        default: &'a str,
    },
    /// The id of an input.
    Input(&'a str),
    /// The path of a file, for its content.
    File(&'a str),
}

/// Splits a text by HoloDeck's rules.
pub(crate) fn split_holodeck(text: &str) -> Vec<Piece<'_>> {
    split(text, VariableRule::Expand)
}

/// Splits a text into literal parts and references.
pub fn split(text: &str, rule: VariableRule) -> Vec<Piece<'_>> {
    let mut res = Vec::new();
    let mut rest = text;
    let mut searched = 0;
    let sign = if rule == VariableRule::Braces { '{' } else { '$' };
    while let Some(found) = rest[searched..].find(sign) {
        let start = searched + found;
        let Some((piece, length)) = reference(&rest[start..], rule) else {
            searched = start + 1;
            continue;
        };
        if start > 0 {
            res.push(Piece::Text(&rest[..start]));
        }
        res.push(piece);
        rest = &rest[start + length..];
        searched = 0;
    }
    if !rest.is_empty() {
        res.push(Piece::Text(rest));
    }
    res
}

/// The reference at the start of a text, and its length.
fn reference(text: &str, rule: VariableRule) -> Option<(Piece<'_>, usize)> {
    let editor = match rule {
        VariableRule::Literal => return None,
        VariableRule::Expand | VariableRule::ExpandWithFolder => false,
        VariableRule::Editor | VariableRule::EditorAndShell => true,
        VariableRule::Braces => return braces_reference(text),
    };
    let Some(inner) = text.strip_prefix("${") else {
        let name = &text[1..];
        let length = name_length(name);
        let found = rule == VariableRule::EditorAndShell && length > 0;
        return found.then(|| (Piece::Variable(&name[..length]), length + "$".len()));
    };
    let length = name_length(inner);
    if length > 0 && inner.as_bytes().get(length) == Some(&b'}') {
        return Some((Piece::Variable(&inner[..length]), length + "${}".len()));
    }
    if !editor {
        return None;
    }
    if let Some(secret) = inner.strip_prefix("{") {
        // Continue's `${{ secrets.NAME }}`.
        let end = secret.find("}}")?;
        let name = secret[..end].trim().strip_prefix("secrets.")?;
        let is_name = !name.is_empty() && name_length(name) == name.len();
        return is_name.then_some((Piece::Variable(name), end + "${{}}".len()));
    }
    // References do not nest, so the search is linear.
    let end = inner.find(['{', '}']).filter(|it| inner[*it..].starts_with('}'))?;
    editor_reference(&inner[..end], length).map(|it| (it, end + "${}".len()))
}

/// The reference of opencode at the start of a text, and its length.
fn braces_reference(text: &str) -> Option<(Piece<'_>, usize)> {
    let inner = &text["{".len()..];
    // References do not nest, so the search is linear.
    let end = inner.find(['{', '}']).filter(|it| inner[*it..].starts_with('}'))?;
    let piece = match inner[..end].split_once(':')? {
        ("env", name) if !name.is_empty() && name_length(name) == name.len() => Piece::Variable(name),
        ("file", path) if !path.is_empty() => Piece::File(path),
        _ => return None,
    };
    Some((piece, end + "{}".len()))
}

/// An editor's reference between the braces. `length` is the length of the name at its start.
fn editor_reference(inner: &str, length: usize) -> Option<Piece<'_>> {
    let whole_name = |it: &str| !it.is_empty() && name_length(it) == it.len();
    match (&inner[..length], &inner[length..]) {
        ("env", name) if name.starts_with(':') && whole_name(&name[1..]) => Some(Piece::Variable(&name[1..])),
        ("input", id) if id.len() > 1 && id.starts_with(':') => Some(Piece::Input(&id[1..])),
        ("file", path) if path.len() > 1 && path.starts_with(':') => Some(Piece::File(&path[1..])),
        ("", "/") => Some(Piece::Text(MAIN_SEPARATOR_STR)),
        ("", _) => None,
        (name, rest) => rest.strip_prefix(":-").map(|default| Piece::VariableOr { name, default }),
    }
}

/// The length of the name at the start of a text, in bytes.
fn name_length(text: &str) -> usize {
    let length = text.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'_').count();
    if text.starts_with(|it: char| it.is_ascii_digit()) { 0 } else { length }
}

/// Returns whether the text has a variable by HoloDeck's rules.
pub(crate) fn has_variable(text: &str) -> bool {
    has_reference(text, VariableRule::Expand)
}

/// Returns whether the text may have a reference. Two searches for a byte are faster than one for two characters.
pub(crate) fn may_have_reference(text: &str) -> bool {
    text.contains('$') || text.contains('{')
}

/// Returns whether the text has a reference.
pub fn has_reference(text: &str, rule: VariableRule) -> bool {
    may_have_reference(text) && !is_one_text(&split(text, rule), text)
}

/// Returns whether the pieces are only the text itself.
fn is_one_text(pieces: &[Piece<'_>], text: &str) -> bool {
    pieces.iter().all(|it| match it {
        Piece::Text(piece) => piece.len() == text.len(),
        Piece::Variable(_) | Piece::VariableOr { .. } | Piece::Input(_) | Piece::File(_) => false,
    })
}

/// A text that looks like a reference but is literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralReference<'a> {
    /// It has a form that is not supported, such as `${command:x}`. The first word is given; the rest may be a secret.
    Unknown(&'a str),
    /// It has no `}`. The name is given.
    Unclosed(&'a str),
    /// opencode's form, without its `}`. The beginning with the name is given, such as `env:NAME`.
    UnclosedBraces(&'a str),
    /// There are blanks around the name.
    Spaced(&'a str),
}

/// The first text that looks like a reference of opencode but has no `}`.
pub(crate) fn unclosed_braces(text: &str) -> Option<LiteralReference<'_>> {
    text.match_indices('{').find_map(|(at, _)| {
        let inner = &text[at + 1..];
        let name = inner.strip_prefix("env:")?;
        let length = name_length(name);
        (length > 0 && !inner.contains('}'))
            .then(|| LiteralReference::UnclosedBraces(&inner[.."env:".len() + length]))
    })
}

/// The first text that looks like a reference but is literal.
pub fn literal_reference<'a>(pieces: &[Piece<'a>]) -> Option<LiteralReference<'a>> {
    pieces.iter().find_map(|it| match *it {
        Piece::Text(piece) => piece.split("${").skip(1).find_map(|inner| {
            let name = &inner[..name_length(inner)];
            let spaced = inner.trim_start();
            let spaced = &spaced[..name_length(spaced)];
            match (inner.find('}'), name) {
                (Some(_), "") if !spaced.is_empty() => {
                    let rest = inner.trim_start()[spaced.len()..].trim_start();
                    rest.starts_with('}').then_some(LiteralReference::Spaced(spaced))
                }
                (_, "") => None,
                (Some(_), name) => Some(LiteralReference::Unknown(name)),
                (None, name) => Some(LiteralReference::Unclosed(name)),
            }
        }),
        Piece::Variable(_) | Piece::VariableOr { .. } | Piece::Input(_) | Piece::File(_) => None,
    })
}

/// The environment variable for an input: `MCP_INPUT_` and its id in capitals.
pub fn input_variable(id: &str) -> String {
    let plain = id.chars().map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' });
    format!("MCP_INPUT_{}", plain.take(64).collect::<String>())
}

/// Parses a text to a value of the model.
pub fn parse_value<'a>(text: impl Into<Cow<'a, str>>, rule: VariableRule) -> ConfigValue {
    let text = text.into();
    if !may_have_reference(&text) {
        return ConfigValue::literal(text.into_owned());
    }
    let pieces = split(&text, rule);
    if is_one_text(&pieces, &text) {
        return ConfigValue::literal(text.into_owned());
    }
    let parts = pieces.into_iter().map(|it| match it {
        Piece::Text(text) => TemplatePart::Text(Secret::new(text)),
        Piece::Variable(name) => TemplatePart::Variable(name.to_owned()),
        Piece::VariableOr { name, default } => {
            TemplatePart::VariableOr { name: name.to_owned(), default: Secret::new(default) }
        }
        Piece::Input(id) => TemplatePart::Input(id.to_owned()),
        Piece::File(path) => TemplatePart::File(path.to_owned()),
    });
    ConfigValue::Template(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_by(text: &str, rule: VariableRule, want: &str) {
        let shown: Vec<_> = split(text, rule)
            .into_iter()
            .map(|it| match it {
                Piece::Text(text) => format!("'{text}'"),
                Piece::Variable(name) => name.to_owned(),
                Piece::VariableOr { name, default } => format!("{name}|{default}"),
                Piece::Input(id) => format!("?{id}"),
                Piece::File(path) => format!("<{path}"),
            })
            .collect();
        assert_eq!(shown.join(" "), want, "{text}");
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        check_by(text, VariableRule::Expand, want);
    }

    #[test]
    fn dia_06_editors_have_more_kinds_of_references() {
        let check = |text, want| check_by(text, VariableRule::Editor, want);
        check("${A}", "A");
        check("x${env:A}y", "'x' A 'y'");
        check("${A:-b c}", "A|b c");
        check("${A:-}", "A|");
        check("${input:my-key}", "?my-key");
        check("${workspaceFolder}/x", "workspaceFolder '/x'");
        check_by("a${/}b", VariableRule::Editor, &format!("'a' '{MAIN_SEPARATOR_STR}' 'b'"));
        check("$A", "'$A'");
        check("${env:}", "'${env:}'");
        check("${input:}", "'${input:}'");
        check("${env:A.B}", "'${env:A.B}'");
        check("${command:x}${A}", "'${command:x}' A");
        check("${A:-", "'${A:-'");
        check("${1:-a}", "'${1:-a}'");
        check("${A:-${B}}", "'${A:-' B '}'");
        check("$${A}", "'$' A");
        assert!(
            has_reference("${/}", VariableRule::Editor) && !has_reference("${x:y}", VariableRule::Editor)
        );
    }

    #[test]
    fn dia_06_opencode_has_references_in_braces() {
        let check = |text, want| check_by(text, VariableRule::Braces, want);
        check("Bearer {env:TOKEN}", "'Bearer ' TOKEN");
        check("{env:A}{file:~/.key}x", "A <~/.key 'x'");
        check("{env:} {file:} {env:A.B} {A} {env:A", "'{env:} {file:} {env:A.B} {A} {env:A'");
        check("${A} $A", "'${A} $A'");
        check("${env:A}", "'$' A");
        check("{{env:A}}", "'{' A '}'");
        check_by("${file:/run/key}", VariableRule::Editor, "</run/key");
        check_by("${file} ${file:}", VariableRule::Editor, "file ' ${file:}'");
    }

    #[test]
    fn dia_06_gemini_has_shell_variables() {
        let check = |text, want| check_by(text, VariableRule::EditorAndShell, want);
        check("Bearer $TOKEN", "'Bearer ' TOKEN");
        check("https://x-$A.example/$B_1", "'https://x-' A '.example/' B_1");
        check("$1 $ $$A", "'$1 $ $' A");
        check("${A}$B", "A B");
    }

    #[test]
    fn texts_that_look_like_references_are_found() {
        use LiteralReference::{Spaced, Unclosed, Unknown};
        let check =
            |text, want| assert_eq!(literal_reference(&split(text, VariableRule::Editor)), want, "{text}");
        check("${A} ${extensionPath.x}", Some(Unknown("extensionPath")));
        check("${command:secret}", Some(Unknown("command")));
        check("${SECRET:x}", Some(Unknown("SECRET")));
        check("x ${D", Some(Unclosed("D")));
        check("${A} ${D/x", Some(Unclosed("D")));
        check("${ A }", Some(Spaced("A")));
        check("${A:-b} $C ${1} ${} ${ ${}", None);
        let unclosed = LiteralReference::UnclosedBraces("env:A");
        assert_eq!(unclosed_braces("x {} {env:A-b"), Some(unclosed));
        for text in ["{env:A}", "{env:", "{env: A", "${A", "{file:a"] {
            assert_eq!(unclosed_braces(text), None, "{text}");
        }
        assert_eq!(input_variable("my-key"), "MCP_INPUT_MY_KEY");
    }

    #[test]
    fn hd_050_hd_055_only_whole_references_are_variables() {
        check("plain", "'plain'");
        check("${A}", "A");
        check("x${A}y${B_1}z", "'x' A 'y' B_1 'z'");
        check("${A}${A}", "A A");
        check("$A", "'$A'");
        check("${}", "'${}'");
        check("${A", "'${A'");
        check("${1A}", "'${1A}'");
        check("${A-B}", "'${A-B}'");
        check("${A:-def}", "'${A:-def}'");
        check("${MISSING:-def}${A}", "'${MISSING:-def}' A");
        check("$${A}", "'$' A");
        check("\\${A}", "'\\' A");
        check("${ A }", "'${ A }'");
        check("${env:A}", "'${env:A}'");
        check("${A.B}", "'${A.B}'");
        check("${_U}", "_U");
        check("${é}", "'${é}'");
        check("${${A}}", "'${' A '}'");
        check("", "");
    }
}
