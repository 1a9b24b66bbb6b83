//! The program `mcp-host` without disk space and with few file descriptors: it reports errors and does what is
//! possible.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use mcp_testkit::program::{ProgramOutput, binary};
use mcp_tests::faults::{FEW_DESCRIPTORS, FULL, PROGRAM};

use super::check;

/// The number of servers, more than the limit of descriptors allows.
const MANY: usize = 24;

/// Runs the program in `folder` after a shell script.
fn run(folder: &Path, before: &str, arguments: &[&str]) -> ProgramOutput {
    let output = Command::new("sh")
        .args(["-c", &format!("{before}; exec \"$0\" \"$@\"")])
        .arg(binary())
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |it: Vec<u8>| String::from_utf8_lossy(&it).into_owned();
    let ran = ProgramOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(ran.code.is_some_and(|it| it < 100) && !ran.stderr.contains("panicked"), "{ran:#?}");
    ran
}

fn configuration(folder: &Path, servers: usize) -> String {
    let server = |number| {
        format!(
            "  s{number}:\n    transport: stdio\n    command: mcp-host\n    args: [demo-server]\n    transform: \
            [{{prefix: s{number}_}}]\n"
        )
    };
    let text = format!("version: 1\nservers:\n{}", (0..servers).map(server).collect::<String>());
    fs::create_dir_all(folder.join(".minds")).unwrap();
    fs::write(folder.join(".minds/mcp.yaml"), &text).unwrap();
    text
}

/// The files in the folder and in the folder of the configuration.
fn names(folder: &Path) -> Vec<String> {
    let folders = [folder.to_owned(), folder.join(".minds")];
    let entries = folders.iter().flat_map(|it| fs::read_dir(it).unwrap());
    let mut res: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    res.retain(|it| it != "state");
    res.sort();
    res
}

#[test]
fn hd_133_the_program_runs_on_a_read_only_disk() {
    let folder = tempfile::tempdir().unwrap();
    let text = configuration(folder.path(), 2);
    // A file size limit of 0; pipes are not affected.
    let run = |arguments: &[&str]| run(folder.path(), "trap '' XFSZ; ulimit -f 0", arguments);
    let called = run(&["call", ".", "s1_echo", "text=hello"]);
    assert_eq!((called.code, called.stdout.trim()), (Some(0), "hello"), "{called:#?}");
    let before = names(folder.path());
    for (arguments, file) in [
        (&["disable", ".", "s0"][..], ".minds/mcp.yaml"),
        (&["lock", "."], ".minds/mcp.lock"),
        (&["convert", ".", "--to", "mcp-json", "--output", "out.json"], "out.json"),
        (&["record", ".", "-o", "out.jsonl", "--call", "s0_echo", "{\"text\":\"x\"}"], "out.jsonl"),
    ] {
        let refused = run(arguments);
        assert_ne!(refused.code, Some(0), "{arguments:?}: {refused:#?}");
        assert!(refused.stderr.contains(file), "{arguments:?}: {refused:#?}");
        assert_eq!(names(folder.path()), before, "{arguments:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join(".minds/mcp.yaml")).unwrap(), text);
    check(FULL, PROGRAM, "calls work; an error names each file that cannot be written, which is unchanged");
}

#[test]
fn hd_117_the_program_starts_servers_within_the_descriptor_limit() {
    let folder = tempfile::tempdir().unwrap();
    configuration(folder.path(), MANY);
    let ran = run(folder.path(), "ulimit -n 48", &["tools", ".", "--format", "json"]);
    let document = ran.json();
    let servers = document["servers"].as_array().unwrap();
    let (well, ill): (Vec<_>, Vec<_>) = servers.iter().partition(|it| it["state"] == "ready");
    assert_eq!(servers.len(), MANY);
    assert!(!well.is_empty() && !ill.is_empty(), "this shows nothing: {ran:#?}");
    for server in ill {
        let error = server["error"].to_string();
        assert!(error.contains("MCPConnectionError") && error.contains("open files"), "{server:#}");
    }
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let tools = document["tools"].as_array().unwrap();
    assert!(well.iter().all(|it| tools.iter().any(|tool| tool["server"] == it["name"])), "{document:#}");
    check(
        FEW_DESCRIPTORS,
        PROGRAM,
        "those servers are ready that can be started; each of the others gives the reason",
    );
}
