//! Published packages: what each contains and says of itself, the order of publication in CONTRIBUTING.md, and the
//! dependencies that pages name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::cargo::{cargo, run_for_output};
use crate::error::{Error, Violation};
use crate::gates::doc_dependencies;
use crate::gates::library::Library;
use crate::tree::{self, package_name};

/// The page with the table of packages.
const PAGE: &str = "CONTRIBUTING.md";

/// What Cargo knows of the packages of the workspace.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A package of the workspace.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Package {
    name: String,
    version: String,
    features: BTreeMap<String, Vec<String>>,
    /// Absolute.
    manifest_path: String,
    /// Empty for a package that is not published.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
    description: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    license: Option<String>,
    readme: Option<String>,
    rust_version: Option<String>,
    /// The table `package.metadata`.
    metadata: Value,
}

/// A library or program of a package.
#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// A dependency of a package, of any kind.
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

    /// The library of a published package.
    fn library(&self) -> Option<Library> {
        let target = self.targets.iter().find(|it| it.kind == ["lib"] && self.is_published())?;
        Some(Library {
            package: self.name.clone(),
            name: target.name.clone(),
            version: self.version.rsplit_once('.')?.0.to_owned(),
            features: self.features.keys().cloned().collect(),
        })
    }

    /// Packages of the workspace that must be published first. Cargo omits a development dependency without a version.
    fn local_dependencies(&self) -> impl Iterator<Item = &str> {
        self.dependencies.iter().filter(|it| it.path.is_some() && it.req != "*").map(|it| it.name.as_str())
    }
}

/// The published packages that are libraries, sorted by name.
pub(crate) fn libraries() -> Result<Vec<Library>, Error> {
    let mut res: Vec<Library> = read_packages()?.iter().filter_map(Package::library).collect();
    res.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(res)
}

/// The names of the packages that are not published.
pub(crate) fn unpublished_packages() -> Result<Vec<String>, Error> {
    Ok(read_packages()?.into_iter().filter(|it| !it.is_published()).map(|it| it.name).collect())
}

