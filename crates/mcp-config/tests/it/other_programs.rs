//! Files of Codex, Goose, Continue, LibreChat and Amp, and servers inside of other settings.

use mcp_host_config::{
    Code, Document, EditError, FieldChange, Profile, Switch, add_server, detect, read, remove_server,
    set_enabled, set_fields,
};
use mcp_host_model::{ConfigValue, Dialect, ServerSpec, TemplatePart, TransportSpec};

use crate::edits::{document, new_server, text_or_error};

/// Checks the servers of another program's file: their JSON-like description, and the diagnostics.
#[track_caller]
fn check_program(name: &str, text: &str, want: &[&str]) {
    assert_eq!(detect(name, text), Some(Dialect::McpJson), "{name}");
    let reading = read(&Document::new(name, text, Profile::McpJson));
    let value_text = |it: &ConfigValue| match it {
        ConfigValue::Literal(text) => text.expose().to_owned(),
        ConfigValue::HostEnv { name, prefix } => format!("{}${name}", prefix.expose()),
        ConfigValue::Template(parts) => parts
            .iter()
            .map(|part| match part {
                TemplatePart::Text(text) => text.expose().to_owned(),
                TemplatePart::Variable(name) | TemplatePart::OptionalVariable(name) => format!("${name}"),
                TemplatePart::VariableOr { .. }
                | TemplatePart::Input(_)
                | TemplatePart::File(_)
                | TemplatePart::Secret(_) => "?".to_owned(),
            })
            .collect(),
    };
    let pairs = |it: &[(String, ConfigValue)]| {
        it.iter().map(|(name, value)| format!(" {name}={}", value_text(value))).collect::<String>()
    };
    let line = |it: &mcp_host_model::ServerSpec| {
        let limits = (it.limits.startup.as_millis(), it.limits.request.as_millis());
        let what = match &it.transport {
            TransportSpec::Stdio(spec) => {
                let args: String = spec.args.iter().map(|it| format!(" {}", value_text(it))).collect();
                format!("{}{args};{}", spec.command, pairs(&spec.env))
            }
            TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
                format!("{} {};{}", it.transport.kind().as_str(), value_text(&spec.url), pairs(&spec.headers))
            }
        };
        format!("{}: {what}; {limits:?} {:?}", it.id, it.exposure.tools.filter.whitelist)
    };
    let off = reading.entries.iter().filter(|it| it.disabled).map(|it| format!("{}: off", it.name));
    let diagnostics = reading.diagnostics.iter().filter(|it| it.code != Code::NothingToStart);
    let diagnostics = diagnostics.map(|it| format!("{}:{}", it.line, it));
    let found: Vec<_> = reading.servers.iter().map(line).chain(off).chain(diagnostics).collect();
    assert_eq!(found, want, "{name}");
}

