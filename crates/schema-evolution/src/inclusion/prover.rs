//! The state of a proof.

use std::collections::{HashMap, HashSet};

use super::equality::SchemaEquality;
use super::locations::FailedComparison;
use super::obstacle::{ComparisonKey, KeyDescriptions};
use crate::document::Node;

/// The right schemas that apply to a location. They decide whether a key is described.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    /// The schema of the whole location.
    pub(super) root: Node<'a>,
    /// The lists of alternatives of which one is chosen already, by address.
    pub(super) skipped: Vec<usize>,
    /// The alternatives that were chosen.
    pub(super) chosen: Vec<Node<'a>>,
}

/// Proves inclusions of one document in another.
pub(crate) struct Prover<'a> {
    pub(super) descriptions: KeyDescriptions,
    /// The equality of schemas; `default` counts if descriptions are required.
    pub(super) equality: SchemaEquality,
    /// The equality of schemas for a validator, which ignores `default`.
    pub(super) equality_without_defaults: SchemaEquality,
    /// The comparisons in progress. They are assumed to succeed, which is sound because a document is finite.
    pub(super) in_progress: Vec<ComparisonKey>,
    /// The lowest index in `in_progress` that was assumed to succeed since the last completed comparison.
    pub(super) lowest_assumption: usize,
    /// The comparisons without obstacles.
    pub(super) proven: HashSet<ComparisonKey>,
    /// The comparisons with obstacles.
    pub(super) failed: HashMap<ComparisonKey, FailedComparison<'a>>,
    /// The depth of nested comparisons.
    pub(super) depth: usize,
    /// The number of comparisons so far.
    pub(super) steps: usize,
    /// Whether the left side was split into cases, which must not be split again.
    pub(super) is_splitting: bool,
}
