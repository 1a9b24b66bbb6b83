//! Every reader of foreign text takes time in proportion to the size of the text.
//!
//! Each reader gets texts that repeat one piece, of one size and of 32 times that size. Quadratic time would be 1024
//! times as long.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_host_config::internal::template::{ReferenceRule, split_references};
use mcp_host_config::internal::{Syntax, parse_as};
use mcp_host_config::{Document, Profile, parse_editor_env_file, parse_env_file, parse_server_json, read};
use mcp_host_gateway::internal::frame;
use mcp_host_recording::Recording;
use mcp_host_registry::LockFile;
use mcp_host_transport::internal::{EventStreamParser, LineBuffer, map_json_strings, scan::scan};

const SMALL: usize = 1 << 10;
const FACTOR: usize = 32;
/// How much longer the large text may take. A machine under load is slow now and then.
const MAX_GROWTH: u32 = 400;
/// Times below this are not compared.
const MIN_TIME: Duration = Duration::from_millis(40);

/// Pieces of JSON, YAML, TOML, variables and streams, complete and broken.
const PIECES: [&str; 58] = [
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "{,",
    "[,",
    "[1,",
    "{\"a\":",
    "\"a\":",
    "\"a\" ",
    "\"a\",",
    "{}",
    "{},",
    "[]",
    "\"",
    "\\",
    "\"\\",
    "\\\"",
    "'",
    "a",
    "a ",
    "1",
    "1 ",
    "-",
    "- ",
    "a: ",
    "a: b\n",
    "&a ",
    "*a ",
    "? ",
    "!!x ",
    "#",
    "# a\n",
    "/*",
    "*/",
    "//\n",
    "=",
    "a=b\n",
    "a='b\n",
    "a=\"b\\\n",
    "[a]\n",
    "[[a]]\n",
    "[a.a]\n",
    "\"\"\"",
    "${a}",
    "${",
    "${{",
    "${a:-",
    "{env:a",
    "{env:a {}",
    "$a",
    "\n",
    "\r",
    "data: a\n",
    "\u{feff}",
    "\u{201c}",
];

/// Runs a reader on repeated pieces. `before` and `after` surround them.
#[track_caller]
fn check(name: &str, before: &str, after: &str, read: &dyn Fn(&str)) {
    for piece in PIECES {
        let text = |size: usize| format!("{before}{}{after}", piece.repeat(size / piece.len()));
        let time = |text: &str| {
            let start = Instant::now();
            read(text);
            start.elapsed()
        };
        let (small, large) = (text(SMALL), text(SMALL * FACTOR));
        let first = time(&large);
        if first < MIN_TIME {
            continue;
        }
        // The shortest of several times is that of the reader alone.
        let shortest = |text: &str| (0..3).map(|_| time(text)).min().expect("three times");
        let (small, large) = (shortest(&small), shortest(&large));
        assert!(
            large < MIN_TIME || large < small * MAX_GROWTH,
            "{name} takes {small:?} for {SMALL} bytes of {piece:?} and {large:?} for {FACTOR} times as many"
        );
    }
}

/// RPT-240
#[test]
fn files_are_read_in_linear_time() {
    for (name, syntax) in [
        ("YAML", Syntax::Yaml),
        ("JSON", Syntax::Json),
        ("JSON with comments", Syntax::JsonWithComments),
        ("TOML", Syntax::Toml),
    ] {
        check(name, "", "", &|text| drop(parse_as(text, syntax)));
    }
    check("a variable file", "", "", &|text| drop(parse_env_file(text)));
    check("an editor's variable file", "", "", &|text| drop(parse_editor_env_file(text)));
    for rule in [ReferenceRule::EditorAndShell, ReferenceRule::Braces] {
        check("a template", "", "", &|text| drop(split_references(text, rule)));
    }
    check("a server.json", "", "", &|text| drop(parse_server_json(text)));
    check("a recording", "", "", &|text| drop(Recording::parse(text)));
    check("a lock file", "", "", &|text| drop(LockFile::parse(text)));
}

/// RPT-240
#[test]
fn configurations_are_read_in_linear_time() {
    for (name, profile) in [
        ("mcp.json", Profile::McpJson),
        (".codex/config.toml", Profile::McpJson),
        ("librechat.yaml", Profile::McpJson),
        (".minds/mcp.yaml", Profile::Dominds),
        ("agent.yaml", Profile::HoloDeck),
        ("session", Profile::AcpV1),
    ] {
        let reader = |text: &str| drop(read(&Document::new(name, text, profile)));
        check(name, "", "", &reader);
    }
    let reader = |text: &str| drop(read(&Document::new("mcp.json", text, Profile::McpJson)));
    check("mcp.json", r#"{"mcpServers": {"a": {"command": "x", "args": ["#, r#"]}}}"#, &reader);
    check("mcp.json", r#"{"mcpServers": {"#, "}}", &reader);
    let reader = |text: &str| drop(read(&Document::new("config.toml", text, Profile::McpJson)));
    check("config.toml", "[mcp_servers.a]\ncommand = \"x\"\nargs = [", "]\n", &reader);
}

/// RPT-240
#[test]
fn messages_are_read_in_linear_time() {
    let response = (r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#, "]}}");
    let request = (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"#, "}}");
    for (before, after) in [("", ""), response, request, ("[", "]")] {
        check("a frame", before, after, &|text| drop(scan(text.as_bytes())));
        check("a client's message", before, after, &|text| {
            let text = Bytes::copy_from_slice(text.as_bytes());
            drop(frame::read_message(&text));
            drop(frame::read_messages(&text));
        });
        check("strings of a message", before, after, &|text| {
            map_json_strings(text, |_| None);
        });
    }
    for (before, after) in [("", ""), (r#"{"tools":["#, "]}")] {
        check("a list", before, after, &|text| drop(mcp_host_model::read_tools(text)));
    }
    check("an event stream", "", "\n\n", &|text| {
        let mut stream = EventStreamParser::new(1 << 24);
        for chunk in text.as_bytes().chunks(64) {
            stream.feed(Bytes::copy_from_slice(chunk), drop);
        }
    });
    check("lines", "", "\n", &|text| {
        let mut lines = LineBuffer::new(1 << 24);
        for chunk in text.as_bytes().chunks(64) {
            lines.read_buffer().extend_from_slice(chunk);
            while lines.next_line().is_some() {}
        }
    });
}
