//! Commands that change files: the printed diff, the written file, and secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Run, Workspace};

const WORKSPACE: &str = "\
version: 1
servers:
  # about a
  a:
    transport: stdio
    command: x
    env: { KEY: hunter2 }   # why
  b:
    transport: stdio
    comand: y
";

const FILE: &str = ".minds/mcp.yaml";

fn text(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.path().join(FILE)).unwrap()
}

/// Runs a command in a new workspace; returns the run and the file after it.
fn run(before: &str, arguments: &[&str]) -> (Run, String) {
    let workspace = Workspace::dominds(before);
    let run = workspace.run(arguments);
    (run, text(&workspace))
}

#[test]
fn certain_fixes_are_applied_and_shown() {
    let (run, after) = run(WORKSPACE, &["check", ".", "--fix"]);
    assert_eq!(after, WORKSPACE.replace("comand", "command"));
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.out);
}

#[test]
fn suggestions_are_applied_with_fix_all() {
    let text = "version: 1\nservers:\n  a: {transport: stdio, command: x, url: 'http://x.example'}\n";
    let (sure, after) = run(text, &["check", ".", "--fix"]);
    assert_eq!((after.as_str(), sure.code), (text, Some(0)));
    let (all, after) = run(text, &["check", ".", "--fix=all", "--format", "json"]);
    assert_eq!(after, "version: 1\nservers:\n  a: {transport: stdio, command: x}\n");
    let file = &all.json()["files"][0];
    assert_eq!(file["diagnostics"].as_array().map(Vec::len), Some(0));
    let fixed = serde_json::json!([
        { "code": "MCP0022", "pointer": "/servers/a/url", "line": 3, "fix": "remove `url`" }
    ]);
    assert_eq!(file["fixed"], fixed);
}

#[test]
fn unfixable_mistakes_are_reported() {
    let text = "version: 1\nservers:\n  a:\n    transport: sse\n    comand: x\n";
    let (run, after) = run(text, &["check", ".", "--fix"]);
    assert_eq!(after, text.replace("comand", "command"));
    assert_eq!(run.code, Some(1));
    assert!(run.out.ends_with("1 server, 0 accepted; 1 error; 1 fixed\n"), "{}", run.out);
}

