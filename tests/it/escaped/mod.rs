//! Planted escapes: strangers whose every word commands a terminal, turns or hides text, or looks like a line of ours,
//! through every command that prints for a person, into a pipe with colours and into a real terminal's line.
//!
//! What reaches the terminal of theirs is text: no control character but line ends and tabs, none of the C1 set, nothing
//! that turns or hides. Our own styles, and on a terminal our own erasing of a line of progress, are told apart by form.

mod rude;

use std::process::{Command, Stdio};

use mcp_tests::{binary, installed_program};
use rude::{RUDE, Rude, SPOOF, unescaped};

/// What of a text commands a terminal: all that is no text, no style, and no erasing of our own line.
fn commands(text: &str) -> String {
    let mut rest = text;
    let mut res = String::new();
    while let Some(it) = rest.chars().next() {
        if let Some(behind) = ours(rest) {
            rest = behind;
            continue;
        }
        if !matches!(it, '\n' | '\t') && is_hidden(it) {
            res.push(it);
        }
        rest = &rest[it.len_utf8()..];
    }
    res
}

/// What stands behind a sequence that this program writes itself: a style, and on a terminal what a line of progress
/// needs, and the line end that the terminal's driver makes of ours.
fn ours(text: &str) -> Option<&str> {
    if let Some(behind) = text.strip_prefix("\r\n") {
        return Some(behind);
    }
    // A line of progress begins anew, and its cursor is hidden meanwhile.
    for whole in ["\r\u{1b}[2K", "\u{1b}[2K", "\u{1b}[?25l", "\u{1b}[?25h", "\u{1b}[1A", "\r\r\n"] {
        if let Some(behind) = text.strip_prefix(whole) {
            return Some(behind);
        }
    }
    let inner = text.strip_prefix("\u{1b}[")?;
    inner.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';').strip_prefix('m')
}

fn is_hidden(it: char) -> bool {
    it.is_control()
        || matches!(
            it,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        )
        || matches!(it, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[track_caller]
fn check(what: &str, text: &str) {
    assert_eq!(commands(text), "", "{what}: {text:?}");
    // The texts of a tool's answer are what these are for, line by line; nowhere else does a stranger begin a line.
    let is_answer = ["call ", "record ", "shell "].iter().any(|it| what.starts_with(it));
    let spoofed: Vec<&str> = text.lines().filter(|it| it.starts_with(SPOOF) && !is_answer).collect();
    assert!(spoofed.is_empty(), "{what}: {spoofed:?} in {text:?}");
}

#[test]
fn the_check_sees_what_it_is_for() {
    assert_eq!(commands("\u{1b}[1;31merror\u{1b}[0m: a\n\tb\r\n\r\u{1b}[2Kc"), "");
    for text in [
        "\u{1b}[2J",
        "\u{1b}]52;c;aGk=\u{7}",
        "\u{1b}]8;;x\u{1b}\\",
        "\u{9b}5m",
        "\u{202e}",
        "a\rb",
        "\u{200b}",
    ] {
        assert_ne!(commands(text), "", "{text:?}");
    }
    assert!(!commands(&unescaped(RUDE)).is_empty());
}

/// The rows: every command that shows a person words of strangers.
const ROWS: [&[&str]; 22] = [
    &["check", "mcp.json"],
    &["check", "mcp.json", "--format", "github"],
    &["check", "wrong.json", "--fix=all"],
    &["tools", "mcp.json"],
    &["tools", "mcp.json", "--tree"],
    &["tools", "mcp.json", "--schema", "sound__t"],
    &["tools", "mcp.json", "-v"],
    &["prompts", "mcp.json"],
    &["resources", "mcp.json"],
    &["call", "mcp.json", "sound__t", "-v"],
    &["call", "mcp.json", "sound__errs", "-v"],
    &["call", "mcp.json", "sound__dies", "-v"],
    &["explain", "mcp.json", "--server", "sound", "--tool", "\u{1b}[2J\u{202e}"],
    &["doctor", "mcp.json", "-v"],
    &["convert", "mcp.json", "--to", "holodeck", "--output", "new.yaml"],
    &["record", "mcp.json", "-o", "it.jsonl", "--call", "sound__t", "{}"],
    &["replay", "no\u{1b}[2J\u{202e}.jsonl"],
    &["import", "--from", "mcp.json"],
    &["login", "\u{1b}[2J\u{202e}", "mcp.json"],
    &["logout", "web-auth", "mcp.json"],
    &["serve", "no\u{1b}[2J\u{202e}", "--stdio", "--only", "x\u{1b}[2J\u{9b}5m"],
    &["shell", "mcp.json"],
];

const TYPED: &str =
    "tools\nprompts\nresources\nsound__t\nsound__errs\nprompt sound p\nread a://b\nsound__dies\nservers\n";

#[tokio::test(flavor = "multi_thread")]
async fn no_stranger_commands_a_terminal_through_a_pipe() {
    let place = Rude::new().await;
    let rude_file = place.rude_file();
    let folder = place.rude_folder();
    let files = [
        &["check", &rude_file][..],
        &["tools", &rude_file],
        &["check", &folder],
        &["tools", &folder],
        &["serve", &folder, "--stdio"],
    ];
    for row in ROWS.iter().copied().chain(files) {
        for more in [&["--color", "always"][..], &["--color", "never"], &["--format", "json"]] {
            if more[0] == "--format" && row.contains(&"--format") {
                continue;
            }
            let row = [row, more].concat();
            let what = row.join(" ");
            let ran = place.run(&row, TYPED).await;
            check(&what, &ran.stdout);
            check(&what, &ran.stderr);
        }
    }
}

/// The same through a line of a terminal, where lines of progress are drawn and every byte is the terminal's.
#[tokio::test(flavor = "multi_thread")]
async fn no_stranger_commands_a_terminal_on_its_own_line() {
    if !installed_program("script") {
        return;
    }
    let place = Rude::new().await;
    for row in ROWS {
        if row[0] == "shell" {
            continue;
        }
        let words: Vec<String> = row.iter().map(|it| format!("'{}'", it.replace('\'', "'\\''"))).collect();
        let line = format!("{} {}", binary().display(), words.join(" "));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
        place.surround(&mut command);
        command.env("TERM", "xterm-256color");
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        check(&row.join(" "), &String::from_utf8_lossy(&output.stdout));
    }
}

/// The strangers are as rude as they are meant to be.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_out_was_there() {
    let place = Rude::new().await;
    let ran = place.run(&["call", "mcp.json", "sound__t", "--format", "json"], "").await;
    let text = ran.json()["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text, unescaped(RUDE));
    let failed = place.run(&["tools", "mcp.json", "--format", "json"], "").await;
    let said = |name: &str| {
        let servers = failed.json()["servers"].as_array().unwrap().clone();
        servers.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}: {failed:#?}"))["error"]
            .to_string()
    };
    for name in ["web-body", "web-rpc", "dead"] {
        assert!(said(name).contains(SPOOF), "{name}: {}", said(name));
    }
}
