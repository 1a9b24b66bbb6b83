//! Limits: a malicious file is refused quickly, with a diagnostic.

use mcp_host_config::{Colour, Document, Profile, read, render};

use crate::{diagnostic_lines, read_text};

#[track_caller]
fn check(text: &str, want: &str) {
    check_profiles(&[Profile::HoloDeck, Profile::Dominds], text, want);
}

#[track_caller]
fn check_profiles(profiles: &[Profile], text: &str, want: &str) {
    for &profile in profiles {
        let reading = read_text(profile, text);
        assert!(reading.refused);
        assert!(
            diagnostic_lines(&reading).contains(want),
            "{}",
            &diagnostic_lines(&reading)[..diagnostic_lines(&reading).len().min(500)]
        );
    }
}

#[test]
fn a_large_file_is_refused() {
    check(&"#".repeat((1 << 20) + 1), "ConfigError: the file is larger than 1 MiB");
}

#[test]
fn deep_nesting_is_refused() {
    check(&"[".repeat(200_000), "nested deeper than 64 levels");
    check(&format!("a: {}{}", "[".repeat(64), "]".repeat(64)), "nested deeper than 64 levels");
    let block: String = (0..100).map(|it| format!("{}a:\n", " ".repeat(it))).collect();
    check(&block, "nested deeper than 64 levels");
}

#[test]
fn malicious_json_is_refused() {
    let check =
        |text: &str, want| check_profiles(&[Profile::AcpV1, Profile::AcpV2, Profile::McpJson], text, want);
    check(&" ".repeat((1 << 20) + 1), "ConfigError: the file is larger than 1 MiB");
    check(&"[".repeat(200_000), "nested deeper than 64 levels");
    check(&format!("{}{}", "[".repeat(65), "]".repeat(65)), "nested deeper than 64 levels");
    check(&format!("[{}1]", "1,".repeat(100_000)), "more than 100000 values");
    let server = r#"{"name":"a","command":"/x","args":[],"env":[]}"#;
    check(&format!("[{}]", [server; 1001].join(",")), "the file has more than 1000 servers");
}

