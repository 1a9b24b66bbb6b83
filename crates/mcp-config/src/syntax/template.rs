//! Variable references in texts.
//!
//! A reference is `${`, a name of `[A-Za-z_][A-Za-z0-9_]*`, and `}` (HD-050 to HD-056). Editor files have more forms
//! (DIA-06): `${env:NAME}`, `${NAME:-text}`, `${input:id}`, `${file:path}`, `${/}` for the path separator, Continue's
//! `${{ secrets.NAME }}`, Gemini's `$NAME`, and opencode's `{env:NAME}` and `{file:path}`. All files may have
//! `${secret:NAME}`, opencode's `{secret:NAME}`, which only this host replaces. Everything else is literal, there is no
//! escape, and replaced values are not expanded again.

use std::borrow::Cow;
use std::ops::Range;
use std::path::MAIN_SEPARATOR_STR;

use mcp_host_model::{ConfigValue, Secret, TemplatePart};

/// The variable for the workspace folder.
pub(crate) const WORKSPACE_FOLDER: &str = "workspaceFolder";
/// Editors' variable for the name of the workspace folder.
pub(crate) const WORKSPACE_FOLDER_NAME: &str = "workspaceFolderBasename";
/// Editors' variable for the user's home.
pub(crate) const USER_HOME: &str = "userHome";

/// Editors' variable for the separator of a path, as a word for `${/}`.
const PATH_SEPARATOR: &str = "pathSeparator";

/// Gemini CLI's variable for the workspace folder.
pub(crate) const WORKSPACE_PATH: &str = "workspacePath";
/// Gemini CLI's variable for the folder of an extension, which has the `gemini-extension.json`.
pub(crate) const EXTENSION_PATH: &str = "extensionPath";
/// Claude Code's variable for the folder of a plugin, which has the `.mcp.json`.
pub(crate) const PLUGIN_ROOT: &str = "CLAUDE_PLUGIN_ROOT";
/// The variables for folders in editor files. `CLAUDE_PLUGIN_ROOT` is not one of them: an environment variable of that
/// name has precedence.
pub(crate) const EDITOR_FOLDER_VARIABLES: [&str; 5] =
    [WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, USER_HOME, WORKSPACE_PATH, EXTENSION_PATH];

/// The references in a text that are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum ReferenceRule {
    /// None: every text is literal.
    Literal,
    /// `${secret:NAME}` only. Each other rule has it too.
    Secrets,
    /// `${NAME}`, by the value of the variable.
    Expand,
    /// Like `Expand`; `workspaceFolder` is the folder of the file.
    ExpandWithFolder,
    /// As in editors: `${NAME}`, `${NAME:-text}`, `${env:NAME}`, `${input:id}`, `${file:path}`, `${/}`,
    /// `${{ secrets.NAME }}`, and the folder variables.
    Editor,
    /// Like `Editor`, and `$NAME`, as in Crush's `env`, `headers` and URLs.
    EditorAndShell,
    /// Like `EditorAndShell`; `$NAME` stays as it is if the variable is not set, as in Gemini CLI.
    EditorAndOptionalShell,
    /// `{env:NAME}`, `{file:path}` and `{secret:NAME}`, as in opencode.
    Braces,
}

/// Splits a text into literal parts and references.
pub fn split_references(text: &str, rule: ReferenceRule) -> Vec<TemplatePart> {
    let mut res = Vec::new();
    let mut end = 0;
    for (range, part) in find_references(text, rule) {
        if end < range.start {
            res.push(text_part(&text[end..range.start]));
        }
        res.push(part);
        end = range.end;
    }
    if end < text.len() {
        res.push(text_part(&text[end..]));
    }
    res
}

/// Finds the references of a text, with their positions.
pub(crate) fn find_references(
    text: &str,
    rule: ReferenceRule,
) -> impl Iterator<Item = (Range<usize>, TemplatePart)> {
    let opening = if rule == ReferenceRule::Braces { '{' } else { '$' };
    let mut searched = 0;
    std::iter::from_fn(move || {
        while let Some(found) = text[searched..].find(opening) {
            let start = searched + found;
            if let Some((part, length)) = parse_reference(&text[start..], rule) {
                searched = start + length;
                return Some((start..searched, part));
            }
            searched = start + 1;
        }
        None
    })
}

