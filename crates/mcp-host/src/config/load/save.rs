//! Atomic saving of files: readers see the old or the new text.
//!
//! The text is written to a temporary file that replaces the original. [`save`] keeps permissions and owner. Symbolic
//! links are followed. Other hard links keep the old text, and extended attributes are lost.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::files::{FileError, io_message, read_text};
use crate::fs::atomic_write::create_temp;
use crate::fs::system;

/// The error of a file that was not saved. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// An I/O error.
    #[error("cannot write {path}: {}", io_message(.source))]
    Io {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file cannot be read again.
    #[error("cannot read {path} again before it is written")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: FileError,
    },
    /// Another process has changed the file since it was read.
    #[error("{path} was changed by another program in the meantime")]
    Changed {
        /// The file.
        path: String,
    },
    /// The file exists already.
    #[error("{path} already exists")]
    Exists {
        /// The file.
        path: String,
    },
}

/// Replaces the text of a file, `before`, with `after`. Blocks.
///
/// Fails if the file no longer contains `before`. A change by another process between this check and the replacement
/// is lost.
pub fn save(path: &Path, before: &str, after: &str) -> Result<(), SaveError> {
    // A link remains: its target is replaced.
    let real = fs::canonicalize(path).map_err(save_error(path))?;
    let metadata = fs::metadata(&real).map_err(save_error(path))?;
    // A rename only needs permission for the folder, but a read-only file is meant to stay.
    if metadata.permissions().readonly() {
        return Err(save_error(path)(io::ErrorKind::PermissionDenied.into()));
    }
    let file = write_temp(&real, after, Access::Like(metadata.permissions())).map_err(save_error(path))?;
    system::copy_owner(file.as_file(), &metadata).map_err(save_error(path))?;
    let now = read_text(&real).map_err(|source| SaveError::Unreadable { path: display(path), source })?;
    if now != before {
        return Err(SaveError::Changed { path: display(path) });
    }
    persist(file, &real).map_err(save_error(path))
}

/// Creates a file with the permissions of another one. Blocks.
pub fn create_like(path: &Path, text: &str, like: &Path) -> Result<(), SaveError> {
    let permissions = fs::metadata(like).map(|it| it.permissions());
    permissions.and_then(|it| write_new(path, text, Access::Like(it))).map_err(save_error(path))
}

/// Creates a file that only its owner may read, and its folder if missing. Blocks.
pub fn create_private(path: &Path, text: &str) -> Result<(), SaveError> {
    let folder = fs::create_dir_all(parent_folder(path));
    folder.and_then(|()| write_new(path, text, Access::Private)).map_err(save_error(path))
}

/// Creates a file that only its owner may read, or replaces one; readers see the old or the new text. Blocks.
pub fn replace_private(path: &Path, text: &str) -> Result<(), SaveError> {
    // A link remains; its target is replaced.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let file = write_temp(&real, text, Access::Private);
    file.and_then(|it| persist(it, &real)).map_err(save_error(path))
}

/// Returns a function that adds the path to an I/O error.
fn save_error(path: &Path) -> impl Fn(io::Error) -> SaveError + use<'_> {
    |source| match source.kind() {
        io::ErrorKind::AlreadyExists => SaveError::Exists { path: display(path) },
        _ => SaveError::Io { path: display(path), source },
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

/// Who may read and write a new file.
enum Access {
    /// Only its owner: it may contain secrets.
    Private,
    /// As another file.
    Like(Permissions),
}

/// Creates a file. Fails if it exists.
fn write_new(path: &Path, text: &str, access: Access) -> io::Result<()> {
    write_temp(path, text, access)?.persist_noclobber(path)?;
    sync_folder(path);
    Ok(())
}

/// Moves a temporary file to `path`, and replaces a file there.
fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    system::replace(file, path)?;
    sync_folder(path);
    Ok(())
}

/// Writes the text to a temporary file in the folder of `path`. It is removed unless it is persisted.
fn write_temp(path: &Path, text: &str, access: Access) -> io::Result<NamedTempFile> {
    let mut res = create_temp(&parent_folder(path))?;
    res.write_all(text.as_bytes())?;
    match access {
        Access::Private => system::make_private(res.as_file())?,
        Access::Like(permissions) => res.as_file().set_permissions(permissions)?,
    }
    res.as_file().sync_all()?;
    Ok(res)
}

fn parent_folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Makes the rename durable, if the system can.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(parent_folder(path)) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut res: Vec<_> =
            fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        res.sort();
        res
    }

    #[test]
    fn save_keeps_permissions_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.yaml"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        symlink("a.yaml", &link).unwrap();
        let before = fs::metadata(&path).unwrap();
        save(&link, "old", "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_eq!(names(folder.path()), ["a.yaml", "link"]);
    }

    #[test]
    fn replaced_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        for text in ["first", "second"] {
            replace_private(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        }
        symlink("a", &link).unwrap();
        replace_private(&link, "third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(replace_private(&folder.path().join("no/such"), "x").is_err());
        assert_eq!(names(folder.path()), ["a", "link"]);
    }

    #[test]
    fn changes_of_other_processes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(save(&path, "old", "new"), Err(SaveError::Changed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert!(matches!(create_like(&path, "new", &path), Err(SaveError::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["a.yaml"]);
        let gone = folder.path().join("no/such");
        let error = save(&gone, "", "new").unwrap_err().to_string();
        assert!(error.ends_with("no/such: it does not exist"), "{error}");
    }

    #[test]
    fn read_only_file_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        let error = save(&path, "old", "new").unwrap_err().to_string();
        assert!(error.ends_with("a.yaml: permission denied"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["a.yaml"]);
    }

    #[test]
    fn new_file_has_permissions_of_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("a.yaml"), folder.path().join("b.json"));
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        create_like(&new, "text", &path).unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "text");
        assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
