//! The lists of the gate, read from `xtask/layers.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::Error;
use crate::tree;

/// The file with the lists.
pub(super) const FILE: &str = "xtask/layers.toml";

/// What each crate may depend on, and which words it may contain.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lists {
    pub pure_crates: Vec<String>,
    pub pure_files: Vec<String>,
    /// Path prefixes.
    pub rmcp: Vec<String>,
    pub error_numbers: Vec<String>,
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
    pub ours: Vec<String>,
    pub others: Vec<String>,
    pub under_feature: BTreeMap<String, Vec<String>>,
    pub development: Vec<String>,
    pub modules: Vec<String>,
}

impl Lists {
    pub(super) fn read() -> Result<Lists, Error> {
        tree::read_toml(FILE)
    }

    pub(super) fn crate_rules(&self, name: &str) -> Option<&CrateRules> {
        self.crates.iter().find(|rules| rules.name == name)
    }
}

/// Whether a list contains a text.
pub(super) fn contains(list: &[String], text: &str) -> bool {
    list.iter().any(|listed| listed == text)
}
