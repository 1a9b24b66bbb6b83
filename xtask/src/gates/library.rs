//! What the pages of the documentation may say about a published library.

/// A published library.
pub(crate) struct Library {
    pub package: String,
    /// Its name in `use`.
    pub name: String,
    /// The version without the patch level.
    pub version: String,
    /// The names of its features.
    pub features: Vec<String>,
}
