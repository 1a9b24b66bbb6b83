//! `check`: reports all mistakes in configuration files and fixes them on request. No server is started.

use std::path::PathBuf;

use mcp_host_config::{
    Applicability, CheckOutcome, CheckedFile, Code, Colour, Diagnostic, FixedFile, SarifTool, ServerEntry,
    fix_all, render_diff, render_github, render_sarif,
};
use mcp_host_model::{Dialect, ErrorKind, Severity, TransportKind};
use mcp_host_runtime::{LoadedConfig, save};
use serde::Serialize;

use crate::args::{CheckArgs, FixLevel, RequestedFormat};
use crate::commands::files::move_secrets::{MovedSecret, MovedSecrets, literal_secrets, move_secrets};
use crate::commands::files::pin_packages::{PinnedPackage, PinnedPackages, pin_packages, unpinned_packages};
use crate::commands::files::secret::place_text;
use crate::config::approval::{approve_written, keeps_approval};
use crate::config::context::Context;
use crate::config::file::{ConfigFile, open};
use crate::config::file_error::ConfigFileError;
use crate::config::user_secrets::open_secret_store;
use crate::output::console::{Report, Verbosity};
use crate::output::{count, error_chain, json, sanitize, style};
use crate::render::suggestions::SuggestedFile;
use crate::runtime::exit::Exit;

/// Checks the files in order. Blocks.
pub(crate) fn run(context: &Context, args: &CheckArgs, format: RequestedFormat) -> Report {
    let CheckArgs { files, fix } = args;
    // Check the files one after the other, because one file may be named twice, for example by its folder.
    let check = |path: &PathBuf| {
        let checked = FileCheck { opened: open(path, context), fixed: None };
        match fix {
            Some(FixLevel::Mistakes(min_applicability)) => apply_fixes(checked, *min_applicability, context),
            Some(FixLevel::Secrets) => apply_secrets(checked, context),
            Some(FixLevel::Packages) => apply_pins(checked, context),
            None => checked,
        }
    };
    let nearest = [PathBuf::new()];
    let opened: Vec<_> = if files.is_empty() { &nearest[..] } else { files }.iter().map(check).collect();
    let exit = exit_code(&opened);
    let read = opened.iter().filter_map(|checked| checked.opened.as_ref().ok());
    let mut err: String = read.map(ConfigFile::detection_notes).collect();
    if format == RequestedFormat::Text && context.console.verbosity != Verbosity::Quiet {
        for checked in &opened {
            err.push_str(&secrets_note(checked, context));
            err.push_str(&packages_note(checked, context));
        }
    }
    let checked: Vec<CheckedFile<'_>> = opened.iter().map(FileCheck::to_checked_file).collect();
    let after = match (exit, opened.first().map(|it| &it.opened), format) {
        (Exit::Success, Some(Ok(file)), RequestedFormat::Text) if !file.loaded.desired.servers.is_empty() => {
            let file = SuggestedFile::read(file);
            let tools = format!("`{}` starts the servers and lists their tools", file.command("tools"));
            context.console.suggestion(&file.suggest_start(tools))
        }
        (_, _, _) => String::new(),
    };
    let out = match format {
        RequestedFormat::Json => {
            json::document(&CheckJson { files: opened.iter().map(FileJson::new).collect() })
        }
        RequestedFormat::Text => opened
            .iter()
            .map(|checked| file_text(checked, context.console.out_colour))
            .collect::<Vec<_>>()
            .join("\n"),
        RequestedFormat::Sarif => {
            let program = SarifTool::new("mcp-host", env!("CARGO_PKG_VERSION"));
            json::document(&render_sarif(&program, &checked))
        }
        RequestedFormat::Github => render_github(&checked),
    };
    Report { out, err, exit, after }
}

/// One file after the check.
struct FileCheck {
    opened: Result<ConfigFile, ConfigFileError>,
    fixed: Option<AppliedFixes>,
}

/// The fixes of a file.
struct AppliedFixes {
    /// The text before the fixes.
    before: String,
    /// The diagnostics that were fixed.
    diagnostics: Vec<Diagnostic>,
    /// The secrets that were moved.
    secrets: MovedSecrets,
    /// The packages that were pinned.
    packages: PinnedPackages,
}

impl FileCheck {
    /// The file with its text and diagnostics, for a renderer.
    fn to_checked_file(&self) -> CheckedFile<'_> {
        match &self.opened {
            Ok(ConfigFile { loaded, .. }) => {
                let LoadedConfig { path, text, diagnostics, .. } = loaded;
                CheckedFile::new(path, CheckOutcome::Read { text, diagnostics })
            }
            Err(ConfigFileError { path, message, help }) => {
                CheckedFile::new(path, CheckOutcome::Unreadable { message, help: help.as_deref() })
            }
        }
    }
}

