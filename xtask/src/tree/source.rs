//! One text file of the workspace.

/// One text file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: String,
}
