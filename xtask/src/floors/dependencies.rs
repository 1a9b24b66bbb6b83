//! Each manifest against its list.
//!
//! Features are understood: a crate that is allowed under some features must be optional, and no other feature may
//! switch it on.

use toml::{Table, Value};

use super::crate_of;
use super::lists::{FLOORS, Floor};
use crate::failure::Trespass;
use crate::tree::Source;

/// Every `crates/*/Cargo.toml` of the tree.
pub(super) fn check(sources: &[Source]) -> Vec<Trespass> {
    let mut res = Vec::new();
    for source in sources {
        let Some(name) = crate_of(&source.path) else { continue };
        if source.path != format!("crates/{name}/Cargo.toml") {
            continue;
        }
        let floor = FLOORS.iter().find(|it| it.name == name);
        let said = match (floor, source.text.parse::<Table>()) {
            (Some(floor), Ok(manifest)) => check_manifest(floor, &manifest),
            (None, _) => vec![format!("`{name}` has no floor: give it a list in xtask/src/floors/lists.rs")],
            (_, Err(error)) => vec![format!("it is no TOML: {error}")],
        };
        res.extend(said.into_iter().map(|what| Trespass::new(&source.path, 0, what)));
    }
    res
}

/// What is wrong with one manifest.
pub(super) fn check_manifest(floor: &Floor, manifest: &Table) -> Vec<String> {
    let mut res = Vec::new();
    let named = manifest.get("package").and_then(|it| it.get("name")).and_then(Value::as_str);
    if named != Some(floor.name) {
        res.push(format!("the folder is `{}`, the package is `{}`", floor.name, named.unwrap_or_default()));
    }
    if manifest.get("lints").and_then(|it| it.get("workspace")) != Some(&Value::Boolean(true)) {
        res.push("it does not take the workspace's lints: add `[lints] workspace = true`".to_owned());
    }
    for section in sections(manifest) {
        for (name, dependency) in section.dependencies {
            if dependency.get("workspace") != Some(&Value::Boolean(true)) {
                res.push(format!("`{name}` has a version of its own: take it from the workspace"));
            }
            let complaint = match section.kind {
                Kind::Development => check_development(floor, name),
                Kind::Normal => check_normal(floor, manifest, name, dependency),
                Kind::Build => Some(format!("`{name}`: no crate has a build script")),
            };
            res.extend(complaint);
        }
    }
    res
}

#[derive(Clone, Copy)]
enum Kind {
    Normal,
    Development,
    Build,
}

struct Section<'a> {
    kind: Kind,
    dependencies: &'a Table,
}

/// All tables with dependencies, those of single platforms too.
fn sections(manifest: &Table) -> Vec<Section<'_>> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let platforms = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut res = Vec::new();
    for table in std::iter::once(manifest).chain(platforms) {
        for (key, kind) in [
            ("dependencies", Kind::Normal),
            ("dev-dependencies", Kind::Development),
            ("build-dependencies", Kind::Build),
        ] {
            if let Some(dependencies) = table.get(key).and_then(Value::as_table) {
                res.push(Section { kind, dependencies });
            }
        }
    }
    res
}

fn check_development(floor: &Floor, name: &str) -> Option<String> {
    let gated = floor.under_feature.iter().flat_map(|(_, names)| *names);
    let mut allowed = floor.ours.iter().chain(floor.others).chain(floor.development).chain(gated);
    (!allowed.any(|&it| it == name)).then(|| format!("`{name}` is not in the list of what its tests may use"))
}

fn check_normal(floor: &Floor, manifest: &Table, name: &str, dependency: &Value) -> Option<String> {
    if floor.ours.contains(&name) || floor.others.contains(&name) {
        return None;
    }
    let listed = floor.under_feature.iter().filter(|(_, names)| names.contains(&name));
    let features: Vec<&str> = listed.map(|(feature, _)| *feature).collect();
    if features.is_empty() {
        return Some(format!("`{name}` is not in the list of what `{}` may know", floor.name));
    }
    let allowed = features.join("` or `");
    if dependency.get("optional") != Some(&Value::Boolean(true)) {
        return Some(format!("`{name}` is allowed under the feature `{allowed}` only: make it optional"));
    }
    let switches = switched_on_by(manifest, name);
    match switches.iter().find(|it| !features.contains(it)) {
        Some(other) => {
            Some(format!("`{name}` belongs to the feature `{allowed}`, and `{other}` switches it on"))
        }
        None if switches.is_empty() => {
            Some(format!("`{name}` is switched on by no feature: `{allowed}` should"))
        }
        None => None,
    }
}

/// The features that switch an optional dependency on. `name?/feature` does not.
fn switched_on_by<'a>(manifest: &'a Table, name: &str) -> Vec<&'a str> {
    let switch = format!("dep:{name}");
    let with_feature = format!("{name}/");
    let is_switch = |it: &Value| it.as_str().is_some_and(|it| it == switch || it.starts_with(&with_feature));
    let features = manifest.get("features").and_then(Value::as_table);
    let listed = features.into_iter().flatten();
    let on = listed.filter(|(_, what)| what.as_array().is_some_and(|it| it.iter().any(is_switch)));
    on.map(|(feature, _)| feature.as_str()).collect()
}