#[test]
fn write_error_is_reported() {
    let workspace = Workspace::dominds(WORKSPACE);
    let folder = workspace.path().join(".minds");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let run = workspace.run(&["check", ".", "--fix"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    // Root can write to any folder, so the file may have been fixed.
    if text(&workspace) == WORKSPACE {
        assert_eq!(run.code, Some(1));
        assert!(run.out.contains("cannot write .minds/mcp.yaml: permission denied"), "{run:?}");
    }
}

#[test]
fn hdx_22_dmx_02_server_is_added_disabled_and_removed() {
    let workspace = Workspace::dominds(WORKSPACE);
    fs::set_permissions(workspace.path().join(FILE), fs::Permissions::from_mode(0o600)).unwrap();
    let added = workspace.run(&[
        "add",
        ".",
        "c",
        "--env",
        "T=x-${TOKEN}",
        "--command",
        "npx",
        "--args",
        "-y",
        "@acme/c",
        "--flag",
    ]);
    assert_eq!(added.code, Some(0), "{added:?}");
    insta::assert_snapshot!("added", added.out);
    let web = workspace.run(&["add", ".", "web", "--url", "https://acme.example/mcp", "--header", "A=b=c"]);
    assert_eq!(web.code, Some(0), "{web:?}");
    assert_eq!(workspace.run(&["disable", ".", "a"]).code, Some(0));
    let removed = workspace.run(&["remove", ".", "b"]);
    assert_eq!((removed.code, removed.out.ends_with("✓ removed `b`\n")), (Some(0), true));
    assert_eq!(
        text(&workspace),
        "version: 1\nservers:\n  # about a\n  a:\n    enabled: false\n    transport: stdio\n    command: x\n    env: \
         { KEY: hunter2 }   # why\n  c:\n    transport: stdio\n    command: npx\n    args: [\"-y\", \"@acme/c\", \
         \"--flag\"]\n    env:\n      T:\n        prefix: x-\n        env: TOKEN\n  web:\n    transport: \
         streamable_http\n    url: https://acme.example/mcp\n    headers:\n      A: b=c\n"
    );
    let again = workspace.run(&["disable", ".", "a"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "· `a` is already disabled\n"));
    let on = workspace.run(&["enable", ".", "a", "--format", "json"]).json();
    assert_eq!((&on["changed"], &on["error"]), (&true.into(), &serde_json::Value::Null));
    assert!(on["diff"].as_str().unwrap().contains("+    enabled: true\n"), "{on}");
    let mode = fs::metadata(workspace.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(workspace.path().join(".minds")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn dry_run_writes_nothing() {
    let (run, after) = run(WORKSPACE, &["remove", ".", "a", "--dry-run"]);
    assert_eq!((after.as_str(), run.code), (WORKSPACE, Some(0)));
    assert!(
        run.out.starts_with("--- .minds/mcp.yaml\n") && run.out.contains("-    env: { KEY: *******"),
        "{}",
        run.out
    );
    assert!(run.out.ends_with("· `a` not removed: dry run\n"), "{}", run.out);
}

#[track_caller]
fn refused(arguments: &str, code: i32, message: &str) {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let (run, after) = run(WORKSPACE, &arguments);
    assert_eq!((run.code, after.as_str()), (Some(code), WORKSPACE), "{run:?}");
    assert!(run.err.contains(message), "{}", run.err);
}

#[test]
fn refused_edit_changes_nothing() {
    refused("remove . z", 1, "error: there is no server 'z'\n  help: the servers are: a, b\n");
    refused("add . a --command x", 1, "error: a server 'a' already exists");
    refused("add . n --url ftp://x.example", 1, "error: the server cannot be written there: url: ");
    refused("add . n --url wss://x.example", 1, "transport: Dominds has no websocket transport");
    refused("add . n --command x --args ${A}", 1, "args.0: variables are not supported there");
    refused("add . n", 2, "what should be added? Write `add NAME -- COMMAND ARGS` or `add NAME URL`");
    refused("add . n --url https://x.example -- npx", 2, "described twice");
    refused("add . n https://x.example --env A=b", 2, "`--env` is for a program");
    refused("add . n -H A:b -- npx", 2, "`--header` is for a server with a URL");
    refused("add . n -t sse -- npx", 2, "this transport is for a server with a URL");
    refused("add . n --command x --url y", 2, "cannot be used with");
    refused("add . n --command x --env A", 2, "one value has no `=`");
    refused("disable . a --format sarif", 2, "only `check` and `schema --compare` support the format sarif");
    refused("disable . a --format github", 2, "only `check` supports the format github");
    refused(
        "schema dominds --format sarif",
        2,
        "only `check` and `schema --compare` support the format sarif",
    );
}

#[test]
fn holodeck_server_is_added_but_cannot_be_disabled() {
    let workspace = Workspace::empty();
    workspace.write("agent.yaml", "name: a\ntools: []\n");
    let run = workspace.run(&["add", ".", "fetch", "--command", "uvx", "--args", "mcp-server-fetch"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        fs::read_to_string(workspace.path().join("agent.yaml")).unwrap(),
        "name: a\ntools:\n  - name: fetch\n    type: mcp\n    server: mcp-server-fetch\n    command: uvx\n    args: \
        [mcp-server-fetch]\n"
    );
    assert!(run.out.contains("wrote the package of the arguments"), "{}", run.out);
    let run = workspace.run(&["disable", ".", "fetch"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (
            Some(1),
            "note: reading agent.yaml\nerror: a server of holodeck cannot be disabled, only removed\n  \
             help: `mcp-host remove` removes it\n"
        )
    );
    let run = workspace.run(&["add", ".", "x", "--command", "bash"]);
    assert!(run.err.contains("command: only npx, uvx, docker are allowed there"), "{run:?}");
}

#[test]
fn servers_are_converted_with_a_report() {
    let (run, _) = run(&WORKSPACE.replace("comand", "command"), &["convert", ".", "--to", "mcp-json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!("converted", run.out);
    insta::assert_snapshot!("converted-report", run.err);
    // Invalid servers are not converted and make the command fail.
    let workspace = Workspace::dominds(WORKSPACE);
    // ACP requires the absolute path of a program.
    workspace.script("x", "");
    let document = workspace.run(&["convert", ".", "--to", "acp", "--format", "json"]);
    assert_eq!(document.code, Some(1));
    let document = document.json();
    assert_eq!((&document["dialect"], &document["servers"]), (&"acp-v1".into(), &serde_json::json!(["a"])));
    assert!(document["text"].as_str().unwrap().contains("hunter2"));
    assert!(document["text"].as_str().unwrap().contains("/bin/x\""));
    assert!(!document["losses"].to_string().contains("hunter2"));
}

#[test]
fn conversion_that_loses_a_server_fails_unless_it_may() {
    let workspace = Workspace::empty();
    let servers = r#""a": {"command": "x"}, "w": {"type": "ws", "url": "wss://acme.example/"}"#;
    workspace.write("mcp.json", &format!(r#"{{"mcpServers": {{{servers}}}}}"#));
    let convert = |more: &[&str]| {
        workspace.run(&[["convert", "mcp.json", "--to", "dominds"].as_slice(), more].concat())
    };
    let run = convert(&[]);
    assert!(run.code == Some(1) && run.out.contains("  a:\n") && !run.out.contains("  w:\n"), "{run:?}");
    assert!(run.err.ends_with("error: 1 server left out\n  help: `--lossy` accepts the loss\n"), "{run:?}");
    assert_eq!(convert(&["--format", "json"]).json()["error"], "1 server left out");
    let run = convert(&["--lossy"]);
    assert!(run.code == Some(0) && !run.err.contains("error:"), "{run:?}");
    let json = convert(&["--lossy", "--format", "json"]).json();
    assert_eq!((&json["servers"], &json["error"]), (&serde_json::json!(["a"]), &serde_json::Value::Null));
}

#[test]
fn dia_07_server_is_disabled_as_its_program_allows() {
    let workspace = Workspace::empty();
    workspace.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let run = workspace.run(&["disable", ".mcp.json", "a"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("error: Claude Code obeys no key that disables a server; the list"), "{run:?}");
    assert!(run.err.contains("for mcp-host alone"), "{run:?}");
    let text = "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n";
    workspace.write(".vscode/mcp.json", text);
    let run = workspace.run(&["disable", ".vscode/mcp.json", "a"]);
    assert!(run.code == Some(0) && run.out.contains("+    // \"a\": { \"command\": \"x\" }\n"), "{run:?}");
    assert!(run.out.ends_with("✓ disabled `a`\n"), "{run:?}");
    assert_eq!(workspace.run(&["enable", ".vscode/mcp.json", "a"]).code, Some(0));
    assert_eq!(fs::read_to_string(workspace.path().join(".vscode/mcp.json")).unwrap(), text);
}

#[test]
fn conversion_writes_a_new_file() {
    let workspace = Workspace::dominds(&WORKSPACE.replace("comand", "command"));
    fs::set_permissions(workspace.path().join(FILE), fs::Permissions::from_mode(0o640)).unwrap();
    let run = workspace.run(&["convert", ".", "--to", "mcp-json", "--output", "mcp.json"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "wrote mcp.json\n"));
    let path = workspace.path().join("mcp.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let written = fs::read_to_string(&path).unwrap();
    let again = workspace.run(&["convert", ".", "--to", "dominds", "--output", "mcp.json"]);
    assert_eq!(again.code, Some(1));
    assert!(again.err.ends_with("error: mcp.json already exists\n"), "{}", again.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    let missing = workspace.run(&["convert", "nowhere", "--to", "dominds", "--format", "json"]);
    assert_eq!(
        (missing.code, &missing.json()["error"]),
        (Some(1), &"cannot read nowhere: it does not exist".into())
    );
}

#[test]
fn machine_formats_are_one_document_and_lines() {
    let workspace = Workspace::dominds(WORKSPACE);
    let sarif = workspace.run(&["check", ".", "nowhere", "--format", "sarif"]);
    assert_eq!(sarif.code, Some(1));
    let document = sarif.json();
    assert_eq!(document["version"], "2.1.0");
    assert_eq!(document["runs"][0]["results"][0]["ruleId"], "MCP0017");
    assert_eq!(document["runs"][0]["invocations"][0]["executionSuccessful"], false);
    let github = workspace.run(&["check", ".", "--format", "github"]);
    assert!(github.out.starts_with("::error file=.minds/mcp.yaml,line=10,col=5,"), "{}", github.out);
    assert_eq!(github.out.lines().count(), 2);
    for run in [sarif, github] {
        assert!(!run.out.contains("hunter2"));
    }
}

#[test]
fn file_named_twice_is_fixed_once() {
    let (run, after) = run(WORKSPACE, &["check", "--fix", ".", FILE]);
    assert_eq!(after, WORKSPACE.replace("comand", "command"));
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// Text without `=` may be a secret value.
#[test]
fn invalid_pair_is_not_quoted() {
    for arguments in [
        ["add", ".", "new", "--command", "x", "--env", "hunter3"],
        ["add", ".", "new", "--url", "https://a.example", "--header", "hunter3"],
    ] {
        let (run, after) = run(WORKSPACE, &arguments);
        assert_eq!((run.code, after.as_str()), (Some(2), WORKSPACE), "{run:?}");
        assert!(run.err.contains("one value has no `") && !run.err.contains("hunter3"), "{run:?}");
        assert_eq!(run.out, "");
    }
}

#[test]
fn dia_06_variable_syntax_depends_on_the_file() {
    for (file, list, spelt) in [
        (".vscode/mcp.json", "servers", "Bearer ${env:TOKEN}"),
        (".cursor/mcp.json", "mcpServers", "Bearer ${env:TOKEN}"),
        (".codeium/windsurf/mcp_config.json", "mcpServers", "Bearer ${env:TOKEN}"),
        (".roo/mcp.json", "mcpServers", "Bearer ${env:TOKEN}"),
        (".mcp.json", "mcpServers", "Bearer ${TOKEN}"),
        (".kiro/settings/mcp.json", "mcpServers", "Bearer ${TOKEN}"),
        (".gemini/settings.json", "mcpServers", "Bearer ${TOKEN}"),
    ] {
        let workspace = Workspace::empty();
        fs::create_dir_all(workspace.path().join(file).parent().unwrap()).unwrap();
        let words =
            ["add", file, "a", "--url", "https://a.example", "--header", "Authorization=Bearer ${TOKEN}"];
        let run = workspace.run(&[&words[..], &["--dialect", "mcp-json"]].concat());
        assert_eq!(run.code, Some(0), "{file}: {run:?}");
        // A second server is added to the existing file.
        let words = ["add", file, "b", "--command", "x", "--env", "KEY=Bearer ${TOKEN}"];
        let run = workspace.run(&[&words[..], &["--dialect", "mcp-json"]].concat());
        assert_eq!(run.code, Some(0), "{file}: {run:?}");
        let text = fs::read_to_string(workspace.path().join(file)).unwrap();
        let servers = &serde_json::from_str::<serde_json::Value>(&text).unwrap()[list];
        assert_eq!(servers["a"]["headers"]["Authorization"], spelt, "{file}");
        assert_eq!(servers["b"]["env"]["KEY"], spelt, "{file}");
        let mut command = workspace.command(&["doctor", file, "--dialect", "mcp-json", "--server", "b"]);
        let doctor = Run::of(command.env("TOKEN", "t").output().unwrap());
        assert!(doctor.out.contains("✓ configuration"), "the variable is read again: {doctor:?}");
    }
}

#[test]
fn dia_06_input_declarations_are_kept() {
    let workspace = Workspace::empty();
    let run = workspace.run(&["add", ".mcp.json", "a", "--command", "x", "--env", "KEY=${input:key}"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = fs::read_to_string(workspace.path().join(".mcp.json")).unwrap();
    assert!(text.contains(r#""KEY": "${input:key}""#), "{text}");
}

#[test]
fn empty_folder_to_call_and_conversion() {
    let workspace = Workspace::empty();
    let run = workspace.run(&["add", ".mcp.json", "demo", "--command", "mcp-host", "--args", "demo-server"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for line in ["doctor .mcp.json --server demo", "check", "tools", "call . demo__add a=2 b=3"] {
        let run = workspace.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }
    let run = workspace.run(&["convert", ".", "--to", "dominds", "-o", "other.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(workspace.run(&["check", "other.yaml"]).code, Some(0));
    assert_eq!(workspace.run(&["tools", "other.yaml", "--server", "demo"]).code, Some(0));
}

#[test]
fn file_name_determines_the_dialect_of_a_new_file() {
    let workspace = Workspace::empty();
    let add =
        |file: &str| workspace.run(&["add", file, "--npm", "@me/mcp-server-x@1.2", "--args", "--port", "1"]);
    for (file, want) in [
        (".mcp.json", r#""args": ["-y", "@me/mcp-server-x@1.2", "--port", "1"]"#),
        (".vscode/mcp.json", "\"servers\": {\n    \"x\": {"),
        (".minds/mcp.yaml", "servers:\n  x:\n    transport: stdio\n    command: npx\n"),
        ("agent.yaml", "tools:\n  - name: x\n    type: mcp\n"),
    ] {
        let run = add(file);
        assert_eq!(run.code, Some(0), "{run:?}");
        let text = std::fs::read_to_string(workspace.path().join(file)).unwrap();
        assert!(text.contains(want), "{text}");
        assert_eq!(workspace.run(&["check", file]).code, Some(0), "{text}");
        assert_eq!(add(file).code, Some(1), "it already exists");
    }
    let run = add("./x.txt");
    assert!(run.code == Some(1) && run.err.contains("does not determine the dialect"), "{run:?}");
    let run =
        workspace.run(&["add", "new.json", "--dialect", "mcp-json", "--url", "https://e.com", "--dry-run"]);
    assert!(run.code == Some(0) && !workspace.path().join("new.json").exists(), "{run:?}");
}

#[test]
fn server_json_adds_required_variables() {
    let workspace = Workspace::empty();
    let text = r#"{"name":"io.github.me/weather","description":"The weather","packages":[{"registryType":"pypi",
        "identifier":"weather","version":"2.0","transport":{"type":"stdio"},"environmentVariables":[
        {"name":"API_KEY","isRequired":true,"isSecret":true,"description":"Your key"}]}]}"#;
    let run = workspace.run_with_input(&["add", ".mcp.json", "--server-json", "-"], text);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.starts_with("note: set the variable API_KEY: Your key\n"), "{run:?}");
    let text = std::fs::read_to_string(workspace.path().join(".mcp.json")).unwrap();
    for part in ["\"weather\": {", "\"uvx\"", "\"weather==2.0\"", "\"API_KEY\": \"${API_KEY}\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = workspace.run_with_input(&["add", ".mcp.json", "--server-json", "-"], "{}");
    assert!(run.code == Some(2) && run.err.contains("it is not a valid server.json"), "{run:?}");
}

/// A server.json with a secret.
const PUBLISHED: &str = r#"{"name":"io.github.me/weather","version":"1","description":"d","packages":[
    {"registryType":"npm","identifier":"@me/weather","version":"1.2.0","transport":{"type":"stdio"},"environmentVariables":[
        {"name":"API_KEY","isRequired":true,"isSecret":true,"description":"Your key"},
        {"name":"CITY","isRequired":true}]}]}"#;

#[test]
fn dia_06_dia_08_vs_code_file_declares_inputs() {
    let workspace = Workspace::empty();
    workspace.write("server.json", PUBLISHED);
    let run = workspace.run(&["add", ".vscode/mcp.json", "--server-json", "server.json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        run.err,
        "note: the editor prompts for API_KEY: Your key\nnote: set the variable CITY: a value\n"
    );
    let url = ["add", ".vscode/mcp.json", "web", "--url", "https://x.example", "--header"];
    let run = workspace.run(&[&url[..], &["A=${input:api-key} ${B}", "--header", "C=${input:c}"]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let written = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(workspace.path().join(name)).unwrap()).unwrap()
    };
    let file = written(".vscode/mcp.json");
    let env = serde_json::json!({"API_KEY": "${input:api-key}", "CITY": "${env:CITY}"});
    assert_eq!(file["servers"]["weather"]["env"], env);
    assert_eq!(file["servers"]["web"]["headers"]["A"], "${input:api-key} ${env:B}");
    let ask =
        |id: &str| serde_json::json!({"type": "promptString", "id": id, "description": id, "password": true});
    assert_eq!(file["inputs"], serde_json::json!([ask("api-key"), ask("c")]), "each is declared once");
    let sound = workspace
        .command(&["check", ".vscode/mcp.json"])
        .envs([("MCP_INPUT_API_KEY", "1"), ("MCP_INPUT_C", "1"), ("CITY", "1"), ("B", "1")])
        .output()
        .unwrap();
    assert_eq!(sound.status.code(), Some(0), "{sound:?}");

    // Another file of the same editor has the same references and the same input declarations.
    workspace.write("other/.vscode/x", "");
    workspace.write(
        ".vscode/mcp.json",
        &file
            .to_string()
            .replace("promptString\",\"id\":\"c\"", "pickString\",\"options\":[\"1\"],\"id\":\"c\"")
            .replace("\"type\":\"promptString\"", "\"title\":\"t\",\"type\":\"promptString\""),
    );
    let convert = |to: &str| workspace.run(&["convert", ".vscode/mcp.json", "--to", "mcp-json", "-o", to]);
    let run = convert("other/.vscode/mcp.json");
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "nothing is lost: {run:?}");
    let other = written("other/.vscode/mcp.json");
    assert_eq!(other["servers"]["weather"]["env"], env);
    assert_eq!(other["inputs"], written(".vscode/mcp.json")["inputs"]);
    assert_eq!(other["inputs"][0]["title"], "t");

    // Other editors do not prompt for inputs, and use another variable syntax.
    for (to, city, told) in [
        (".cursor/mcp.json", "${env:CITY}", "${input:api-key} is not replaced"),
        (".mcp.json", "${CITY}", "${input:api-key} is not replaced"),
        ("claude_desktop_config.json", "${CITY}", "${input:api-key}, ${CITY} is not replaced"),
    ] {
        workspace.write(".cursor/x", "");
        let run = convert(to);
        assert!(run.code == Some(0) && run.err.contains(told), "{to}: {run:?}");
        let file = written(to);
        assert_eq!(file["mcpServers"]["weather"]["env"]["CITY"], city, "{to}");
        assert!(file.get("inputs").is_none(), "{to}");
    }
}

#[test]
fn fields_are_set_and_removed() {
    let (set, after) = run(WORKSPACE, &["set", ".", "a", "args+=-y", "env.KEY=${KEY}", "--unset", "env.KEY"]);
    let changed = WORKSPACE.replace("    env: { KEY: hunter2 }   # why\n", "    args: [\"-y\"]\n");
    assert_eq!((after, set.code), (changed, Some(0)), "{set:?}");
    assert!(!set.out.contains("hunter2") && set.out.ends_with("✓ changed `a`\n"), "{}", set.out);
    let (set, after) = run(WORKSPACE, &["set", ".", "b", "command=y", "--unset", "comand", "--dry-run"]);
    assert_eq!((after.as_str(), set.code), (WORKSPACE, Some(0)), "{set:?}");
    let (set, after) = run(WORKSPACE, &["set", ".", "a", "wcd=/hunter3"]);
    assert_eq!((after.as_str(), set.code), (WORKSPACE, Some(1)), "{set:?}");
    assert!(set.err.contains("unknown key 'wcd'") && !set.err.contains("hunter3"), "{}", set.err);
}
