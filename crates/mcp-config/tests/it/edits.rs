//! Adding, removing and disabling servers: all other bytes stay.

use mcp_host_config::{Document, EditError, Profile, Switch, add_server, read, remove_server, set_enabled};
use mcp_host_model::ServerSpec;

pub(crate) fn document(profile: Profile, text: &str) -> Document<'_> {
    let name = if profile == Profile::McpJson { "config.json" } else { "config.yaml" };
    Document::new(name, text, profile)
}

/// A server to add.
pub(crate) fn new_server(name: &str) -> ServerSpec {
    let text = format!(
        "tools: [{{name: {name}, description: New., type: mcp, server: p, command: npx, args: ['-y', p], env: {{A: \
        b}}}}]"
    );
    read(&document(Profile::HoloDeck, &text)).servers.remove(0)
}

/// The edited text, or the error.
pub(crate) fn text_or_error(text: Result<String, EditError>) -> String {
    text.unwrap_or_else(|it| format!("error: {it}"))
}

#[track_caller]
fn check_added(profile: Profile, before: &str, want: &str) {
    let got = add_server(&document(profile, before), &new_server("new")).map(|it| it.text);
    assert_eq!(text_or_error(got), want);
}

#[track_caller]
fn check_removed(profile: Profile, before: &str, name: &str, want: &str) {
    assert_eq!(text_or_error(remove_server(&document(profile, before), name)), want);
}

#[test]
fn hdx_22_item_is_added_after_the_others() {
    let item = "  - name: new\n    description: New.\n    type: mcp\n    server: p\n    command: npx\n    args: \
                [\"-y\", p]\n    env:\n      A: b\n";
    let first = "name: agent # mine\ntools:\n  # the first\n  - {name: x, type: function}  # keep\n";
    check_added(Profile::HoloDeck, first, &format!("{first}{item}"));
    check_added(
        Profile::HoloDeck,
        &format!("{first}\nmodel: {{}}\n"),
        &format!("{first}{item}\nmodel: {{}}\n"),
    );
    // Without indentation, with blank lines between items and a comment in the last one; then Windows line ends.
    let flat = "tools:\n- name: x\n  type: function\n\n- name: y\n  type: function\n  # of y\n# of none\n";
    let flat_item: String = item.lines().map(|it| format!("{}\n", &it[2..])).collect();
    let want = flat.replace("# of none\n", &format!("\n{flat_item}# of none\n"));
    check_added(Profile::HoloDeck, flat, &want);
    let windows = first.replace('\n', "\r\n");
    check_added(Profile::HoloDeck, &windows, &format!("{first}{item}").replace('\n', "\r\n"));
    // Without a line end at the end of the file.
    check_added(Profile::HoloDeck, first.trim_end(), format!("{first}{item}").trim_end());
}

#[test]
fn first_server_is_added_to_an_empty_list() {
    let item = "  - name: new\n    description: New.\n    type: mcp\n    server: p\n    command: npx\n    args: \
                [\"-y\", p]\n    env:\n      A: b\n";
    for empty in ["tools: []", "tools:", "tools: ~", "tools: [ ]"] {
        check_added(
            Profile::HoloDeck,
            &format!("{empty} # none\nz: 1\n"),
            &format!("tools: # none\n{item}z: 1\n"),
        );
    }
    check_added(Profile::HoloDeck, "name: agent\n", &format!("name: agent\ntools:\n{item}"));
    check_added(Profile::HoloDeck, "# nothing yet", &format!("# nothing yet\ntools:\n{item}"));
    let entry = "  new:\n    transport: stdio\n    command: npx\n    args: [\"-y\", p]\n    env:\n      A: b\n    \
                 truely-stateless: true\n";
    check_added(Profile::Dominds, "version: 1\n", &format!("version: 1\nservers:\n{entry}"));
    check_added(Profile::Dominds, "version: 1\nservers: {}\n", &format!("version: 1\nservers:\n{entry}"));
    check_added(Profile::Dominds, "", &format!("version: 1\nservers:\n{entry}"));
}

