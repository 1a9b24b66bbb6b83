//! `check`: everything that is wrong with files, and what of it can be put right. No server is started.

use std::path::PathBuf;

use clap::ValueEnum;
use mcp_config::{
    Applicability, CheckOutcome, CheckedFile, Code, Colour, Diagnostic, FixedFile, SarifTool, ServerEntry,
    fix_all, render_diff, render_github, render_sarif,
};
use mcp_host::{LoadedConfig, save};
use mcp_model::{Dialect, ErrorKind, Severity, TransportKind};
use serde::{Serialize, Serializer};

use crate::args::FormatName;
use crate::commands::next;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::source::{Source, Unreadable, open};

/// The words of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// The files, or the folders they are in; the nearest above this folder unless given
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Put mistakes right where it is known how, and show the changes; =all also what is only suggested
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "sure")]
    fix: Option<FixName>,
}

/// Which mistakes are put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FixName {
    /// Those of which it is sure what was meant.
    Sure,
    /// Also those where it is a guess, or changes what is done.
    All,
}

/// Reads the files, one after the other. Blocks.
pub(crate) fn run(context: &Context, words: &Words, format: FormatName) -> Report {
    let Words { files, fix } = words;
    // One after the other: a file may be named twice, by a link or by its folder.
    let read = |it: &PathBuf| {
        let found = Found { opened: open(it, context), fixed: None };
        if let Some(fix) = fix { mend(found, *fix, context) } else { found }
    };
    let nearest = [PathBuf::new()];
    let opened: Vec<_> = if files.is_empty() { &nearest[..] } else { files }.iter().map(read).collect();
    let exit = exit(&opened);
    let colour = context.console.err;
    let err = opened.iter().filter_map(|it| it.opened.as_ref().ok()).map(|it| it.taken(colour)).collect();
    let checked: Vec<CheckedFile<'_>> = opened.iter().map(Found::checked).collect();
    let after = match (exit, opened.first().map(|it| &it.opened), format) {
        (Exit::Done, Some(Ok(source)), FormatName::Text) if !source.loaded.desired.servers.is_empty() => {
            let file = next::file(&source.file);
            context.console.next(&format!("`mcp-host tools {file}` starts the servers and lists their tools"))
        }
        (_, _, _) => String::new(),
    };
    let out = match format {
        FormatName::Json => json::document(&Document { files: opened.iter().map(File::of).collect() }),
        FormatName::Text => {
            opened.iter().map(|it| text(it, context.console.out)).collect::<Vec<_>>().join("\n")
        }
        FormatName::Sarif => {
            let program = SarifTool { name: "mcp-host", version: env!("CARGO_PKG_VERSION") };
            json::document(&render_sarif(&program, &checked))
        }
        FormatName::Github => render_github(&checked),
    };
    Report { out, err, exit, after }
}

/// What became of one file.
struct Found {
    opened: Opened,
    fixed: Option<Mended>,
}

/// What was done to a file.
struct Mended {
    /// The text as it was.
    before: String,
    /// The mistakes that are gone.
    gone: Vec<Diagnostic>,
}

impl Found {
    fn checked(&self) -> CheckedFile<'_> {
        match &self.opened {
            Ok(Source { loaded, .. }) => {
                let LoadedConfig { path, text, diagnostics, .. } = loaded;
                CheckedFile { name: path, outcome: CheckOutcome::Read { text, diagnostics } }
            }
            Err(Unreadable { path, message, help }) => CheckedFile {
                name: path,
                outcome: CheckOutcome::Unreadable { message, help: help.as_deref() },
            },
        }
    }
}

