//! Receipts for running process groups, so that what a SIGKILL of ours leaves behind is found at the next start.
//!
//! The parent-death signal reaches a direct child only. Each group therefore has a file that says whose it is, and its
//! processes carry a token in their environment. At the next start groups whose owner is dead are ended: the processes
//! that are in the group and carry the token. A number alone may belong to somebody else by then, and a daemon that
//! has left the group was meant to outlive its server; an orderly close leaves it alone, too.
//!
//! Needs `/proc`; elsewhere no receipt is written and nothing is reaped.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use serde::{Deserialize, Serialize};

use super::owner::{started, world};

/// The environment variable that carries the token.
pub(crate) const TOKEN: &str = "MCP_HOST_INSTANCE";

/// The extension of a receipt that is being written.
const UNFINISHED: &str = "new";

/// Nobody writes one for so long. Whose it is says its name, but only to those who see the same processes.
const OLD: Duration = Duration::from_secs(60 * 60);

/// A folder of receipts. One folder serves any number of hosts at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptDirectory(PathBuf);

/// A process group that was found without its owner, and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapedGroup {
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
    /// The boot, and the namespace of process ids, in which these numbers mean something.
    world: String,
    /// `None` until the group runs.
    group: Option<u32>,
    token: String,
    command: String,
}

/// A receipt that is taken back when its group has ended.
pub(crate) struct Held {
    path: PathBuf,
    receipt: Receipt,
}

impl ReceiptDirectory {
    /// The folder, made when the first receipt is written.
    pub fn new(path: impl Into<PathBuf>) -> ReceiptDirectory {
        ReceiptDirectory(path.into())
    }

    /// Ends the groups whose owner is dead. Blocks for up to a third of a second for each that does not end at once.
    /// Fails when the folder cannot be read; a folder that does not exist holds no receipts.
    pub fn reap(&self) -> io::Result<Vec<ReapedGroup>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut res = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == UNFINISHED) {
                forget_unfinished(&path, SystemTime::now());
            }
            if path.extension().is_none_or(|it| it != "json") {
                continue;
            }
            let receipt = fs::read(&path).ok().and_then(|it| serde_json::from_slice::<Receipt>(&it).ok());
            let Some(receipt) = receipt else { continue };
            let here = world();
            if here.split_once(' ').map(|it| it.0) != receipt.world.split_once(' ').map(|it| it.0) {
                // Nothing outlives a boot.
                let _ = fs::remove_file(&path);
                continue;
            }
            // A host in a container is known by other numbers there: its receipts are for its like to judge.
            if here != receipt.world || started(receipt.owner) == Some(receipt.owner_started) {
                continue;
            }
            let processes = end_those(&|| members(receipt.group, &receipt.token));
            // Taken back last: if this host dies too, the next one goes on.
            let _ = fs::remove_file(&path);
            if processes > 0 {
                res.push(ReapedGroup { command: receipt.command, processes });
            }
        }
        Ok(res)
    }

    /// Writes the receipt for a group that is about to be started with `token`: before it is, for we may die in between.
    pub(crate) fn write(&self, token: &str, command: &str) -> io::Result<Held> {
        let owner = std::process::id();
        let owner_started = started(owner).ok_or_else(|| io::Error::other("there is no /proc"))?;
        let receipt = Receipt {
            owner,
            owner_started,
            world: world(),
            group: None,
            token: token.to_owned(),
            command: command.to_owned(),
        };
        make_private(&self.0)?;
        let held = Held { path: self.0.join(format!("{token}.json")), receipt };
        held.save()?;
        Ok(held)
    }
}

