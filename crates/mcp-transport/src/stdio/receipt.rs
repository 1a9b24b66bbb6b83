//! On-disk receipts of process groups, used to end the groups of a killed host at the next start.
//!
//! The parent-death signal reaches direct children only. Each group therefore has a file that names its owner, and its
//! processes have a token in their environment. At the next start the host terminates the processes that are in the
//! group of a dead owner and have its token. The token check excludes a reused process id. A daemon that left the group
//! is not terminated, as in a normal shutdown.
//!
//! Needs `/proc`; without it no receipt is written and nothing is ended. Windows needs none: the system ends the
//! processes of a server with its host.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::process_identity::{boot_and_namespace, start_time};
use super::regular_file::open_regular_file;
use super::system;

/// The extension of a receipt that is being written.
const UNFINISHED_EXTENSION: &str = "new";

/// Unfinished receipts older than this are removed if their owner has ended. The pid in the file name may be of another
/// PID namespace, so the age is checked too.
const UNFINISHED_MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// A folder of receipts. Several hosts may share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptDirectory(PathBuf);

/// An orphaned process group that was terminated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReapedGroup {
    /// The command of the group.
    pub command: String,
    /// The number of its processes that were still running.
    pub processes: usize,
}

/// The content of a receipt file.
#[derive(Serialize, Deserialize)]
struct Receipt {
    /// The process id of the host.
    owner: u32,
    /// The start time of the host in clock ticks since boot; identifies the process together with its id.
    owner_started: u64,
    /// The boot id and PID namespace in which these ids are valid.
    boot_and_namespace: String,
    /// The id of the process group; `None` until it has started.
    group: Option<u32>,
    /// The token in the environment of its processes.
    token: String,
    command: String,
}

/// The receipt of a group. Deletes the file when it is dropped.
pub(crate) struct ReceiptGuard {
    path: PathBuf,
    receipt: Receipt,
}

impl ReceiptDirectory {
    /// The folder; it is created with the first receipt.
    pub fn new(path: impl Into<PathBuf>) -> ReceiptDirectory {
        ReceiptDirectory(path.into())
    }

    /// Ends the groups of dead owners. Blocks for up to 0.3 s for each group that does not end at once. Fails when the
    /// folder cannot be read; a missing folder has no receipts.
    pub fn reap(&self) -> io::Result<Vec<ReapedGroup>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut reaped = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == UNFINISHED_EXTENSION) {
                remove_stale_unfinished(&path, SystemTime::now());
            }
            if path.extension().is_none_or(|it| it != "json") {
                continue;
            }
            let receipt = open_regular_file(&path).and_then(io::read_to_string).ok();
            let receipt = receipt.and_then(|text| serde_json::from_str::<Receipt>(&text).ok());
            let Some(receipt) = receipt else { continue };
            let current = boot_and_namespace();
            if current.split_once(' ').map(|it| it.0)
                != receipt.boot_and_namespace.split_once(' ').map(|it| it.0)
            {
                // No process survives a reboot.
                let _ = fs::remove_file(&path);
                continue;
            }
            // Ids of another PID namespace mean something else here; a host in that namespace handles its receipts.
            if current != receipt.boot_and_namespace
                || start_time(receipt.owner) == Some(receipt.owner_started)
            {
                continue;
            }
            let processes = system::end_processes(receipt.group, &receipt.token);
            // Removed last: if this host dies too, the next one continues.
            let _ = fs::remove_file(&path);
            if processes > 0 {
                reaped.push(ReapedGroup { command: receipt.command, processes });
            }
        }
        Ok(reaped)
    }

    /// Writes the receipt for a group with `token`, before it is started, because this process may die in between.
    pub(crate) fn write(&self, token: &str, command: &str) -> io::Result<ReceiptGuard> {
        let owner = std::process::id();
        let owner_started = start_time(owner).ok_or_else(|| io::Error::other("there is no /proc"))?;
        let receipt = Receipt {
            owner,
            owner_started,
            boot_and_namespace: boot_and_namespace(),
            group: None,
            token: token.to_owned(),
            command: command.to_owned(),
        };
        // Only the user may read the folder.
        system::create_private_folder(&self.0)?;
        let guard = ReceiptGuard { path: self.0.join(format!("{token}.json")), receipt };
        guard.save()?;
        Ok(guard)
    }
}

