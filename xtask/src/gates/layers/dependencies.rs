//! Dependencies of each crate, compared with its list.
//!
//! A dependency that is allowed under some features must be optional, and no other feature may enable it.

use toml::{Table, Value};

use super::lists::{CrateRules, LISTS_FILE, Lists, contains};
use crate::error::Violation;
use crate::tree::{Source, crate_of, folder_name, package_name};

/// Checks every `crates/*/Cargo.toml` of the tree.
pub(super) fn check(sources: &[Source], lists: &Lists) -> Vec<Violation> {
    let mut res = Vec::new();
    for source in sources {
        let Some(name) = crate_of(&source.path) else { continue };
        if source.path != format!("crates/{name}/Cargo.toml") {
            continue;
        }
        let rules = lists.crate_rules(name);
        let messages = match (rules, source.text.parse::<Table>()) {
            (Some(rules), Ok(manifest)) => check_manifest(lists, rules, &manifest),
            (None, _) => vec![format!("`{name}` has no entry in {LISTS_FILE}")],
            (_, Err(error)) => vec![format!("it is not TOML: {error}")],
        };
        res.extend(messages.into_iter().map(|message| Violation::new(&source.path, 0, message)));
    }
    res
}

/// The crate of test helpers, which the tests of every crate may use. It is not published.
const TESTKIT: &str = "mcp-testkit";

/// Whether the crate `name` of this workspace is not published, or depends directly on the crate of `rules`.
/// Cargo omits such a development dependency from the package if it has no version.
fn is_omitted_from_package(lists: &Lists, rules: &CrateRules, name: &str) -> bool {
    name == TESTKIT || lists.crate_rules(name).is_some_and(|other| other.ours.contains(&rules.name))
}

/// The violations of one manifest.
pub(super) fn check_manifest(lists: &Lists, rules: &CrateRules, manifest: &Table) -> Vec<String> {
    let mut res = Vec::new();
    let package = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    let expected = package_name(&rules.name);
    if package != Some(expected.as_str()) {
        res.push(format!("the package is `{}`, not `{expected}`", package.unwrap_or_default()));
    }
    if manifest.get("lints").and_then(|lints| lints.get("workspace")) != Some(&Value::Boolean(true)) {
        res.push("it does not use the lints of the workspace: add `[lints] workspace = true`".to_owned());
    }
    for section in sections(manifest) {
        for (package, dependency) in section.dependencies {
            let name = &*folder_name(package);
            let is_development = matches!(section.kind, DependencyKind::Development);
            let is_omitted = is_development && is_omitted_from_package(lists, rules, name);
            if is_omitted && (dependency.get("path").is_none() || dependency.get("version").is_some()) {
                res.push(format!("`{package}` cannot be in the package: use its path without a version"));
            }
            if !is_omitted && dependency.get("workspace") != Some(&Value::Boolean(true)) {
                res.push(format!("`{package}` has its own version: use the version of the workspace"));
            }
            let violation = match section.kind {
                DependencyKind::Development => check_development_dependency(rules, name),
                DependencyKind::Normal => check_normal_dependency(rules, manifest, name, dependency),
                DependencyKind::Build => Some(format!("`{name}`: no crate has a build script")),
            };
            res.extend(violation);
        }
    }
    res
}

/// What a dependency is used for.
#[derive(Clone, Copy)]
enum DependencyKind {
    Normal,
    Development,
    Build,
}

/// One table of dependencies in a manifest.
struct DependencySection<'a> {
    kind: DependencyKind,
    dependencies: &'a Table,
}

/// All tables of dependencies, including those for one platform.
fn sections(manifest: &Table) -> Vec<DependencySection<'_>> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let platforms = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut res = Vec::new();
    for table in std::iter::once(manifest).chain(platforms) {
        for (key, kind) in [
            ("dependencies", DependencyKind::Normal),
            ("dev-dependencies", DependencyKind::Development),
            ("build-dependencies", DependencyKind::Build),
        ] {
            if let Some(dependencies) = table.get(key).and_then(Value::as_table) {
                res.push(DependencySection { kind, dependencies });
            }
        }
    }
    res
}

/// The violation of a development dependency.
fn check_development_dependency(rules: &CrateRules, name: &str) -> Option<String> {
    let gated = rules.under_feature.values().flatten();
    let mut allowed = rules.ours.iter().chain(&rules.others).chain(&rules.development).chain(gated);
    let is_allowed = name == TESTKIT || allowed.any(|allowed| allowed == name);
    (!is_allowed).then(|| format!("`{name}` is not in the list for the crate's tests"))
}

/// The violation of a normal dependency.
fn check_normal_dependency(
    rules: &CrateRules,
    manifest: &Table,
    name: &str,
    dependency: &Value,
) -> Option<String> {
    if contains(&rules.ours, name) || contains(&rules.others, name) {
        return None;
    }
    let listed = rules.under_feature.iter().filter(|(_, names)| contains(names, name));
    let features: Vec<&str> = listed.map(|(feature, _)| feature.as_str()).collect();
    if features.is_empty() {
        return Some(format!("`{name}` is not in the list for `{}`", rules.name));
    }
    let allowed = features.join("` or `");
    if dependency.get("optional") != Some(&Value::Boolean(true)) {
        return Some(format!("`{name}` is allowed under the feature `{allowed}` only: make it optional"));
    }
    let enabling = features_that_enable(manifest, &package_name(name));
    match enabling.iter().find(|feature| !features.contains(feature)) {
        Some(other) => {
            Some(format!("`{name}` is allowed under the feature `{allowed}`, but `{other}` enables it"))
        }
        None if enabling.is_empty() => Some(format!("no feature enables `{name}`: `{allowed}` should")),
        None => None,
    }
}

/// The features that enable an optional dependency. `package?/feature` does not.
fn features_that_enable<'a>(manifest: &'a Table, package: &str) -> Vec<&'a str> {
    let dependency = format!("dep:{package}");
    let with_feature = format!("{package}/");
    let enables = |value: &Value| {
        value.as_str().is_some_and(|text| text == dependency || text.starts_with(&with_feature))
    };
    let features = manifest.get("features").and_then(Value::as_table);
    let enabling = features.into_iter().flatten();
    let enabling = enabling.filter(|(_, values)| values.as_array().is_some_and(|it| it.iter().any(enables)));
    enabling.map(|(feature, _)| feature.as_str()).collect()
}
