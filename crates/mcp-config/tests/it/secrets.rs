//! Secrets are never printed: in a message, help, pointer, rendered line or `Debug`.
//!
//! The test secrets are in every position that a user may choose, including wrong ones.

use mcp_host_config::{
    Applicability, CheckOutcome, CheckedFile, Colour, Diagnostic, Document, EditError, Profile,
    ResolveContext, SarifTool, Switch, fix_all, read, remove_server, render, render_diff, render_github,
    render_sarif, resolve, set_enabled,
};

const AGENT: &str = r#"
model: {api_key: SECRET00}
tools:
  - name: a
    type: mcp   # the old key was SECRET01
    server: s
    command: bash
    args: ["-y", 5, "--token=SECRET02", {SECRET03: SECRET04}]
    env: {KEY: "SECRET05", N: 5, "KEY=SECRET06": x, M: [SECRET07]}
    config: {token: SECRET08, deep: {list: [SECRET09, .inf]}}
    evn: {KEY: SECRET10}
    unknown: SECRET11
    unknown2: |
      SECRET12
      name: SECRET13
  - name: b
    type: mcp
    server: s
    transport: http
    url: "http://SECRET14:SECRET15@acme.example/path/SECRET16SECRET16SECRET16SECRET16?key=SECRET17#SECRET18"
    headers: {Authorization: "Bearer SECRET19\nX: 1", "Bad Header": 'SECRET20 ${TOKEN}', B: 5}
    command: [SECRET21]
  - name: c
    type: mcp
    server: s
    env: SECRET26
    envFile: [SECRET27]
    encoding: {SECRET28: SECRET29}
    command: npx
    command: SECRET30!x
    config: !weird SECRET31
    headers: &SECRET_ANCHOR {A: SECRET32}
    args: *SECRET_ALIAS
  - SECRET33
  - name: d
    type: [SECRET34]
"#;

const WORKSPACE: &str = r#"
version: 2
servers:
  a:
    transport: stdio
    command: [SECRET51]
    args: {x: SECRET52}
    env: {A: {env: 5, prefix: SECRET53}, B: [SECRET54], C: {env: "", prefix: "SECRET55"}}
    transform: [SECRET57, {prefix: {remove: 1, x: SECRET58}}]
    tools: SECRET59
    sessionId: SECRET60
    url: https://SECRET61@acme.example/
  b:
    transport: streamable_http
    url: "ftp://u:SECRET62@acme.example/?SECRET63"
    headers: {A: "SECRET64\u0000", B: {prefix: [SECRET65], env: X}}
    sessionId: "SECRET66\n"
  e: {transport: stdio, command: "TOKEN=SECRET70 x", env: {"A=SECRET71": [], B: 1, "A: SECRET72": x, "A: SECRET72": y}, x: 1}
  f: {transport: sse, url: "http:///u:SECRET73@acme.example", headers: {"A: SECRET74": {x: 1}}, x: 1}
  c: SECRET67
  d: {sessionId: [SECRET68]}
"#;

const EDITOR: &str = r#"
{
  // the old key was SECRET71
  "apiKey": "SECRET72",
  "inputs": [{"id": "k", "default": "SECRET73", "description": "SECRET74"}],
  "mcpServers": {
    "a": {
      "command": "npx server --token=SECRET75",
      "args": ["--token=SECRET76", 5],
      "env": {"K": "SECRET77", "L": ["SECRET78"], "M=SECRET79": "x", "N": "pa$SECRET80", "O": "${command:SECRET81}"},
      "unknown": "SECRET82",
      "timeout": ["SECRET83"]
    },
    "b": {
      "url": "https://u:SECRET84@acme.example/SECRET85SECRET85SECRET85SECRET85?k=SECRET86",
      "headers": {"name": "SECRET87", "A": "SECRET88\nX: 1", "Host": "SECRET89"},
      "options": {"authTokens": ["SECRET90"]},
      "oauth": {"clientSecret": "SECRET91"}
    },
    "c": {"serverUrl": "ftp://SECRET92@acme.example", "httpUrl": "https://SECRET93@acme.example"},
    "d": {"command": ["x", "SECRET94", 1], "env": ["A=SECRET95", "=SECRET96", {"name": "B", "value": ["SECRET97"]}]},
    "e": {"command": {"path": "x", "args": ["SECRET98"], "env": {"A": "SECRET99"}}, "args": ["SECRET100"]},
    "f": "SECRET101",
    "h": {"command": "TOKEN=SECRET103 npx server", "x": 1},
    "i": {"command": "npx\u0020SECRET104", "x": 1},
    "j": {"url": "http:///u:SECRET105@acme.example/", "x": 1},
    "n": {"url": "https:acme.example?token=SECRET140://x", "x": 1},
    "o": {"url": "http:/acme?SECRET141http://b:79/c", "x": 1},
    "k": {"url": "https://acme.example/a\u003fk=SECRET106", "x": 1},
    "l": {"url": "https://acme.example", "headers": {"Authorization: Bearer SECRET107": 1, "A: SECRET108": "x", "A: SECRET108": "y"}},
    "m": {"command": "x", "env": {"K=SECRET109": [1], "A\u003dSECRET110": "x", "B=SECRET111": "x", "B=SECRET111": "y"}},
    "g": {"type": "stdio", "command": "x", "args": [], "args": ["SECRET102"], "cwd": "${env:A}"}
  },
}
"#;