/// All packages of the workspace.
fn read_packages() -> Result<Vec<Package>, Error> {
    let text = run_for_output(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    let metadata: Metadata =
        serde_json::from_str(&text).map_err(|error| Error::message(format!("cargo metadata: {error}")))?;
    Ok(metadata.packages)
}

/// Checks the packages on disk.
pub(crate) fn run() -> Result<(), Error> {
    let packages = read_packages()?;
    let page = fs::read_to_string(tree::root().join(PAGE))
        .map_err(|error| Error::message(format!("could not read {PAGE}: {error}")))?;
    let order = check_order(&page, &packages);
    let mut res: Vec<Violation> = order.into_iter().map(|it| Violation::new(PAGE, 0, it)).collect();
    for package in packages.iter().filter(|it| it.is_published()) {
        let mut messages = check_metadata(package);
        messages.extend(check_files(package));
        res.extend(messages.into_iter().map(|it| Violation::new(&package.name, 0, it)));
    }
    res.extend(check_keywords(&packages));
    res.extend(check_pages(&packages)?);
    Error::from_violations(res)
}

/// The violations of the pages with programs that use the libraries.
fn check_pages(packages: &[Package]) -> Result<Vec<Violation>, Error> {
    let libraries: Vec<_> = packages.iter().filter_map(Package::library).collect();
    let list_folder = |path: &str| {
        fs::read_dir(tree::root().join(path))
            .map_err(|error| Error::message(format!("could not read {path}: {error}")))
    };
    let pages = list_folder("docs/library")?.flatten().map(|it| it.path());
    let readmes = list_folder("crates")?.flatten().map(|it| it.path().join("README.md"));
    let mut pages: Vec<_> = pages.chain(readmes).collect();
    pages.sort();
    let mut res = Vec::new();
    for path in pages {
        let Ok(page) = fs::read_to_string(&path) else { continue };
        let name = path.strip_prefix(tree::root()).unwrap_or(&path).display().to_string();
        res.extend(
            doc_dependencies::check(&page, &libraries).into_iter().map(|it| Violation::new(&name, 0, it)),
        );
    }
    Ok(res)
}

/// The files that every package contains. The licences and the changelog are links to those of the workspace,
/// which Cargo replaces by the files.
const PACKAGE_FILES: [&str; 4] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"];

/// The most keywords and categories that crates.io accepts.
const MAX_KEYWORDS: usize = 5;

/// One message for each file that is missing, or differs from the one of the workspace.
fn check_files(package: &Package) -> Vec<String> {
    let folder = Path::new(&package.manifest_path).parent().unwrap_or(Path::new(""));
    let mut res = Vec::new();
    for name in PACKAGE_FILES {
        let is_shared = name != "README.md";
        match (fs::read(folder.join(name)), fs::read(tree::root().join(name))) {
            (Err(_), _) => res.push(format!("the package has no {name}")),
            (Ok(own), Ok(shared)) if is_shared && own != shared => {
                res.push(format!("{name} differs from the one of the workspace: make it a link"));
            }
            _ => {}
        }
    }
    res
}

/// One message for each thing that the manifest does not say of the package.
fn check_metadata(package: &Package) -> Vec<String> {
    let mut res = Vec::new();
    for (key, is_set) in [
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("readme", package.readme.is_some()),
        ("rust-version", package.rust_version.is_some()),
    ] {
        if !is_set {
            res.push(format!("the manifest has no `{key}`"));
        }
    }
    for (key, values) in [("keywords", &package.keywords), ("categories", &package.categories)] {
        if values.is_empty() || values.len() > MAX_KEYWORDS {
            res.push(format!("the manifest has {} `{key}`, not 1 to {MAX_KEYWORDS}", values.len()));
        }
    }
    let docs = &package.metadata["docs"]["rs"];
    if docs["all-features"] != true || docs["rustdoc-args"] != serde_json::json!(["--cfg", "docsrs"]) {
        res.push("`package.metadata.docs.rs` does not build all features with `--cfg docsrs`".to_owned());
    }
    res
}

/// One violation for each package that has the keywords of another one.
fn check_keywords(packages: &[Package]) -> Vec<Violation> {
    let mut seen: BTreeMap<&[String], &str> = BTreeMap::new();
    let published = packages.iter().filter(|it| it.is_published());
    let repeated = published.filter_map(|it| Some((it, seen.insert(&it.keywords, &it.name)?)));
    repeated
        .map(|(it, other)| Violation::new(&it.name, 0, format!("it has the keywords of `{other}`")))
        .collect()
}

/// The violations of the table: a package that is missing, unknown, misnamed, or listed before a dependency.
fn check_order(page: &str, packages: &[Package]) -> Vec<String> {
    let published: Vec<&Package> = packages.iter().filter(|it| it.is_published()).collect();
    let mut res = Vec::new();
    let mut listed = BTreeSet::new();
    for (name, folder) in table_rows(page) {
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
fn table_rows(page: &str) -> impl Iterator<Item = (&str, &str)> {
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
        let package = |name: &str, publish, dependencies| Package {
            name: name.to_owned(),
            publish,
            dependencies,
            ..Package::default()
        };
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

    #[test]
    fn incomplete_manifest_is_found() {
        let complete = Package {
            description: Some("d".to_owned()),
            keywords: vec!["a".to_owned()],
            categories: vec!["b".to_owned()],
            license: Some("MIT".to_owned()),
            readme: Some("README.md".to_owned()),
            rust_version: Some("1.88".to_owned()),
            metadata: serde_json::json!({"docs": {"rs": {"all-features": true, "rustdoc-args": ["--cfg", "docsrs"]}}}),
            ..Package::default()
        };
        assert_eq!(check_metadata(&complete), [""; 0]);
        let repeated = check_keywords(&[
            Package { name: "x".to_owned(), keywords: complete.keywords.clone(), ..Package::default() },
            complete,
        ]);
        assert_eq!(repeated.len(), 1);
        assert_eq!(
            check_metadata(&Package { keywords: vec!["a".to_owned(); 6], ..Package::default() }),
            [
                "the manifest has no `description`",
                "the manifest has no `license`",
                "the manifest has no `readme`",
                "the manifest has no `rust-version`",
                "the manifest has 6 `keywords`, not 1 to 5",
                "the manifest has 0 `categories`, not 1 to 5",
                "`package.metadata.docs.rs` does not build all features with `--cfg docsrs`",
            ]
        );
    }

    #[test]
    fn missing_file_is_found() {
        let package = |folder: &str| Package {
            manifest_path: tree::root().join(folder).join("Cargo.toml").to_string_lossy().into_owned(),
            ..Package::default()
        };
        assert_eq!(check_files(&package("crates/mcp-model")), [""; 0]);
        assert_eq!(check_files(&package("xtask")).len(), PACKAGE_FILES.len());
    }
}
