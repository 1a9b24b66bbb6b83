//! Arguments of `schema`.

use std::path::PathBuf;

use clap::Args;
use mcp_host_config::Profile;
use schema_evolution::Use;

use crate::args::choice::{SCHEMAS, USES, choice};

/// Arguments of `schema`. Invariant: either `name` or the two files of `compare` are given.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The dialect
    #[arg(value_parser = choice(SCHEMAS), value_name = "DIALECT", required_unless_present = "compare",
        conflicts_with = "compare")]
    pub(crate) name: Option<Profile>,
    /// Compare two versions of any JSON Schema; exit with 1 unless each change is proven to be harmless. `-`
    /// is standard input
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    pub(crate) compare: Option<Vec<PathBuf>>,
    /// The program that must not break
    #[arg(long = "for", value_parser = choice(USES), value_name = "USE", default_value = "reader",
        conflicts_with = "name")]
    pub(crate) usage: Use,
    /// Exit with 0 also if changes are neither proven to be harmless nor to break
    #[arg(long, conflicts_with = "name")]
    allow_unproven: bool,
}

/// What happens to changes that are neither proven to be harmless nor to break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// They fail like breaks.
    Refused,
    /// They pass.
    Allowed,
}

impl SchemaArgs {
    /// What happens to unproven changes.
    pub(crate) fn unproven(&self) -> Unproven {
        if self.allow_unproven { Unproven::Allowed } else { Unproven::Refused }
    }
}
