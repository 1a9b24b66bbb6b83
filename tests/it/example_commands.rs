//! The commands in the examples, executed as written.

use mcp_testkit::program::{Run, root, split_command_line};

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
