//! The state of a proof.

use std::collections::{HashMap, HashSet};

use super::identity::Identity;
use super::obstacle::{Descriptions, Key};
use super::places::Failed;
use crate::document::Node;

/// The right schemas of a location, to find out whether a key is described.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    pub(super) root: Node<'a>,
    /// The lists of alternatives of which one is chosen already, by address.
    pub(super) skipped: Vec<usize>,
    pub(super) chosen: Vec<Node<'a>>,
}

/// Proves inclusions of one document in another.
pub(crate) struct Prover<'a> {
    pub(super) descriptions: Descriptions,
    /// Equality, with defaults if descriptions are needed.
    pub(super) identity: Identity,
    /// Equality for validators.
    pub(super) validity: Identity,
    /// The comparisons in progress. They are assumed to succeed, which is sound because a document is finite.
    pub(super) open: Vec<Key>,
    /// The lowest assumption that was used since the last completed comparison.
    pub(super) lowest: usize,
    pub(super) proven: HashSet<Key>,
    pub(super) failed: HashMap<Key, Failed<'a>>,
    pub(super) depth: usize,
    pub(super) steps: usize,
    pub(super) is_splitting: bool,
}