#[test]
fn files_of_codex_goose_continue_and_librechat_are_read() {
    check_program(
        ".codex/config.toml",
        "model = 'm'\n[mcp_servers.a]\ncommand = 'npx'\nargs = ['-y']\nenv = { A = 'b' }\nenv_vars = ['PATH']\n\
         startup_timeout_sec = 20\ntool_timeout_sec = 30\nenabled_tools = ['x']\n[mcp_servers.a.tools.x]\n\
         approval_mode = 'approve'\n[mcp_servers.b]\nurl = 'https://b.example'\nbearer_token_env_var = 'T'\n\
         http_headers = { X = 'y' }\nenv_http_headers = { Z = 'V' }\nscopes = ['s']\n[mcp_servers.c]\n\
         command = 'x'\nenabled = false\n[mcp_servers.d]\ncomand = 'x'\n",
        &[
            "a: npx -y; A=b; (20000, 30000) [\"x\"]",
            "b: http https://b.example; X=y Authorization=Bearer $T Z=$V; (60000, 60000) []",
            "c: off",
            "22:MCPConfigError: a server needs a 'command' to start, or a 'url' to connect to",
            "22:ValidationError: unknown key 'comand'",
        ],
    );
    check_program(
        ".config/goose/config.yaml",
        "GOOSE_MODEL: m\nextensions:\n  developer: {type: builtin, name: developer, enabled: true, bundled: true}\n  \
         a:\n    type: stdio\n    name: a\n    cmd: npx\n    args: [-y]\n    envs: {A: b}\n    env_keys: [KEY]\n    \
         timeout: 300\n    enabled: true\n    available_tools: []\n  b: {type: streamable_http, uri: \
         'https://b.example', headers: {X: y}, enabled: true}\n",
        &[
            "a: npx -y; A=b KEY=$KEY; (300000, 300000) []",
            "b: http https://b.example; X=y; (60000, 60000) []",
            "developer: off",
        ],
    );
    check_program(
        ".continue/config.yaml",
        "name: mine\nmcpServers:\n  - name: a\n    command: npx\n    args: [-y]\n    env: {K: '${{ secrets.KEY }}'}\n  \
         - name: b\n    type: streamable-http\n    url: https://b.example\n    requestOptions:\n      headers: {X: \
         y}\n",
        &["a: npx -y; K=$KEY; (60000, 60000) []", "b: http https://b.example; X=y; (60000, 60000) []"],
    );
    check_program(
        "librechat.yaml",
        "version: 1.2.1\nmcpServers:\n  a:\n    url: https://a.example/sse\n    headers: {X: '${KEY}'}\n    \
         initTimeout: 10000\n    serverInstructions: true\n  b: {command: npx, args: [-y], iconPath: /x}\n",
        &["a: sse https://a.example/sse; X=$KEY; (10000, 60000) []", "b: npx -y;; (60000, 60000) []"],
    );
}

#[test]
fn nested_server_maps_are_read() {
    check_program(
        ".devcontainer/devcontainer.json",
        "{\"customizations\": {\"vscode\": {\"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}}}, // c\n}",
        &["a: x;; (60000, 60000) []"],
    );
    check_program(
        "/home/me/.claude.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"projects\": {\"/w/p\": {\"mcpServers\": {\"a\": \
         {\"command\": \"y\"}, \"b\": {\"command\": \"z\"}}}, \"/w/q\": {\"mcpServers\": {}}}}",
        &["a: x;; (60000, 60000) []", "a@p: y;; (60000, 60000) []", "b: z;; (60000, 60000) []"],
    );
    check_program(
        ".config/amp/settings.json",
        "{\"amp.mcpServers\": {\"a\": {\"command\": \"x\", \"includeTools\": [\"t\"]}}}",
        &["a: x;; (60000, 60000) [\"t\"]"],
    );
}

#[test]
fn server_of_opencode_is_written_in_its_own_form() {
    let add = |text: &str, server: &ServerSpec| {
        let document = Document::new("opencode.jsonc", text, Profile::McpJson);
        add_server(&document, server).map(|it| {
            let lost: Vec<_> = it.unsupported.iter().filter(|it| it.reason.contains("opencode")).collect();
            assert!(lost.iter().all(|it| it.field == "description"), "{lost:?}");
            it.text
        })
    };
    assert_eq!(
        text_or_error(add("{\"mcp\": {\"b\": {\"enabled\": true}}}", &new_server("new"))),
        "{\"mcp\": {\"b\": {\"enabled\": true}, \"new\": {\"type\": \"local\", \"command\": [\"npx\", \"-y\", \"p\"], \
         \"environment\": {\"A\": \"b\"}}}}"
    );
    let servers = |text: &str| read(&document(Profile::McpJson, text)).servers;
    let web = servers(
        "{\"mcpServers\": {\"w\": {\"type\": \"sse\", \"url\": \"https://a.example\", \"headers\": {\"A\": \"Bearer \
         ${T}\"}, \"requestTimeout\": 9000}}}",
    );
    assert_eq!(
        text_or_error(add("{}", &web[0])),
        "{\n  \"mcp\": {\n    \"w\": {\n      \"type\": \"remote\",\n      \"url\": \"https://a.example\",\n      \
         \"headers\": {\n        \"A\": \"Bearer {env:T}\"\n      },\n      \"timeout\": 9000\n    }\n  }\n}"
    );
    let socket = servers("{\"mcpServers\": {\"w\": {\"type\": \"ws\", \"url\": \"wss://a.example\"}}}");
    assert_eq!(
        text_or_error(add("{}", &socket[0])),
        "error: the server cannot be written there: transport: opencode does not connect over WebSocket"
    );
}

