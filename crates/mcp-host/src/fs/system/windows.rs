//! Windows: a file has the access rights of its folder. In the profile of a user these are the user, administrators and
//! the system. A private file in another folder is as private as the folder.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use tempfile::{Builder, NamedTempFile};

/// How often a file is replaced that another program holds, such as a virus scanner.
const REPLACE_ATTEMPTS: u32 = 10;

/// The wait before the next attempt.
const REPLACE_INTERVAL: Duration = Duration::from_millis(20);

/// The owner and mode of a file or folder. Windows has neither as numbers: all files have the same.
pub(crate) struct Owner {
    /// The user id.
    pub(crate) user: u32,
    /// The group id.
    pub(crate) group: u32,
    pub(crate) mode: u32,
}

/// Returns the same owner for every file.
pub(crate) fn owner(_: &Path) -> io::Result<Owner> {
    Ok(Owner { user: 0, group: 0, mode: 0 })
}

/// Returns false: the standard library does not tell the owner. Files of unknown users are never removed.
pub(crate) fn is_of_same_user(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Returns false: the standard library does not tell whether both are the same file.
pub(crate) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Does nothing: a new file belongs to the user of this process.
pub(crate) fn copy_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a file has the access rights of its folder.
pub(crate) fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Creates folders, and those above them, with the access rights of the folder above.
pub(crate) fn private_folder_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    builder
}

/// Does nothing: a folder has the access rights of the folder above.
pub(crate) fn set_private_folder(_: &mut Builder<'_, '_>) {}

/// Moves a temporary file to `path`, and replaces a file there. Readers see the old or the new content: the standard
/// library renames as POSIX requires, so readers of the old file keep it. A program that denies this delays it.
pub(crate) fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    // Closed first, and no longer marked as temporary.
    let (_, temporary) = file.keep().map_err(|error| error.error)?;
    let mut renamed = fs::rename(&temporary, path);
    for _ in 1..REPLACE_ATTEMPTS {
        match &renamed {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Ok(()) | Err(_) => break,
        }
        sleep(REPLACE_INTERVAL);
        renamed = fs::rename(&temporary, path);
    }
    renamed.inspect_err(|_| drop(fs::remove_file(&temporary)))
}
