//! Pins the packages of a configuration: writes the newest version into the argument that names the package.

use std::collections::HashMap;

use mcp_host_config::{Document, FieldChange, FieldOperation, Reading, WrittenFile, read, set_fields};
use mcp_host_model::{ServerSpec, TransportSpec};
use mcp_host_runtime::{PackageError, UnpinnedPackage};
use serde::Serialize;

/// The maximum number of packages that are looked up for a file.
const MAX_LOOKUPS: usize = 100;

/// A package that was pinned.
#[derive(Debug, Serialize)]
pub(super) struct PinnedPackage {
    server: String,
    /// The package with its version.
    package: String,
}

/// The text of a file with pinned packages.
#[derive(Debug, Default)]
pub(super) struct PinnedPackages {
    pub(super) text: String,
    pub(super) pinned: Vec<PinnedPackage>,
    /// Packages that were not pinned, with the reason.
    pub(super) skipped: Vec<String>,
}

/// The servers of a file that load a package of which each start may be another version.
pub(super) fn unpinned_packages(reading: &Reading) -> Vec<(&ServerSpec, UnpinnedPackage)> {
    reading.servers.iter().filter_map(|it| Some((it, unpinned_package(it)?))).collect()
}

/// Looks up the newest versions, and returns the text of the file with them. Blocks.
pub(super) fn pin_packages(document: &Document<'_>) -> PinnedPackages {
    let mut res = PinnedPackages { text: document.text.to_owned(), ..PinnedPackages::default() };
    let mut versions: HashMap<String, Result<String, PackageError>> = HashMap::new();
    for (server, package) in unpinned_packages(&read(document)) {
        let id = server.id.as_str();
        if versions.len() >= MAX_LOOKUPS && !versions.contains_key(&package.requirement) {
            res.skipped.push(format!("{id}: only {MAX_LOOKUPS} packages are looked up at once"));
            continue;
        }
        let version = versions.entry(package.requirement.clone()).or_insert_with(|| package.newest_version());
        let version = match version {
            Ok(version) => version,
            Err(error) => {
                res.skipped.push(format!("{id}: {error}"));
                continue;
            }
        };
        let operation = FieldOperation::Set(package.pinned_argument(version));
        let change = FieldChange::new(format!("args.{}", package.argument), operation);
        match set_fields(&document.with_text(&res.text), id, &[change]) {
            Ok(WrittenFile { text, .. }) => {
                res.text = text;
                res.pinned.push(PinnedPackage { server: id.to_owned(), package: package.pinned(version) });
            }
            Err(error) => res.skipped.push(format!("{id}: {error}")),
        }
    }
    res
}

/// The package of a server, unless a variable is a part of its name.
fn unpinned_package(server: &ServerSpec) -> Option<UnpinnedPackage> {
    let TransportSpec::Stdio(spec) = &server.transport else { return None };
    let words: Vec<&str> = spec.args.iter().map(|it| it.as_literal().unwrap_or_default()).collect();
    UnpinnedPackage::of(&spec.command, &words).filter(|it| !it.name.is_empty())
}
