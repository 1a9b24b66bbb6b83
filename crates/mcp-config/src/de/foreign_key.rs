//! Keys that a mapping may have: those that are read, and those of other programs.
//!
//! A key of another program is no spelling mistake. It is kept, and reported if ignoring it has an effect.

/// What is known about a key of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignKey {
    /// It does not change how the server is started and used.
    Irrelevant,
    /// It means the same as this key.
    SameAs(&'static str),
    /// It is not supported. The text says what to write instead.
    Unsupported(&'static str),
}

/// What is known about the keys of a mapping.
#[derive(Clone, Copy)]
pub(crate) struct KnownKeys<'a> {
    /// The keys that are read.
    pub(crate) names: &'static [&'static str],
    /// Whether the program of the file has a key. A suggestion names no other.
    pub(crate) is_own: &'a dyn Fn(&str) -> bool,
    /// What is known about a key that is not read.
    pub(crate) foreign_key: &'a dyn Fn(&str) -> Option<ForeignKey>,
}
