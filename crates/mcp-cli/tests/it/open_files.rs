//! The limit of open files of the program and of its servers.

use crate::support::{Run, Workspace};

// RPT-065
#[cfg(target_os = "linux")]
#[test]
fn limit_of_open_files_is_raised_for_the_host_only() {
    let workspace =
        Workspace::dominds("version: 1\nservers:\n  a:\n    transport: stdio\n    command: limits\n");
    workspace.script(
        "limits",
        "echo \"server $(ulimit -Sn), host $(awk '/open files/ {print $4}' /proc/$PPID/limits)\" >&2; exit 1",
    );
    let program = workspace.command(&[]);
    let mut shell = std::process::Command::new("/bin/sh");
    let script = "ulimit -Sn 128; hard=$(ulimit -Hn); \"$0\" tools . 2>&1; echo \"hard $hard\"";
    shell.args(["-c", script]).arg(program.get_program()).current_dir(workspace.path());
    shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run = Run::of(shell.output().unwrap());
    let hard = run.out.lines().last().unwrap().strip_prefix("hard ").unwrap();
    assert!(run.out.contains(&format!("server 128, host {hard}")), "{run:?}");
}