#[test]
fn entry_is_added_between_brackets() {
    let entry =
        "new: {transport: stdio, command: npx, args: [\"-y\", p], env: {A: b}, truely-stateless: true}";
    check_added(
        Profile::Dominds,
        "version: 1\nservers: {a: {transport: stdio, command: x}} # c\n",
        &format!("version: 1\nservers: {{a: {{transport: stdio, command: x}}, {entry}}} # c\n"),
    );
    check_added(
        Profile::Dominds,
        "version: 1\nservers: {\n  a: {transport: stdio, command: x}, # c\n}\n",
        &format!("version: 1\nservers: {{\n  a: {{transport: stdio, command: x}}, # c\n  {entry},\n}}\n"),
    );
    check_added(
        Profile::Dominds,
        "{\n  \"version\": 1,\n  \"servers\": {\n    \"a\": { \"transport\": \"stdio\", \"command\": \"x\" }\n  }\n}\n",
        "{\n  \"version\": 1,\n  \"servers\": {\n    \"a\": { \"transport\": \"stdio\", \"command\": \"x\" },\n    \
         \"new\": {\n      \"transport\": \"stdio\",\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \
         \"p\"],\n      \"env\": {\n        \"A\": \"b\"\n      },\n      \"truely-stateless\": true\n    }\n  }\n}\n",
    );
    check_added(
        Profile::Dominds,
        "{\"version\": 1, \"servers\": {}}",
        "{\"version\": 1, \"servers\": {\"new\": {\"transport\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \
         \"p\"], \"env\": {\"A\": \"b\"}, \"truely-stateless\": true}}}",
    );
}

#[test]
fn unsupported_additions_are_refused() {
    check_added(
        Profile::HoloDeck,
        "tools:\n- {name: new, type: mcp}\n",
        "error: a server 'new' already exists",
    );
    check_added(
        Profile::HoloDeck,
        "tools:\n- {name: new, type: function}\n",
        "error: the edited file would have a mistake: ValidationError: two tools of this agent are named 'new'",
    );
    check_added(
        Profile::HoloDeck,
        "tools: [\n",
        "error: line 1 prevents editing the file: ConfigError: invalid YAML: the `[` is not closed",
    );
    check_added(
        Profile::Dominds,
        "version: 2\nservers: {}\n",
        "error: line 1 prevents editing the file: ConfigError: Invalid mcp.yaml: expected version: 1",
    );
    check_added(
        Profile::Dominds,
        "version: 1\nx: &s {a: {transport: stdio, command: x}}\nservers: *s\n",
        "error: the file cannot be edited safely: the list of servers is shared, by an anchor or \
         an alias",
    );
    check_added(
        Profile::HoloDeck,
        "tools: x\n",
        "error: the file cannot be edited safely: the value of the servers' key is not a list or mapping",
    );
    let mut other = new_server("new");
    let text = "version: 1\nservers: {new: {transport: stdio, command: bash}}";
    other.transport = read(&document(Profile::Dominds, text)).servers.remove(0).transport;
    let got = add_server(&document(Profile::HoloDeck, "tools: []\n"), &other);
    assert_eq!(
        got.unwrap_err().to_string(),
        "the server cannot be written there: command: only npx, uvx, docker are allowed there"
    );
}

const WORKSPACE: &str = "\
# our servers
version: 1
servers:
  # about a
  # in two lines
  a:
    transport: stdio
    command: x   # c
    # inside a

  # about b
  b:
    transport: stdio
    command: |-
      y
    # inside b

  # of none

  c: {transport: stdio, command: z}
# the end
";

#[test]
fn server_is_removed_with_its_comments() {
    let remove_between = |from: &str, to: &str| {
        let (start, end) = (WORKSPACE.find(from).unwrap(), WORKSPACE.find(to).unwrap());
        format!("{}{}", &WORKSPACE[..start], &WORKSPACE[end..])
    };
    check_removed(Profile::Dominds, WORKSPACE, "a", &remove_between("  # about a", "  # about b"));
    check_removed(Profile::Dominds, WORKSPACE, "b", &remove_between("  # about b", "  # of none"));
    check_removed(Profile::Dominds, WORKSPACE, "c", &remove_between("  c: {", "# the end"));
    let windows = WORKSPACE.replace('\n', "\r\n");
    check_removed(
        Profile::Dominds,
        &windows,
        "b",
        &remove_between("  # about b", "  # of none").replace('\n', "\r\n"),
    );
}

