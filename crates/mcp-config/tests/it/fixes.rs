//! Fixes: which are certain, which are suggested, and that nothing else changes.

use mcp_host_config::{Applicability, Code, Document, FixError, Profile, apply_fixes, fix_all, read};

#[track_caller]
fn check(profile: Profile, least: Applicability, before: &str, want: &str) {
    let fixed = fix_all(&Document::new("config.yaml", before, profile), least);
    assert_eq!(fixed.text, want);
    assert_eq!(fixed.fixed.is_empty(), before == want);
    // A second run has nothing to fix.
    let again = fix_all(&Document::new("config.yaml", want, profile), least);
    assert_eq!((again.text.as_str(), again.fixed.len()), (want, 0));
}

/// Checks a fix of the fields of a server in a `.minds/mcp.yaml`.
#[track_caller]
fn check_dominds(least: Applicability, before: &str, want: &str) {
    let file =
        |fields: &str| format!("version: 1\nservers:\n  a:\n    transport: stdio\n    command: x\n{fields}");
    check(Profile::Dominds, least, &file(before), &file(want));
}

/// Checks a fix of the fields of an item in an `agent.yaml`.
#[track_caller]
fn check_holodeck(least: Applicability, before: &str, want: &str) {
    let file = |fields: &str| {
        format!(
            "name: agent\ntools:\n  - name: a   # first\n    type: mcp\n    description: d\n{fields}    server: s\n"
        )
    };
    check(Profile::HoloDeck, least, &file(before), &file(want));
}

use Applicability::{Certain, Suggested};

#[test]
fn hd_038_dm_017_misspelled_key_is_fixed() {
    check_dominds(
        Certain,
        "    truly-stateless: true  # all share it\n",
        "    truely-stateless: true  # all share it\n",
    );
    check_dominds(Certain, "    truely_stateless: true\n", "    truely-stateless: true\n");
    check_dominds(Certain, "    \"trulystateless\": true\n", "    \"truely-stateless\": true\n");
    check_dominds(Certain, "    transfrom: [{prefx: a}]\n", "    transform: [{prefix: a}]\n");
    check_holodeck(Certain, "    'comand': npx\r\n", "    'command': npx\r\n");
    // No certain fix: two keys are equally similar, the word is short, the key exists already, or no key is
    // similar.
    check_holodeck(Certain, "    command: npx\n    env_fil: x\n", "    command: npx\n    env_fil: x\n");
    check_holodeck(Certain, "    command: npx\n    evn: {A: b}\n", "    command: npx\n    evn: {A: b}\n");
    check_holodeck(Suggested, "    command: npx\n    evn: {A: b}\n", "    command: npx\n    env: {A: b}\n");
    check_dominds(Certain, "    comand: y\n    colour: red\n", "    comand: y\n    colour: red\n");
}

#[test]
fn hd_010_hd_013_dm_006_misspelled_word_is_fixed() {
    check_holodeck(
        Certain,
        "    transport: WebSocket\n    url: wss://x.example\n",
        "    transport: websocket\n    url: wss://x.example\n",
    );
    check_holodeck(Certain, "    command: \"NPX\"\n", "    command: \"npx\"\n");
    check_holodeck(Certain, "    command: npm\n", "    command: npm\n");
    check(
        Profile::Dominds,
        Certain,
        "version: 1\nservers: {a: {transport: streamable-http, url: 'http://x.example'}}\n",
        "version: 1\nservers: {a: {transport: streamable_http, url: 'http://x.example'}}\n",
    );
    check(
        Profile::HoloDeck,
        Certain,
        "tools:\n  - {name: a, description: d, type: MCP, server: s, command: npx}\n",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx}\n",
    );
}

#[test]
fn hd_018_second_name_of_an_env_file_is_removed() {
    check_holodeck(
        Certain,
        "    command: npx\n    envFile: .env\n    # the old spelling\n    env_file: '.env'\n",
        "    command: npx\n    envFile: .env\n",
    );
    let two = "    command: npx\n    envFile: .env\n    env_file: other.env\n";
    check_holodeck(Certain, two, two);
    check_holodeck(Suggested, two, "    command: npx\n    envFile: .env\n");
}

#[test]
fn hd_025_hd_026_hd_031_conversion_of_milliseconds_is_only_suggested() {
    let durations = "    transport: sse\n    url: https://x.example\n    timeout: 30000\n    sse_read_timeout: \
                     300000.0\n    request_timeout: 60000 # ms\n";
    check_holodeck(Certain, durations, durations);
    check_holodeck(
        Suggested,
        durations,
        "    transport: sse\n    url: https://x.example\n    timeout: 30\n    sse_read_timeout: 300\n    \
         request_timeout: 60 # ms\n",
    );
    // Suspicious as seconds, because it is more than an hour, but not a plausible number of milliseconds either.
    let long = "    command: npx\n    request_timeout: 7201\n";
    check_holodeck(Suggested, long, long);
}

