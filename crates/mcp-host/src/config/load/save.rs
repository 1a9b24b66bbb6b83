//! Writes a file so that it is always whole: the old one, or the new one.
//!
//! The new text is written beside the file and takes its place in one step. Permissions and owner stay; a link stays a
//! link. Other names of the same file (hard links) keep the old text, and extended attributes are not carried over.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::files::{FileError, io_text, read_text};
use crate::fs::atomic_write::beside;

/// Why a file was not written. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The system says no.
    #[error("cannot write {path}: {}", io_text(.source))]
    Io {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file cannot be read any more.
    #[error("cannot read {path} again before it is written")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: FileError,
    },
    /// Somebody else has changed it in the meantime.
    #[error("{path} has been changed by somebody else in the meantime")]
    Changed {
        /// The file.
        path: String,
    },
    /// There is such a file already.
    #[error("{path} exists already")]
    Exists {
        /// The file.
        path: String,
    },
}

/// Puts `after` in the place of a file's text, which is still `before`. Blocks.
///
/// Between the last look at the file and the change of its text somebody else may write it; that is lost.
pub fn save(path: &Path, before: &str, after: &str) -> Result<(), SaveError> {
    let shown = path.display().to_string();
    let refused = |source| SaveError::Io { path: shown.clone(), source };
    // A link stays one: what it names is replaced.
    let real = fs::canonicalize(path).map_err(refused)?;
    let metadata = fs::metadata(&real).map_err(refused)?;
    // A new name needs only the folder's permission; that the file may not be written is meant.
    if metadata.permissions().readonly() {
        return Err(refused(io::ErrorKind::PermissionDenied.into()));
    }
    let file = written(&real, after, metadata.permissions()).map_err(refused)?;
    own_as(file.as_file(), &metadata).map_err(refused)?;
    let now = read_text(&real).map_err(|source| SaveError::Unreadable { path: shown.clone(), source })?;
    if now != before {
        return Err(SaveError::Changed { path: shown });
    }
    file.persist(&real).map_err(|it| refused(it.error))?;
    settle(&real);
    Ok(())
}

/// Writes a file that is not there yet, with the permissions of another one. Blocks.
pub fn create(path: &Path, text: &str, like: &Path) -> Result<(), SaveError> {
    let shown = path.display().to_string();
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => SaveError::Exists { path: shown.clone() },
        _ => SaveError::Io { path: shown.clone(), source },
    };
    let permissions = fs::metadata(like).map_err(refused)?.permissions();
    let file = written(path, text, permissions).map_err(refused)?;
    file.persist_noclobber(path).map_err(|it| refused(it.error))?;
    settle(path);
    Ok(())
}

/// Writes a file that is not there yet, for its owner alone, and the folder that it is in. Blocks.
pub fn create_new(path: &Path, text: &str) -> Result<(), SaveError> {
    let shown = path.display().to_string();
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => SaveError::Exists { path: shown.clone() },
        _ => SaveError::Io { path: shown.clone(), source },
    };
    fs::create_dir_all(folder(path)).map_err(refused)?;
    // Nobody else is to read what may hold secrets, as far as the system knows such words.
    #[cfg(unix)]
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    #[cfg(not(unix))]
    let permissions = fs::metadata(folder(path)).map_err(refused)?.permissions();
    let file = written(path, text, permissions).map_err(refused)?;
    file.persist_noclobber(path).map_err(|it| refused(it.error))?;
    settle(path);
    Ok(())
}

/// Writes a file, there or not, for its owner alone: whoever reads it meanwhile reads the old one, or the new one. Blocks.
pub fn replace(path: &Path, text: &str) -> Result<(), SaveError> {
    let shown = path.display().to_string();
    let refused = |source| SaveError::Io { path: shown.clone(), source };
    // A link stays one: what it names is replaced.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    #[cfg(unix)]
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    #[cfg(not(unix))]
    let permissions = fs::metadata(folder(&real)).map_err(refused)?.permissions();
    let file = written(&real, text, permissions).map_err(refused)?;
    file.persist(&real).map_err(|it| refused(it.error))?;
    settle(&real);
    Ok(())
}

/// The text in a file of its own, which is gone unless it takes another one's place.
fn written(path: &Path, text: &str, permissions: Permissions) -> io::Result<NamedTempFile> {
    let mut res = beside(&folder(path))?;
    res.write_all(text.as_bytes())?;
    res.as_file().set_permissions(permissions)?;
    res.as_file().sync_all()?;
    Ok(res)
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Gives the file to whom the other one belongs, where that is somebody else.
#[cfg(unix)]
fn own_as(file: &File, other: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};

    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    fchown(file, Some(other.uid()), Some(other.gid()))?;
    // A change of the owner takes some permissions away.
    file.set_permissions(other.permissions())
}

#[cfg(not(unix))]
fn own_as(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Makes the new name outlast a loss of power, where the system can.
fn settle(path: &Path) {
    if let Ok(folder) = File::open(folder(path)) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
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
    fn a_file_is_replaced_with_its_permissions_and_through_its_link() {
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
    fn what_is_put_in_place_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        for text in ["first", "second"] {
            replace(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        }
        symlink("a", &link).unwrap();
        replace(&link, "third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(replace(&folder.path().join("no/such"), "x").is_err());
        assert_eq!(names(folder.path()), ["a", "link"]);
    }

    #[test]
    fn what_somebody_else_wrote_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(save(&path, "old", "new"), Err(SaveError::Changed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert!(matches!(create(&path, "new", &path), Err(SaveError::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["a.yaml"]);
        let gone = folder.path().join("no/such");
        let error = save(&gone, "", "new").unwrap_err().to_string();
        assert!(error.ends_with("no/such: it does not exist"), "{error}");
    }

    #[test]
    fn a_file_that_may_not_be_written_is_not() {
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
    fn a_new_file_is_as_open_as_the_one_it_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("a.yaml"), folder.path().join("b.json"));
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        create(&new, "text", &path).unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "text");
        assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
