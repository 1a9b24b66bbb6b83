//! Unix: users, groups and modes.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// The owner and mode of a file or folder.
pub(crate) struct Owner {
    /// The user id.
    pub(crate) user: u32,
    /// The group id.
    pub(crate) group: u32,
    pub(crate) mode: u32,
}

/// Reads the owner and mode of a file or folder.
pub(crate) fn owner(path: &Path) -> io::Result<Owner> {
    let metadata = fs::metadata(path)?;
    Ok(Owner { user: metadata.uid(), group: metadata.gid(), mode: metadata.mode() })
}

/// Returns whether a file has the same user and device as `own`, and no other hard link.
pub(crate) fn is_of_same_user(one: &Metadata, own: &Metadata) -> bool {
    (one.uid(), one.dev(), one.nlink()) == (own.uid(), own.dev(), 1)
}

/// Returns whether both are the same file.
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Copies the owner of another file.
pub(crate) fn copy_owner(file: &File, other: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    fchown(file, Some(other.uid()), Some(other.gid()))?;
    // Changing the owner clears some permissions.
    file.set_permissions(other.permissions())
}

/// Lets only its owner read a file.
pub(crate) fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Creates folders, and those above them, that only their owner may read.
pub(crate) fn private_folder_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

/// Lets only its owner read the temporary folder that this builder creates.
pub(crate) fn set_private_folder(builder: &mut Builder<'_, '_>) {
    builder.permissions(Permissions::from_mode(0o700));
}

/// Moves a temporary file to `path`, and replaces a file there. Readers see the old or the new content.
pub(crate) fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist(path)?;
    Ok(())
}