const SESSION: &str = r#"
{"jsonrpc": "2.0", "id": "SECRET111", "method": "session/new", "params": {"cwd": "here", "token": "SECRET112", "mcpServers": [
  {"name": "a", "command": "npx", "args": ["--token=SECRET113", 5], "env": [
    {"name": "K", "value": "SECRET114"}, {"name": "L", "value": ["SECRET115"]}, {"name": "M=SECRET116", "value": "SECRET117"},
    {"name": "K", "value": "SECRET118\u0000"}, "N=SECRET119"], "_meta": {"token": "SECRET120"}, "extra": "SECRET121"},
  {"type": "http", "name": "b", "url": "https://u:SECRET122@acme.example/?k=SECRET123#SECRET124", "headers": [
    {"name": "A", "value": "SECRET125"}, {"name": "B B", "value": "SECRET126"}, {"name": "Host", "value": "SECRET127"},
    {"name": "C", "value": "SECRET128\r\nX: 1"}]},
  {"type": "sse", "name": "c", "url": "ftp://SECRET129@acme.example", "headers": {"A": "SECRET130"}},
  {"type": "_x", "name": "d", "token": "SECRET131"},
  {"type": "acp", "name": "e", "serverId": "1", "token": "SECRET132"},
  ["SECRET133"], "SECRET134"
]}}
"#;

#[test]
fn x_31_secrets_of_editor_files_are_hidden() {
    check_profile(EDITOR, Profile::McpJson);
}

#[test]
fn x_31_secrets_of_sessions_are_hidden() {
    check_profile(SESSION, Profile::AcpV1);
    check_profile(SESSION, Profile::AcpV2);
    let reading = read(&Document::new("request", SESSION, Profile::AcpV2));
    assert_eq!(reading.entries.iter().filter(|it| it.extension.is_some()).count(), 2);
    check_no_secret(&format!("{reading:?}"));
}

/// Checks all outputs for a text with mistakes.
#[track_caller]
fn check_profile(text: &str, profile: Profile) {
    let name = "config.yaml";
    let reading = read(&Document::new(name, text, profile));
    assert!(reading.has_errors());
    check_outputs(&reading.diagnostics, name, text);
    for server in &reading.servers {
        check_no_secret(&format!("{server:?}"));
    }
}

/// Checks that no output of the diagnostics contains a secret.
#[track_caller]
fn check_outputs(diagnostics: &[Diagnostic], name: &str, text: &str) {
    check_no_secret(&serde_json::to_string(diagnostics).unwrap());
    check_no_secret(&format!("{diagnostics:?}"));
    check_no_secret(&render(name, text, diagnostics, Colour::Never));
    check_no_secret(&render(name, text, diagnostics, Colour::Always));
    let outcome = CheckOutcome::Read { text, diagnostics };
    let checked = [CheckedFile::new(name, outcome)];
    check_no_secret(&render_sarif(&SarifTool::new("mcp-host", "1.0.0"), &checked).to_string());
    check_no_secret(&render_github(&checked));
    for fix in diagnostics.iter().filter_map(|it| it.fix.as_ref()) {
        check_no_secret(&format!("{fix:?}"));
    }
    // A diff that removes every line, and one that adds every line.
    check_no_secret(&render_diff(name, text, "", Colour::Never));
    check_no_secret(&render_diff(name, "", text, Colour::Always));
    // No line shows a secret when a diagnostic points at it.
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some(start..*at)
    });
    for span in lines {
        let mut anywhere = diagnostics[0].clone();
        anywhere.span = span;
        check_no_secret(&render(name, text, &[anywhere], Colour::Never));
    }
}

