//! Changes of a schema and their effects.

use serde::Serialize;
use serde_json::Value;
use strum::Display;

/// The kind of program that a comparison protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a program reads documents or writes them; a program that does both is compared twice"
)]
pub enum SchemaUser {
    /// Reads documents that others wrote by the old schema. They must keep their meaning. It only warns of
    /// unknown keys.
    Reader,
    /// Writes documents by the new schema. Programs that read by the old schema must accept them.
    Writer,
}

/// What a change means for a program, ordered by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a break is proven, harmlessness is proven, or neither")]
pub enum Verdict {
    /// It is proven that no document is affected.
    Harmless,
    /// Neither proven to be harmless nor to break.
    Unknown,
    /// A document proves that it breaks.
    Break,
}

/// The direction of a change, over documents with keys that the schemas describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum Direction {
    /// Only texts for people changed.
    Annotation,
    /// More is accepted or described.
    Widened,
    /// Less is accepted or described.
    Narrowed,
    /// Something is lost and something is gained, or a value has another meaning.
    Changed,
    /// The comparison could not decide.
    Unknown,
}

/// A change of a schema.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The location in a document, such as `servers.*.args[]`; `(root)` for the document itself.
    pub location: String,
    /// Other locations with the same change, because they refer to the same schema: the nearest to the root, at most
    /// [`MAX_LISTED`](Self::MAX_LISTED).
    pub other_locations: Vec<String>,
    /// The number of further locations. At most 64 other locations are counted.
    pub more_locations: usize,
    /// The keyword that changed.
    pub keyword: String,
    /// A short sentence without a full stop.
    pub description: String,
    /// The direction of the change.
    pub direction: Direction,
    /// A JSON pointer into the old schema.
    pub old_pointer: String,
    /// A JSON pointer into the new schema.
    pub new_pointer: String,
    /// What the change means for a reader.
    pub reader: Effect,
    /// What the change means for a writer.
    pub writer: Effect,
}

/// What a change means for one kind of program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Effect {
    /// The verdict.
    pub verdict: Verdict,
    /// The document that proves a break.
    ///
    /// For a reader, the old schema accepts it. The new one refuses it, does not read one of its keys, or reads another
    /// default. For a writer, the new schema accepts it and the old one refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Value>,
}

impl Effect {
    pub(crate) const HARMLESS: Self = Self { verdict: Verdict::Harmless, witness: None };
    pub(crate) const UNKNOWN: Self = Self { verdict: Verdict::Unknown, witness: None };

    /// The effect of a break that `witness` proves.
    pub(crate) fn broken_by(witness: Value) -> Self {
        Self { verdict: Verdict::Break, witness: Some(witness) }
    }
}

impl Change {
    /// The number of locations in `other_locations`.
    pub const MAX_LISTED: usize = 8;

    /// A list of the other locations, such as `a, b and 3 more`. `None` if there are none.
    pub(crate) fn other_locations_text(&self) -> Option<String> {
        let listed = self.other_locations.join(", ");
        match self.more_locations {
            _ if listed.is_empty() => None,
            0 => Some(listed),
            more => Some(format!("{listed} and {more} more")),
        }
    }

    /// The effect for a kind of program.
    pub fn effect(&self, user: SchemaUser) -> &Effect {
        match user {
            SchemaUser::Reader => &self.reader,
            SchemaUser::Writer => &self.writer,
        }
    }
}

/// All changes between two schemas.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The changes, ordered by location.
    pub changes: Vec<Change>,
}

impl Comparison {
    /// The most severe verdict of all changes.
    pub fn verdict(&self, user: SchemaUser) -> Verdict {
        let verdicts = self.changes.iter().map(|it| it.effect(user).verdict);
        verdicts.max().unwrap_or(Verdict::Harmless)
    }

    /// The number of changes with a verdict.
    pub fn count(&self, user: SchemaUser, verdict: Verdict) -> usize {
        self.changes.iter().filter(|it| it.effect(user).verdict == verdict).count()
    }

    /// The changes, the most severe ones first.
    pub fn by_severity(&self, user: SchemaUser) -> Vec<&Change> {
        let mut res: Vec<&Change> = self.changes.iter().collect();
        res.sort_by_key(|it| std::cmp::Reverse(it.effect(user).verdict));
        res
    }
}