#[test]
fn server_of_kilo_code_is_read_and_written_like_that_of_opencode() {
    let file =
        "{\"mcp\": {\"w\": {\"type\": \"remote\", \"url\": \"https://a.example\", \"enabled\": true}}}";
    let document = Document::new(".kilo/kilo.jsonc", file, Profile::McpJson);
    check_program(".kilo/kilo.jsonc", file, &["w: http https://a.example;; (60000, 60000) []"]);
    let written = add_server(&document, &new_server("new")).unwrap().text;
    assert!(
        written.contains("\"new\": {\"type\": \"local\", \"command\": [\"npx\", \"-y\", \"p\"]"),
        "{written}"
    );
    let socket = "{\"mcpServers\": {\"w\": {\"type\": \"ws\", \"url\": \"wss://a.example\"}}}";
    let socket = &read(&Document::new("mcp.json", socket, Profile::McpJson)).servers[0];
    let document = document.with_text("{}");
    let error = add_server(&document, socket).unwrap_err().to_string();
    assert!(error.ends_with("Kilo Code does not connect over WebSocket"), "{error}");
}

#[test]
fn lists_of_gemini_disable_servers() {
    let file = |mcp: &str| {
        format!(
            "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\"}},\n\"b\": {{\"command\": 5}}}}, \"mcp\": {{{mcp}}}}}"
        )
    };
    let a = "a: x;; (60000, 60000) []";
    let message = |name: &str, why: &str| {
        format!("MCPConfigError: Gemini CLI does not start '{name}': it {why} of this file")
    };
    let (excluded, missing) = ("is in the list `mcp.excluded`", "is not in the list `mcp.allowed`");
    check_program(
        ".gemini/settings.json",
        &file("\"excluded\": [\"b\", 5]"),
        &[a, "b: off", &format!("2:{}", message("b", excluded))],
    );
    check_program(
        ".gemini/settings.json",
        &file("\"allowed\": [\"a\"]"),
        &[a, "b: off", &format!("2:{}", message("b", missing))],
    );
    check_program(
        ".gemini/settings.json",
        &file("\"allowed\": [\"b\", \"a\"], \"excluded\": [\"a\", \"b\"]"),
        &[
            "a: off",
            "b: off",
            &format!("1:{}", message("a", excluded)),
            &format!("2:{}", message("b", excluded)),
        ],
    );
    // Other programs have no such lists.
    let reading = read(&Document::new("crush.json", &file("\"excluded\": [\"a\"]"), Profile::McpJson));
    assert_eq!(reading.servers.len(), 1);
}

