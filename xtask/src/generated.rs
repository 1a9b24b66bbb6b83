//! Files that are made from the code and committed: the JSON Schemas, the pages of diagnostics, the fault matrix.
//!
//! A check never writes. Where it fails it names the command that does.

use std::path::Path;
use std::{fs, io};

use mcp_config::{Code, Profile};
use mcp_tests::faults;

use crate::evolution::{self, Current};
use crate::failure::{Failure, Trespass};
use crate::tree;

/// Write the files, or only say whether they are what would be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
}

/// One file that is made.
struct Made {
    path: String,
    text: String,
}

/// The profiles with a schema of their own: the current one of each dialect, and both of ACP.
const PROFILES: [Profile; 5] =
    [Profile::HoloDeck, Profile::Dominds, Profile::AcpV1, Profile::AcpV2, Profile::McpJson];

/// `schemas/<profile>.schema.json`, from the types that read it.
pub(crate) fn schemas(mode: Mode) -> Result<(), Failure> {
    let made =
        generated_schemas().map(|(name, text)| Made { path: format!("schemas/{name}.schema.json"), text });
    settle(&tree::root(), &made, "cargo xtask schema", mode)
}

/// Holds each schema against its last release.
pub(crate) fn evolution() -> Result<(), Failure> {
    let schemas = generated_schemas();
    let current = schemas.each_ref().map(|(name, text)| Current { name, text });
    evolution::check(&tree::root(), VERSION, &current)
}

/// Freezes each schema as the release of this version.
pub(crate) fn release() -> Result<(), Failure> {
    let schemas = generated_schemas();
    let current = schemas.each_ref().map(|(name, text)| Current { name, text });
    evolution::release(&tree::root(), VERSION, &current)
}

/// The version that all crates of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn generated_schemas() -> [(&'static str, String); 5] {
    PROFILES.map(|profile| {
        let text =
            serde_json::to_string_pretty(&mcp_config::schema(profile)).expect("a value is always JSON");
        (profile.as_str(), text + "\n")
    })
}

/// Every page of docs/ that is made from the code.
pub(crate) fn pages(mode: Mode) -> Result<(), Failure> {
    diagnostics(mode)?;
    fault_matrix(mode)
}

/// `docs/diagnostics.md` and a page for each code, from the explanations of the codes.
fn diagnostics(mode: Mode) -> Result<(), Failure> {
    let codes: Vec<(String, String)> =
        Code::ALL.iter().map(|it| (it.as_str().to_owned(), it.explain().to_owned())).collect();
    settle(&tree::root(), &pages_of(&codes), "cargo xtask docs", mode)
}

/// `docs/reliability/faults.md` from the table of the tests, and its totals in `docs/reliability.md`, which is written by
/// hand around them.
fn fault_matrix(mode: Mode) -> Result<(), Failure> {
    const PAGE: &str = "docs/reliability.md";
    let text = fs::read_to_string(tree::root().join(PAGE))
        .map_err(|error| Failure::words(format!("could not read {PAGE}: {error}")))?;
    let totals = faults::totals();
    let table = format!(
        "\n| faults | wires | eras | faces | cells proven | cells that are none, with a reason | different outcomes | rows of the machine |\n\
         |---|---|---|---|---|---|---|---|\n| {} | {} | 2 | {} | {} | {} | {} | {} |\n\n",
        totals.faults,
        faults::Wire::ALL.len(),
        faults::Face::ALL.len(),
        totals.cells,
        totals.absent,
        totals.outcomes,
        faults::machine().len()
    );
    let text = between(&text, &table)
        .ok_or_else(|| Failure::words(format!("{PAGE} has no place for the totals of the faults")))?;
    let made = [
        Made { path: "docs/reliability/faults.md".to_owned(), text: faults::page() },
        Made { path: PAGE.to_owned(), text },
    ];
    settle(&tree::root(), &made, "cargo xtask docs", mode)
}

