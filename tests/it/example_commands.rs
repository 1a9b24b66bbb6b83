//! The commands of the README, executed as written.

use mcp_testkit::program::{Run, root, split_command_line};

/// The arguments of the README's command lines.
fn commands() -> Vec<Vec<String>> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    readme
        .lines()
        .filter_map(|line| line.trim().strip_prefix("cargo run -- "))
        .map(|line| split_command_line(line.split_once(" #").map_or(line, |(command, _)| command)))
        .collect()
}

#[test]
fn the_first_commands_work() {
    let state = tempfile::tempdir().unwrap();
    let commands = commands();
    let run = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Run::new(root(), state.path(), &arguments)
    };
    let mut seen = 0;
    let mut server = None;
    for command in &commands {
        match command[0].as_str() {
            "demo-server" => {
                server = Some(run(command).start());
                let address = command.iter().find(|word| word.contains(':')).unwrap();
                mcp_testkit::wait::block_until(|| std::net::TcpStream::connect(address.as_str()).is_ok());
            }
            "tools" | "call" | "check"
                if !command[1].contains("holodeck") && !command[1].contains("dominds") =>
            {
                let ran = run(command).finish();
                assert_eq!(ran.code, Some(0), "{command:?}: {ran:#?}");
                assert!(!ran.stdout.is_empty());
            }
            _ => continue,
        }
        seen += 1;
    }
    if let Some(mut server) = server {
        server.kill().unwrap();
        server.wait().unwrap();
    }
    assert!(seen >= 4, "the README lists and calls over stdio and over HTTP: {commands:?}");
}

/// The arguments of the commands in an example's comments.
fn commands_of(example: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join(example)).unwrap();
    let lines =
        text.lines().filter_map(|it| it.trim_start_matches(['#', '/', ' ']).strip_prefix("mcp-host "));
    lines.map(split_command_line).collect()
}

#[test]
fn the_commands_in_the_examples_work() {
    let state = tempfile::tempdir().unwrap();
    for example in ["examples/quickstart/.minds/mcp.yaml", "examples/mcp-json/.vscode/mcp.json"] {
        let commands = commands_of(example);
        assert!(commands.len() >= 2, "{example} says how it is tried: {commands:?}");
        for command in commands {
            let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            let ran = Run::new(root(), state.path(), &arguments).finish();
            assert_eq!(ran.code, Some(0), "{command:?}: {ran:#?}");
            assert!(!ran.stdout.is_empty());
        }
    }
}