/// Removes an unfinished receipt of a host that was killed while writing it.
fn remove_stale_unfinished(path: &Path, now: SystemTime) {
    let token = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
    let mut numbers = token.split('-').map(|it| it.parse::<u64>().ok());
    let (Some(Some(pid)), Some(Some(owner_started)), Some(Some(_)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return;
    };
    let is_running = u32::try_from(pid).is_ok_and(|it| start_time(it) == Some(owner_started));
    let modified = fs::symlink_metadata(path).and_then(|it| it.modified());
    let is_old = modified.is_ok_and(|it| now.duration_since(it).is_ok_and(|it| it >= UNFINISHED_MAX_AGE));
    if !is_running && is_old {
        let _ = fs::remove_file(path);
    }
}

impl ReceiptGuard {
    /// Records the id of the started group.
    pub(crate) fn record_group(&mut self, group: u32) -> io::Result<()> {
        self.receipt.group = Some(group);
        self.save()
    }

    /// Writes the receipt to a temporary file and renames it, so that a partial receipt is never read.
    fn save(&self) -> io::Result<()> {
        let unfinished = self.path.with_extension(UNFINISHED_EXTENSION);
        let write = || {
            let mut file = fs::File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec(&self.receipt)?)?;
            fs::rename(&unfinished, &self.path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
    }
}

impl Drop for ReceiptGuard {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A token that is unique among all hosts in this PID namespace.
pub(crate) fn new_token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let pid = std::process::id();
    format!("{pid}-{}-{}", start_time(pid).unwrap_or_default(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::stdio::program::TOKEN_VARIABLE;

    #[test]
    fn receipt_of_a_living_owner_is_kept_until_its_group_ends() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = ReceiptDirectory::new(folder.path().join("a/b"));
        assert_eq!(receipts.reap().unwrap(), []);
        let mut guard = receipts.write(&new_token(), "x").unwrap();
        guard.record_group(1).unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        assert_eq!(fs::read_dir(&receipts.0).unwrap().count(), 1);
        drop(guard);
        assert_eq!(fs::read_dir(&receipts.0).unwrap().count(), 0);
    }

    #[test]
    fn process_without_the_token_is_not_killed() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = ReceiptDirectory::new(folder.path());
        // A dead owner, and our own process as the group: a reused id.
        let receipt = Receipt {
            owner: std::process::id(),
            owner_started: 0,
            boot_and_namespace: boot_and_namespace(),
            group: Some(std::process::id()),
            token: "no-process-has-this".to_owned(),
            command: "x".to_owned(),
        };
        fs::write(folder.path().join("a.json"), serde_json::to_vec(&receipt).unwrap()).unwrap();
        fs::write(folder.path().join("broken.json"), "{").unwrap();
        let other_namespace = Receipt {
            boot_and_namespace: format!("{} pid:[1]", boot_and_namespace().split_once(' ').unwrap().0),
            ..receipt
        };
        fs::write(folder.path().join("b.json"), serde_json::to_vec(&other_namespace).unwrap()).unwrap();
        let other_boot = Receipt { boot_and_namespace: "another boot".to_owned(), ..other_namespace };
        fs::write(folder.path().join("c.json"), serde_json::to_vec(&other_boot).unwrap()).unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        let exists = |name| folder.path().join(name).exists();
        assert_eq!((exists("a.json"), exists("b.json"), exists("c.json")), (false, true, false));
    }

    #[test]
    fn group_of_a_host_that_is_a_zombie_is_ended() {
        use std::os::unix::process::CommandExt;
        let folder = tempfile::tempdir().unwrap();
        let receipts = ReceiptDirectory::new(folder.path());
        let mut host = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let token = format!("{}-of-a-zombie", new_token());
        let mut orphan = std::process::Command::new("sleep");
        let mut orphan = orphan.arg("1000").env(TOKEN_VARIABLE, &token).process_group(0).spawn().unwrap();
        let receipt = Receipt {
            owner: host.id(),
            owner_started: start_time(host.id()).unwrap(),
            boot_and_namespace: boot_and_namespace(),
            group: Some(orphan.id()),
            token,
            command: "sleep".to_owned(),
        };
        fs::write(folder.path().join("a.json"), serde_json::to_vec(&receipt).unwrap()).unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        host.kill().unwrap();
        let mut reaped = Vec::new();
        for _ in 0..1000 {
            reaped = receipts.reap().unwrap();
            if !reaped.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(reaped, [ReapedGroup { command: "sleep".to_owned(), processes: 1 }]);
        assert!(!orphan.wait().unwrap().success());
        host.wait().unwrap();
    }

    #[test]
    fn old_unfinished_receipt_of_a_dead_host_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = ReceiptDirectory::new(folder.path());
        let (own, dead) = (new_token(), format!("{}-1-0", std::process::id()));
        for (name, age) in [
            (format!("{dead}.new"), UNFINISHED_MAX_AGE),
            (format!("{}-1-1.new", std::process::id()), Duration::from_secs(60)),
            (format!("{own}.new"), UNFINISHED_MAX_AGE),
            ("notes.new".to_owned(), UNFINISHED_MAX_AGE),
        ] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        assert_eq!(receipts.reap().unwrap(), []);
        assert!(!folder.path().join(format!("{dead}.new")).exists());
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            3,
            "those of a running host, of a minute ago, and of other programs"
        );
    }

    #[test]
    fn own_start_time_is_known() {
        assert!(start_time(std::process::id()).is_some_and(|it| it > 0));
        assert_ne!(new_token(), new_token());
    }
}
