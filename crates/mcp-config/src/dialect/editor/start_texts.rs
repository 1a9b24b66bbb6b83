//! The texts that start a program: its command, its arguments and its working directory.
//!
//! Some programs replace `~` or `$NAME` in them (DIA-06). Here both become references of the model. What a program does
//! not replace, although it looks like a reference, gets a warning.

use mcp_host_model::{Secret, Severity, TemplatePart};

use crate::de::Location;
use crate::diagnostic::{Code, quoted};
use crate::dialect::editor::conventions::{HomePrefix, Program, ShellVariables, VariableSyntax};
use crate::dialect::editor::fields::ValueReader;
use crate::syntax::template::{ReferenceRule, USER_HOME, split_references};

/// The shortest name that is taken for a variable: a shorter one may be part of a password.
const SHORTEST_NAME: usize = 3;

impl ValueReader<'_> {
    /// Rewrites a text that starts a program: `~` and `$NAME`, if the program of the file replaces them. Warns about a
    /// `~` that stays.
    pub(super) fn rewrite_start_text(&self, text: String, at: &Location, severity: Severity) -> String {
        let text = match text.strip_prefix('~').filter(|it| it.is_empty() || it.starts_with('/')) {
            Some(rest) if self.program.home_prefix == HomePrefix::Replaced => {
                format!("${{{USER_HOME}}}{rest}")
            }
            Some(_) => {
                self.warn_about_home_prefix(at, severity);
                text
            }
            None => text,
        };
        match self.program.shell_variables {
            ShellVariables::ReplacedEverywhere if text.contains('$') => rewrite_shell_variables(&text),
            ShellVariables::ReplacedEverywhere | ShellVariables::Replaced => text,
            ShellVariables::Literal => {
                // A text with blanks is probably a script, in which `$NAME` belongs to a shell.
                if !text.contains(char::is_whitespace) {
                    self.warn_about_shell_variable(&text, at);
                }
                text
            }
        }
    }

    fn warn_about_home_prefix(&self, at: &Location, severity: Severity) {
        let program = self.program;
        let name = if program.is_unknown() { "most programs" } else { program.name };
        let message = format!("`~` is not replaced here: {name} passes it as it is");
        let help = match program.variables {
            VariableSyntax::Plain | VariableSyntax::EnvPrefix | VariableSyntax::EnvPrefixAndInputs => {
                format!("write `{}/…`, or the full path", self.variable_reference("HOME"))
            }
            VariableSyntax::Braces => "write `{env:HOME}/…`, or the full path".to_owned(),
            VariableSyntax::Secrets | VariableSyntax::Unsupported => "write the full path".to_owned(),
        };
        let diagnostic = self.context.new_diagnostic(Code::UnknownReference, at, message);
        self.context.report(diagnostic.severity(severity).help(help));
    }

    /// Warns about `$NAME` in a file of a program that does not replace it.
    pub(super) fn warn_about_shell_variable(&self, text: &str, at: &Location) {
        if self.rule != ReferenceRule::Editor || !has_shell_variable(text) {
            return;
        }
        let programs = Program::names_with_shell_variables().join(", ");
        let message = format!("`$NAME` is not replaced: only files of {programs} have it");
        let help = format!("write `{}` if a variable is meant", self.variable_reference("NAME"));
        self.context.warning(Code::UnknownReference, at, message, help);
    }

    /// Warns about a reference of another program: `{{NAME}}`, `%NAME%`, or opencode's `{env:NAME}`.
    pub(super) fn warn_about_foreign_reference(&self, text: &str, at: &Location) {
        let Some(found) = find_foreign_reference(text, self.rule) else { return };
        let message = format!("`{}` is not replaced: it stays as it is", quoted(found));
        let help = format!("write `{}` if a variable is meant", self.variable_reference("NAME"));
        self.context.warning(Code::UnknownReference, at, message, help);
    }

    /// A reference to a variable of the environment, in the syntax of the file's program.
    fn variable_reference(&self, name: &str) -> String {
        match self.program.variables {
            VariableSyntax::EnvPrefix | VariableSyntax::EnvPrefixAndInputs => format!("${{env:{name}}}"),
            VariableSyntax::Braces => format!("{{env:{name}}}"),
            VariableSyntax::Secrets => format!("${{{{ secrets.{name} }}}}"),
            VariableSyntax::Plain | VariableSyntax::Unsupported => format!("${{{name}}}"),
        }
    }
}