#[test]
fn hd_040_hd_042_an_encrypted_url_is_only_suggested() {
    let plain = "    transport: http\n    url: \"HTTP://user:pw@acme.example/x?key=1\"\n";
    check_holodeck(Certain, plain, plain);
    check_holodeck(
        Suggested,
        plain,
        "    transport: http\n    url: \"https://user:pw@acme.example/x?key=1\"\n",
    );
    check_holodeck(
        Suggested,
        "    transport: websocket\n    url: ws://acme.example\n",
        "    transport: websocket\n    url: wss://acme.example\n",
    );
}

#[test]
fn hd_066_deprecated_item_gets_explicit_command() {
    check(
        Profile::HoloDeck,
        Certain,
        "tools:\n- name: a\n  description: d\n  type: mcp\n  server: \"@acme/memory\"  # the package\n  config: {a: \
        1}\n",
        "tools:\n- name: a\n  description: d\n  type: mcp\n  server: \"@acme/memory\"  # the package\n  command: \
         npx\n  args: [\"-y\", \"@acme/memory\"]\n  config: {a: 1}\n",
    );
    check(
        Profile::HoloDeck,
        Certain,
        "tools: [{name: a, description: d, type: mcp, server: '@acme/memory'}]",
        "tools: [{name: a, description: d, type: mcp, server: '@acme/memory', command: npx, args: [\"-y\", \
         \"@acme/memory\"]}]",
    );
}

#[test]
fn wrong_types_with_a_clear_meaning_are_fixed() {
    check_holodeck(
        Certain,
        "    command: npx\n    env: {PORT: 8080, DEBUG: true}\n    args: [-v, 5]\n    load_tools: 'no'\n    \
         request_timeout: \"30\"\n",
        "    command: npx\n    env: {PORT: \"8080\", DEBUG: \"true\"}\n    args: [-v, \"5\"]\n    load_tools: \
         false\n    request_timeout: 30\n",
    );
    check_holodeck(
        Certain,
        "    command: npx\n    env: {8080: x}\n",
        "    command: npx\n    env: {\"8080\": x}\n",
    );
    check_dominds(Certain, "    truely-stateless: yes\n", "    truely-stateless: true\n");
    check_dominds(Suggested, "    args: -y\n", "    args: [\"-y\"]\n");
    check(Profile::Dominds, Certain, "version: '1'\nservers: {}\n", "version: 1\nservers: {}\n");
    check(Profile::Dominds, Certain, "# ours\nservers: {}\n", "# ours\nversion: 1\nservers: {}\n");
    // No fix: null is not useful as text, and the text spells no number.
    check_dominds(Certain, "    args: [~]\n", "    args: [~]\n");
    check_holodeck(
        Certain,
        "    command: npx\n    request_timeout: 30s\n",
        "    command: npx\n    request_timeout: 30s\n",
    );
}

#[test]
fn x_20_dm_009_keys_without_effect_are_removed() {
    check(
        Profile::Dominds,
        Certain,
        "version: 1\nservers:\n  a:\n    sessionId: ''\n    transport: streamable_http\n    url: http://x.example\n",
        "version: 1\nservers:\n  a:\n    transport: streamable_http\n    url: http://x.example\n",
    );
    check_dominds(Suggested, "    # where it is\n    url: http://x.example\n    cwd: y\n", "    cwd: y\n");
}

#[test]
fn mistake_uncovered_by_a_fix_is_fixed() {
    check_holodeck(Certain, "    comand: NPX\n", "    command: npx\n");
}

#[test]
fn aliased_value_is_fixed_once() {
    let text = "version: 1\nx: &it {transport: stdio, comand: x}\nservers: {a: *it, b: *it}\n";
    // No fix: it would also change the unrelated key `x`.
    check(Profile::Dominds, Certain, text, text);
    let text = "version: 1\nservers:\n  a: &it {transport: stdio, comand: x}\n  b: *it\n";
    check(Profile::Dominds, Certain, text, &text.replace("comand", "command"));
}

#[test]
fn suggested_fixes_are_not_applied_as_certain() {
    let text = "version: 1\nservers:\n  a: {transport: stdio, comand: x}\n";
    let document = Document::new("m.yaml", text, Profile::Dominds);
    let reading = read(&document);
    let fixable: Vec<_> = reading.diagnostics.iter().filter(|it| it.fix.is_some()).collect();
    assert_eq!(fixable.len(), 1);
    assert_eq!(apply_fixes(&document, []).as_deref(), Ok(text));
    assert_eq!(
        apply_fixes(&document, fixable.clone()).as_deref(),
        Ok(text.replace("comand", "command").as_str())
    );
    // The same fix counts once. A fix that was made for another text is refused.
    assert!(apply_fixes(&document, [fixable[0], fixable[0]]).is_ok());
    let other = document.with_text("version: 1\n");
    assert_eq!(apply_fixes(&other, fixable.clone()), Err(FixError::Overlap));
    // A mistake that the fix does not correct.
    let mut another = fixable[0].clone();
    another.code = Code::MissingKey;
    another.pointer = "/servers/a/transport".to_owned();
    assert!(apply_fixes(&document, [&another]).is_ok());
    let twice = "version: 1\nservers:\n  a: {transport: stdio, comand: x, comannd: y}\n";
    let document = document.with_text(twice);
    let both = read(&document).diagnostics;
    // Both fixes rename a key to `command`, so the key would be duplicate.
    assert!(apply_fixes(&document, &both).is_err());
}
