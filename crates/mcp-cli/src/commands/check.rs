//! `check`: everything that is wrong with files, and nothing else. No server is started.

use std::path::PathBuf;

use mcp_config::{Colour, Diagnostic, Entry};
use mcp_host::Loaded;
use mcp_model::{Dialect, Kind, Severity, TransportKind};
use serde::{Serialize, Serializer};

use crate::args::Format;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::console::Report;
use crate::output::{json, paint};
use crate::source::{Source, Unreadable, open};

/// Reads the files, one after the other. Blocks.
pub(crate) fn run(context: &Context, files: &[PathBuf]) -> Report {
    let opened: Vec<_> = files.iter().map(|it| open(it, context)).collect();
    let exit = exit(&opened);
    let colour = context.console.err;
    let err = opened.iter().flatten().map(|it| it.taken(colour)).collect();
    let out = match context.format {
        Format::Json => json::document(&Document { files: opened.iter().map(File::of).collect() }),
        Format::Text => opened.iter().map(|it| text(it, context.console.out)).collect::<Vec<_>>().join("\n"),
    };
    Report { out, err, exit }
}

type Opened = Result<Source, Unreadable>;

fn exit(opened: &[Opened]) -> Exit {
    let is_sound = |it: &Opened| match it {
        Ok(Source { loaded, .. }) => !loaded.refused && !has_errors(&loaded.diagnostics),
        Err(Unreadable { .. }) => false,
    };
    if opened.iter().all(is_sound) { Exit::Done } else { Exit::Wrong }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|it| it.severity == Severity::Error)
}

fn text(opened: &Opened, colour: Colour) -> String {
    match opened {
        Ok(source) => {
            format!("{}{}\n", source.complaints(colour), summary(&Counts::of(source), colour))
        }
        Err(Unreadable { path: _, message, help }) => {
            let message = format!("{}: {message}", Kind::Config);
            paint::error(colour, &message, help.as_deref())
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
        }
    }
}

/// One line about a file: `✗ agent.yaml: holodeck, 3 servers, 2 accepted; 1 error, 2 warnings`.
fn summary(counts: &Counts<'_>, colour: Colour) -> String {
    let Counts { path, dialect, servers, accepted, errors, warnings } = *counts;
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
            kind: Kind,
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
                kind: Kind::Config,
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
    fn of(opened: &'a Opened) -> File<'a> {
        match opened {
            Ok(source) => {
                let Loaded { path, profile, reading, diagnostics, .. } = &source.loaded;
                let server = |entry: &'a Entry| Server {
                    name: &entry.name,
                    transport: entry.transport,
                    accepted: source.accepts(entry),
                };
                File {
                    path,
                    dialect: Some(profile.dialect()),
                    servers: reading.entries.iter().map(server).collect(),
                    diagnostics: diagnostics.iter().map(Finding::Placed).collect(),
                }
            }
            Err(unreadable) => File {
                path: &unreadable.path,
                dialect: None,
                servers: Vec::new(),
                diagnostics: vec![Finding::Unreadable(unreadable)],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(servers: usize, accepted: usize, errors: usize, warnings: usize, want: &str) {
        let counts =
            Counts { path: "a.yaml", dialect: Dialect::Dominds, servers, accepted, errors, warnings };
        assert_eq!(summary(&counts, Colour::Never), want);
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
            serde_json::to_string(&File::of(&Err(unreadable))).unwrap(),
            concat!(
                r#"{"path":"a","dialect":null,"servers":[],"diagnostics":[{"severity":"error","code":null,"#,
                r#""kind":"ConfigError","message":"m","pointer":"","line":null,"column":null,"help":null}]}"#
            )
        );
    }
}