/// A file of a program, what is in it after `add`, and after `disable` of the added server (or why it is refused).
const EDITED_FILES: &[(&str, &str, &str, &str)] = &[
    (
        ".codex/config.toml",
        "# c\nmodel = \"m\" # m\n\n[mcp_servers.a] # a\ncommand = \"x\"\n",
        "\n[mcp_servers.new]\ncommand = \"npx\"\nargs = [\"-y\", \"p\"]\nenv = { A = \"b\" }\n",
        "enabled = false\n",
    ),
    (
        ".config/goose/config.yaml",
        "# c\nextensions:\n  # a\n  a: {enabled: true, type: stdio, name: a, cmd: x, args: []} # b\n",
        "  new:\n    enabled: true\n    type: stdio\n    description: New.\n    name: new\n    cmd: npx\n    args: \
         [\"-y\", p]\n    envs:\n      A: b\n",
        "    enabled: false\n",
    ),
    (
        ".continue/config.yaml",
        "# c\nmcpServers:\n  # a\n  - name: a # b\n    command: x\n",
        "  - name: new\n    command: npx\n    args: [\"-y\", p]\n    env:\n      A: b\n",
        "error: Continue obeys no key that disables a server; Continue starts every server of its file",
    ),
    (
        "librechat.yaml",
        "# c\nmcpServers:\n  # a\n  a: # b\n    command: x\n",
        "  new:\n    command: npx\n    args: [\"-y\", p]\n    env:\n      A: b\n    description: New.\n",
        "error: LibreChat obeys no key that disables a server; LibreChat connects to every server of its file",
    ),
    (
        ".config/amp/settings.json",
        "{\n  // c\n  \"amp.mcpServers\": {\n    \"a\": { \"command\": \"x\" } // a\n  }\n}\n",
        "    \"new\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"p\"],\n      \"env\": {\n        \
        \"A\": \"b\"\n      },\n",
        "\"disabled\": true",
    ),
    (
        "opencode.jsonc",
        "{\n  // c\n  \"mcp\": {\n    \"a\": { \"type\": \"local\", \"command\": [\"x\"] }, // a\n  },\n}\n",
        "    \"new\": {\n      \"type\": \"local\",\n      \"command\": [\"npx\", \"-y\", \"p\"],\n      \
        \"environment\": {\n        \"A\": \"b\"\n",
        "\"enabled\": false",
    ),
    (
        ".devcontainer/devcontainer.json",
        "{\n  // c\n  \"customizations\": {\n    \"vscode\": {\n      \"mcp\": {\n        \"servers\": {\n          \
         \"a\": { \"command\": \"x\" } // a\n        }\n      }\n    }\n  }\n}\n",
        "          \"new\": {\n            \"command\": \"npx\",\n",
        "          // \"new\": {\n",
    ),
];

pub(crate) fn document_named<'a>(name: &'a str, text: &'a str) -> Document<'a> {
    Document::new(name, text, Profile::McpJson)
}

#[test]
fn files_of_other_programs_are_edited_in_their_own_form() {
    for (name, text, added, disabled) in EDITED_FILES {
        let same = |text: Result<String, EditError>, want: &str, what: &str| {
            assert_eq!(text_or_error(text), want, "{name}: {what}")
        };
        assert_eq!(read(&document_named(name, text)).diagnostics, [], "{name}");
        let with_new = add_server(&document_named(name, text), &new_server("new")).unwrap().text;
        assert!(with_new.contains(added), "{name}: {with_new}");
        assert_eq!(read(&document_named(name, &with_new)).diagnostics, [], "{name}: {with_new}");
        same(remove_server(&document_named(name, &with_new), "new"), text, "remove");
        let off = set_enabled(&document_named(name, &with_new), "new", Switch::Off);
        if disabled.starts_with("error") {
            same(off, disabled, "disable");
        } else {
            let off = off.unwrap();
            assert!(off.contains(disabled), "{name}: {off}");
            assert!(
                read(&document_named(name, &off)).entries.iter().all(|it| it.name != "new" || it.disabled),
                "{name}: {off}"
            );
            let on = set_enabled(&document_named(name, &off), "new", Switch::On).unwrap();
            let is_on = ["\"disabled\":false,", "\"enabled\":true,", "enabled=true"];
            let without_key = |text: &str| {
                let text: String = text.split_whitespace().collect();
                is_on.iter().fold(text, |text, key| text.replace(key, ""))
            };
            assert_eq!(without_key(&on), without_key(&with_new), "{name}: enable");
        }
        // The fields of the common form have the names of the program.
        let change = |it: &str| FieldChange::parse(it).unwrap();
        let set = set_fields(
            &document_named(name, text),
            "a",
            &[change("command=y"), change("args+=-z"), change("env.K=v")],
        );
        let set = set.unwrap_or_else(|it| panic!("{name}: {it}")).text;
        let reading = read(&document_named(name, &set));
        assert_eq!(reading.diagnostics, [], "{name}: {set}");
        let TransportSpec::Stdio(spec) = &reading.servers[0].transport else { panic!("{name}") };
        let args: Vec<_> = spec.args.iter().map(|it| format!("{it:?}")).collect();
        assert_eq!((spec.command.as_str(), args.len(), spec.env.len()), ("y", 1, 1), "{name}: {set}");
        let comments = |text: &str| text.matches(['#', '/']).count();
        assert_eq!(comments(&set), comments(text), "{name}: {set}");
    }
}

