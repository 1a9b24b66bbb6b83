//! Processes of the system by id, from `/proc`.

use std::fs;
use std::process::{Child, Command};

use crate::wait::{block_for, block_until};

/// The status of a process in `/proc`.
struct ProcessStatus {
    state: char,
    parent: u32,
}

fn read_status(pid: u32) -> Option<ProcessStatus> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses, which may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(ProcessStatus { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

/// Whether the process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    read_status(pid).is_some_and(|status| status.state != 'Z')
}

/// Blocks until the processes have ended.
#[track_caller]
pub fn wait_until_dead(pids: &[u32]) {
    block_until(|| !pids.iter().any(|pid| is_alive(*pid)));
}

/// Blocks until the child has ended. Returns its exit code; `None` if a signal ended it.
#[track_caller]
pub fn wait_for_exit(child: &mut Child) -> Option<i32> {
    block_for(|| child.try_wait().unwrap()).code()
}

/// The child processes of `parent`, including zombies.
pub fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| read_status(*pid).is_some_and(|status| status.parent == parent)).collect()
}

/// The only running child of `parent`. Blocks while another one is still ending.
#[track_caller]
pub fn only_child(parent: u32) -> u32 {
    block_for(|| {
        let running: Vec<u32> = children(parent).into_iter().filter(|pid| is_alive(*pid)).collect();
        if let [child] = running[..] { Some(child) } else { None }
    })
}

/// Sends a signal by its name without `SIG`.
pub fn send_signal(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Whether the process has a handler for this signal number.
pub fn catches_signal(pid: u32, signal: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map_or("0", str::trim);
    u64::from_str_radix(mask, 16).unwrap() & (1 << (signal - 1)) != 0
}

/// The resources of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessResources {
    /// Open files, sockets and pipes.
    pub descriptors: usize,
    /// Child processes, including zombies.
    pub children: usize,
}

impl ProcessResources {
    /// The current resources.
    pub fn now() -> ProcessResources {
        let children = children(std::process::id()).len();
        // One of them belongs to this directory listing.
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().count() - 1;
        ProcessResources { descriptors, children }
    }
}

/// The resident memory of this process, in KiB.
pub fn resident_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
