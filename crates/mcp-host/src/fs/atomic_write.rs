//! Temporary files for atomic replacement, and removal of those that killed writers left behind.
//!
//! Invariant: a file is removed only if it has the name pattern of these files, belongs to the same user, is old, and
//! no process holds its lock. A writer locks its file; the system releases the lock when the process ends. Where files
//! cannot be locked, none is removed.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fs4::{FileExt, TryLockError};
use tempfile::{Builder, NamedTempFile};

use super::system::{is_of_same_user, is_same_file, private_folder_builder, replace};

/// The beginning of the names of temporary files.
const PREFIX: &str = ".mcp-host-";
/// The end of their names.
const SUFFIX: &str = ".tmp";

/// The number of random characters in a name.
const RANDOM_CHARS: usize = 6;

/// The minimum age of a stale file. A new file exists for a moment before it is locked.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);

/// The maximum number of entries checked in a folder.
const MAX_ENTRIES: usize = 4096;

/// Creates a private temporary file in `folder`, which is removed unless it is persisted. Blocks.
pub(crate) fn create_temp(folder: &Path) -> io::Result<NamedTempFile> {
    let file = Builder::new().prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM_CHARS).tempfile_in(folder)?;
    // A file that cannot be locked is never removed as stale.
    let _ = FileExt::try_lock(file.as_file());
    if let Ok(own) = file.as_file().metadata() {
        remove_stale(folder, &own, SystemTime::now());
    }
    Ok(file)
}

/// Replaces a file of the state folder atomically and durably, and creates its folder. Only their owner can read both,
/// from the start. Blocks.
pub(crate) fn replace_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder_builder().create(folder)?;
    let mut file = create_temp(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    replace(file, path)
}

/// Removes the temporary files of killed writers. `own` is the metadata of a file of this process.
fn remove_stale(folder: &Path, own: &Metadata, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        if entry.file_name().to_str().is_some_and(has_temp_name) {
            // Another process may have removed it, or we may lack the permission.
            let _ = remove_if_stale(&entry.path(), own, now);
        }
    }
}

/// Returns whether the name is one of a temporary file.
fn has_temp_name(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX).and_then(|it| it.strip_suffix(SUFFIX));
    random.is_some_and(|it| it.len() == RANDOM_CHARS && it.bytes().all(|it| it.is_ascii_alphanumeric()))
}

/// Removes a file that has no writer.
fn remove_if_stale(path: &Path, own: &Metadata, now: SystemTime) -> io::Result<()> {
    let seen = fs::symlink_metadata(path)?;
    let is_old = now.duration_since(seen.modified()?).is_ok_and(|it| it >= STALE_AFTER);
    if !seen.is_file() || !is_old || !is_of_same_user(&seen, own) {
        return Ok(());
    }
    let file = File::open(path)?;
    match FileExt::try_lock(&file) {
        Ok(()) => {}
        // It has a writer, or locks do not work here.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(()),
    }
    // The name may refer to another file by now.
    match is_same_file(&file.metadata()?, &seen) && is_same_file(&fs::symlink_metadata(path)?, &seen) {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn aged(folder: &Path, name: &str, age: Duration) -> File {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        file
    }

    #[test]
    fn only_stale_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        drop(aged(path, ".mcp-host-aB3dE9.tmp", STALE_AFTER));
        let kept = [
            // It may have a writer.
            (".mcp-host-young1.tmp", Duration::from_secs(60)),
            // Names without our pattern.
            (".mcp-host-short.tmp", STALE_AFTER),
            (".mcp-host-aB3dE9.tmp2", STALE_AFTER),
            (".mcp-host-aB-dE9.tmp", STALE_AFTER),
            ("mcp-host-aB3dE9.tmp", STALE_AFTER),
            (".tmpaB3dE9", STALE_AFTER),
        ];
        for (name, age) in kept {
            drop(aged(path, name, age));
        }
        let writing = aged(path, ".mcp-host-writes.tmp", 24 * STALE_AFTER);
        FileExt::try_lock(&writing).unwrap();
        fs::create_dir(path.join(".mcp-host-folder.tmp")).unwrap();
        // Links are not followed, and hard links are kept.
        drop(aged(path, "precious", STALE_AFTER));
        symlink("precious", path.join(".mcp-host-alink1.tmp")).unwrap();
        fs::hard_link(path.join("precious"), path.join(".mcp-host-second.tmp")).unwrap();

        drop(create_temp(path).unwrap());
        let mut left: Vec<String> =
            fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut want: Vec<&str> = kept.map(|it| it.0).to_vec();
        want.extend([".mcp-host-writes.tmp", ".mcp-host-folder.tmp", "precious"]);
        want.extend([".mcp-host-alink1.tmp", ".mcp-host-second.tmp"]);
        want.sort();
        assert_eq!(left, want);

        // A killed writer has lost its lock.
        drop(writing);
        drop(create_temp(path).unwrap());
        assert!(!path.join(".mcp-host-writes.tmp").exists());
    }

    #[test]
    fn files_of_other_users_are_kept() {
        use std::os::unix::fs::{MetadataExt, chown};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".mcp-host-aB3dE9.tmp");
        drop(aged(folder.path(), ".mcp-host-aB3dE9.tmp", STALE_AFTER));
        let other = fs::metadata(&path).unwrap().uid() + 1;
        // Only root can change the owner.
        if chown(&path, Some(other), None).is_ok() {
            drop(create_temp(folder.path()).unwrap());
            assert!(path.exists());
        }
    }

    #[test]
    fn files_from_the_future_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = aged(folder.path(), ".mcp-host-aB3dE9.tmp", Duration::ZERO);
        file.set_modified(SystemTime::now() + 24 * STALE_AFTER).unwrap();
        drop(file);
        drop(create_temp(folder.path()).unwrap());
        assert!(folder.path().join(".mcp-host-aB3dE9.tmp").exists());
    }
}