/// The text with this between its two marks.
fn between(text: &str, part: &str) -> Option<String> {
    const MARKS: [&str; 2] = ["<!-- totals of the faults -->\n", "<!-- end of the totals -->\n"];
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some([before, MARKS[0], part, MARKS[1], after].concat())
}

/// A list of all codes, and a page for each, so that whoever looks a code up finds it by its name.
fn pages_of(codes: &[(String, String)]) -> Vec<Made> {
    let mut list = String::from(
        "# Diagnostics\n\n\
         What each code means, and what to do about it. `mcp-host check` prints the code with every mistake it\n\
         finds. This page and those it names are made from the code by `cargo xtask docs`.\n\n\
         | code | means |\n|---|---|\n",
    );
    let mut res = Vec::new();
    for (code, explanation) in codes {
        let path = format!("diagnostics/{}.md", code.to_lowercase());
        list += &format!("| [{code}]({path}) | {} |\n", first_sentence(explanation));
        let text = format!("# {code}\n\n{}\n", explanation.trim());
        res.push(Made { path: format!("docs/{path}"), text });
    }
    res.insert(0, Made { path: "docs/diagnostics.md".to_owned(), text: list });
    res
}

/// What stands before the first full stop or colon that ends something, fit for a cell of a table.
fn first_sentence(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = [". ", ": ", "; "].iter().filter_map(|it| paragraph.find(it)).min();
    let sentence = end.map_or(paragraph.as_str(), |it| &paragraph[..it]);
    sentence.trim_end_matches(['.', ':']).replace('|', "\\|")
}

fn settle(root: &Path, made: &[Made], command: &str, mode: Mode) -> Result<(), Failure> {
    let mut stale = Vec::new();
    for Made { path, text } in made {
        let file = root.join(path);
        match mode {
            Mode::Write => {
                let folder = file.parent().expect("each path has a folder");
                let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, text));
                written.map_err(|error| Failure::words(format!("could not write {path}: {error}")))?;
            }
            Mode::Check => match fs::read_to_string(&file) {
                Ok(found) if found == *text => {}
                Ok(_) => stale.push(Trespass::new(path, 0, format!("it is stale: run `{command}`"))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    stale.push(Trespass::new(path, 0, format!("it is missing: run `{command}`")));
                }
                Err(error) => return Err(Failure::words(format!("could not read {path}: {error}"))),
            },
        }
    }
    Failure::of(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_are_fresh() {
        if let Err(failure) = schemas(Mode::Check) {
            panic!("{failure}");
        }
    }

    #[test]
    fn the_pages_are_fresh() {
        if let Err(failure) = pages(Mode::Check) {
            panic!("{failure}");
        }
    }

    #[test]
    fn a_check_finds_what_is_stale_and_never_writes() {
        let root = std::env::temp_dir().join(format!("xtask-generated-{}", std::process::id()));
        let made = |text: &str| [Made { path: "docs/page.md".into(), text: text.into() }];
        let check = |text: &str| settle(&root, &made(text), "cargo xtask docs", Mode::Check).err();
        let said = |text: &str| check(text).map(|it| it.to_string());

        assert_eq!(
            said("a").as_deref(),
            Some("docs/page.md: it is missing: run `cargo xtask docs`\n1 found")
        );
        assert!(!root.exists(), "a check never writes");
        settle(&root, &made("a"), "cargo xtask docs", Mode::Write).unwrap();
        assert_eq!(said("a"), None);
        assert_eq!(said("b").as_deref(), Some("docs/page.md: it is stale: run `cargo xtask docs`\n1 found"));
        assert_eq!(fs::read_to_string(root.join("docs/page.md")).unwrap(), "a");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_is_made_stands_between_its_marks() {
        let text = "a\n<!-- totals of the faults -->\nold\n<!-- end of the totals -->\nb\n";
        let want = "a\n<!-- totals of the faults -->\nnew\n<!-- end of the totals -->\nb\n";
        assert_eq!(between(text, "new\n").as_deref(), Some(want));
        assert_eq!(between("a\n", "new\n"), None);
    }

    #[test]
    fn each_code_has_a_page_and_a_line_in_the_list() {
        let pages = pages_of(&[
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