/// Takes away what a host has left that was killed while it wrote a receipt.
fn forget_unfinished(path: &Path, now: SystemTime) {
    let token = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
    let mut numbers = token.split('-').map(|it| it.parse::<u64>().ok());
    let (Some(Some(pid)), Some(Some(owner_started)), Some(Some(_)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return;
    };
    let lives = u32::try_from(pid).is_ok_and(|it| started(it) == Some(owner_started));
    let modified = fs::symlink_metadata(path).and_then(|it| it.modified());
    let is_old = modified.is_ok_and(|it| now.duration_since(it).is_ok_and(|it| it >= OLD));
    if !lives && is_old {
        let _ = fs::remove_file(path);
    }
}

impl Held {
    /// The group runs, under this number.
    pub(crate) fn started(&mut self, group: u32) -> io::Result<()> {
        self.receipt.group = Some(group);
        self.save()
    }

    /// Whole or not at all: a receipt that is half written is read by nobody, and is not left there.
    fn save(&self) -> io::Result<()> {
        let unfinished = self.path.with_extension(UNFINISHED);
        let write = || {
            let mut file = fs::File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec(&self.receipt)?)?;
            fs::rename(&unfinished, &self.path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A token that no other group has of any host that sees the same processes.
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

/// Kills the processes that carry the token at once: what a child has left that could not be held. The child itself is
/// waited for by who started it.
pub(crate) fn end(token: &str) {
    for pid in carriers(token) {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// The processes of `group` that carry the token. Where the host died before it knew the number, all that carry it are
/// of the group: they had no time to leave.
fn members(group: Option<u32>, token: &str) -> Vec<Pid> {
    let marked = carriers(token);
    let Some(group) = group else { return marked };
    let group = i32::try_from(group).map(Pid::from_raw).ok();
    marked.into_iter().filter(|it| getpgid(Some(*it)).ok() == group).collect()
}

/// Ends processes: politely, then by force. Returns how many there were.
fn end_those(those: &dyn Fn() -> Vec<Pid>) -> usize {
    let found = those();
    for pid in &found {
        let _ = kill(*pid, Signal::SIGTERM);
    }
    for _ in 0..10 {
        if those().is_empty() {
            return found.len();
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    for pid in those() {
        let _ = kill(pid, Signal::SIGKILL);
    }
    found.len()
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
        let receipts = ReceiptDirectory::new(folder.path().join("a/b"));
        assert_eq!(receipts.reap().unwrap(), []);
        let mut held = receipts.write(&token(), "x").unwrap();
        held.started(1).unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        assert_eq!(fs::read_dir(&receipts.0).unwrap().count(), 1);
        drop(held);
        assert_eq!(fs::read_dir(&receipts.0).unwrap().count(), 0);
    }

    #[test]
    fn a_process_without_the_token_is_never_touched() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = ReceiptDirectory::new(folder.path());
        // A dead owner, and as group our own process: what a reused number looks like.
        let receipt = Receipt {
            owner: std::process::id(),
            owner_started: 0,
            world: world(),
            group: Some(std::process::id()),
            token: "nobody-carries-this".to_owned(),
            command: "x".to_owned(),
        };
        fs::write(folder.path().join("a.json"), serde_json::to_vec(&receipt).unwrap()).unwrap();
        fs::write(folder.path().join("broken.json"), "{").unwrap();
        let elsewhere =
            Receipt { world: format!("{} pid:[1]", world().split_once(' ').unwrap().0), ..receipt };
        fs::write(folder.path().join("b.json"), serde_json::to_vec(&elsewhere).unwrap()).unwrap();
        let before = Receipt { world: "another boot".to_owned(), ..elsewhere };
        fs::write(folder.path().join("c.json"), serde_json::to_vec(&before).unwrap()).unwrap();
        assert_eq!(receipts.reap().unwrap(), []);
        let left = |name| folder.path().join(name).exists();
        assert_eq!((left("a.json"), left("b.json"), left("c.json")), (false, true, false));
    }

    #[test]
    fn what_a_killed_writer_has_left_goes_once_it_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = ReceiptDirectory::new(folder.path());
        let (own, dead) = (token(), format!("{}-1-0", std::process::id()));
        for (name, age) in [
            (format!("{dead}.new"), OLD),
            (format!("{}-1-1.new", std::process::id()), Duration::from_secs(60)),
            (format!("{own}.new"), OLD),
            ("notes.new".to_owned(), OLD),
        ] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        assert_eq!(receipts.reap().unwrap(), []);
        assert!(!folder.path().join(format!("{dead}.new")).exists());
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            3,
            "of the living, of a moment ago, of others"
        );
    }

    #[test]
    fn our_own_start_is_known() {
        assert!(started(std::process::id()).is_some_and(|it| it > 0));
        assert_ne!(token(), token());
    }
}