#[test]
fn item_is_removed_with_any_dash_layout() {
    let item = |name: &str| format!("name: {name}\n    type: mcp\n");
    let agent =
        format!("tools:\n  - {}  -\n    {}\n  # z\n  - &anchor\n    {}", item("x"), item("y"), item("z"));
    check_removed(
        Profile::HoloDeck,
        &agent,
        "x",
        &format!("tools:\n  -\n    {}\n  # z\n  - &anchor\n    {}", item("y"), item("z")),
    );
    check_removed(
        Profile::HoloDeck,
        &agent,
        "y",
        &format!("tools:\n  - {}\n  # z\n  - &anchor\n    {}", item("x"), item("z")),
    );
    check_removed(
        Profile::HoloDeck,
        &agent,
        "z",
        &format!("tools:\n  - {}  -\n    {}", item("x"), item("y")),
    );
}

#[test]
fn removing_the_last_server_leaves_an_empty_list() {
    check_removed(
        Profile::Dominds,
        "version: 1\nservers: # ours\n  # about a\n  a:\n    transport: stdio\nx: 1\n",
        "a",
        "version: 1\nservers: {} # ours\nx: 1\n",
    );
    check_removed(Profile::HoloDeck, "tools:\n- name: a\n  type: mcp\n", "a", "tools: []\n");
    check_removed(Profile::Dominds, "version: 1\nservers: { a: {} }\n", "a", "version: 1\nservers: {}\n");
    // A commented-out entry stays; the comments of the removed entry are removed.
    check_removed(
        Profile::McpJson,
        "{\"mcpServers\": {\n  // \"old\": {},\n\n  // of a\n  \"a\": {\"command\": \"x\"}, // a\n}}\n",
        "a",
        "{\"mcpServers\": {\n  // \"old\": {},\n\n}}\n",
    );
    check_removed(
        Profile::McpJson,
        "{\"mcpServers\": {\n  // of a\n  \"a\": {\"command\": \"x\"}\n}}\n",
        "a",
        "{\"mcpServers\": {}}\n",
    );
}

#[test]
fn flow_server_is_removed_with_its_comma() {
    let flow = |inner: &str| format!("version: 1\nservers: {{{inner}}}\n");
    check_removed(Profile::Dominds, &flow("a: {}, b: {}, c: {}"), "a", &flow("b: {}, c: {}"));
    check_removed(Profile::Dominds, &flow("a: {}, b: {}, c: {}"), "b", &flow("a: {}, c: {}"));
    check_removed(Profile::Dominds, &flow("a: {}, b: {}, c: {}"), "c", &flow("a: {}, b: {}"));
    check_removed(Profile::Dominds, &flow("a: {}, b: {},"), "b", &flow("a: {},"));
    // The comment of the next entry stays.
    let json = |inner: &str| format!("{{\"mcpServers\": {{{inner}}}}}");
    let (a, b) = ("\"a\": {\"command\": \"x\"}", "\"b\": {\"command\": \"y\"}");
    check_removed(
        Profile::McpJson,
        &json(&format!("{a}, // a\n // b\n {b}")),
        "a",
        &json(&format!("\n // b\n {b}")),
    );
}

#[test]
fn unsupported_removals_are_refused() {
    check_removed(Profile::Dominds, WORKSPACE, "d", "error: there is no server 'd'");
    check_removed(
        Profile::HoloDeck,
        "tools:\n- {name: a, type: mcp}\n- {name: a, type: mcp}\n",
        "a",
        "error: more than one server is named 'a'",
    );
    check_removed(
        Profile::Dominds,
        "version: 1\nservers:\n  a: &x {transport: stdio, command: x}\n  b: *x\n",
        "a",
        "error: the file cannot be edited safely: another part of it depends on the entry, \
         perhaps through an anchor",
    );
    check_removed(
        Profile::Dominds,
        "version: 1\nservers:\n  a: {}\n  a: {}\n",
        "a",
        "error: line 4 prevents editing the file: ValidationError: the key 'a' appears twice",
    );
}

