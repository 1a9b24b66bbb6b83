//! Changes of single fields: all other bytes stay.

use mcp_host_config::{Document, FieldChange, FieldOperation, Profile, add_server, set_fields};

use crate::edits::{EDITOR, document, new_server, text_or_error};

/// Changes fields of the server `a`. A change with `--unset` in front removes a field.
fn changed_text(name: &str, profile: Profile, before: &str, changes: &[&str]) -> String {
    let change = |text: &&str| match text.strip_prefix("--unset ") {
        Some(field) => FieldChange::new(field, FieldOperation::Remove),
        None => FieldChange::parse(text).unwrap(),
    };
    let changes: Vec<_> = changes.iter().map(change).collect();
    text_or_error(set_fields(&Document::new(name, before, profile), "a", &changes).map(|it| it.text))
}

#[track_caller]
fn check_set(profile: Profile, before: &str, changes: &[&str], from: &str, to: &str) {
    assert!(before.contains(from));
    let name = document(profile, "").name;
    assert_eq!(changed_text(name, profile, before, changes), before.replacen(from, to, 1));
}

const FIELDS_YAML: &str = "\
version: 1
servers:
  # about a
  a:
    transport: stdio
    command: 'x'   # the program
    args: # all
      - -y  # yes
      - p
    env:
      A: b # c
      # of B
      B: d
  b: {transport: stdio, command: y}
";

#[test]
fn fields_of_yaml_are_changed_and_comments_stay() {
    let check = |changes: &[&str], from: &str, to: &str| {
        check_set(Profile::Dominds, FIELDS_YAML, changes, from, to);
    };
    check(&["command=node"], "'x'   #", "node   #");
    check(&["command=true"], "'x'   #", "\"true\"   #");
    check(&["cwd=/w"], "      B: d\n", "      B: d\n    cwd: /w\n");
    check(&["args+=--verbose"], "      - p\n", "      - p\n      - \"--verbose\"\n");
    check(&["args+=1", "args-=p"], "      - p\n", "      - \"1\"\n");
    check(&["args=q"], " # all\n      - -y  # yes\n      - p\n", " # all\n      [q]\n");
    check(&["args.0=-q"], "- -y  #", "- \"-q\"  #");
    check(&["env.A=1"], "A: b #", "A: \"1\" #");
    check(&["env.B=Bearer ${KEY}"], "B: d\n", "B:\n        prefix: \"Bearer \"\n        env: KEY\n");
    check(&["--unset env.B"], "      # of B\n      B: d\n", "");
    let env = "    env:\n      A: b # c\n      # of B\n      B: d\n";
    check(&["--unset env.A", "--unset env.B"], env, "");
    check(&["--unset env", "env.NAME=v"], env, "    env:\n      NAME: v\n");
    check(&["enabled=false"], "      B: d\n", "      B: d\n    enabled: false\n");
    check(
        &["tools:={\"whitelist\": [\"x\"]}"],
        "      B: d\n",
        "      B: d\n    tools:\n      whitelist: [x]\n",
    );
    let windows = FIELDS_YAML.replace('\n', "\r\n");
    check_set(Profile::Dominds, &windows, &["args+=q"], "      - p\r\n", "      - p\r\n      - q\r\n");
    let agent = "tools:\n- name: a\n  type: mcp\n  command: npx # c\n";
    check_set(Profile::HoloDeck07, agent, &["request_timeout=30"], "# c\n", "# c\n  request_timeout: 30\n");
}

