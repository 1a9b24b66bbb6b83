//! Identifies the process that owns a file or folder on disk, so that leftovers of a killed host are recognized.
//!
//! A process id alone may be reused. With its start time it identifies one process within one boot and one PID
//! namespace. For a process of another boot or namespace nothing is known, and nothing is done.

use std::fmt;
use std::fs;

/// A process, as text that a file name can contain: letters, digits and `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    id: u32,
    /// Start time in clock ticks since boot.
    started: u64,
    /// Boot id and namespace, letters and digits only.
    boot_and_namespace: String,
}

impl ProcessIdentity {
    /// This process; `None` without `/proc`.
    pub fn current() -> Option<ProcessIdentity> {
        ProcessIdentity::from_pid(std::process::id())
    }

    /// Parses the output of [`fmt::Display`].
    pub fn parse(text: &str) -> Option<ProcessIdentity> {
        let mut parts = text.split('-');
        let owner = ProcessIdentity {
            id: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            boot_and_namespace: parts.next()?.to_owned(),
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether the process has certainly ended. A process of another boot or namespace may still run there.
    pub fn is_dead(&self) -> bool {
        current_boot_and_namespace().is_some_and(|it| it == self.boot_and_namespace)
            && start_time(self.id) != Some(self.started)
    }

    fn from_pid(id: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity {
            id,
            started: start_time(id)?,
            boot_and_namespace: current_boot_and_namespace()?,
        })
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessIdentity { id, started, boot_and_namespace } = self;
        write!(f, "{id}-{started}-{boot_and_namespace}")
    }
}

/// Boot id and namespace as used in a name; `None` if either is unknown.
fn current_boot_and_namespace() -> Option<String> {
    let boot_and_namespace = boot_and_namespace();
    let (boot, namespace) = boot_and_namespace.split_once(' ')?;
    if boot.is_empty() || namespace.is_empty() {
        return None;
    }
    Some(boot_and_namespace.chars().filter(char::is_ascii_alphanumeric).collect())
}

/// The start time of a process in clock ticks since boot; `None` if it is not running.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    parse_start_time(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the start time from the text of `/proc/PID/stat`. `None` for a zombie, which may never be reaped.
fn parse_start_time(stat: &str) -> Option<u64> {
    // The second field is the name in parentheses and may contain anything.
    let after_name = stat.rsplit_once(')')?.1;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // Fields 3, 20 and 22 of proc(5).
    let [state, threads, started] = [0, 17, 19].map(|index| fields.get(index).copied());
    // The main thread of a process may end before its other threads do.
    let is_dead = matches!(state?, "Z" | "X" | "x") && threads?.parse::<u32>().is_ok_and(|it| it <= 1);
    if is_dead { None } else { started?.parse().ok() }
}

/// The boot id and the PID namespace, separated by a space; each is empty if it is unknown.
pub(super) fn boot_and_namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_dead_after_the_process_has_exited() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let owner = ProcessIdentity::from_pid(child.id()).unwrap();
        assert_eq!(ProcessIdentity::parse(&owner.to_string()).as_ref(), Some(&owner));
        assert!(!owner.is_dead());
        child.kill().unwrap();
        // Its parent does not wait for it: it stays a zombie.
        let killed = std::time::Instant::now();
        while !owner.is_dead() && killed.elapsed() < std::time::Duration::from_secs(20) {
            std::thread::yield_now();
        }
        assert!(owner.is_dead());
        assert!(fs::exists(format!("/proc/{}", child.id())).unwrap());
        child.wait().unwrap();
        assert!(owner.is_dead());
        // The id is reused: the living process is a different one.
        let ours = ProcessIdentity::current().unwrap();
        assert!(!ours.is_dead());
        assert!(ProcessIdentity { started: owner.started + 1, ..ours.clone() }.is_dead());
        // Nothing is known about another boot or namespace.
        let in_namespace =
            |boot_and_namespace: String| ProcessIdentity { started: 0, boot_and_namespace, ..ours.clone() };
        assert!(!in_namespace(format!("{}1", ours.boot_and_namespace)).is_dead());
        assert!(!in_namespace(String::new()).is_dead());
    }

    #[track_caller]
    fn check_stat(state: &str, threads: u32, want: Option<u64>) {
        let stat = format!("7 (a) b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0");
        assert_eq!(parse_start_time(&stat), want, "{state} {threads}");
    }

    #[test]
    fn zombie_is_not_running() {
        check_stat("S", 1, Some(4711));
        check_stat("Z", 1, None);
        check_stat("X", 0, None);
        // Only the main thread has ended.
        check_stat("Z", 3, Some(4711));
        assert_eq!(parse_start_time("7 (a"), None);
        assert_eq!(parse_start_time("7 (a) S 1"), None);
    }

    #[test]
    fn invalid_text_is_rejected() {
        for text in ["", "1", "1-2", "1-2-a-b", "x-2-a", "-1-2-a", "1--a", "99999999999-1-a"] {
            assert_eq!(ProcessIdentity::parse(text), None, "{text}");
        }
    }
}
