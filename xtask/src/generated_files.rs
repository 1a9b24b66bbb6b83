//! Generated files in the repository: JSON Schemas, pages of diagnostics, and the fault matrix.
//!
//! A check writes nothing. Its message names the command that writes.

use std::path::Path;
use std::{fs, io};

use mcp_host_config::{Code, Profile};
use mcp_tests::faults;

use crate::error::{Error, Violation};
use crate::schema_releases::{self, CurrentSchema};
use crate::tree;

/// Whether to write the files or to compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMode {
    Write,
    Check,
}

/// A file of the repository, with the text that it should have.
pub(crate) struct GeneratedFile {
    /// Relative to the root of the workspace.
    pub path: String,
    pub text: String,
}

/// Writes or checks `schemas/<profile>.schema.json`.
pub(crate) fn write_or_check_schemas(mode: OutputMode) -> Result<(), Error> {
    let file = |(name, text)| GeneratedFile { path: format!("schemas/{name}.schema.json"), text };
    let files: Vec<_> = generated_schemas().into_iter().map(file).collect();
    write_or_check(&tree::root(), &files, "cargo xtask schema", mode)
}

/// Checks the files, and compares each schema with its last release. Reports all problems.
pub(crate) fn check_schemas() -> Result<(), Error> {
    match (write_or_check_schemas(OutputMode::Check), check_compatibility()) {
        (Err(one), Err(other)) => Err(Error::message(format!("{one}\n{other}"))),
        (one, other) => one.and(other),
    }
}

/// Compares each schema with its last release.
fn check_compatibility() -> Result<(), Error> {
    let schemas = generated_schemas();
    let current: Vec<_> = schemas.iter().map(|(name, text)| CurrentSchema { name, text }).collect();
    schema_releases::check(&tree::root(), VERSION, &current)
}

/// Stores each schema as the release of this version.
pub(crate) fn store_schema_releases() -> Result<(), Error> {
    let schemas = generated_schemas();
    let current: Vec<_> = schemas.iter().map(|(name, text)| CurrentSchema { name, text }).collect();
    schema_releases::store(&tree::root(), VERSION, &current)
}

/// The version that all crates of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The schema of every profile.
fn generated_schemas() -> Vec<(&'static str, String)> {
    let text = |profile| {
        serde_json::to_string_pretty(&mcp_host_config::schema(profile)).expect("a JSON value serializes")
    };
    Profile::ALL.iter().map(|it| (it.as_str(), text(*it) + "\n")).collect()
}

/// Writes or checks the generated pages of docs/.
pub(crate) fn write_or_check_pages(mode: OutputMode) -> Result<(), Error> {
    write_or_check_diagnostics(mode)?;
    write_or_check_faults(mode)
}

/// Writes or checks `docs/diagnostics.md` and a page for each code.
fn write_or_check_diagnostics(mode: OutputMode) -> Result<(), Error> {
    let codes: Vec<(String, String)> =
        Code::ALL.iter().map(|it| (it.as_str().to_owned(), it.explain().to_owned())).collect();
    write_or_check(&tree::root(), &diagnostic_pages(&codes), "cargo xtask docs", mode)
}

/// Writes or checks `docs/reliability/faults.md`, from the fault table of the tests, and the totals in
/// `docs/reliability.md`, which is otherwise written by hand.
fn write_or_check_faults(mode: OutputMode) -> Result<(), Error> {
    const PAGE: &str = "docs/reliability.md";
    let text = fs::read_to_string(tree::root().join(PAGE))
        .map_err(|error| Error::message(format!("could not read {PAGE}: {error}")))?;
    let totals = faults::totals();
    let table = format!(
        "\n| faults | transports | eras | APIs | tested cells | excluded cells, with a reason | different outcomes | \
         machine faults |\n\
         |---|---|---|---|---|---|---|---|\n| {} | {} | 2 | {} | {} | {} | {} | {} |\n\n",
        totals.faults,
        faults::Transport::ALL.len(),
        faults::Api::ALL.len(),
        totals.cells,
        totals.exclusions,
        totals.outcomes,
        faults::machine().len()
    );
    let (begin, end) = ("<!-- totals of the faults -->\n", "<!-- end of the totals -->\n");
    let text = replace_between(&text, begin, &table, end)
        .ok_or_else(|| Error::message(format!("{PAGE} has no markers for the fault totals")))?;
    let files = [
        GeneratedFile { path: "docs/reliability/faults.md".to_owned(), text: faults::page() },
        GeneratedFile { path: PAGE.to_owned(), text },
    ];
    write_or_check(&tree::root(), &files, "cargo xtask docs", mode)
}

/// Replaces the text between two markers. `None` if the text does not contain them.
pub(crate) fn replace_between(text: &str, begin: &str, part: &str, end: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some([before, begin, part, end, after].concat())
}