#[test]
fn remote_servers_are_written_in_the_form_of_their_program() {
    let servers = "{\"mcpServers\": {\"w\": {\"type\": \"http\", \"url\": \"https://a.example\", \"headers\": \
                   {\"A\": \"Bearer ${T}\"}, \"requestTimeout\": 9500}, \"s\": {\"type\": \"sse\", \"url\": \
                   \"https://s.example\"}, \"e\": {\"command\": \"x\", \"env\": {\"T\": \"${T}\", \"U\": \
                   \"-${V}\"}}, \"h\": {\"type\": \"http\", \"url\": \"https://h.example\", \"headers\": \
                   {\"Authorization\": \"Bearer ${T}\", \"X\": \"${K}\", \"Y\": \"y\"}}}}";
    let servers = read(&document(Profile::McpJson, servers)).servers;
    let check = |name: &str, server: usize, want: &str| {
        let document = Document::new(name, "", Profile::McpJson);
        let added = add_server(&document, &servers[server]);
        let text = added.map(|it| {
            let lost: Vec<_> =
                it.unsupported.iter().map(|it| format!("# {}: {}\n", it.field, it.fallback)).collect();
            it.text + &lost.concat()
        });
        assert_eq!(text_or_error(text), want, "{name}");
    };
    const GOOSE: &str = ".config/goose/config.yaml";
    const CONTINUE: &str = ".continue/config.yaml";
    check(
        GOOSE,
        0,
        "extensions:\n  w:\n    enabled: true\n    type: streamable_http\n    name: w\n    description: \"\"\n    \
         uri: https://a.example\n    headers:\n      A: \"Bearer ${T}\"\n    timeout: 10\n    env_keys: [T]\n",
    );
    check(
        GOOSE,
        1,
        "error: the server cannot be written there: transport: Goose connects over stdio and Streamable HTTP only",
    );
    check(
        GOOSE,
        2,
        "extensions:\n  e:\n    enabled: true\n    type: stdio\n    name: e\n    description: \"\"\n    cmd: x\n    \
             envs:\n      U: \"-${V}\"\n    args: []\n    env_keys: [T]\n\
             # variables: ${V} is not replaced: write the value there\n",
    );
    let head = "name: Local Assistant\nversion: 1.0.0\nschema: v1\nmcpServers:\n";
    check(
        CONTINUE,
        0,
        &format!(
            "{head}  - name: w\n    type: streamable-http\n    url: https://a.example\n    requestOptions:\n      \
             headers:\n        A: \"Bearer ${{{{ secrets.T }}}}\"\n# requestTimeout: left out\n"
        ),
    );
    check(CONTINUE, 1, &format!("{head}  - name: s\n    type: sse\n    url: https://s.example\n"));
    check(
        ".codex/config.toml",
        0,
        // RPT-106
        "[mcp_servers.w]\nurl = \"https://a.example\"\nhttp_headers = { A = \"Bearer ${T}\" }\n\
         tool_timeout_sec = 9.5\n\
         # variables: ${T} is not replaced: write the value there\n",
    );
    check(
        ".codex/config.toml",
        2,
        "[mcp_servers.e]\ncommand = \"x\"\nenv = { U = \"-${V}\" }\nenv_vars = [\"T\"]\n\
         # variables: ${V} is not replaced: write the value there\n",
    );
    check(
        ".codex/config.toml",
        3,
        "[mcp_servers.h]\nurl = \"https://h.example\"\nhttp_headers = { Y = \"y\" }\nbearer_token_env_var = \"T\"\n\
         env_http_headers = { X = \"K\" }\n",
    );
    // A header goes where the program reads it.
    let text = "mcpServers:\n  - name: w\n    url: https://a.example\n";
    let document = Document::new(CONTINUE, text, Profile::McpJson);
    let set = set_fields(&document, "w", &[FieldChange::parse("headers.X=${T}").unwrap()]).unwrap().text;
    assert_eq!(
        set,
        format!("{text}    requestOptions:\n      headers:\n        X: \"${{{{ secrets.T }}}}\"\n")
    );
}

