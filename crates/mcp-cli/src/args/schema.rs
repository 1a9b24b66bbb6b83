//! Arguments of `schema`.

use std::path::PathBuf;

use clap::Args;
use mcp_host_config::Profile;
use schema_evolution::SchemaUser;

use crate::args::choice::{SCHEMAS, USES, choice_parser};

/// Arguments of `schema`. Invariant: either `name` or the two files of `compare` are given.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The dialect
    #[arg(value_parser = choice_parser(SCHEMAS), value_name = "DIALECT", required_unless_present = "compare",
        conflicts_with = "compare")]
    pub(crate) name: Option<Profile>,
    /// Compare two versions of any JSON Schema; exit with 1 unless each change is proven to be harmless. `-`
    /// is standard input
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    pub(crate) compare: Option<Vec<PathBuf>>,
    /// The program that must not break
    #[arg(long = "for", value_parser = choice_parser(USES), value_name = "USE", default_value = "reader",
        conflicts_with = "name")]
    pub(crate) user: SchemaUser,
    /// Exit with 0 also if changes are neither proven to be harmless nor to break
    #[arg(long, conflicts_with = "name")]
    allow_unproven: bool,
}

/// The policy for changes that are neither proven to be harmless nor to break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnprovenPolicy {
    /// The comparison fails, as for a break.
    Refuse,
    /// They do not fail the comparison.
    Allow,
}

impl SchemaArgs {
    /// The policy for unproven changes.
    pub(crate) fn unproven_policy(&self) -> UnprovenPolicy {
        if self.allow_unproven { UnprovenPolicy::Allow } else { UnprovenPolicy::Refuse }
    }
}
