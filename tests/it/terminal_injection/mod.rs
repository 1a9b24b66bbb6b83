//! Terminal injection: servers and files whose texts contain control sequences, hidden characters and fake output,
//! through every command that prints them, into a pipe with colours and into a real terminal.
//!
//! Their output reaches the terminal as text: no control character except line ends and tabs, no C1 set, no
//! bidirectional or hidden character. Our own styles and the erasing of a progress line are recognized by their form.

mod hostile;

use std::process::{Command, Stdio};

use hostile::{HostileSources, RUDE, SPOOF, unescaped};
use mcp_testkit::program::{binary, installed_program};

/// The control sequences in a text, without styles and our own erasing of a line.
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

/// The text after a sequence that this program writes: a style, or on a terminal what a progress line needs, including
/// the line end of the terminal driver.
fn ours(text: &str) -> Option<&str> {
    if let Some(behind) = text.strip_prefix("\r\n") {
        return Some(behind);
    }
    // A progress line is redrawn, and the cursor is hidden meanwhile.
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
    // The lines of a tool result are expected; elsewhere no foreign text begins a line.
    let is_answer = ["call ", "record ", "shell "].iter().any(|it| what.starts_with(it));
    let spoofed: Vec<&str> = text.lines().filter(|line| line.starts_with(SPOOF) && !is_answer).collect();
    assert!(spoofed.is_empty(), "{what}: {spoofed:?} in {text:?}");
}

#[test]
fn control_sequences_are_recognized() {
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

/// The commands that print texts of servers and files.
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
async fn no_control_sequence_reaches_a_pipe() {
    let place = HostileSources::new().await;
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

/// The same on a terminal, with progress lines.
#[tokio::test(flavor = "multi_thread")]
async fn no_control_sequence_reaches_a_terminal() {
    if !installed_program("script") {
        return;
    }
    let place = HostileSources::new().await;
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

/// The sources contain the sequences that are filtered.
#[tokio::test(flavor = "multi_thread")]
async fn sources_contain_control_sequences() {
    let place = HostileSources::new().await;
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
