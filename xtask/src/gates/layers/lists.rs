//! The lists of the gate, read from `xtask/layers.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::Error;
use crate::tree;

/// The file with the lists.
pub(super) const LISTS_FILE: &str = "xtask/layers.toml";

/// What each crate may depend on, and which words it may contain.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lists {
    pub pure_crates: Vec<String>,
    pub pure_files: Vec<String>,
    /// Prefixes of the paths that may use rmcp.
    pub rmcp: Vec<String>,
    /// Files that may contain error numbers.
    pub error_numbers: Vec<String>,
    /// Prefixes of the paths that may have code for one system.
    pub system_code: Vec<String>,
    /// Files that may search the text of an error.
    pub error_texts: Vec<String>,
    /// Lower layers first. A crate without an entry is a violation.
    pub crates: Vec<CrateRules>,
}

/// The allowed dependencies of one crate, and its modules in order.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CrateRules {
    pub name: String,
    /// Crates of this workspace.
    pub ours: Vec<String>,
    /// Crates of other projects.
    pub others: Vec<String>,
    /// Crates that are allowed only under a feature, by the name of the feature.
    pub under_feature: BTreeMap<String, Vec<String>>,
    /// Crates that only the tests may use.
    pub development: Vec<String>,
    /// The top modules, lower ones first.
    pub modules: Vec<String>,
}

impl Lists {
    /// Reads the file of the lists.
    pub(super) fn read() -> Result<Lists, Error> {
        tree::read_toml(LISTS_FILE)
    }

    /// The entry of a crate.
    pub(super) fn crate_rules(&self, name: &str) -> Option<&CrateRules> {
        self.crates.iter().find(|rules| rules.name == name)
    }
}

/// Whether a list contains a text.
pub(super) fn contains(list: &[String], text: &str) -> bool {
    list.iter().any(|listed| listed == text)
}