/// Writes the fixes that are at least as certain as `min_applicability`, and reads the file again.
fn apply_fixes(checked: FileCheck, min_applicability: Applicability, context: &Context) -> FileCheck {
    let Ok(file) = &checked.opened else { return checked };
    let FixedFile { text, fixed, .. } = fix_all(&file.document(), min_applicability);
    if fixed.is_empty() {
        return checked;
    }
    let before = file.loaded.text.clone();
    let opened = match save(&file.path, &before, &text) {
        Ok(()) => open(&file.path, context),
        Err(error) => {
            let path = file.loaded.path.clone();
            return FileCheck {
                opened: Err(ConfigFileError { path, message: error_chain(&error), help: None }),
                fixed: None,
            };
        }
    };
    let (secrets, packages) = (MovedSecrets::default(), PinnedPackages::default());
    FileCheck { opened, fixed: Some(AppliedFixes { before, diagnostics: fixed, secrets, packages }) }
}

/// Moves the secrets of a file to the store of secrets, and reads the file again. The change keeps an approval.
fn apply_secrets(checked: FileCheck, context: &Context) -> FileCheck {
    let Ok(file) = &checked.opened else { return checked };
    if literal_secrets(&file.loaded.reading).is_empty() {
        return checked;
    }
    let failed = |message: String, help| FileCheck {
        opened: Err(ConfigFileError { path: file.loaded.path.clone(), message, help }),
        fixed: None,
    };
    let store = match open_secret_store() {
        Ok(store) => store,
        Err(error) => return failed(error.to_string(), Some(error.help())),
    };
    let secrets = match move_secrets(&file.document(), &store) {
        Ok(secrets) => secrets,
        Err(message) => return failed(message, None),
    };
    if let Err(message) = save_approved(file, &secrets.text, context) {
        return failed(message, None);
    }
    let (before, packages) = (file.loaded.text.clone(), PinnedPackages::default());
    let opened = open(&file.path, context);
    FileCheck { opened, fixed: Some(AppliedFixes { before, diagnostics: Vec::new(), secrets, packages }) }
}

/// Pins the packages of a file, and reads the file again. The change keeps an approval.
fn apply_pins(checked: FileCheck, context: &Context) -> FileCheck {
    let Ok(file) = &checked.opened else { return checked };
    let packages = pin_packages(&file.document());
    if let Err(message) = save_approved(file, &packages.text, context) {
        let path = file.loaded.path.clone();
        return FileCheck { opened: Err(ConfigFileError { path, message, help: None }), fixed: None };
    }
    let (before, secrets) = (file.loaded.text.clone(), MovedSecrets::default());
    let opened = open(&file.path, context);
    FileCheck { opened, fixed: Some(AppliedFixes { before, diagnostics: Vec::new(), secrets, packages }) }
}

/// Writes the new text of a file. Servers that were approved stay so. The error is a message.
fn save_approved(file: &ConfigFile, text: &str, context: &Context) -> Result<(), String> {
    let before = &file.loaded.text;
    if text == before {
        return Ok(());
    }
    let servers = file.loaded.reading.servers.iter().map(|it| it.id.as_str());
    let approved: Vec<&str> = servers.filter(|it| keeps_approval(&file.loaded, it)).collect();
    save(&file.path, before, text).map_err(|error| error_chain(&error))?;
    approved.iter().for_each(|it| approve_written(context, &file.path, it));
    Ok(())
}

/// A note about values of a file that may be secrets.
fn secrets_note(checked: &FileCheck, context: &Context) -> String {
    let (Ok(file), None) = (&checked.opened, &checked.fixed) else { return String::new() };
    let fields = literal_secrets(&file.loaded.reading);
    let Some(first) = fields.first() else { return String::new() };
    let more = if fields.len() > 1 { format!(" and {} more", fields.len() - 1) } else { String::new() };
    let command = SuggestedFile::read(file).command("check --fix=secrets");
    context
        .console
        .note(&format!("{first}{more} may be a secret in the file; `{command}` moves it to the keyring"))
}

/// A note about packages of a file of which each start may load another version.
fn packages_note(checked: &FileCheck, context: &Context) -> String {
    let (Ok(file), None) = (&checked.opened, &checked.fixed) else { return String::new() };
    let packages = unpinned_packages(&file.loaded.reading);
    let Some((server, package)) = packages.first() else { return String::new() };
    let more = if packages.len() > 1 { format!(" and {} more", packages.len() - 1) } else { String::new() };
    let command = SuggestedFile::read(file).command("check --fix=pin");
    let text = format!(
        "{}: each start may load another version of {}{more}; `{command}` writes the newest one into the file",
        server.id, package.requirement
    );
    context.console.note(&sanitize::line(&text))
}

