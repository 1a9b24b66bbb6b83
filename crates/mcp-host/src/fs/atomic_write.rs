//! Files that are written beside their place, to be moved there in one step; and what is left of those whose writer was
//! killed, which the next writer in the same folder takes away.
//!
//! Invariant: only what carries our name, belongs to the same user, was not touched for long and is locked by nobody is
//! taken away. Whoever writes holds his file locked, which the system undoes when he is gone; where files cannot be locked
//! nothing is taken away.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fs4::{FileExt, TryLockError};
use tempfile::{Builder, NamedTempFile};

const PREFIX: &str = ".mcp-host-";
const SUFFIX: &str = ".tmp";

/// How many characters of chance stand between the two.
const CHANCE: usize = 6;

/// Nobody writes for so long. It stands beside the lock: a file is there a moment before it is locked.
const OLD: Duration = Duration::from_secs(60 * 60);

/// How many names of a folder are looked at.
const MOST_NAMES: usize = 4096;

/// A new file in `folder`, for its owner alone, which is gone unless it takes another one's place. Blocks.
pub(crate) fn beside(folder: &Path) -> io::Result<NamedTempFile> {
    let res = Builder::new().prefix(PREFIX).suffix(SUFFIX).rand_bytes(CHANCE).tempfile_in(folder)?;
    // Where it cannot be locked nobody takes it away either.
    let _ = FileExt::try_lock(res.as_file());
    if let Ok(own) = res.as_file().metadata() {
        tidy(folder, &own, SystemTime::now());
    }
    Ok(res)
}

/// Takes away what those have left who were killed while they wrote.
fn tidy(folder: &Path, own: &Metadata, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.take(MOST_NAMES).flatten() {
        if entry.file_name().to_str().is_some_and(is_ours) {
            // Somebody else may have done it, or may not let us.
            let _ = take_away(&entry.path(), own, now);
        }
    }
}

/// Is it a name that we give?
fn is_ours(name: &str) -> bool {
    let chance = name.strip_prefix(PREFIX).and_then(|it| it.strip_suffix(SUFFIX));
    chance.is_some_and(|it| it.len() == CHANCE && it.bytes().all(|it| it.is_ascii_alphanumeric()))
}

/// Takes a file away that nobody writes any more.
fn take_away(path: &Path, own: &Metadata, now: SystemTime) -> io::Result<()> {
    let seen = fs::symlink_metadata(path)?;
    let is_old = now.duration_since(seen.modified()?).is_ok_and(|it| it >= OLD);
    if !seen.is_file() || !is_old || !is_of_same_user(&seen, own) {
        return Ok(());
    }
    let file = File::open(path)?;
    match FileExt::try_lock(&file) {
        Ok(()) => {}
        // Its writer lives, or nobody can tell.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(()),
    }
    // What was locked is what lies there: its name may have been given away in between.
    match is_same(&file.metadata()?, &seen) && is_same(&fs::symlink_metadata(path)?, &seen) {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

/// Are they of one user, on one disk, and is this its only name?
#[cfg(unix)]
fn is_of_same_user(one: &Metadata, own: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.uid(), one.dev(), one.nlink()) == (own.uid(), own.dev(), 1)
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Nobody can tell.
#[cfg(not(unix))]
fn is_of_same_user(_: &Metadata, _: &Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn aged(folder: &Path, name: &str, age: Duration) -> File {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        file
    }

    #[test]
    fn only_what_was_abandoned_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        drop(aged(path, ".mcp-host-aB3dE9.tmp", OLD));
        let kept = [
            // Somebody may be writing it.
            (".mcp-host-young1.tmp", Duration::from_secs(60)),
            // Names of others.
            (".mcp-host-short.tmp", OLD),
            (".mcp-host-aB3dE9.tmp2", OLD),
            (".mcp-host-aB-dE9.tmp", OLD),
            ("mcp-host-aB3dE9.tmp", OLD),
            (".tmpaB3dE9", OLD),
        ];
        for (name, age) in kept {
            drop(aged(path, name, age));
        }
        let writing = aged(path, ".mcp-host-writes.tmp", 24 * OLD);
        FileExt::try_lock(&writing).unwrap();
        fs::create_dir(path.join(".mcp-host-folder.tmp")).unwrap();
        // A link leads to what is not ours to take away, and one file may have two names.
        drop(aged(path, "precious", OLD));
        symlink("precious", path.join(".mcp-host-alink1.tmp")).unwrap();
        fs::hard_link(path.join("precious"), path.join(".mcp-host-second.tmp")).unwrap();

        drop(beside(path).unwrap());
        let mut left: Vec<String> =
            fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut want: Vec<&str> = kept.map(|it| it.0).to_vec();
        want.extend([".mcp-host-writes.tmp", ".mcp-host-folder.tmp", "precious"]);
        want.extend([".mcp-host-alink1.tmp", ".mcp-host-second.tmp"]);
        want.sort();
        assert_eq!(left, want);

        // Its writer was killed: the system has unlocked it.
        drop(writing);
        drop(beside(path).unwrap());
        assert!(!path.join(".mcp-host-writes.tmp").exists());
    }

    #[test]
    fn what_somebody_else_owns_stays() {
        use std::os::unix::fs::{MetadataExt, chown};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".mcp-host-aB3dE9.tmp");
        drop(aged(folder.path(), ".mcp-host-aB3dE9.tmp", OLD));
        let other = fs::metadata(&path).unwrap().uid() + 1;
        // Only root can give a file away; for everybody else it is as if it were somebody else's that looks.
        if chown(&path, Some(other), None).is_ok() {
            drop(beside(folder.path()).unwrap());
            assert!(path.exists());
        }
    }

    #[test]
    fn a_clock_that_was_put_back_takes_nothing_away() {
        let folder = tempfile::tempdir().unwrap();
        let file = aged(folder.path(), ".mcp-host-aB3dE9.tmp", Duration::ZERO);
        file.set_modified(SystemTime::now() + 24 * OLD).unwrap();
        drop(file);
        drop(beside(folder.path()).unwrap());
        assert!(folder.path().join(".mcp-host-aB3dE9.tmp").exists());
    }
}
