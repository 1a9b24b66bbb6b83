//! The texts that start a program: its command, its arguments and its working directory.
//!
//! Some programs replace `~` in them (DIA-06), which becomes a reference of the model. What a program does not replace,
//! although it looks like a reference, gets a warning.

use mcp_host_model::Severity;

use crate::de::Location;
use crate::diagnostic::{Code, quoted};
use crate::dialect::editor::conventions::{HomePrefix, Program, ShellVariables, VariableSyntax};
use crate::dialect::editor::fields::ValueReader;
use crate::syntax::template::{ReferenceRule, USER_HOME};

/// The shortest name that is taken for a variable: a shorter one may be part of a password.
const SHORTEST_NAME: usize = 3;

impl ValueReader<'_> {
    /// Rewrites `~` at the start of a text that starts a program, if the program of the file replaces it. Warns about a
    /// `~` or `$NAME` that stays.
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
        // A text with blanks is probably a script, in which `$NAME` belongs to a shell.
        if self.program.shell_variables == ShellVariables::Literal && !text.contains(char::is_whitespace) {
            self.report_shell_variable(&text, at);
        }
        text
    }

    fn warn_about_home_prefix(&self, at: &Location, severity: Severity) {
        let program = self.program;
        let reader = match program.is_unknown() {
            true => "most programs pass".to_owned(),
            false => format!("{} passes", program.name),
        };
        let message = format!("`~` is not replaced here: {reader} it as it is");
        let help = match program.variables {
            syntax @ (VariableSyntax::Plain
            | VariableSyntax::EnvPrefix
            | VariableSyntax::EnvPrefixAndInputs
            | VariableSyntax::Braces) => format!("write `{}/…`, or the full path", syntax.reference("HOME")),
            VariableSyntax::Secrets | VariableSyntax::Unsupported => "write the full path".to_owned(),
        };
        let diagnostic = self.context.new_diagnostic(Code::UnknownReference, at, message);
        self.context.report(diagnostic.severity(severity).help(help));
    }

    /// Warns about `$NAME` in a file of a program that does not replace it. Inside of a word it may be part of a
    /// password: then what the program does with it is information.
    pub(super) fn report_shell_variable(&self, text: &str, at: &Location) {
        let Some(place) = find_shell_variable(text) else { return };
        let reference = self.program.variables.reference("NAME");
        let (severity, message, help) = match (self.program.shell_variables, place) {
            (ShellVariables::Literal, _) if self.rule != ReferenceRule::Editor => return,
            (ShellVariables::Literal, ShellVariablePlace::OwnWord) => {
                let programs = Program::names_with_shell_variables().join(", ");
                let message = format!("`$NAME` is not replaced: only files of {programs} have it");
                (Severity::Warning, message, format!("write `{reference}` if a variable is meant"))
            }
            (ShellVariables::Literal, ShellVariablePlace::InsideWord) => {
                let message = "the `$` stays as it is, with the word after it".to_owned();
                (Severity::Info, message, format!("write `{reference}` if a variable is meant"))
            }
            (_, ShellVariablePlace::OwnWord) => return,
            (ShellVariables::Replaced, ShellVariablePlace::InsideWord) => {
                let message = format!("{} replaces `$NAME` inside of a word too", self.program.name);
                (Severity::Info, message, "if no variable is meant, put the value into a variable".to_owned())
            }
            (ShellVariables::ReplacedEverywhere, ShellVariablePlace::InsideWord) => {
                let name = self.program.name;
                let message =
                    format!("{name} replaces `$NAME` inside of a word too, if such a variable is set");
                (Severity::Info, message, "if no variable is meant, put the value into a variable".to_owned())
            }
        };
        let diagnostic = self.context.new_diagnostic(Code::UnknownReference, at, message);
        self.context.report(diagnostic.severity(severity).help(help));
    }

    /// Warns about a reference of another program: `{{NAME}}`, `%NAME%`, or opencode's `{env:NAME}`.
    pub(super) fn warn_about_foreign_reference(&self, text: &str, at: &Location) {
        let Some(found) = find_foreign_reference(text, self.rule) else { return };
        let message = format!("`{}` is not replaced: it stays as it is", quoted(found));
        let help = format!("write `{}` if a variable is meant", self.program.variables.reference("NAME"));
        self.context.warning(Code::UnknownReference, at, message, help);
    }
}

/// The length of the name of a variable at the start of a text: capitals, digits and `_`.
fn name_length(text: &str) -> usize {
    let is_name_byte = |it: &u8| it.is_ascii_uppercase() || it.is_ascii_digit() || *it == b'_';
    let length = text.bytes().take_while(is_name_byte).count();
    if text.starts_with(|it: char| it.is_ascii_uppercase()) { length } else { 0 }
}

/// Where a text has `$NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellVariablePlace {
    OwnWord,
    /// Next to a letter, a digit or another `$`.
    InsideWord,
}

/// Finds `$NAME` in a text. As a word of its own, it is more probably a variable.
fn find_shell_variable(text: &str) -> Option<ShellVariablePlace> {
    let is_of_word = |it: char| it.is_alphanumeric() || it == '$';
    let places = text.match_indices('$').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let length = name_length(rest);
        let is_own = !text[..at].ends_with(is_of_word) && !rest[length..].starts_with(is_of_word);
        let place = if is_own { ShellVariablePlace::OwnWord } else { ShellVariablePlace::InsideWord };
        (length >= SHORTEST_NAME).then_some(place)
    });
    places.min_by_key(|it| *it != ShellVariablePlace::OwnWord)
}

/// The first reference of another program in a text.
fn find_foreign_reference(text: &str, rule: ReferenceRule) -> Option<&str> {
    // Most texts end here.
    if !text.bytes().any(|it| matches!(it, b'{' | b'%')) {
        return None;
    }
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
    let opencode = || if rule == ReferenceRule::Braces { None } else { find("{env:", "}") };
    // In a URL, `%` begins an encoded byte.
    let windows = || if text.contains("://") { None } else { find("%", "%") };
    find("{{", "}}").or_else(opencode).or_else(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpt_093_look_alikes_are_found() {
        let check = |text: &str, want| assert_eq!(find_shell_variable(text), want, "{text}");
        for text in ["$TOKEN", "Bearer $TOKEN", "mysql://$T_A@host", "$HOME/x", "pre$T_A $T_A"] {
            check(text, Some(ShellVariablePlace::OwnWord));
        }
        for text in ["pa$WORD", "pre$T_A", "$WORDx", "$$NAME"] {
            check(text, Some(ShellVariablePlace::InsideWord));
        }
        for text in ["$AB", "$1", "$name", "${NAME}", "a$", "pa$word"] {
            check(text, None);
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
        assert_eq!(find_foreign_reference("{env:TOKEN}", ReferenceRule::Braces), None);
    }
}