/// The exit code: a failure if a file cannot be read or has an error.
fn exit_code(opened: &[FileCheck]) -> Exit {
    let is_valid = |checked: &FileCheck| match &checked.opened {
        Ok(ConfigFile { loaded, .. }) => !loaded.refused && !has_errors(&loaded.diagnostics),
        Err(ConfigFileError { .. }) => false,
    };
    if opened.iter().all(is_valid) { Exit::Success } else { Exit::Failure }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|it| it.severity == Severity::Error)
}

/// The diagnostics and the summary line of a file, after the diff of its fixes.
fn file_text(checked: &FileCheck, colour: Colour) -> String {
    match &checked.opened {
        Ok(file) => {
            let mut diff = String::new();
            let mut summary = FileSummary::new(file);
            if let Some(AppliedFixes { before, diagnostics, secrets, packages }) = &checked.fixed {
                diff = render_diff(&file.loaded.path, before, &file.loaded.text, colour) + "\n";
                summary.fixed = diagnostics.len() + secrets.moved.len() + packages.pinned.len();
                if let Some(place) = &secrets.place {
                    let moved = count(secrets.moved.len(), "secret");
                    diff.push_str(&format!("{moved} moved; stored {}\n", place_text(place)));
                }
                let skipped = secrets.skipped.iter().map(|it| format!("not moved: {}\n", sanitize::line(it)));
                diff.extend(skipped);
                let skipped =
                    packages.skipped.iter().map(|it| format!("not pinned: {}\n", sanitize::line(it)));
                diff.extend(skipped);
            }
            diff + &file.diagnostics_text(colour) + &summary_line(&summary, colour) + "\n"
        }
        Err(ConfigFileError { path: _, message, help }) => {
            let message = format!("{}: {message}", ErrorKind::Config);
            style::error(colour, &sanitize::line(&message), help.as_deref())
        }
    }
}

/// The numbers in the summary line of a file.
#[derive(Debug, Clone, Copy)]
struct FileSummary<'a> {
    path: &'a str,
    dialect: Dialect,
    servers: usize,
    accepted: usize,
    disabled: usize,
    errors: usize,
    warnings: usize,
    fixed: usize,
}

impl FileSummary<'_> {
    fn new(file: &ConfigFile) -> FileSummary<'_> {
        let loaded = &file.loaded;
        let count = |severity| loaded.diagnostics.iter().filter(|it| it.severity == severity).count();
        FileSummary {
            path: &loaded.path,
            dialect: loaded.profile.dialect(),
            servers: loaded.reading.entries.len(),
            accepted: loaded.reading.entries.iter().filter(|it| file.accepts(it)).count(),
            disabled: loaded.reading.entries.iter().filter(|it| it.disabled).count(),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            fixed: 0,
        }
    }
}

/// The summary line of a file: `✗ agent.yaml: holodeck, 3 servers, 2 accepted, 1 disabled; 1 error, 2 warnings`.
fn summary_line(summary: &FileSummary<'_>, colour: Colour) -> String {
    let FileSummary { path, dialect, servers, accepted, disabled, errors, warnings, fixed } = *summary;
    // The file name is untrusted, like the content.
    let path = sanitize::line(path);
    let is_valid = errors == 0 && servers == accepted;
    let (style, mark) = if is_valid { (style::SUCCESS, "✓") } else { (style::FAILURE, "✗") };
    let mut line = format!(
        "{} {path}: {}, {}",
        style::paint(colour, style, mark),
        dialect.as_str(),
        count(servers, "server")
    );
    if accepted != servers {
        line.push_str(&format!(", {accepted} accepted"));
    }
    if disabled > 0 {
        line.push_str(&format!(", {disabled} disabled"));
    }
    let findings: Vec<String> = [(errors, "error"), (warnings, "warning")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| count(number, noun))
        .collect();
    if !findings.is_empty() {
        line.push_str(&format!("; {}", findings.join(", ")));
    }
    if fixed > 0 {
        line.push_str(&format!("; {fixed} fixed"));
    }
    line
}

/// The JSON document of `check`.
#[derive(Serialize)]
struct CheckJson<'a> {
    files: Vec<FileJson<'a>>,
}

/// One file in the JSON document.
#[derive(Serialize)]
struct FileJson<'a> {
    path: &'a str,
    dialect: Option<Dialect>,
    /// The rules that the file was read by.
    profile: Option<&'static str>,
    servers: Vec<CheckedServerJson<'a>>,
    diagnostics: Vec<DiagnosticJson<'a>>,
    /// Only with `--fix`, and only if something was fixed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<FixJson<'a>>,
    /// Only with `--fix=secrets`, and only if something was moved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    moved: Vec<&'a MovedSecret>,
    /// Only with `--fix=pin`, and only if something was pinned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pinned: Vec<&'a PinnedPackage>,
}