/// Puts right what can be put right, and reads the file again.
fn mend(found: Found, what: FixName, context: &Context) -> Found {
    let Ok(source) = &found.opened else { return found };
    let least = match what {
        FixName::Sure => Applicability::Sure,
        FixName::All => Applicability::Suggested,
    };
    let FixedFile { text, fixed } = fix_all(&source.document(), least);
    if fixed.is_empty() {
        return found;
    }
    let before = source.loaded.text.clone();
    let opened = match save(&source.file, &before, &text) {
        Ok(()) => open(&source.file, context),
        Err(error) => {
            let path = source.loaded.path.clone();
            return Found {
                opened: Err(Unreadable { path, message: chain(&error), help: None }),
                fixed: None,
            };
        }
    };
    Found { opened, fixed: Some(Mended { before, gone: fixed }) }
}

type Opened = Result<Source, Unreadable>;

fn exit(opened: &[Found]) -> Exit {
    let is_sound = |it: &Found| match &it.opened {
        Ok(Source { loaded, .. }) => !loaded.refused && !has_errors(&loaded.diagnostics),
        Err(Unreadable { .. }) => false,
    };
    if opened.iter().all(is_sound) { Exit::Done } else { Exit::Wrong }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|it| it.severity == Severity::Error)
}

fn text(found: &Found, colour: Colour) -> String {
    match &found.opened {
        Ok(source) => {
            let mut res = String::new();
            let mut counts = Counts::of(source);
            if let Some(Mended { before, gone }) = &found.fixed {
                res = render_diff(&source.loaded.path, before, &source.loaded.text, colour) + "\n";
                counts.fixed = gone.len();
            }
            res + &source.complaints(colour) + &summary(&counts, colour) + "\n"
        }
        Err(Unreadable { path: _, message, help }) => {
            let message = format!("{}: {message}", ErrorKind::Config);
            paint::error(colour, &plain::line(&message), help.as_deref())
        }
    }
}

/// What the last line about a file counts.
#[derive(Debug, Clone, Copy)]
struct Counts<'a> {
    path: &'a str,
    dialect: Dialect,
    servers: usize,
    accepted: usize,
    errors: usize,
    warnings: usize,
    fixed: usize,
}

impl Counts<'_> {
    fn of(source: &Source) -> Counts<'_> {
        let loaded = &source.loaded;
        let count = |severity| loaded.diagnostics.iter().filter(|it| it.severity == severity).count();
        Counts {
            path: &loaded.path,
            dialect: loaded.profile.dialect(),
            servers: loaded.reading.entries.len(),
            accepted: loaded.reading.entries.iter().filter(|it| source.accepts(it)).count(),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            fixed: 0,
        }
    }
}

/// One line about a file: `✗ agent.yaml: holodeck, 3 servers, 2 accepted; 1 error, 2 warnings`.
fn summary(counts: &Counts<'_>, colour: Colour) -> String {
    let Counts { path, dialect, servers, accepted, errors, warnings, fixed } = *counts;
    // The name is a stranger's word, like what is in the file.
    let path = plain::line(path);
    let sound = errors == 0 && servers == accepted;
    let (style, mark) = if sound { (paint::GOOD, "✓") } else { (paint::BAD, "✗") };
    let mut res = format!(
        "{} {path}: {}, {}",
        paint::paint(colour, style, mark),
        dialect.as_str(),
        some(servers, "server")
    );
    if accepted != servers {
        res.push_str(&format!(", {accepted} accepted"));
    }
    let found: Vec<String> = [(errors, "error"), (warnings, "warning")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| some(number, what))
        .collect();
    if !found.is_empty() {
        res.push_str(&format!("; {}", found.join(", ")));
    }
    if fixed > 0 {
        res.push_str(&format!("; {fixed} fixed"));
    }
    res
}

fn some(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The document of `check`.
#[derive(Serialize)]
struct Document<'a> {
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    dialect: Option<Dialect>,
    servers: Vec<Server<'a>>,
    diagnostics: Vec<Finding<'a>>,
    /// Only with `--fix`, and only where something was put right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Gone<'a>>,
}

/// A mistake that was put right; its line is that of the file before.
#[derive(Serialize)]
struct Gone<'a> {
    code: Code,
    pointer: &'a str,
    line: usize,
    fix: &'a str,
}

