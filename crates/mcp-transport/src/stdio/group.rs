//! A process group that is never left behind.
//!
//! A process that has ended and was not waited for, a zombie, still counts as a member of its group for the system,
//! and whoever should wait for it may be slow, or never do it. Nothing can be asked of it and nothing is left to end,
//! so that a group of zombies is over here: a close does not wait for it.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::time::Instant;

/// How often it is looked whether a group is over.
const LOOK: Duration = Duration::from_millis(10);

/// The process group of a child. Dropping it kills every process that is still in it.
pub(crate) struct Group(Option<Pid>);

/// What is known of the members of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Members {
    /// There are none.
    None,
    /// There are only such as have ended.
    Ended,
    /// This one lives; there may be others.
    Lives(u32),
    /// There are some, and the system does not say how they are.
    Some,
}

impl Group {
    /// The group that process `leader` leads.
    pub(crate) fn of(leader: u32) -> Group {
        let pid = i32::try_from(leader).ok().filter(|it| *it > 1);
        Group(pid.map(Pid::from_raw))
    }

    /// Asks the processes of the group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends what is left of the group after its leader has been waited for: politely until `deadline`, then by force.
    pub(crate) async fn sweep(mut self, deadline: Instant) {
        let mut members = self.members(Members::Some);
        if matches!(members, Members::Lives(_) | Members::Some) {
            self.terminate();
        }
        while matches!(members, Members::Lives(_) | Members::Some) && Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
            members = self.members(members);
        }
        match members {
            // Its number may be somebody else's from now on.
            Members::None => self.0 = None,
            // Dropping it kills.
            Members::Ended | Members::Lives(_) | Members::Some => {}
        }
    }

    /// The members now. Whoever was last seen alive is looked at first, so that not all processes of the system are.
    fn members(&self, before: Members) -> Members {
        let Some(group) = self.0 else { return Members::None };
        if killpg(group, None) == Err(Errno::ESRCH) {
            return Members::None;
        }
        match before {
            Members::Lives(pid) if lives(pid, group) => before,
            Members::Lives(_) | Members::Some | Members::Ended | Members::None => living(group),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // A group that is already gone needs no signal.
            let _ = killpg(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// A living member of a group that is not empty, as far as the system tells.
fn living(group: Pid) -> Members {
    // A `/proc` of other processes than those that we see tells nothing of ours.
    let ours =
        fs::read_link("/proc/self").is_ok_and(|it| it.to_str() == Some(&std::process::id().to_string()));
    let Ok(entries) = fs::read_dir("/proc") else { return Members::Some };
    if !ours {
        return Members::Some;
    }
    let mut pids = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    match pids.find(|pid| lives(*pid, group)) {
        Some(pid) => Members::Lives(pid),
        None => Members::Ended,
    }
}

/// Is there a process with this number that is in the group, and has not ended?
fn lives(pid: u32, group: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| tells_of_life(&it, group))
}

/// The same, as the text of its `stat` says it.
fn tells_of_life(stat: &str, group: Pid) -> bool {
    // The second field is the name in parentheses, and may hold anything.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let (Some(state), Some(of)) = (fields.first(), fields.get(2)) else { return false };
    // A process whose first thread has ended looks like one that has; its others are counted.
    let threads = fields.get(17).and_then(|it| it.parse().ok()).unwrap_or(1);
    let ended = matches!(*state, "Z" | "X" | "x") && threads <= 1;
    !ended && of.parse() == Ok(group.as_raw())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// The leader of a group of its own, which does this.
    fn leader(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    async fn until(what: impl Fn() -> bool) {
        for _ in 0..2000 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not come to be so");
    }

    #[test]
    fn a_process_lives_unless_it_has_ended_with_all_its_threads() {
        let check = |stat: &str, want| assert_eq!(tells_of_life(stat, Pid::from_raw(70)), want, "{stat}");
        let rest = "70 0 -1 4194304 1 0 0 0 0 0 0 0 20 0";
        check(&format!("71 (sh) S 1 70 {rest} 1 0 100 0"), true);
        check(&format!("71 (sh) Z 1 70 {rest} 1 0 100 0"), false);
        check(&format!("71 (sh) Z 1 70 {rest} 2 0 100 0"), true);
        check(&format!("71 (sh) R 1 71 {rest} 1 0 100 0"), false);
        check(&format!("71 (a) Z 1 (b) S 1 70 {rest} 1 0 100 0"), true);
        check("", false);
        check("71 (sh) S", false);
    }

    #[tokio::test(start_paused = true)]
    async fn hd_117_a_close_does_not_wait_for_who_has_ended_already() {
        // A daemon that has left the group and waits for nobody: the child that it had before ends, and stays.
        let folder = tempfile::tempdir().unwrap();
        let (pid, ended) = (folder.path().join("pid"), folder.path().join("ended"));
        let mut leader = leader(&format!(
            "sh -c 'echo $$ >{}; {{ : >{}; }} & exec setsid sleep 60' & wait",
            pid.display(),
            ended.display(),
        ));
        let group = Pid::from_raw(i32::try_from(leader.id()).unwrap());
        let daemon = || fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
        until(|| ended.exists() && daemon().is_some_and(|it| getpgid(it).is_some_and(|it| it != group)))
            .await;
        leader.kill().unwrap();
        leader.wait().unwrap();
        until(|| living(group) == Members::Ended).await;
        assert_ne!(killpg(group, None), Err(Errno::ESRCH), "a zombie is still a member for the system");

        let begun = Instant::now();
        Group(Some(group)).sweep(begun + Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let daemon = Pid::from_raw(i32::try_from(daemon().unwrap()).unwrap());
        nix::sys::signal::kill(daemon, Signal::SIGKILL).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn hd_117_who_lives_is_waited_for_and_killed_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let mut leader = leader(&format!(
            "sh -c 'trap \"\" TERM; : >{}; while :; do sleep 0.1; done' & wait",
            ready.display()
        ));
        let group = Pid::from_raw(i32::try_from(leader.id()).unwrap());
        until(|| ready.exists()).await;
        leader.kill().unwrap();
        leader.wait().unwrap();
        let begun = Instant::now();
        Group(Some(group)).sweep(begun + Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        until(|| !matches!(living(group), Members::Lives(_))).await;
    }

    fn getpgid(pid: u32) -> Option<Pid> {
        nix::unistd::getpgid(i32::try_from(pid).ok().map(Pid::from_raw)).ok()
    }
}
