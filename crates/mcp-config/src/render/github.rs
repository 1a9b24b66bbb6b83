//! Renders diagnostics as workflow commands of GitHub Actions, which show them next to the line.
//!
//! A command is one line, so line ends are escaped, and in properties the separators too. A file name must not inject a
//! command.

use mcp_host_model::Severity;

use crate::diagnostic::{Diagnostic, LineIndex};
use crate::render::checked_file::{CheckOutcome, CheckedFile, printable};

/// Diagnostics as workflow commands, one per line, in the given order.
pub fn render_github(checked: &[CheckedFile<'_>]) -> String {
    let mut res = String::new();
    for CheckedFile { name, outcome } in checked {
        match outcome {
            CheckOutcome::Read { text, diagnostics } => {
                let lines = LineIndex::new(text);
                diagnostics.iter().for_each(|it| res.push_str(&workflow_command(name, &lines, it)));
            }
            CheckOutcome::Unreadable { message, help } => {
                let (file, message) = (escape_property(name), escape_message(&with_help(message, *help)));
                res.push_str(&format!("::error file={file},title=ConfigError::{message}\n"));
            }
        }
    }
    res
}

/// The workflow command for a diagnostic.
fn workflow_command(name: &str, lines: &LineIndex<'_>, diagnostic: &Diagnostic) -> String {
    let Diagnostic { severity, code, kind, message, span, line, column, help, .. } = diagnostic;
    let word = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let (end_line, end_column) = lines.position(lines.clamp(span.clone()).end);
    // GitHub accepts columns only if the span is in one line.
    let end = if end_line == *line { format!(",endColumn={end_column}") } else { String::new() };
    let title = escape_property(&format!("{kind} {code}"));
    let message = escape_message(&with_help(message, help.as_deref()));
    format!(
        "::{word} file={},line={line},col={column}{end},title={title}::{message}\n",
        escape_property(name)
    )
}

fn with_help(message: &str, help: Option<&str>) -> String {
    let message = printable(message);
    help.map_or_else(|| message.clone(), |it| format!("{message}\nhelp: {}", printable(it)))
}

fn escape_message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::Profile;

    use crate::read::{Document, read};

    #[track_caller]
    fn check(name: &str, text: &str, want: &str) {
        let reading = read(&Document::new(name, text, Profile::Dominds));
        let outcome = CheckOutcome::Read { text, diagnostics: &reading.diagnostics };
        assert_eq!(render_github(&[CheckedFile { name, outcome }]), want);
    }

    #[test]
    fn a_diagnostic_is_one_command() {
        check("mcp.yaml", "version: 1\n", "");
        check(
            "mcp.yaml",
            "version: 1\nservers:\n  a: {transport: stdio, command: x, évn: 1}\n",
            "::warning file=mcp.yaml,line=3,col=37,endColumn=40,title=ValidationError MCP0010::unknown key \
             'évn'%0Ahelp: remove it, or check its spelling\n",
        );
    }

    #[test]
    fn names_and_messages_cannot_inject_commands() {
        check(
            "a,b:c%0A\n::error::x",
            "version: 1\nservers:\n  a: {transport: stdio, command: x, \"100%\\n::error::x\": 1}\n",
            "::warning file=a%2Cb%3Ac%250A%0A%3A%3Aerror%3A%3Ax,line=3,col=37,endColumn=55,title=ValidationError \
             MCP0010::unknown key '100%25\\n::error::x'%0Ahelp: remove it, or check its spelling\n",
        );
        let outcome =
            CheckOutcome::Unreadable { message: "it is gone\n::error::x", help: Some("look for it") };
        assert_eq!(
            render_github(&[CheckedFile { name: "a", outcome }]),
            "::error file=a,title=ConfigError::it is gone\\n::error::x%0Ahelp: look for it\n"
        );
    }
}
