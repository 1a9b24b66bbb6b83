//! Checks of the texts that start a program: a command with whitespace around it, and whole command lines.
//!
//! A command is the name or path of one program, and a program may have spaces in its name, so nothing is split here.

use mcp_host_model::Severity;

use crate::de::{Location, ReadContext};
use crate::diagnostic::{Applicability, Code, FixIntent, quoted};
use crate::syntax::Syntax;

/// Programs that are often written together with their arguments.
const LAUNCHERS: [&str; 23] = [
    "bash", "bun", "bunx", "cargo", "cmd", "deno", "docker", "dotnet", "go", "java", "node", "npm", "npx",
    "pipx", "pnpm", "podman", "python", "python3", "sh", "uv", "uvx", "wsl", "yarn",
];

/// Checks the command of a server. A mistake that is certain has the severity
/// `certain_severity`; any other is a warning.
pub(crate) fn check_command(
    command: &str,
    at: &Location,
    has_args: bool,
    certain_severity: Severity,
    context: &ReadContext,
) {
    if report_escaped_path(command, at, context) {
        return;
    }
    let program = command.trim();
    if program.len() != command.len() {
        let message = "'command' begins or ends with whitespace, which counts as part of the name";
        let fix = (!program.contains('='))
            .then(|| FixIntent::ReplaceScalar(program.to_owned(), Applicability::Certain));
        let diagnostic = context.new_diagnostic(Code::SurroundingBlank, at, message);
        context.report(diagnostic.warning().help("remove the whitespace").fix(fix));
    }
    if let Some(severity) = command_line_severity(program, has_args, certain_severity) {
        report_command_line(program, at, severity, context);
    }
}

/// Reports a Windows path whose backslashes were read as escapes, such as the tab in `C:\tools`. Returns whether it is
/// one.
fn report_escaped_path(text: &str, at: &Location, context: &ReadContext) -> bool {
    let mut characters = text.chars();
    let has_drive =
        characters.next().is_some_and(|it| it.is_ascii_alphabetic()) && characters.next() == Some(':');
    let is_escaped = has_drive && characters.any(char::is_control);
    if is_escaped {
        let message = "a backslash in the path was read as an escape, such as `\\t` for a tab";
        let help = "write each backslash twice, as in `C:\\\\tools`, or `/` instead";
        context.error(Code::CommandLine, at, message, help);
    }
    is_escaped
}

/// The severity of a whole command line in `command`; `None` if it may be the name of one program. It is a command line
/// for certain if its first word is a bare name, and probably if an option follows.
fn command_line_severity(program: &str, has_args: bool, certain_severity: Severity) -> Option<Severity> {
    let mut words = program.split_whitespace();
    let first = words.next().unwrap_or_default();
    let mut rest = words.peekable();
    rest.peek()?;
    let is_bare = !first.contains(['/', '\\', '$']);
    let is_launcher = LAUNCHERS.iter().any(|it| it.eq_ignore_ascii_case(first));
    let has_option = rest.any(|it| it.starts_with('-'));
    match (is_bare, is_launcher || has_option) {
        (true, true) => Some(certain_severity),
        (true, false) if has_args => Some(Severity::Warning),
        (true, false) => Some(certain_severity),
        (false, _) => has_option.then_some(Severity::Warning),
    }
}

/// Reports a command line in `command`.
fn report_command_line(program: &str, at: &Location, severity: Severity, context: &ReadContext) {
    let first = program.split_whitespace().next().unwrap_or_default();
    let message = "'command' is a whole command line; it must be one program";
    let help = if first.contains('=') {
        // The assigned value may be a secret.
        "write the program as `command`, each argument as an item of `args`, and the assignment in `env`"
            .to_owned()
    } else {
        let first = quoted(first);
        let command = match context.rules.syntax {
            Syntax::Yaml | Syntax::Toml => format!("`command: {first}`"),
            Syntax::Json | Syntax::JsonWithComments => format!("`\"command\": \"{first}\"`"),
        };
        format!("write {command}, and each argument as an item of `args`")
    };
    context.report(context.new_diagnostic(Code::CommandLine, at, message).severity(severity).help(help));
}

/// Warns about an argument that is an option together with further words: a program gets it as one word.
pub(crate) fn check_argument_line(argument: &str, at: &Location, context: &ReadContext) {
    if report_escaped_path(argument, at, context) {
        return;
    }
    let mut words = argument.split_whitespace();
    let is_option = words.next().is_some_and(|it| {
        let name = it.trim_start_matches('-');
        it.starts_with('-')
            && !name.is_empty()
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    });
    if !is_option || words.next().is_none() {
        return;
    }
    let message = "an argument holds an option and further words; the program gets them as one word";
    let help = "write each word as an item of `args`";
    context.warning(Code::CommandLine, at, message, help);
}
