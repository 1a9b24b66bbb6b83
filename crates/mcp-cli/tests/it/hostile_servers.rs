//! Hostile text in a configuration and from a server: it cannot control the terminal, hide text, or imitate
//! our messages.

use std::io::{BufRead, BufReader, Read};

use mcp_testkit::process::send_signal;

use crate::support::{Run, Workspace};

/// A name with control characters, invisible characters, and a line that imitates ours.
const RUDE: &str = "x\\u001b[2J\\u001b]0;owned\\u0007\\u009b5m\\u202e\\u2066\\nSPOOF\\r\\u007f";

/// A server that uses such text everywhere.
const SERVER: &str = r#"
rude='x\u001b[2J\u001b]0;owned\u0007\u009b5m\u202e\u2066\nSPOOF\r\u007f'
answer() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"'"$rude"'","version":"'"$rude"'"},"instructions":"'"$rude"'"}' ;;
  *'"tools/list"'*) answer '{"tools":[{"name":"t","description":"'"$rude"'","inputSchema":{"type":"object","properties":{"'"$rude"'":{"type":"string","description":"'"$rude"'"}}}},{"name":"'"$rude"'","inputSchema":{"type":"object"}},{"name":"'"$rude"'2","inputSchema":"'"$rude"'"}]}' ;;
  *'"prompts/list"'*) answer '{"prompts":[{"name":"p","description":"'"$rude"'","arguments":[{"name":"'"$rude"'"}]}]}' ;;
  *'"resources/list"'*) answer '{"resources":[{"uri":"a://b","name":"'"$rude"'","description":"'"$rude"'"}]}' ;;
  *'"tools/call"'*)
    printf '\033]0;owned\007\033[2J\n' >&2
    answer '{"isError":true,"content":[{"type":"text","text":"'"$rude"'"},{"type":"image","data":"AAAA","mimeType":"'"$rude"'"}],"structuredContent":{"'"$rude"'":"'"$rude"'"}}' ;;
  *'"method":"notifications/'*) ;;
  *) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"'"$rude"'"}}' ;;
  esac
done
"#;

fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    workspace.script("rude", SERVER);
    workspace.script("dies", "printf '\\033]0;owned\\007\\033[2J\\nSPOOF\\r' >&2; exit 1");
    workspace.write(
        "mcp.json",
        &format!(
            r#"{{"mcpServers": {{
  "sound": {{"command": "rude"}},
  "dead": {{"command": "dies"}},
  "{RUDE}": {{"command": "rude", "args": ["{RUDE}"], "env": {{"{RUDE}": "{RUDE}"}}}},
  "web": {{"type": "http", "url": "http://127.0.0.1:9/{RUDE}", "headers": {{"{RUDE}": "{RUDE}"}}}},
  "odd": {{"command": "{RUDE}", "{RUDE}": 1, "cwd": "/no/{RUDE}"}}
}}}}"#
        ),
    );
    workspace
}

/// The forbidden characters of a text: control characters except our colours, and invisible characters.
fn commands(text: &str) -> String {
    let mut rest = text;
    let mut res = String::new();
    while let Some(it) = rest.chars().next() {
        let style = rest.strip_prefix("\u{1b}[").and_then(|inner| {
            let digits = inner.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';');
            digits.strip_prefix('m')
        });
        if let Some(behind) = style {
            rest = behind;
            continue;
        }
        let hidden =
            matches!(it, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if hidden || it.is_control() && !matches!(it, '\n' | '\t') {
            res.push(it);
        }
        rest = &rest[it.len_utf8()..];
    }
    res
}

#[track_caller]
fn check(run: &Run, what: &str) {
    for text in [&run.out, &run.err] {
        assert_eq!(commands(text), "", "{what}: {run:?}");
        // `call` prints the text of a tool with its line breaks, so its lines may begin with anything.
        let lines: Vec<&str> =
            text.lines().filter(|line| line.starts_with("SPOOF") && !what.starts_with("call ")).collect();
        assert!(lines.is_empty(), "{what}: {lines:?} {run:?}");
    }
}

const EVERY: [&[&str]; 21] = [
    &["check", "mcp.json"],
    &["tools", "mcp.json"],
    &["tools", "mcp.json", "--tree"],
    &["tools", "mcp.json", "--schema", "sound__t"],
    &["tools", "mcp.json", "--server", "x\u{1b}[2J\u{202e}"],
    &["prompts", "mcp.json"],
    &["resources", "mcp.json"],
    &["doctor", "mcp.json"],
    &["doctor", "mcp.json", "--server", "x\u{1b}[2J\u{202e}"],
    &["explain", "mcp.json", "--server", "sound", "--tool", "x\u{1b}[2J\u{202e}"],
    &["call", "mcp.json", "sound__t"],
    &["call", "mcp.json", "x\u{1b}[2J\u{202e}\u{7}"],
    &["convert", "mcp.json", "--to", "dominds"],
    &["convert", "mcp.json", "--to", "holodeck"],
    &["disable", "mcp.json", "sound", "--dry-run"],
    &["remove", "mcp.json", "x\u{1b}[2J\u{202e}", "--dry-run"],
    &["call", "mcp.json", "sound__t", "-v"],
    &["import", "--from", "mcp.json"],
    &["add", "mcp.json", "x\u{1b}[2J\u{202e}", "--command", "x", "--dry-run"],
    &["add", "mcp.json", "new", "--command", "x\u{1b}[2J\u{202e}", "--dry-run"],
    &["enable", "mcp.json", "x\u{1b}[2J\u{202e}", "--dry-run"],
];

#[test]
fn no_command_prints_control_characters_of_servers() {
    let workspace = workspace();
    for arguments in EVERY {
        for more in [&["--color", "always"][..], &["--color", "never"], &["--format", "json"]] {
            let arguments = [arguments, more].concat();
            let run = workspace.run(&arguments);
            // `convert` writes the exact content of the file unless the output is a terminal.
            if arguments[0] == "convert" && more[1] == "never" {
                continue;
            }
            check(&run, &arguments.join(" "));
        }
    }
}

#[test]
fn long_running_commands_print_no_control_characters() {
    for format in ["text", "json"] {
        let workspace = workspace();
        let arguments = ["watch", "mcp.json", "--color", "always", "--format", format];
        let mut child = workspace.command(&arguments).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut seen = String::new();
        while !seen.lines().any(|line| line.contains("sound") && line.contains("ready")) {
            assert!(out.read_line(&mut seen).unwrap() > 0, "{seen}");
        }
        send_signal("INT", child.id());
        out.read_to_string(&mut seen).unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let code = child.wait().unwrap().code();
        check(&Run { code, out: seen, err }, "watch");
    }
}

/// The server really sends the characters that the other tests expect to be removed.
#[test]
fn hostile_server_sends_the_tested_characters() {
    let workspace = workspace();
    let run = workspace.run(&["call", "mcp.json", "sound__t", "--format", "json"]);
    let text = run.json()["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("\u{1b}[2J") && text.contains('\u{202e}') && text.contains("\nSPOOF"), "{run:?}");
    assert!(run.out.contains("\\u009b") && run.out.contains("\\u202e"), "{run:?}");
}
