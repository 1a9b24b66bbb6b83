//! Published packages: the order of publication in CONTRIBUTING.md.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::cargo::{cargo, output};
use crate::error::{Error, Violation};
use crate::tree::{self, package_name};

/// The page with the table of packages.
const PAGE: &str = "CONTRIBUTING.md";

/// What Cargo knows of the packages of the workspace.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    /// Empty for a package that is not published.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a dependency from a registry.
    path: Option<String>,
    /// `*` without a version.
    req: String,
}

impl Package {
    fn is_published(&self) -> bool {
        self.publish.is_none()
    }

    /// Packages of the workspace that must be published first. Cargo omits a development dependency without a version.
    fn local_dependencies(&self) -> impl Iterator<Item = &str> {
        self.dependencies.iter().filter(|it| it.path.is_some() && it.req != "*").map(|it| it.name.as_str())
    }
}

/// Checks the packages on disk.
pub(crate) fn run() -> Result<(), Error> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata)
        .map_err(|error| Error::message(format!("cargo metadata: {error}")))?;
    let page = std::fs::read_to_string(tree::root().join(PAGE))
        .map_err(|error| Error::message(format!("could not read {PAGE}: {error}")))?;
    let violations = check_order(&page, &metadata.packages);
    Error::from_violations(violations.into_iter().map(|it| Violation::new(PAGE, 0, it)).collect())
}

/// The violations of the table: a package that is missing, unknown, misnamed, or listed before a dependency.
fn check_order(page: &str, packages: &[Package]) -> Vec<String> {
    let published: Vec<&Package> = packages.iter().filter(|it| it.is_published()).collect();
    let mut res = Vec::new();
    let mut listed = BTreeSet::new();
    for (name, folder) in rows(page) {
        if package_name(folder) != name {
            res.push(format!(
                "the package of the folder `{folder}` is `{}`, not `{name}`",
                package_name(folder)
            ));
        }
        let Some(package) = published.iter().find(|it| it.name == name) else {
            res.push(format!("`{name}` is not a published package"));
            continue;
        };
        let late = package.local_dependencies().filter(|it| !listed.contains(it));
        res.extend(late.map(|it| format!("`{name}` is published before its dependency `{it}`")));
        listed.insert(name);
    }
    let missing = published.iter().filter(|it| !listed.contains(it.name.as_str()));
    res.extend(missing.map(|it| format!("the package `{}` is not in the table", it.name)));
    res
}

/// The package and the folder of each row of the table.
fn rows(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let section = page.split_once("\n## Packages\n").map_or("", |it| it.1);
    let section = section.split_once("\n## ").map_or(section, |it| it.0);
    let cells = section.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        Some((cells.next()?, cells.next()?))
    });
    // The heading and the line below it.
    cells.skip(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_have_no_violation() {
        if let Err(error) = run() {
            panic!("{error}");
        }
    }

    #[track_caller]
    fn check(rows: &[&str], expected: &[&str]) {
        let dependency = |name: &str, path: Option<&str>, req: &str| Dependency {
            name: name.to_owned(),
            path: path.map(str::to_owned),
            req: req.to_owned(),
        };
        let package =
            |name: &str, publish, dependencies| Package { name: name.to_owned(), publish, dependencies };
        let packages = [
            package("mcp-host-config", None, vec![dependency("mcp-host-model", Some("/"), "^1")]),
            package(
                "mcp-host-model",
                None,
                // A registry's package, and a development dependency in a cycle.
                vec![dependency("bytes", None, "^1"), dependency("mcp-host-config", Some("/"), "*")],
            ),
            package("mcp-testkit", Some(Vec::new()), Vec::new()),
        ];
        let rows: String = rows.iter().map(|it| format!("| {it} | library |\n")).collect();
        let page = format!(
            "# A\n\n## Packages\n\n| package | folder | library |\n|---|---|---|\n{rows}\n## B\n\n| x | y |\n"
        );
        assert_eq!(check_order(&page, &packages), expected);
    }

    #[test]
    fn order_of_publication_is_complete_and_topological() {
        let (model, config) = ("mcp-host-model | mcp-model", "mcp-host-config | mcp-config");
        check(&[model, config], &[]);
        check(&[config, model], &["`mcp-host-config` is published before its dependency `mcp-host-model`"]);
        check(&[model], &["the package `mcp-host-config` is not in the table"]);
        check(
            &[model, config, "mcp-testkit | mcp-testkit", "mcp-host-new | mcp-new"],
            &["`mcp-testkit` is not a published package", "`mcp-host-new` is not a published package"],
        );
        check(
            &[model, "mcp-host-config | mcp-host-config"],
            &["the package of the folder `mcp-host-config` is `mcp-host-host-config`, not `mcp-host-config`"],
        );
    }
}