/// An editor's file with comments and trailing commas.
pub(crate) const EDITOR: &str = "\
{
    // ours
    \"mcpServers\": {
        \"a\": {
            \"command\": \"x\", // why
            \"args\": [],
        },
        /* the other */
        \"b\": { \"url\": \"https://acme.example/mcp\" }, // last
    },
    \"other\": true
}
";

#[test]
fn dia_02_dia_07_comments_of_json_stay() {
    let new = "        \"new\": {
          \"command\": \"npx\",
          \"args\": [\"-y\", \"p\"],
          \"env\": {
            \"A\": \"b\"
          },
          \"description\": \"New.\"
        },";
    let added = EDITOR.replace(" }, // last", &format!(" }}, // last\n{new}"));
    let bare = EDITOR.replace(" }, // last", " } // last");
    check_added(
        Profile::McpJson,
        &bare,
        &added.replace(" },\n    },", " }\n    },").replace("        },\n    },", "        }\n    },"),
    );
    check_added(Profile::McpJson, EDITOR, &added);
    let windows = EDITOR.replace('\n', "\r\n");
    check_added(Profile::McpJson, &windows, &added.replace('\n', "\r\n"));
    let off = EDITOR.replace("\"command\"", "\"disabled\": true,\n            \"command\"");
    let editor = |text: &str, to| text_or_error(set_enabled(&document(Profile::McpJson, text), "a", to));
    assert_eq!(editor(EDITOR, Switch::Off), off);
    assert_eq!(editor(&off, Switch::On), off.replace("\"disabled\": true", "\"disabled\": false"));
    let other = EDITOR.replace("\"command\"", "\"enabled\": true, \"command\"");
    assert_eq!(editor(&other, Switch::Off), other.replace("\"enabled\": true", "\"enabled\": false"));
    let remove_between = |text: &str, from: &str, to: &str| {
        let (start, end) = (text.find(from).unwrap(), text.find(to).unwrap());
        format!("{}{}", &text[..start], &text[end..])
    };
    check_removed(Profile::McpJson, EDITOR, "a", &remove_between(EDITOR, "        \"a\"", "        /* the"));
    check_removed(
        Profile::McpJson,
        EDITOR,
        "b",
        &remove_between(EDITOR, "        /* the", "    },\n    \"other"),
    );
    let without = remove_between(&bare, "        /* the", "    },\n    \"other")
        .replace("        },\n    },", "        }\n    },");
    check_removed(Profile::McpJson, &bare, "b", &without);
}

#[test]
fn removing_an_added_server_restores_the_file() {
    let check = |profile: Profile, text: &str| {
        let document = |text| Document::new("config", text, profile);
        let added = add_server(&document(text), &new_server("new")).unwrap().text;
        assert_ne!(added, text);
        let restored = remove_server(&document(&added), "new").unwrap();
        assert_eq!(restored, text, "{added}");
    };
    let holodeck = "tools:\n  - {name: x, type: function}\n\n  # of y\n  - name: y\n    type: function\n";
    let dominds = "version: 1\nservers:\n  a:\n    transport: stdio\n    command: x\n";
    let spaced = "\n  b:\n    transport: stdio\n    command: y\n";
    let json = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n";
    for (profile, text) in [
        (Profile::HoloDeck, holodeck.to_owned()),
        (Profile::HoloDeck, format!("{holodeck}model: {{}}\n")),
        (Profile::HoloDeck, format!("{holodeck}\n# end\nmodel: {{}}\n")),
        (Profile::HoloDeck, "name: a\ntools: [] # none\nmodel: {}\n".to_owned()),
        (Profile::HoloDeck, "tools: [{name: x, type: function}]".to_owned()),
        (Profile::Dominds, dominds.to_owned()),
        (Profile::Dominds, format!("{dominds}{spaced}")),
        (Profile::Dominds, format!("{dominds}{spaced}# of none\n")),
        (Profile::Dominds, format!("{dominds}{spaced}\n\n")),
        (Profile::Dominds, "version: 1\nservers: {}\n".to_owned()),
        (Profile::Dominds, "servers: {}\n\nversion: 1\n".to_owned()),
        (Profile::McpJson, json.to_owned()),
        (Profile::McpJson, json.replace("    }\n  }", "    }, // last\n  },")),
        (Profile::McpJson, "{\n  \"mcpServers\": {},\n  \"other\": 1\n}\n".to_owned()),
        (Profile::McpJson, "{\"mcpServers\": {}}".to_owned()),
        (Profile::McpJson, "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}".to_owned()),
        (
            Profile::McpJson,
            "{\n  \"mcpServers\": {\n    // \"a\": {\"command\": \"x\"},\n    // none\n  }\n}\n".to_owned(),
        ),
    ] {
        for text in [text.clone(), text.trim_end().to_owned(), text.replace('\n', "\r\n")] {
            check(profile, &text);
        }
    }
}

