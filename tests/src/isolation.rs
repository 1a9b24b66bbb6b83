//! What a process holds, and a process of its own for a test that counts it: beside other tests nobody can tell whose
//! descriptor or child it is.

use std::process::Command;

/// Where a test that counts is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Here: this process runs nothing else.
    Here,
    /// It has run in a process of its own, and was well.
    AlreadyRun,
}

/// Set in a process that runs one test run_isolated.
const MARK: &str = "MCP_TEST_ALONE";

/// Runs the test with this full name (`module::function`) in a process of its own, unless this is that process.
#[track_caller]
pub fn run_isolated(test: &str) -> Isolation {
    run_isolated_in(test, "exec \"$0\" \"$@\"", &[])
}

/// The same, where a shell has this to do with the program and its arguments, `$0` and `$@`: limits, mounts. The process
/// has these variables besides.
#[track_caller]
pub fn run_isolated_in(test: &str, shell: &str, variables: &[(&str, String)]) -> Isolation {
    if std::env::var_os(MARK).is_some() {
        return Isolation::Here;
    }
    let own = std::env::current_exe().expect("a test is a program");
    let output = Command::new("sh")
        .args(["-c", shell])
        .arg(own)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .envs(variables.iter().map(|(name, value)| (*name, value)))
        .output()
        .expect("there is a shell");
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    eprintln!("{stderr}");
    assert!(output.status.success(), "{test}: {}\n{stdout}", output.status);
    // A name that no test has is no success.
    assert!(stdout.contains("1 passed"), "{test}: {stdout}");
    Isolation::AlreadyRun
}

/// What this process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessResources {
    /// Open files, sockets, pipes.
    pub descriptors: usize,
    /// Its children, those that are dead and were not waited for among them.
    pub children: usize,
}

impl ProcessResources {
    /// What it holds now.
    pub fn now() -> ProcessResources {
        let own = std::process::id().to_string();
        let processes = std::fs::read_dir("/proc").expect("the system tells of its processes").flatten();
        let parent = |entry: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // Behind the name, which may hold anything: the state, then the parent.
            stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
        };
        let children = processes.filter_map(parent).filter(|it| *it == own).count();
        let open = std::fs::read_dir("/proc/self/fd").expect("the system tells of this process");
        // One of them is that of the reading.
        ProcessResources { descriptors: open.count() - 1, children }
    }
}

/// The memory of this process that is in use, in KiB.
pub fn resident_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system tells of this process");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number of KiB")
}