/// Rewrites `$NAME` as `${NAME:-$NAME}`: a variable that is not set stays as it is.
fn rewrite_shell_variables(text: &str) -> String {
    let rewrite = |part: TemplatePart| match part {
        TemplatePart::Variable(name) => format!("${{{name}:-${name}}}"),
        TemplatePart::Text(text) => Secret::expose(&text).to_owned(),
        TemplatePart::VariableOr { .. } | TemplatePart::Input(_) | TemplatePart::File(_) => String::new(),
    };
    let mut res = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        res.push_str(&rest[..start]);
        let end = rest[start + 1..].find('$').map_or(rest.len(), |it| start + 1 + it);
        let piece = &rest[start..end];
        if piece.starts_with("${") {
            res.push_str(piece);
        } else {
            res.extend(split_references(piece, ReferenceRule::EditorAndShell).into_iter().map(rewrite));
        }
        rest = &rest[end..];
    }
    res + rest
}

/// The length of the name of a variable at the start of a text: capitals, digits and `_`.
fn name_length(text: &str) -> usize {
    let is_name_byte = |it: &u8| it.is_ascii_uppercase() || it.is_ascii_digit() || *it == b'_';
    let length = text.bytes().take_while(is_name_byte).count();
    if text.starts_with(|it: char| it.is_ascii_uppercase()) { length } else { 0 }
}

/// Whether a text has `$NAME` as a word of its own. Next to a letter or a digit, the `$` may be part of a password.
fn has_shell_variable(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| {
        let rest = &text[at + 1..];
        let length = name_length(rest);
        length >= SHORTEST_NAME
            && !text[..at].ends_with(|it: char| it.is_alphanumeric() || it == '$')
            && !rest[length..].starts_with(|it: char| it.is_alphanumeric() || it == '$')
    })
}

/// The first reference of another program in a text.
fn find_foreign_reference(text: &str, rule: ReferenceRule) -> Option<&str> {
    let find = |opening: &str, closing: &str| {
        text.match_indices(opening).find_map(|(at, _)| {
            let inner = &text[at + opening.len()..];
            let length = name_length(inner);
            // `${env:NAME}` has opencode's form inside.
            let is_own = text[..at].ends_with('$');
            let is_found = !is_own && length >= SHORTEST_NAME && inner[length..].starts_with(closing);
            is_found.then(|| &text[at..at + opening.len() + length + closing.len()])
        })
    };
    let opencode = || if rule == ReferenceRule::Opencode { None } else { find("{env:", "}") };
    // In a URL, `%` begins an encoded byte.
    let windows = || if text.contains("://") { None } else { find("%", "%") };
    find("{{", "}}").or_else(opencode).or_else(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpt_091_shell_variables_become_references_that_may_stay() {
        let check = |text: &str, want: &str| assert_eq!(rewrite_shell_variables(text), want);
        check("$HOME/x", "${HOME:-$HOME}/x");
        check("a$A_1$B c", "a${A_1:-$A_1}${B:-$B} c");
        check("${HOME}/$1 $ ${A:-b}$C", "${HOME}/$1 $ ${A:-b}${C:-$C}");
        check("plain", "plain");
    }

    #[test]
    fn rpt_093_look_alikes_are_found() {
        for text in ["$TOKEN", "Bearer $TOKEN", "mysql://$T_A@host", "$HOME/x"] {
            assert!(has_shell_variable(text), "{text}");
        }
        for text in ["pa$WORD", "$WORDx", "$AB", "$1", "$name", "${NAME}", "$$NAME", "a$"] {
            assert!(!has_shell_variable(text), "{text}");
        }
        let check = |text: &str, want| {
            assert_eq!(find_foreign_reference(text, ReferenceRule::Editor), want, "{text}")
        };
        check("a {{USER_ID}} b", Some("{{USER_ID}}"));
        check("%APPDATA%/x", Some("%APPDATA%"));
        check("x{env:TOKEN}", Some("{env:TOKEN}"));
        for text in
            ["{{.Name}}", "{{ X }}", "100%", "http://x/%E2A%20", "${env:}", "a${env:TOKEN}b", "%A%", "{env:}"]
        {
            check(text, None);
        }
        assert_eq!(find_foreign_reference("{env:TOKEN}", ReferenceRule::Opencode), None);
    }
}
