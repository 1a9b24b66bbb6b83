//! Isolation of tests that count the resources of their process: other tests in the process would change the counts.

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
const CHILD_VARIABLE: &str = "MCP_TEST_ALONE";

/// Runs the test with this full name (`module::function`) in a child process, unless this is the child process.
#[track_caller]
pub fn run_isolated(test: &str) -> Isolation {
    run_isolated_in(test, "exec \"$0\" \"$@\"", &[])
}

/// Like [`run_isolated`], with a shell script that starts the program `$0` with its arguments `$@`, for limits and
/// mounts, and with additional variables.
#[track_caller]
pub fn run_isolated_in(test: &str, shell: &str, variables: &[(&str, String)]) -> Isolation {
    if std::env::var_os(CHILD_VARIABLE).is_some() {
        return Isolation::Here;
    }
    let test_program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", shell])
        .arg(test_program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD_VARIABLE, "1")
        .envs(variables.iter().map(|(name, value)| (*name, value)))
        .output()
        .unwrap();
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    eprintln!("{stderr}");
    assert!(output.status.success(), "{test}: {}\n{stdout}", output.status);
    // An unknown test name would succeed without a test.
    assert!(stdout.contains("1 passed"), "{test}: {stdout}");
    Isolation::AlreadyRun
}
