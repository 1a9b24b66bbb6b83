//! Resources of a process, and isolation of tests that count them: other tests in the process would change the counts.

use std::process::Command;

/// The role of this process in an isolated test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// This process runs only the test.
    Here,
    /// The test has passed in a child process.
    AlreadyRun,
}

/// The variable that marks a child process.
const MARK: &str = "MCP_TEST_ALONE";

/// Runs the test with this full name (`module::function`) in a child process, unless this is the child process.
#[track_caller]
pub fn run_isolated(test: &str) -> Isolation {
    run_isolated_in(test, "exec \"$0\" \"$@\"", &[])
}

/// The same with a shell script that starts the program and its arguments, `$0` and `$@`, for limits and mounts, and
/// with additional variables.
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
    // An unknown test name would succeed without a test.
    assert!(stdout.contains("1 passed"), "{test}: {stdout}");
    Isolation::AlreadyRun
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
        let own = std::process::id().to_string();
        let processes = std::fs::read_dir("/proc").expect("the system tells of its processes").flatten();
        let parent = |entry: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // After the name, which may contain anything: the state, then the parent.
            stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
        };
        let children = processes.filter_map(parent).filter(|it| *it == own).count();
        let open = std::fs::read_dir("/proc/self/fd").expect("the system tells of this process");
        // One of them belongs to this directory listing.
        ProcessResources { descriptors: open.count() - 1, children }
    }
}

/// The resident memory of this process, in KiB.
pub fn resident_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system tells of this process");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number of KiB")
}