#[derive(Serialize)]
struct Server<'a> {
    name: &'a str,
    transport: Option<TransportKind>,
    accepted: bool,
}

/// A diagnostic, or the one thing to say about a file that has no text to point into.
enum Finding<'a> {
    Placed(&'a Diagnostic),
    Unreadable(&'a Unreadable),
}

impl Serialize for Finding<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The same members as a diagnostic has, so that a reader needs no second shape.
        #[derive(Serialize)]
        struct Placeless<'a> {
            severity: Severity,
            code: Option<&'a str>,
            kind: ErrorKind,
            message: &'a str,
            pointer: &'a str,
            line: Option<usize>,
            column: Option<usize>,
            help: Option<&'a str>,
        }
        match self {
            Finding::Placed(diagnostic) => diagnostic.serialize(serializer),
            Finding::Unreadable(Unreadable { path: _, message, help }) => Placeless {
                severity: Severity::Error,
                code: None,
                kind: ErrorKind::Config,
                message,
                pointer: "",
                line: None,
                column: None,
                help: help.as_deref(),
            }
            .serialize(serializer),
        }
    }
}

impl<'a> File<'a> {
    fn of(found: &'a Found) -> File<'a> {
        let gone = found.fixed.iter().flat_map(|it| &it.gone).filter_map(|it| {
            let Diagnostic { code, pointer, line, .. } = it;
            Some(Gone { code: *code, pointer, line: *line, fix: it.fix.as_ref()?.title() })
        });
        match &found.opened {
            Ok(source) => {
                let LoadedConfig { path, profile, reading, diagnostics, .. } = &source.loaded;
                let server = |entry: &'a ServerEntry| Server {
                    name: &entry.name,
                    transport: entry.transport,
                    accepted: source.accepts(entry),
                };
                File {
                    path,
                    dialect: Some(profile.dialect()),
                    servers: reading.entries.iter().map(server).collect(),
                    diagnostics: diagnostics.iter().map(Finding::Placed).collect(),
                    fixed: gone.collect(),
                }
            }
            Err(unreadable) => File {
                path: &unreadable.path,
                dialect: None,
                servers: Vec::new(),
                diagnostics: vec![Finding::Unreadable(unreadable)],
                fixed: Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(servers: usize, accepted: usize, errors: usize, warnings: usize, want: &str) {
        let counts = Counts {
            path: "a.yaml",
            dialect: Dialect::Dominds,
            servers,
            accepted,
            errors,
            warnings,
            fixed: 0,
        };
        assert_eq!(summary(&counts, Colour::Never), want);
        let fixed = Counts { fixed: 2, ..counts };
        assert_eq!(summary(&fixed, Colour::Never), format!("{want}; 2 fixed"));
    }

    #[test]
    fn a_file_is_summed_up_in_one_line() {
        check(1, 1, 0, 0, "✓ a.yaml: dominds, 1 server");
        check(0, 0, 0, 0, "✓ a.yaml: dominds, 0 servers");
        check(2, 2, 0, 1, "✓ a.yaml: dominds, 2 servers; 1 warning");
        check(3, 1, 2, 1, "✗ a.yaml: dominds, 3 servers, 1 accepted; 2 errors, 1 warning");
        check(0, 0, 1, 0, "✗ a.yaml: dominds, 0 servers; 1 error");
    }

    #[test]
    fn a_file_that_cannot_be_read_has_the_same_shape() {
        let unreadable = Unreadable { path: "a".into(), message: "m".into(), help: None };
        assert_eq!(
            serde_json::to_string(&File::of(&Found { opened: Err(unreadable), fixed: None })).unwrap(),
            concat!(
                r#"{"path":"a","dialect":null,"servers":[],"diagnostics":[{"severity":"error","code":null,"#,
                r#""kind":"ConfigError","message":"m","pointer":"","line":null,"column":null,"help":null}]}"#
            )
        );
    }
}
