//! Keys of programs that this crate does not imitate in full.
//!
//! Such a key is not a spelling mistake. It is kept; what is lost without it decides whether that is reported.

/// What happens to a key of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignKey {
    /// It does not change how the server is started and used.
    Irrelevant,
    /// It means the same as this key.
    SameAs(&'static str),
    /// It is not supported. The text says what to write instead.
    Unsupported(&'static str),
}
