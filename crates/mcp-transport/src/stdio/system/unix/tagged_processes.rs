//! Finds and ends the processes whose environment has a token.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};

use crate::stdio::program::TOKEN_VARIABLE;

/// Kills all processes with the token, for a started child that could not be managed. The caller waits for the child
/// itself.
pub(in crate::stdio) fn kill_by_token(token: &str) {
    for pid in processes_with_token(token) {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// The processes of `group` that have the token. If the host died before it recorded the group, all processes with the
/// token count.
fn group_members(group: Option<u32>, token: &str) -> Vec<Pid> {
    let with_token = processes_with_token(token);
    let Some(group) = group else { return with_token };
    let group = i32::try_from(group).map(Pid::from_raw).ok();
    with_token.into_iter().filter(|it| getpgid(Some(*it)).ok() == group).collect()
}

/// Ends the processes of a group that have the token, with SIGTERM and after 0.3 s with SIGKILL. Returns their number.
pub(in crate::stdio) fn end_processes(group: Option<u32>, token: &str) -> usize {
    terminate(&|| group_members(group, token))
}

/// Ends the processes that `find_processes` returns. Returns their number.
fn terminate(find_processes: &dyn Fn() -> Vec<Pid>) -> usize {
    let processes_at_start = find_processes();
    for pid in &processes_at_start {
        let _ = kill(*pid, Signal::SIGTERM);
    }
    for _ in 0..10 {
        if find_processes().is_empty() {
            return processes_at_start.len();
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    for pid in find_processes() {
        let _ = kill(pid, Signal::SIGKILL);
    }
    processes_at_start.len()
}

fn processes_with_token(token: &str) -> Vec<Pid> {
    let marker = format!("{TOKEN_VARIABLE}={token}");
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
