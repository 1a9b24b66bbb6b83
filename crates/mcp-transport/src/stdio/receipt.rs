//! Receipts for running process groups, so that what a SIGKILL of ours leaves behind is found at the next start.
//!
//! The parent-death signal reaches a direct child only. Each group therefore has a file that says whose it is, and its
//! processes carry a token in their environment. At the next start groups whose owner is dead are ended, but only
//! processes that carry the token: a number may belong to somebody else by then.
//!
//! Needs `/proc`; elsewhere no receipt is written and nothing is reaped.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The environment variable that carries the token.
pub(crate) const TOKEN: &str = "MCP_HOST_INSTANCE";

/// A folder of receipts. One folder serves any number of hosts at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipts(PathBuf);

/// A process group that was found without its owner, and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaped {
    /// The group's number, its leader's process id.
    pub group: u32,
    /// The command that had been started.
    pub command: String,
    /// How many of its processes were still there.
    pub processes: usize,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    /// Process id of the host.
    owner: u32,
    /// When the host started, in clock ticks since boot: with the id it names one process.
    owner_started: u64,
    group: u32,
    token: String,
    command: String,
}

/// A receipt that is taken back when its group has ended.
pub(crate) struct Held(PathBuf);

impl Receipts {
    /// The folder, made when the first receipt is written.
    pub fn in_directory(path: impl Into<PathBuf>) -> Receipts {
        Receipts(path.into())
    }

    /// Ends the groups whose owner is dead. Blocks for at most about half a second, and only when there are any.
    /// Fails when the folder cannot be read; a folder that does not exist holds no receipts.
    pub fn reap(&self) -> io::Result<Vec<Reaped>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut res = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|it| it != "json") {
                continue;
            }
            let receipt = fs::read(&path).ok().and_then(|it| serde_json::from_slice::<Receipt>(&it).ok());
            let Some(receipt) = receipt else { continue };
            if started(receipt.owner) == Some(receipt.owner_started) {
                continue;
            }
            let processes = end(&receipt.token);
            // Taken back last: if this host dies too, the next one goes on.
            let _ = fs::remove_file(&path);
            if processes > 0 {
                res.push(Reaped { group: receipt.group, command: receipt.command, processes });
            }
        }
        Ok(res)
    }

    /// Writes the receipt for a group that was just started with `token`.
    pub(crate) fn write(&self, group: u32, token: &str, command: &str) -> io::Result<Held> {
        let owner = std::process::id();
        let owner_started = started(owner).ok_or_else(|| io::Error::other("there is no /proc"))?;
        let receipt =
            Receipt { owner, owner_started, group, token: token.to_owned(), command: command.to_owned() };
        make_private(&self.0)?;
        let path = self.0.join(format!("{token}.json"));
        let mut file = fs::File::create_new(&path)?;
        let held = Held(path);
        file.write_all(&serde_json::to_vec(&receipt)?)?;
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A token that no other group of any host on this machine has.
pub(crate) fn token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let pid = std::process::id();
    format!("{pid}-{}-{}", started(pid).unwrap_or_default(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// When a process started, in clock ticks since boot. `None` when there is none of that id.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses, and may hold anything.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Ends every process that carries the token, and returns how many there were.
fn end(token: &str) -> usize {
    let marked = carriers(token);
    for pid in &marked {
        let _ = kill(*pid, Signal::SIGTERM);
    }
    for _ in 0..10 {
        if marked.is_empty() || carriers(token).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    for pid in carriers(token) {
        let _ = kill(pid, Signal::SIGKILL);
    }
    marked.len()
}

fn carriers(token: &str) -> Vec<Pid> {
    let marker = format!("{TOKEN}={token}");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|it| *it == 0).any(|it| it == marker.as_bytes())
        })
        .map(Pid::from_raw)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_of_a_living_owner_is_left_alone_and_goes_with_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = Receipts::in_directory(folder.path().join("a/b"));
        assert_eq!(receipts.reap().unwrap(), []);
        let held = receipts.write(1, &token(), "x").unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        assert_eq!(fs::read_dir(&receipts.0).unwrap().count(), 1);
        drop(held);
        assert_eq!(fs::read_dir(&receipts.0).unwrap().count(), 0);
    }

    #[test]
    fn a_process_without_the_token_is_never_touched() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = Receipts::in_directory(folder.path());
        // A dead owner, and as group our own process: what a reused number looks like.
        let receipt = Receipt {
            owner: std::process::id(),
            owner_started: 0,
            group: std::process::id(),
            token: "nobody-carries-this".to_owned(),
            command: "x".to_owned(),
        };
        fs::write(folder.path().join("a.json"), serde_json::to_vec(&receipt).unwrap()).unwrap();
        fs::write(folder.path().join("broken.json"), "{").unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        assert!(!folder.path().join("a.json").exists());
    }

    #[test]
    fn our_own_start_is_known() {
        assert!(started(std::process::id()).is_some_and(|it| it > 0));
        assert_ne!(token(), token());
    }
}