/// A fixed mistake, with its line in the file before the fixes.
#[derive(Serialize)]
struct FixJson<'a> {
    code: Code,
    pointer: &'a str,
    line: usize,
    fix: &'a str,
}

/// One server entry in the JSON document.
#[derive(Serialize)]
struct CheckedServerJson<'a> {
    name: &'a str,
    transport: Option<TransportKind>,
    accepted: bool,
    /// Accepted, but not started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
}

/// A diagnostic, or the error of a file that could not be read, with the same members.
#[derive(Serialize)]
#[serde(untagged)]
enum DiagnosticJson<'a> {
    InText(&'a Diagnostic),
    Unreadable {
        severity: Severity,
        code: Option<Code>,
        kind: ErrorKind,
        message: &'a str,
        pointer: &'a str,
        line: Option<usize>,
        column: Option<usize>,
        help: Option<&'a str>,
    },
}

impl DiagnosticJson<'_> {
    fn unreadable(error: &ConfigFileError) -> DiagnosticJson<'_> {
        DiagnosticJson::Unreadable {
            severity: Severity::Error,
            code: None,
            kind: ErrorKind::Config,
            message: &error.message,
            pointer: "",
            line: None,
            column: None,
            help: error.help.as_deref(),
        }
    }
}

impl<'a> FileJson<'a> {
    fn new(checked: &'a FileCheck) -> FileJson<'a> {
        let fixed = checked.fixed.iter().flat_map(|file| &file.diagnostics).filter_map(|diagnostic| {
            let Diagnostic { code, pointer, line, fix, .. } = diagnostic;
            Some(FixJson { code: *code, pointer, line: *line, fix: fix.as_ref()?.title() })
        });
        match &checked.opened {
            Ok(file) => {
                let LoadedConfig { path, profile, reading, diagnostics, .. } = &file.loaded;
                let server = |entry: &'a ServerEntry| CheckedServerJson {
                    name: &entry.name,
                    transport: entry.transport,
                    accepted: file.accepts(entry),
                    disabled: entry.disabled,
                };
                FileJson {
                    path,
                    dialect: Some(profile.dialect()),
                    profile: Some(profile.as_str()),
                    servers: reading.entries.iter().map(server).collect(),
                    diagnostics: diagnostics.iter().map(DiagnosticJson::InText).collect(),
                    fixed: fixed.collect(),
                    moved: checked.fixed.iter().flat_map(|it| &it.secrets.moved).collect(),
                    pinned: checked.fixed.iter().flat_map(|it| &it.packages.pinned).collect(),
                }
            }
            Err(error) => FileJson {
                path: &error.path,
                dialect: None,
                profile: None,
                servers: Vec::new(),
                diagnostics: vec![DiagnosticJson::unreadable(error)],
                fixed: Vec::new(),
                moved: Vec::new(),
                pinned: Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(servers: usize, accepted: usize, errors: usize, warnings: usize, want: &str) {
        let summary = FileSummary {
            path: "a.yaml",
            dialect: Dialect::Dominds,
            servers,
            accepted,
            disabled: 0,
            errors,
            warnings,
            fixed: 0,
        };
        assert_eq!(summary_line(&summary, Colour::Never), want);
        let fixed = FileSummary { fixed: 2, ..summary };
        assert_eq!(summary_line(&fixed, Colour::Never), format!("{want}; 2 fixed"));
        let disabled = FileSummary { disabled: 1, ..summary };
        let (servers, findings) =
            want.split_once("; ").map_or((want, String::new()), |it| (it.0, format!("; {}", it.1)));
        assert_eq!(summary_line(&disabled, Colour::Never), format!("{servers}, 1 disabled{findings}"));
    }

    #[test]
    fn summary_counts_servers_and_diagnostics() {
        check(1, 1, 0, 0, "✓ a.yaml: dominds, 1 server");
        check(0, 0, 0, 0, "✓ a.yaml: dominds, 0 servers");
        check(2, 2, 0, 1, "✓ a.yaml: dominds, 2 servers; 1 warning");
        check(3, 1, 2, 1, "✗ a.yaml: dominds, 3 servers, 1 accepted; 2 errors, 1 warning");
        check(0, 0, 1, 0, "✗ a.yaml: dominds, 0 servers; 1 error");
    }

    #[test]
    fn unreadable_file_has_the_same_json_shape() {
        let error = ConfigFileError { path: "a".into(), message: "m".into(), help: None };
        assert_eq!(
            serde_json::to_string(&FileJson::new(&FileCheck { opened: Err(error), fixed: None })).unwrap(),
            concat!(
                r#"{"path":"a","dialect":null,"profile":null,"servers":[],"diagnostics":[{"severity":"error","code":null,"#,
                r#""kind":"ConfigError","message":"m","pointer":"","line":null,"column":null,"help":null}]}"#
            )
        );
    }
}