#[test]
fn fields_of_json_are_changed_and_comments_stay() {
    let check = |changes: &[&str], from: &str, to: &str| {
        check_set(Profile::McpJson, EDITOR, changes, from, to);
    };
    check(&["command=npx"], "\"x\", // why", "\"npx\", // why");
    check(&["args+=-y"], "[]", "[\"-y\"]");
    check(&["timeout=30"], "\"args\": [],", "\"args\": [],\n            \"timeout\": 30,");
    let env = "\"args\": [],\n            \"env\": {\n              \"PORT\": \"8080\"\n            },";
    check(&["env.PORT=8080"], "\"args\": [],", env);
    check(&["--unset args"], "            \"args\": [],\n", "");
    let check = |name: &str, before: &str, changes: &[&str], want: &str| {
        let file = |entry: &str| format!("{{\"mcpServers\": {{\"a\": {entry}}}}}");
        assert_eq!(changed_text(name, Profile::McpJson, &file(before), changes), file(want));
    };
    let server = "{\"serverUrl\": \"https://a.example\"}";
    check("mcp.json", server, &["url=https://b.example"], "{\"serverUrl\": \"https://b.example\"}");
    let header = "{\"serverUrl\": \"https://a.example\", \"headers\": {\"X-Key\": \"${env:K}\"}}";
    check(".cursor/mcp.json", server, &["headers.X-Key=${K}"], header);
    // opencode has the program and its arguments in one list.
    let list = "{\"command\": [\"npx\", \"-y\"]}";
    check("mcp.json", list, &["args+=p", "command=bunx"], "{\"command\": [\"bunx\", \"-y\", \"p\"]}");
}

#[test]
fn fields_of_toml_are_changed_and_comments_stay() {
    let before = "\
# mine
[mcp_servers.a] # a
command = \"npx\" # c
args = [\"-y\"]

[mcp_servers.b]
url = \"https://b.example\"
http_headers = { X = \"y\" }
";
    let check = |changes: &[&str], from: &str, to: &str| {
        assert_eq!(
            changed_text("config.toml", Profile::McpJson, before, changes),
            before.replacen(from, to, 1)
        );
    };
    check(&["command=uvx", "args+=p"], "\"npx\" # c\nargs = [\"-y\"]", "\"uvx\" # c\nargs = [\"-y\", \"p\"]");
    check(&["env.A=b"], "args = [\"-y\"]\n", "args = [\"-y\"]\nenv = { A = \"b\" }\n");
    check(&["enabled=false"], "args = [\"-y\"]\n", "args = [\"-y\"]\nenabled = false\n");
    check(&["--unset args"], "args = [\"-y\"]\n", "");
}

#[test]
fn unsupported_field_changes_are_refused() {
    let check = |changes: &[&str], want: &str| {
        assert_eq!(
            changed_text("mcp.yaml", Profile::Dominds, FIELDS_YAML, changes),
            format!("error: {want}")
        );
    };
    check(
        &["enabld=no"],
        "the edited file would have a mistake: ValidationError: unknown key 'enabld'; did you mean `enabled`?",
    );
    check(&["--unset env.C"], "the server 'a' has no 'env.C' to remove");
    for field in ["args.2", "args.x"] {
        let want = format!(
            "'args' of the server 'a' has 2 items and no '{field}': count items from 0, or append one"
        );
        check(&[&format!("{field}=p")], &want);
    }
    check(&["args-=q"], "the server 'a' has no 'args' to remove");
    check(&["command+=q"], "the file cannot be edited safely: 'command' is not a list there");
    check(&["command.x=q"], "the file cannot be edited safely: 'command' is not a mapping there");
    check(
        &["env.A=${X} and ${Y}"],
        "the server cannot be written there: env.A: only a single variable with a prefix is supported there",
    );
    for text in ["command", "=x", "a:=x"] {
        assert!(FieldChange::parse(text).is_err(), "{text}");
    }
    let change = FieldChange::parse("env.KEY=hunter2").unwrap();
    assert!(!format!("{change:?}").contains("hunter2"));
}

#[test]
fn a_server_is_added_to_a_file_of_codex() {
    let document = Document::new(".codex/config.toml", "model = \"m\" # c\n", Profile::McpJson);
    let written = add_server(&document, &new_server("new")).unwrap();
    let entry = "\n[mcp_servers.new]\ncommand = \"npx\"\nargs = [\"-y\", \"p\"]\nenv = { A = \"b\" }\n";
    assert_eq!(written.text, format!("{}{entry}", document.text));
}
