//! The `[dependencies]` of library pages: whether a program of the page can be built with them.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::gates::library::Library;

/// The violations of a page: dependencies that do not exist, and libraries that its programs use without a dependency.
pub(crate) fn check(page: &str, libraries: &[Library]) -> Vec<String> {
    let mut res = Vec::new();
    let mut dependencies = Table::new();
    for block in fenced_blocks(page, "toml") {
        match block.parse::<Table>() {
            Ok(manifest) => {
                let table = manifest.get("dependencies").and_then(Value::as_table).cloned();
                dependencies.extend(table.unwrap_or_default());
            }
            Err(error) => res.push(format!("a TOML block is invalid: {error}")),
        }
    }
    let packages: BTreeMap<&str, &Library> = libraries.iter().map(|it| (it.package.as_str(), it)).collect();
    for (name, value) in &dependencies {
        let Some(library) = packages.get(name.as_str()) else {
            if name.starts_with("mcp-") {
                res.push(format!("`{name}` is not a published library"));
            }
            continue;
        };
        let version = value.as_str().or_else(|| value.get("version")?.as_str());
        if version != Some(&*library.version) {
            res.push(format!("the version of `{name}` is not `{}`", library.version));
        }
        let features = value.get("features").and_then(Value::as_array).into_iter().flatten();
        let unknown = features
            .filter_map(Value::as_str)
            .filter(|feature| !library.features.iter().any(|it| it == feature));
        res.extend(unknown.map(|feature| format!("`{name}` has no feature `{feature}`")));
    }
    let used: BTreeSet<&str> = fenced_blocks(page, "rust").flat_map(used_libraries).collect();
    let missing =
        libraries.iter().filter(|it| used.contains(&*it.name) && !dependencies.contains_key(&it.package));
    res.extend(missing.map(|it| format!("a program uses `{}`; no dependency has `{}`", it.name, it.package)));
    res
}

/// The names before the first `::` of each import and path at the beginning of a word.
fn used_libraries(program: &str) -> impl Iterator<Item = &str> {
    program
        .split("::")
        .filter_map(|before| before.rsplit(|it: char| !it.is_alphanumeric() && it != '_').next())
}

/// The contents of the fenced blocks in a language.
fn fenced_blocks<'a>(page: &'a str, language: &'a str) -> impl Iterator<Item = &'a str> {
    let fences = page.split("\n```").skip(1).step_by(2);
    fences.filter_map(move |block| {
        let (info, content) = block.split_once('\n')?;
        (info.split(',').next() == Some(language)).then_some(content)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_that_a_program_needs_is_listed_and_exists() {
        let library = |package: &str, name: &str, features: &[&str]| Library {
            package: package.to_owned(),
            name: name.to_owned(),
            version: "0.2".to_owned(),
            features: features.iter().map(|it| (*it).to_owned()).collect(),
        };
        let libraries = [
            library("mcp-host-model", "mcp_host_model", &[]),
            library("mcp-host-acp", "mcp_host_acp", &["schema"]),
        ];
        let page = |toml: &str| {
            format!(
                "# A\n\n```toml\n[dependencies]\n{toml}\n```\n\n```rust,no_run\nuse mcp_host_acp::{{A, B}};\n\
                mcp_host_model::read();\n```\n"
            )
        };
        let complete = "mcp-host-model = \"0.2\"\nmcp-host-acp = { version = \"0.2\", features = [\"schema\"] }\n\
            tokio = \"1\"";
        assert_eq!(check(&page(complete), &libraries), [""; 0]);
        let wrong = "mcp-model = \"0.2\"\nmcp-host-acp = { version = \"0.1\", features = [\"sdk\"] }";
        assert_eq!(
            check(&page(wrong), &libraries),
            [
                "the version of `mcp-host-acp` is not `0.2`",
                "`mcp-host-acp` has no feature `sdk`",
                "`mcp-model` is not a published library",
                "a program uses `mcp_host_model`; no dependency has `mcp-host-model`",
            ]
        );
        assert_eq!(check(&page("="), &libraries).len(), 3);
    }
}
