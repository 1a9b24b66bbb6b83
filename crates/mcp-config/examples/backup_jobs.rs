//! Reads a configuration that has nothing to do with MCP: `cargo run -p mcp-host-config --example backup_jobs`.
//!
//! The jobs of a backup program, in YAML, JSON and TOML. Each text has the same five mistakes; one run
//! reports all of them, and the certain ones are fixed.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use mcp_host_config::reader::{Configuration, Format, Optional, Reporter, Required, fix_all, read};
use mcp_host_config::{Applicability, Diagnostic};
use serde::Deserialize;

#[derive(Deserialize)]
struct Backups {
    jobs: Required<Vec<Required<Job>>>,
}

#[derive(Deserialize)]
struct Job {
    name: Required<String>,
    folder: Required<String>,
    schedule: Optional<Schedule>,
    keep: Optional<i64>,
    compress: Optional<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Schedule {
    Hourly,
    Daily,
    Weekly,
}

impl Schedule {
    /// The maximum number of backups to keep.
    fn max_backups(&self) -> i64 {
        match self {
            Schedule::Hourly => 24 * 7,
            Schedule::Daily => 365,
            Schedule::Weekly => 520,
        }
    }
}

/// The rule that the types cannot express.
fn check(backups: &Backups, report: &Reporter<'_>) {
    for job in backups.jobs.value().into_iter().flatten().filter_map(Required::value) {
        let max_backups = job.schedule.value().map_or(365, Schedule::max_backups);
        if job.keep.value().is_some_and(|keep| !(1..=max_backups).contains(keep)) {
            report.error(
                &job.keep,
                format!("'keep' must be from 1 to {max_backups}"),
                "write how many backups are kept",
            );
        }
    }
}

pub(crate) const TEXTS: [(&str, Format, &str); 3] = [
    (
        "backups.yaml",
        Format::Yaml,
        "jobs:\n  - name: home\n    folder: /home\n    schedul: daily\n    compress: \"yes\"\n  \
         - name: 7\n    keep: 0\n",
    ),
    (
        "backups.json",
        Format::Json,
        "{\n  \"jobs\": [\n    {\"name\": \"home\", \"folder\": \"/home\", \"schedul\": \"daily\", \"compress\": \
         \"yes\"},\n    {\"name\": 7, \"keep\": 0}\n  ]\n}\n",
    ),
    (
        "backups.toml",
        Format::Toml,
        "[[jobs]]\nname = \"home\"\nfolder = \"/home\"\nschedul = \"daily\"\ncompress = \"yes\"\n\n\
         [[jobs]]\nname = 7\nkeep = 0\n",
    ),
];

/// The mistakes of a text, as `LINE:COLUMN MESSAGE (HELP)`.
pub(crate) fn list_mistakes(text: &str, format: Format) -> Vec<String> {
    let document: Configuration<Backups> = read(text, format, check);
    let line = |it: &Diagnostic| {
        format!("{}:{} {} ({})", it.line, it.column, it.message, it.help.as_deref().unwrap_or_default())
    };
    document.diagnostics.iter().map(line).collect()
}

/// The text with the fixes that are certain.
pub(crate) fn fix_certain_mistakes(text: &str, format: Format) -> String {
    fix_all(text, format, check, Applicability::Certain).text
}

/// What the program would run.
pub(crate) fn describe_jobs(text: &str, format: Format) -> Vec<String> {
    let document: Configuration<Backups> = read(text, format, check);
    let Some(backups) = document.value else { return Vec::new() };
    let jobs = backups.jobs.value().into_iter().flatten().filter_map(Required::value);
    jobs.filter_map(|job| {
        let compress = job.compress.value().copied().unwrap_or_default();
        Some(format!("{} {} compress={compress}", job.name.value()?, job.folder.value()?))
    })
    .collect()
}

fn main() {
    for (name, format, text) in TEXTS {
        for mistake in list_mistakes(text, format) {
            println!("{name}:{mistake}");
        }
        println!(
            "{name} with its fixes:\n{}\n{:?}\n",
            fix_certain_mistakes(text, format),
            describe_jobs(&fix_certain_mistakes(text, format), format)
        );
    }
}