#[test]
fn dia_07_key_that_the_program_ignores_is_reported() {
    let check = |name: &str, server: &str, want: &str| {
        let key = match name {
            ".vscode/mcp.json" => "servers",
            ".zed/settings.json" => "context_servers",
            "opencode.json" | "kilo.json" | "crush.json" => "mcp",
            _ => "mcpServers",
        };
        let text = format!("{{\"{key}\": {{\"a\": {{{server}, \"command\": \"x\"}}}}}}");
        let reading = read(&document_named(name, &text));
        assert!(reading.entries[0].disabled && reading.servers.is_empty(), "{name}");
        let found: Vec<_> =
            reading.diagnostics.iter().map(|it| (it.message.clone(), it.help.clone())).collect();
        let message = want.split_once("; ").map(|(program, help)| {
            let word = if server.contains("false") { "enabled" } else { "disabled" };
            let message = format!("{program} ignores '{word}' and starts the server; only mcp-host obeys it");
            (message, Some(help.to_owned()))
        });
        assert_eq!(found, message.into_iter().collect::<Vec<_>>(), "{name}");
    };
    const COMMENT: &str = "turn the entry into a comment; `mcp-host disable` does that";
    const ENABLED: &str = "set `enabled` to false; `mcp-host disable` does that";
    const DISABLED: &str = "set `disabled` to true; `mcp-host disable` does that";
    let (off, not_on) = ("\"disabled\": true", "\"enabled\": false");
    check(".vscode/mcp.json", off, &format!("VS Code; {COMMENT}"));
    check(".vscode/mcp.json", not_on, &format!("VS Code; {COMMENT}"));
    check(
        ".mcp.json",
        off,
        "Claude Code; Claude Code obeys no key that disables a server; the list `disabledMcpjsonServers` of \
         .claude/settings.local.json, or `/mcp` in Claude Code, does",
    );
    check(".zed/settings.json", off, &format!("Zed; {ENABLED}"));
    check("opencode.json", off, &format!("opencode; {ENABLED}"));
    check("kilo.json", off, &format!("Kilo Code; {ENABLED}"));
    check("crush.json", not_on, &format!("Crush; {DISABLED}"));
    check(
        ".gemini/settings.json",
        off,
        "Gemini CLI; add the name to the list `mcp.excluded`; `mcp-host disable` does that",
    );
    // A key that the program obeys, and files of unknown programs.
    check(".zed/settings.json", not_on, "");
    check("cline_mcp_settings.json", off, "");
    check("cline_mcp_settings.json", &format!("{off}, {not_on}"), "");
    check("mcp.json", off, "");
    check("a.json", not_on, "");
}

#[test]
fn collection_of_another_program_is_reported() {
    let check = |name: &str, text: &str, want: &[&str]| {
        let found: Vec<_> = read(&document_named(name, text))
            .diagnostics
            .iter()
            .map(|it| format!("{} {it}", it.severity))
            .collect();
        assert_eq!(found, want, "{name}");
    };
    let list = "{\"mcpServers\": [{\"name\": \"a\", \"command\": \"x\"}]}";
    check(
        ".mcp.json",
        list,
        &["warning ValidationError: Claude Code reads servers by their names here, not a list"],
    );
    check("mcp.json", list, &[]);
    check(".continue/config.yaml", list, &[]);
    check(
        ".continue/config.yaml",
        "mcpServers:\n  a:\n    command: x\n",
        &["warning ValidationError: Continue reads a list of servers here, not a mapping"],
    );
    let block = "mcpServers:\n  - uses: me/my-server\n    with: {A: b}\n";
    check(
        ".continue/config.yaml",
        block,
        &["info MCPConfigError: there is nothing to start: the entry names a block that Continue downloads"],
    );
    let entry = read(&document_named(".continue/config.yaml", block)).entries.remove(0);
    assert_eq!((entry.name.as_str(), entry.accepted, entry.disabled), ("my-server", true, true));
    check(
        ".gemini/settings.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"mcp\": {\"excluded\": \"a\", \"allowed\": null}}",
        &["warning ValidationError: Gemini CLI reads a list of names here, not text"],
    );
}