/// A literal part.
fn text_part(text: &str) -> TemplatePart {
    TemplatePart::Text(Secret::new(text))
}

/// Parses the reference at the start of a text. Returns it and its length in bytes.
fn parse_reference(text: &str, rule: ReferenceRule) -> Option<(TemplatePart, usize)> {
    let is_editor_rule = match rule {
        ReferenceRule::Literal => return None,
        ReferenceRule::Secrets => return parse_secret_reference(text),
        ReferenceRule::Expand | ReferenceRule::ExpandWithFolder => false,
        ReferenceRule::Editor | ReferenceRule::EditorAndShell | ReferenceRule::EditorAndOptionalShell => true,
        ReferenceRule::Braces => return parse_opencode_reference(text),
    };
    if let Some(found) = parse_secret_reference(text) {
        return Some(found);
    }
    let Some(inner) = text.strip_prefix("${") else {
        let name = &text[1..];
        let length = name_length(name);
        let name = &name[..length];
        let part = match rule {
            _ if name.is_empty() => return None,
            ReferenceRule::EditorAndShell => TemplatePart::Variable(name.to_owned()),
            ReferenceRule::EditorAndOptionalShell => TemplatePart::OptionalVariable(name.to_owned()),
            ReferenceRule::Literal
            | ReferenceRule::Secrets
            | ReferenceRule::Expand
            | ReferenceRule::ExpandWithFolder
            | ReferenceRule::Editor
            | ReferenceRule::Braces => return None,
        };
        return Some((part, length + "$".len()));
    };
    let length = name_length(inner);
    if length > 0 && inner.as_bytes().get(length) == Some(&b'}') {
        let name = &inner[..length];
        let part = if is_editor_rule && name == PATH_SEPARATOR {
            text_part(MAIN_SEPARATOR_STR)
        } else {
            TemplatePart::Variable(name.to_owned())
        };
        return Some((part, length + "${}".len()));
    }
    if !is_editor_rule {
        return None;
    }
    if let Some(secret) = inner.strip_prefix("{") {
        // Continue's `${{ secrets.NAME }}`. References do not nest, so the search is linear.
        let end = secret.find(['{', '}']).filter(|it| secret[*it..].starts_with("}}"))?;
        let name = secret[..end].trim().strip_prefix("secrets.")?;
        let is_name = !name.is_empty() && name_length(name) == name.len();
        return is_name.then_some((TemplatePart::Variable(name.to_owned()), end + "${{}}".len()));
    }
    // References do not nest, so the search is linear.
    let end = inner.find(['{', '}']).filter(|it| inner[*it..].starts_with('}'))?;
    parse_editor_reference(&inner[..end], length).map(|it| (it, end + "${}".len()))
}

/// Parses `${secret:NAME}` at the start of a text. Returns it and its length in bytes.
fn parse_secret_reference(text: &str) -> Option<(TemplatePart, usize)> {
    let inner = text.strip_prefix("${secret:")?;
    let name = &inner[..inner.bytes().take(MAX_SECRET_NAME + 1).position(|it| it == b'}')?];
    let length = "${secret:}".len() + name.len();
    is_secret_name(name).then(|| (TemplatePart::Secret(name.to_owned()), length))
}

/// The maximum length of the name of a secret.
const MAX_SECRET_NAME: usize = 64;

/// Returns whether a text is the name of a secret: 1 to 64 characters of `[A-Za-z0-9_-]`, so that it can be the name of
/// a file and an argument of a program. It begins with no `-`.
pub fn is_secret_name(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    (1..=MAX_SECRET_NAME).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_part)
}

/// Parses opencode's reference at the start of a text. Returns it and its length in bytes.
fn parse_opencode_reference(text: &str) -> Option<(TemplatePart, usize)> {
    let inner = &text["{".len()..];
    // References do not nest, so the search is linear.
    let end = inner.find(['{', '}']).filter(|it| inner[*it..].starts_with('}'))?;
    let part = match inner[..end].split_once(':')? {
        ("env", name) if !name.is_empty() && name_length(name) == name.len() => {
            TemplatePart::Variable(name.to_owned())
        }
        ("file", path) if !path.is_empty() => TemplatePart::File(path.to_owned()),
        ("secret", name) if is_secret_name(name) => TemplatePart::Secret(name.to_owned()),
        _ => return None,
    };
    Some((part, end + "{}".len()))
}

