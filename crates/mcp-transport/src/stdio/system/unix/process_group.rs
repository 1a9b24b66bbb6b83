//! Process groups: signalling all processes of a server and waiting until they have ended.
//!
//! A zombie (exited but not waited for) still counts as a group member for the system, and its parent may wait for it
//! late or never. Nothing is left to end then, so a group of zombies counts as ended, and closing does not wait for it.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::time::Instant;

/// How often the group is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The process group of a child. Dropping it kills every process in it.
pub(crate) struct ProcessGroup(Option<Pid>);

/// The state of a group's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupMembers {
    /// No members.
    None,
    /// Only zombies.
    Zombies,
    /// This member is alive; there may be others.
    Alive(u32),
    /// There are members, but the system does not show their state.
    Unknown,
}

impl ProcessGroup {
    /// The group led by process `leader`.
    pub(crate) fn with_leader(leader: u32) -> ProcessGroup {
        let pid = i32::try_from(leader).ok().filter(|it| *it > 1);
        ProcessGroup(pid.map(Pid::from_raw))
    }

    /// Sends SIGTERM to the group.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Sends SIGKILL to the group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Ends the rest of the group after its leader was waited for: with SIGTERM until `deadline`, then with SIGKILL.
    pub(crate) async fn end_remaining(mut self, deadline: Instant) {
        let mut members = self.members(GroupMembers::Unknown);
        if matches!(members, GroupMembers::Alive(_) | GroupMembers::Unknown) {
            self.terminate();
        }
        while matches!(members, GroupMembers::Alive(_) | GroupMembers::Unknown) && Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
            members = self.members(members);
        }
        // Dropping the group kills its members. The id of an empty group may be reused from now on.
        if members == GroupMembers::None {
            self.0 = None;
        }
    }

    /// Looks up the state of the members. The process last seen alive is checked first, to avoid scanning all
    /// processes.
    fn members(&self, previous: GroupMembers) -> GroupMembers {
        let Some(group) = self.0 else { return GroupMembers::None };
        if killpg(group, None) == Err(Errno::ESRCH) {
            return GroupMembers::None;
        }
        match previous {
            GroupMembers::Alive(pid) if is_living_member(pid, group) => previous,
            _ => find_members(group),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // The group may have ended already.
            let _ = killpg(pid, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Finds a living member of a group that is not empty, as far as the system shows.
fn find_members(group: Pid) -> GroupMembers {
    // A `/proc` of another PID namespace says nothing about our processes.
    let is_our_proc =
        fs::read_link("/proc/self").is_ok_and(|it| it.to_str() == Some(&std::process::id().to_string()));
    let Ok(entries) = fs::read_dir("/proc") else { return GroupMembers::Unknown };
    if !is_our_proc {
        return GroupMembers::Unknown;
    }
    let mut pids = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    match pids.find(|pid| is_living_member(*pid, group)) {
        Some(pid) => GroupMembers::Alive(pid),
        None => GroupMembers::Zombies,
    }
}

/// Whether a process with this id is in the group and has not exited.
fn is_living_member(pid: u32, group: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| stat_is_living_member(&it, group))
}

/// Whether the `stat` file of a process shows a member of the group that has not exited.
fn stat_is_living_member(stat: &str, group: Pid) -> bool {
    // The second field is the name in parentheses and may contain anything.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let (Some(state), Some(group_of_process)) = (fields.first(), fields.get(2)) else { return false };
    // A process whose main thread has exited looks like a zombie; its other threads are counted.
    let threads = fields.get(17).and_then(|it| it.parse().ok()).unwrap_or(1);
    let has_ended = matches!(*state, "Z" | "X" | "x") && threads <= 1;
    !has_ended && group_of_process.parse() == Ok(group.as_raw())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a shell script as the leader of a group of its own.
    fn start_leader(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    async fn wait_until(condition: impl Fn() -> bool) {
        for _ in 0..2000 {
            if condition() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the condition did not become true");
    }

    #[test]
    fn process_is_alive_until_all_its_threads_have_exited() {
        let check =
            |stat: &str, want| assert_eq!(stat_is_living_member(stat, Pid::from_raw(70)), want, "{stat}");
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
    async fn hd_117_close_does_not_wait_for_zombies() {
        // A daemon that left the group and never waits for its child, which stays a zombie.
        let folder = tempfile::tempdir().unwrap();
        let (pid, ended) = (folder.path().join("pid"), folder.path().join("ended"));
        let mut leader = start_leader(&format!(
            "sh -c 'echo $$ >{}; {{ : >{}; }} & exec setsid sleep 60' & wait",
            pid.display(),
            ended.display(),
        ));
        let group = Pid::from_raw(i32::try_from(leader.id()).unwrap());
        let daemon = || fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
        wait_until(|| ended.exists() && daemon().is_some_and(|it| getpgid(it).is_some_and(|it| it != group)))
            .await;
        leader.kill().unwrap();
        leader.wait().unwrap();
        wait_until(|| find_members(group) == GroupMembers::Zombies).await;
        assert_ne!(killpg(group, None), Err(Errno::ESRCH), "a zombie is still a member for the system");

        let started_at = Instant::now();
        ProcessGroup(Some(group)).end_remaining(started_at + Duration::from_secs(10)).await;
        assert_eq!(started_at.elapsed(), Duration::ZERO);
        let daemon = Pid::from_raw(i32::try_from(daemon().unwrap()).unwrap());
        nix::sys::signal::kill(daemon, Signal::SIGKILL).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn hd_117_living_members_are_killed_at_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let mut leader = start_leader(&format!(
            "sh -c 'trap \"\" TERM; : >{}; while :; do sleep 0.1; done' & wait",
            ready.display()
        ));
        let group = Pid::from_raw(i32::try_from(leader.id()).unwrap());
        wait_until(|| ready.exists()).await;
        leader.kill().unwrap();
        leader.wait().unwrap();
        let started_at = Instant::now();
        ProcessGroup(Some(group)).end_remaining(started_at + Duration::from_secs(10)).await;
        assert_eq!(started_at.elapsed(), Duration::from_secs(10));
        wait_until(|| !matches!(find_members(group), GroupMembers::Alive(_))).await;
    }

    fn getpgid(pid: u32) -> Option<Pid> {
        nix::unistd::getpgid(i32::try_from(pid).ok().map(Pid::from_raw)).ok()
    }
}
