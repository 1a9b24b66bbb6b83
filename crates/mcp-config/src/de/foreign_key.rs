//! Known keys of other programs, which are not spelling mistakes. They are kept, and reported if ignoring them has an
//! effect.

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
