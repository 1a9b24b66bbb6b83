//! Which process something on disk belongs to, so that what a SIGKILL leaves behind is known for what it is.
//!
//! A process id alone may be another's by now. With the time of its start it names one process, within one boot and one
//! namespace of process ids; of what belongs to another of these nothing is known here, and nothing is done about it.

use std::fmt;
use std::fs;

/// A process, in words that a file's or a folder's name can hold: letters, digits and `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    id: u32,
    /// In clock ticks since boot.
    started: u64,
    /// Boot and namespace, without what stands between their letters and digits.
    world: String,
}

impl ProcessIdentity {
    /// This process. `None` where there is no `/proc` to tell it by.
    pub fn current() -> Option<ProcessIdentity> {
        ProcessIdentity::of(std::process::id())
    }

    /// What [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<ProcessIdentity> {
        let mut parts = text.split('-');
        let owner = ProcessIdentity {
            id: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            world: parts.next()?.to_owned(),
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether it is known to have ended. One of another boot or another namespace may live, elsewhere.
    pub fn is_dead(&self) -> bool {
        here().is_some_and(|it| it == self.world) && started(self.id) != Some(self.started)
    }

    fn of(id: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity { id, started: started(id)?, world: here()? })
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessIdentity { id, started, world } = self;
        write!(f, "{id}-{started}-{world}")
    }
}

/// The world as it stands in a name. `None` where either half of it is not known.
fn here() -> Option<String> {
    let world = world();
    let (boot, namespace) = world.split_once(' ')?;
    if boot.is_empty() || namespace.is_empty() {
        return None;
    }
    Some(world.chars().filter(char::is_ascii_alphanumeric).collect())
}

/// When a process started, in clock ticks since boot. `None` when there is none of that id.
pub(super) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses, and may hold anything.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The boot's id and the namespace of process ids.
pub(super) fn world() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_for_itself_and_dead_when_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let owner = ProcessIdentity::of(child.id()).unwrap();
        assert_eq!(ProcessIdentity::parse(&owner.to_string()).as_ref(), Some(&owner));
        assert!(!owner.is_dead());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(owner.is_dead());
        // Its number is another's: what lives is not it.
        let ours = ProcessIdentity::current().unwrap();
        assert!(!ours.is_dead());
        assert!(ProcessIdentity { started: owner.started + 1, ..ours.clone() }.is_dead());
        // Of another boot, or another namespace, nothing is known.
        let elsewhere = |world: String| ProcessIdentity { started: 0, world, ..ours.clone() };
        assert!(!elsewhere(format!("{}1", ours.world)).is_dead());
        assert!(!elsewhere(String::new()).is_dead());
    }

    #[test]
    fn what_is_no_owner_is_none() {
        for text in ["", "1", "1-2", "1-2-a-b", "x-2-a", "-1-2-a", "1--a", "99999999999-1-a"] {
            assert_eq!(ProcessIdentity::parse(text), None, "{text}");
        }
    }
}