#[track_caller]
fn check_no_secret(text: &str) {
    // These may be printed: they are keys and the names of an anchor and an alias, not values.
    let text = text.replace("SECRET03", "").replace("SECRET28", "").replace("SECRET_A", "");
    if let Some(at) = text.find("SECRET") {
        panic!("{}", &text[at.saturating_sub(300)..(at + 20).min(text.len())]);
    }
}

#[test]
fn hd_061_hd_sc5_secrets_of_agents_are_hidden() {
    check_profile(AGENT, Profile::HoloDeck);
    check_profile(AGENT, Profile::HoloDeck07);
}

#[test]
fn x_31_secrets_of_workspaces_are_hidden() {
    check_profile(WORKSPACE, Profile::Dominds);
}

#[test]
fn secrets_of_unparsable_files_are_hidden() {
    for text in [
        "tools:\n  - name: a\n    env:\n      KEY: \"SECRET\n      B: SECRET\n    args: [SECRET, --SECRET\n",
        "version: 1\nservers:\n  a:\n\tenv: {K: SECRET}\n# SECRET\n  SECRET\n",
        "env: {A: SECRET}}\n",
        "a: &x SECRET\nb: *y: SECRET\n",
        "env: SECRET: SECRET\n--- SECRET\n...SECRET\n",
        "url: https://SECRET@acme.example\n  bad: - x\n",
        "{\"mcpServers\": {\"a\": {\"env\": {\"K\": \"SECRET\" \"L\": \"SECRET\"}}}} // SECRET\n",
        "\"env\": {\"K\": \"SECRET\", // SECRET: SECRET\n",
        "{\n// \"SECRET\": \"SECRET\"\n'a': 'SECRET'}\n",
        "[{\"name\": \"a\", \"value\": \"SECRET\n\"}]\n",
    ] {
        for &profile in Profile::ALL {
            let reading = read(&Document::new("x", text, profile));
            check_outputs(&reading.diagnostics, "x", text);
        }
    }
}

/// Fixes, edits, refusals and diffs contain no values.
#[test]
fn x_31_secrets_are_hidden_in_diffs() {
    for (profile, text) in [(Profile::HoloDeck, AGENT), (Profile::Dominds, WORKSPACE)] {
        let text = text.replace("    command: SECRET30!x\n", "").replace("version: 2", "version: 1");
        let document = Document::new("config.yaml", &text, profile);
        let fixed = fix_all(&document, Applicability::Suggested);
        assert!(!fixed.fixed.is_empty());
        check_no_secret(&render_diff("config.yaml", &text, &fixed.text, Colour::Never));
        for entry in read(&document).entries {
            let results: [Result<String, EditError>; 2] =
                [remove_server(&document, &entry.name), set_enabled(&document, &entry.name, Switch::Off)];
            for result in results {
                match result {
                    Ok(after) => check_no_secret(&render_diff("config.yaml", &text, &after, Colour::Never)),
                    Err(error) => check_no_secret(&format!("{error} {error:?}")),
                }
            }
        }
    }
}

#[test]
fn errors_do_not_contain_resolved_values() {
    let text = "\
tools:
  - {name: a, description: d, type: mcp, server: s, transport: http, url: 'http://${HOST}/', headers: {A: '${BAD}'}}
  - {name: b, description: d, type: mcp, server: s, command: npx, args: ['${BAD}'], env: {A: '${NUL}'},
     encoding: '${HOST}', envFile: '${HOST}'}
";
    let reading = read(&Document::new("agent.yaml", text, Profile::HoloDeck));
    assert_eq!(crate::diagnostic_lines(&reading), "");
    let variable = |name: &str| match name {
        "HOST" => Some("SECRET.example".to_owned()),
        "BAD" => Some("SECRET\r\nX: y".to_owned()),
        "NUL" => Some("SECRET\0".to_owned()),
        _ => None,
    };
    let context =
        ResolveContext::new(&variable, std::path::Path::new("/w"), &|_| Err("it is not there".to_owned()));
    let mut errors = 0;
    for server in &reading.servers {
        for error in resolve(server, &context).unwrap_err() {
            errors += 1;
            check_no_secret(&format!("{error} {error:?}"));
            check_outputs(&[reading.diagnose(&error)], "agent.yaml", text);
        }
    }
    assert_eq!(errors, 5);
}