/// Inputs whose cost was once quadratic.
#[test]
fn many_mistakes_are_reported_in_one_pass() {
    let mcp = |entry: &str| format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
    let many = |piece: &str, count: usize| vec![piece; count].join(",");
    let keys: Vec<_> = (0..5_000).map(|it| format!("\"comand{it}\": 1")).collect();
    let servers: Vec<_> = (0..5_000).map(|it| format!("\"s{it}\": {{\"disabled\": true}}")).collect();
    for text in [
        mcp(&format!(r#"{{"command": "{}"}}"#, "${".repeat(50_000))),
        mcp(&format!(r#"{{"command": "x", "args": ["{}}}"]}}"#, "${A:-".repeat(50_000))),
        mcp(&format!(r#"{{"command": "x", "args": [{}]}}"#, many("\"${input:x}\"", 5_000))),
        mcp(&format!(
            r#"{{"command": "x", "includeTools": [{0}], "excludeTools": [{0}]}}"#,
            many("\"t\"", 5_000)
        )),
        mcp(&format!("{{{}}}", keys.join(","))),
        format!(r#"{{"mcpServers": {{{}}}}}"#, servers.join(",")),
    ] {
        let reading = read_text(Profile::McpJson, &text);
        assert!(reading.entries.len() <= 1001);
    }
}

/// Broken texts in one line and in many. Once, one of commas took minutes.
// RPT-240
#[test]
fn recovery_from_a_broken_text_is_linear() {
    for profile in [Profile::McpJson, Profile::AcpV1, Profile::HoloDeck, Profile::Dominds] {
        for piece in [
            ",", ":", "{,", "[,", "[1,", "{\"a\":", "\"a\" ", "\"\\", "'", "a ", "1 ", "]", "}", "#", "/*",
            "\u{a0}", "\u{201c}", "- ", "a: ", "&a ", "*a ", "? ", "!!x ", "<<<<<<< ", "=",
        ] {
            for separator in ["", "\n"] {
                let unit = format!("{piece}{separator}");
                let text = unit.repeat((1 << 17) / unit.len());
                assert!(!read_text(profile, &text).diagnostics.is_empty(), "{profile:?} {unit:?}");
            }
        }
    }
}

#[test]
fn exponential_aliases_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for it in 1..30 {
        let before = it - 1;
        text.push_str(&format!("a{it}: &a{it} [{}]\n", vec![format!("*a{before}"); 10].join(", ")));
    }
    check(&text, "more than 100000 values, aliases followed");
}

#[test]
fn aliases_count_towards_depth() {
    let mut text = format!("a0: &a0 {}{}\n", "[".repeat(30), "]".repeat(30));
    text.push_str(&format!("a1: &a1 {}*a0{}\n", "[".repeat(30), "]".repeat(30)));
    text.push_str(&format!("a2: {}*a1{}\n", "[".repeat(30), "]".repeat(30)));
    check(&text, "nested deeper than 64 levels, aliases followed");
}

// RPT-478
#[test]
fn more_servers_than_the_limit_are_refused() {
    let servers = |count: usize| -> String {
        let all = (0..count).map(|it| format!("  s{it}: {{transport: stdio, command: x}}\n"));
        format!("version: 1\nservers:\n{}", all.collect::<String>())
    };
    let check = |limit: Option<usize>, count: usize, want: Option<&str>| {
        let text = servers(count);
        let mut document = Document::new("mcp.yaml", &text, Profile::Dominds);
        document.max_servers = limit.unwrap_or(document.max_servers);
        let reading = read(&document);
        assert_eq!(reading.refused, want.is_some(), "{limit:?} {count}");
        let lines = diagnostic_lines(&reading);
        assert!(want.is_none_or(|it| lines.contains(it)), "{lines}");
    };
    check(None, 1000, None);
    check(None, 1001, Some("the file has more than 1000 servers"));
    check(Some(1001), 1001, None);
    check(Some(2), 3, Some("the file has more than 2 servers"));
}

#[test]
fn distant_label_becomes_a_note() {
    let text = format!("first: 1\n{}first: 2\n", "# nothing\n".repeat(1000));
    let reading = read_text(Profile::HoloDeck, &text);
    insta::assert_snapshot!(render("a.yaml", &text, &reading.diagnostics, Colour::Never), @r"
    error[MCP0002]: ValidationError: the key 'first' appears twice
        --> a.yaml:1002:1
         |
    1002 | first: *
         | ^^^^^
         |
         = note: 'first' appears here first (a.yaml:1:1)
         = help: remove one of the two
    ");
}

/// A long line is not drawn for each of its mistakes.
#[test]
fn long_line_is_drawn_for_the_first_mistakes_only() {
    let servers: Vec<String> = (0..900)
        .map(|it| {
            format!("\"s{it}\":{{\"command\":\"x\",\"args\":[1,2,3],\"comand\":\"{}\"}}", "x".repeat(600))
        })
        .collect();
    let text = format!("{{\"mcpServers\":{{{}}}}}", servers.join(","));
    let reading = read_text(Profile::McpJson, &text);
    assert!(reading.diagnostics.len() > 2_700);
    let drawn = render("mcp.json", &text, &reading.diagnostics, Colour::Never);
    let blocks: Vec<&str> = drawn.trim_end().split("\n\n").collect();
    assert_eq!(blocks.len(), reading.diagnostics.len());
    let lines = |it: &&&str| it.contains("\n1 |");
    let count = blocks.iter().filter(lines).count();
    assert!((1..20).contains(&count), "{count}");
    // The other diagnostics have a position and a help, but no drawn line.
    let last = blocks[blocks.len() - 1];
    assert!(last.contains("mcp.json:1:") && last.contains("help: "), "{last}");
}