/// Parses the text between the braces of an editor's reference. `length` is the length of the name at its start.
fn parse_editor_reference(inner: &str, length: usize) -> Option<TemplatePart> {
    let is_name = |it: &str| !it.is_empty() && name_length(it) == it.len();
    match (&inner[..length], &inner[length..]) {
        ("env", name) if name.starts_with(':') && is_name(&name[1..]) => {
            Some(TemplatePart::Variable(name[1..].to_owned()))
        }
        ("input", id) if id.len() > 1 && id.starts_with(':') => Some(TemplatePart::Input(id[1..].to_owned())),
        ("file", path) if path.len() > 1 && path.starts_with(':') => {
            Some(TemplatePart::File(path[1..].to_owned()))
        }
        ("", "/") => Some(text_part(MAIN_SEPARATOR_STR)),
        ("", _) => None,
        (name, rest) => rest
            .strip_prefix(":-")
            .map(|default| TemplatePart::VariableOr { name: name.to_owned(), default: Secret::new(default) }),
    }
}

/// The length of the name at the start of a text, in bytes.
fn name_length(text: &str) -> usize {
    let length = text.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'_').count();
    if text.starts_with(|it: char| it.is_ascii_digit()) { 0 } else { length }
}

/// Returns whether the text has a reference by HoloDeck's rules: `${NAME}`.
pub(crate) fn has_holodeck_reference(text: &str) -> bool {
    has_reference(text, ReferenceRule::Expand)
}

/// Returns whether the text may have a reference.
pub(crate) fn may_have_reference(text: &str) -> bool {
    // Two searches for a byte are faster than one for two characters.
    text.contains('$') || text.contains('{')
}

/// Returns whether the text has a reference.
pub fn has_reference(text: &str, rule: ReferenceRule) -> bool {
    may_have_reference(text) && !is_literal(&split_references(text, rule), text)
}

/// Returns whether the text, which was split into these parts, has no reference.
fn is_literal(parts: &[TemplatePart], text: &str) -> bool {
    parts.iter().all(|it| match it {
        TemplatePart::Text(part) => part.expose().len() == text.len(),
        TemplatePart::Variable(_)
        | TemplatePart::OptionalVariable(_)
        | TemplatePart::VariableOr { .. }
        | TemplatePart::Input(_)
        | TemplatePart::File(_)
        | TemplatePart::Secret(_) => false,
    })
}