/// The list of all codes, and a page for each code.
fn diagnostic_pages(codes: &[(String, String)]) -> Vec<GeneratedFile> {
    let mut list = String::from(
        "# Diagnostics\n\n\
         The meaning of each code, and what to do about it. `mcp-host check` prints the code of each diagnostic.\n\
         `cargo xtask docs` generates this page and the pages of the codes.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    let mut res = Vec::new();
    for (code, explanation) in codes {
        let path = format!("diagnostics/{}.md", code.to_lowercase());
        list += &format!("| [{code}]({path}) | {} |\n", first_sentence(explanation));
        let text = format!("# {code}\n\n{}\n", explanation.trim());
        res.push(GeneratedFile { path: format!("docs/{path}"), text });
    }
    res.insert(0, GeneratedFile { path: "docs/diagnostics.md".to_owned(), text: list });
    res
}

/// The text before the first full stop, colon or semicolon, escaped for a table cell.
fn first_sentence(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = [". ", ": ", "; "].iter().filter_map(|it| paragraph.find(it)).min();
    let sentence = end.map_or(paragraph.as_str(), |it| &paragraph[..it]);
    sentence.trim_end_matches(['.', ':']).replace('|', "\\|")
}

/// Writes the files, or reports those that differ. `command` is the command that writes them.
pub(crate) fn write_or_check(
    root: &Path,
    files: &[GeneratedFile],
    command: &str,
    mode: OutputMode,
) -> Result<(), Error> {
    let mut stale = Vec::new();
    for GeneratedFile { path, text } in files {
        let file = root.join(path);
        match mode {
            OutputMode::Write => {
                let folder = file.parent().expect("each path has a folder");
                let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, text));
                written.map_err(|error| Error::message(format!("could not write {path}: {error}")))?;
            }
            OutputMode::Check => match fs::read_to_string(&file) {
                Ok(found) if found == *text => {}
                Ok(_) => stale.push(Violation::new(path, 0, format!("the file is stale: run `{command}`"))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    stale.push(Violation::new(path, 0, format!("the file is missing: run `{command}`")));
                }
                Err(error) => return Err(Error::message(format!("could not read {path}: {error}"))),
            },
        }
    }
    Error::from_violations(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_up_to_date() {
        if let Err(error) = write_or_check_schemas(OutputMode::Check) {
            panic!("{error}");
        }
    }

    #[test]
    fn pages_are_up_to_date() {
        if let Err(error) = write_or_check_pages(OutputMode::Check) {
            panic!("{error}");
        }
    }

    #[test]
    fn a_check_finds_stale_files_and_writes_nothing() {
        let root = std::env::temp_dir().join(format!("xtask-generated-{}", std::process::id()));
        let files = |text: &str| [GeneratedFile { path: "docs/page.md".into(), text: text.into() }];
        let check =
            |text: &str| write_or_check(&root, &files(text), "cargo xtask docs", OutputMode::Check).err();
        let message = |text: &str| check(text).map(|error| error.to_string());

        assert_eq!(
            message("a").as_deref(),
            Some("docs/page.md: the file is missing: run `cargo xtask docs`\n1 found")
        );
        assert!(!root.exists(), "a check writes nothing");
        write_or_check(&root, &files("a"), "cargo xtask docs", OutputMode::Write).unwrap();
        assert_eq!(message("a"), None);
        assert_eq!(
            message("b").as_deref(),
            Some("docs/page.md: the file is stale: run `cargo xtask docs`\n1 found")
        );
        assert_eq!(fs::read_to_string(root.join("docs/page.md")).unwrap(), "a");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn text_is_replaced_between_its_markers() {
        let replace = |text: &str| replace_between(text, "<begin>\n", "new\n", "<end>\n");
        let once = replace("a\n<begin>\nold\n<end>\nb\n").unwrap();
        assert_eq!(once, "a\n<begin>\nnew\n<end>\nb\n");
        assert_eq!(replace(&once).unwrap(), once);
        assert_eq!(replace("a\n<begin>\n"), None);
    }

    #[test]
    fn each_code_has_a_page_and_a_row_in_the_list() {
        let pages = diagnostic_pages(&[
            ("MCP0001".into(), "One: it | is.\n".into()),
            ("MCP0002".into(), "Two\nlines. More.".into()),
        ]);
        let paths: Vec<&str> = pages.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            paths,
            ["docs/diagnostics.md", "docs/diagnostics/mcp0001.md", "docs/diagnostics/mcp0002.md"]
        );
        let list = &pages[0].text;
        assert!(list.contains("| [MCP0001](diagnostics/mcp0001.md) | One |\n"), "{list}");
        assert!(list.contains("| [MCP0002](diagnostics/mcp0002.md) | Two lines |\n"), "{list}");
        assert_eq!(pages[1].text, "# MCP0001\n\nOne: it | is.\n");
    }
}