#[test]
fn list_that_was_added_with_its_server_is_removed_with_it() {
    let check = |profile: Profile, name: &str, text: &str, is_restored: bool| {
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let document = |text| Document::new(name, text, profile);
            let added = add_server(&document(&text), &new_server("new")).unwrap().text;
            let removed = remove_server(&document(&added), "new").unwrap();
            assert_eq!(removed == text, is_restored, "{name}: {added}\n{removed}");
        }
    };
    let json = Profile::McpJson;
    for (profile, name, text) in [
        (Profile::HoloDeck, "agent.yaml", "name: agent # mine\nmodel: {}\n"),
        (Profile::HoloDeck07, "agent.yaml", "name: agent\n"),
        (json, ".gemini/settings.json", "{\n  \"ui\": { \"theme\": \"x\" } // c\n}\n"),
        (json, ".gemini/settings.json", "{\"extensions\": {\"disabled\": []}, \"mcp\": {}}"),
        (json, ".zed/settings.json", "{\n  // c\n  \"theme\": \"x\",\n}\n"),
        (json, "opencode.jsonc", "{\n    \"theme\": \"x\"\n}"),
        (json, ".config/amp/settings.json", "{\n  \"amp.url\": \"x\"\n}\n"),
        (json, ".vscode/settings.json", "{\n  \"a.b\": 1\n}\n"),
        (json, ".devcontainer/devcontainer.json", "{\n  \"image\": \"x\" // c\n}\n"),
        (json, ".config/goose/config.yaml", "GOOSE_MODEL: m # c\n"),
        (json, ".continue/config.yaml", "name: a\nversion: 1.0.0\n"),
        (json, "librechat.yaml", "version: 1.2.1\n\n# c\n"),
        (json, ".codex/config.toml", "model = \"m\" # c\n"),
    ] {
        check(profile, name, text, true);
    }
    // An empty map stays where the file needs one.
    check(json, ".mcp.json", "{\n  \"a\": 1\n}\n", false);
}

#[test]
fn server_is_added_to_an_editor_file_without_servers() {
    let servers = "{\n    \"new\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"p\"],\n      \"env\": \
                   {\n        \"A\": \"b\"\n      },\n      \"description\": \"New.\"\n    }\n  }";
    let file = |servers: &str| format!("{{\n  \"mcpServers\": {servers}\n}}");
    check_added(Profile::McpJson, "", &format!("{}\n", file(servers)));
    check_added(Profile::McpJson, "{}\n", &format!("{}\n", file(servers)));
    check_added(Profile::McpJson, &file("{}"), &file(servers));
    check_added(Profile::McpJson, &file("null"), &file(servers));
    // A server is added to the list that has the existing ones, at any position.
    let nested =
        |rest: &str| format!("{{\"mcp\": {{\"servers\": {{\"a\": {{\"command\": \"x\"}}{rest}}}}}}}");
    let entry = "\"new\": {\"command\": \"npx\", \"args\": [\"-y\", \"p\"], \"env\": {\"A\": \"b\"}, \
        \"description\": \"New.\"}";
    check_added(Profile::McpJson, &nested(""), &nested(&format!(", {entry}")));
    check_added(
        Profile::AcpV1,
        "[]",
        "error: the servers of an ACP session are part of a request, not of a file",
    );
}