/// A text that looks like a reference but is not expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum UnexpandedReference<'a> {
    /// It has a form that is not supported, such as `${command:x}`. The first word is given; the rest may be a secret.
    Unknown(&'a str),
    /// It has no `}`. The name is given.
    Unclosed(&'a str),
    /// opencode's form, without its `}`. The beginning with the name is given, such as `env:NAME`.
    UnclosedBraces(&'a str),
    /// There are blanks around the name.
    Spaced(&'a str),
}

/// Finds the first `{env:NAME` without a `}`.
pub(crate) fn find_unclosed_braces(text: &str) -> Option<UnexpandedReference<'_>> {
    text.match_indices('{').find_map(|(at, _)| {
        let inner = &text[at + 1..];
        let name = inner.strip_prefix("env:")?;
        let length = name_length(name);
        // The next reference ends the search, so it is linear.
        let is_closed = inner.find(['{', '}']).is_some_and(|it| inner[it..].starts_with('}'));
        (length > 0 && !is_closed)
            .then(|| UnexpandedReference::UnclosedBraces(&inner[.."env:".len() + length]))
    })
}

/// Finds the first text that looks like a reference but is not expanded.
pub fn find_unexpanded_reference(parts: &[TemplatePart]) -> Option<UnexpandedReference<'_>> {
    parts.iter().find_map(|it| match it {
        TemplatePart::Text(part) => part.expose().split("${").skip(1).find_map(|inner| {
            let name = &inner[..name_length(inner)];
            let spaced = inner.trim_start();
            let spaced = &spaced[..name_length(spaced)];
            match (inner.find('}'), name) {
                (Some(_), "") if !spaced.is_empty() => {
                    let rest = inner.trim_start()[spaced.len()..].trim_start();
                    rest.starts_with('}').then_some(UnexpandedReference::Spaced(spaced))
                }
                (_, "") => None,
                (Some(_), name) => Some(UnexpandedReference::Unknown(name)),
                (None, name) => Some(UnexpandedReference::Unclosed(name)),
            }
        }),
        TemplatePart::Variable(_)
        | TemplatePart::OptionalVariable(_)
        | TemplatePart::VariableOr { .. }
        | TemplatePart::Input(_)
        | TemplatePart::File(_)
        | TemplatePart::Secret(_) => None,
    })
}

/// The beginning of the names of variables and secrets for inputs.
pub const INPUT_PREFIX: &str = "MCP_INPUT_";

/// The environment variable for an input: `MCP_INPUT_` and the first 64 characters of its id in capitals. Characters
/// other than ASCII letters and digits become `_`.
pub fn input_variable(id: &str) -> String {
    let plain = id.chars().map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' });
    format!("{INPUT_PREFIX}{}", plain.take(64).collect::<String>())
}

/// Parses a text into a [`ConfigValue`].
pub fn parse_value<'a>(text: impl Into<Cow<'a, str>>, rule: ReferenceRule) -> ConfigValue {
    let text = text.into();
    if !may_have_reference(&text) {
        return ConfigValue::literal(text.into_owned());
    }
    let parts = split_references(&text, rule);
    if is_literal(&parts, &text) {
        return ConfigValue::literal(text.into_owned());
    }
    ConfigValue::Template(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_by(text: &str, rule: ReferenceRule, want: &str) {
        let shown: Vec<_> = split_references(text, rule)
            .into_iter()
            .map(|it| match it {
                TemplatePart::Text(text) => format!("'{}'", text.expose()),
                TemplatePart::Variable(name) => name.to_owned(),
                TemplatePart::OptionalVariable(name) => format!("{name}?"),
                TemplatePart::VariableOr { name, default } => format!("{name}|{}", default.expose()),
                TemplatePart::Input(id) => format!("?{id}"),
                TemplatePart::File(path) => format!("<{path}"),
                TemplatePart::Secret(name) => format!("!{name}"),
            })
            .collect();
        assert_eq!(shown.join(" "), want, "{text}");
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        check_by(text, ReferenceRule::Expand, want);
    }

    #[test]
    fn dia_06_editors_have_more_kinds_of_references() {
        let check = |text, want| check_by(text, ReferenceRule::Editor, want);
        check("${A}", "A");
        check("x${env:A}y", "'x' A 'y'");
        check("${A:-b c}", "A|b c");
        check("${A:-}", "A|");
        check("${input:my-key}", "?my-key");
        check("${workspaceFolder}/x", "workspaceFolder '/x'");
        check_by("a${/}b", ReferenceRule::Editor, &format!("'a' '{MAIN_SEPARATOR_STR}' 'b'"));
        check_by("a${pathSeparator}b", ReferenceRule::Editor, &format!("'a' '{MAIN_SEPARATOR_STR}' 'b'"));
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
            has_reference("${/}", ReferenceRule::Editor) && !has_reference("${x:y}", ReferenceRule::Editor)
        );
    }

    #[test]
    fn dia_06_opencode_has_references_in_braces() {
        let check = |text, want| check_by(text, ReferenceRule::Braces, want);
        check("Bearer {env:TOKEN}", "'Bearer ' TOKEN");
        check("{env:A}{file:~/.key}x", "A <~/.key 'x'");
        check("{env:} {file:} {env:A.B} {A} {env:A", "'{env:} {file:} {env:A.B} {A} {env:A'");
        check("${A} $A", "'${A} $A'");
        check("${env:A}", "'$' A");
        check("{{env:A}}", "'{' A '}'");
        check_by("${file:/run/key}", ReferenceRule::Editor, "</run/key");
        check_by("${file} ${file:}", ReferenceRule::Editor, "file ' ${file:}'");
    }

    // RPT-300
    #[test]
    fn secrets_have_references_in_every_dialect() {
        for rule in [
            ReferenceRule::Secrets,
            ReferenceRule::Expand,
            ReferenceRule::ExpandWithFolder,
            ReferenceRule::Editor,
            ReferenceRule::EditorAndShell,
            ReferenceRule::EditorAndOptionalShell,
        ] {
            check_by("Bearer ${secret:my-key_1}x", rule, "'Bearer ' !my-key_1 'x'");
            for literal in ["${secret:}", "${secret:a b}", "${secret:a/b}", "${secret:a"] {
                check_by(literal, rule, &format!("'{literal}'"));
            }
        }
        check_by("${secret:a}", ReferenceRule::Literal, "'${secret:a}'");
        check_by("${A}${secret:a}", ReferenceRule::Secrets, "'${A}' !a");
        check_by("{secret:a}{secret:}", ReferenceRule::Braces, "!a '{secret:}'");
        let longest = "n".repeat(64);
        check(&format!("${{secret:{longest}}}"), &format!("!{longest}"));
        check(&format!("${{secret:{longest}n}}"), &format!("'${{secret:{longest}n}}'"));
    }

    #[test]
    fn references_have_their_positions() {
        let check = |text: &str, rule, want: &[&str]| {
            let found = find_references(text, rule).map(|(range, _)| text[range].to_owned());
            assert_eq!(found.collect::<Vec<_>>(), want, "{text}");
        };
        let every = "é${A}x${env:B}{env:C}${D:-d}${input:e}${file:f}${{ secrets.G }}${secret:h}{file:i}";
        let want =
            ["${A}", "${env:B}", "${D:-d}", "${input:e}", "${file:f}", "${{ secrets.G }}", "${secret:h}"];
        check(every, ReferenceRule::Editor, &want);
        let want = ["{env:B}", "{env:C}", "{file:f}", "{secret:h}", "{file:i}"];
        check(every, ReferenceRule::Braces, &want);
        check(every, ReferenceRule::Expand, &["${A}", "${secret:h}"]);
        check(every, ReferenceRule::Literal, &[]);
    }

    #[test]
    fn dia_06_gemini_has_shell_variables() {
        let check = |text, want| check_by(text, ReferenceRule::EditorAndShell, want);
        check("Bearer $TOKEN", "'Bearer ' TOKEN");
        check("https://x-$A.example/$B_1", "'https://x-' A '.example/' B_1");
        check("$1 $ $$A", "'$1 $ $' A");
        check("${A}$B", "A B");
        // RPT-091
        let check = |text, want| check_by(text, ReferenceRule::EditorAndOptionalShell, want);
        check("pa$word $1 $", "'pa' word? ' $1 $'");
        check("${A}$B${C:-$D}", "A B? C|$D");
    }

    #[test]
    fn texts_that_look_like_references_are_found() {
        use UnexpandedReference::{Spaced, Unclosed, Unknown};
        let check = |text, want| {
            assert_eq!(
                find_unexpanded_reference(&split_references(text, ReferenceRule::Editor)),
                want,
                "{text}"
            )
        };
        check("${A} ${extensionPath.x}", Some(Unknown("extensionPath")));
        check("${command:secret}", Some(Unknown("command")));
        check("${SECRET:x}", Some(Unknown("SECRET")));
        check("x ${D", Some(Unclosed("D")));
        check("${A} ${D/x", Some(Unclosed("D")));
        check("${ A }", Some(Spaced("A")));
        check("${A:-b} $C ${1} ${} ${ ${}", None);
        let unclosed = UnexpandedReference::UnclosedBraces("env:A");
        assert_eq!(find_unclosed_braces("x {} {env:A-b"), Some(unclosed));
        assert_eq!(find_unclosed_braces("{env:A {env:B}"), Some(unclosed));
        for text in ["{env:A}", "{env:", "{env: A", "${A", "{file:a"] {
            assert_eq!(find_unclosed_braces(text), None, "{text}");
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
