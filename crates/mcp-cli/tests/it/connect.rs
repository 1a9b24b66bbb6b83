//! `connect`: makes the host the server of other programs, and undoes it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{PROGRAM, Run, Workspace};

const CONFIG: &str = ".config/mcp-host/mcp.json";

/// The file of each client, with a comment where it may have one, and other settings.
const CLIENTS: [(&str, &str, &str); 11] = [
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\", \"args\": [\"1\"]},\n    \
         \"b\": { \"command\": \"y\" }\n  }\n}\n",
    ),
    (
        "claude-code",
        ".claude.json",
        "{\"numStartups\": 3, \"mcpServers\": {\"a\": {\"type\": \"stdio\", \"command\": \"x\", \
         \"args\": [], \"env\": {}}}}",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = \"o3\"\n\n[mcp_servers.a] # the first\ncommand = \"x\"\nargs = [\"1\"]\n\
         \n[tui]\ntheme = \"dark\"\n",
    ),
    ("cursor", ".cursor/mcp.json", "{ \"mcpServers\": { \"a\": { \"url\": \"https://a.example/mcp\" } } }\n"),
    (
        "vs-code",
        ".config/Code/User/mcp.json",
        "{\n\t// mine\n\t\"servers\": {\n\t\t\"a\": { \"type\": \"stdio\", \"command\": \"x\" },\n\
         \t},\n\t\"inputs\": []\n}\n",
    ),
    (
        "gemini-cli",
        ".gemini/settings.json",
        "{\r\n  // mine\r\n  \"theme\": \"x\",\r\n  \
         \"mcpServers\": {\"a\": {\"httpUrl\": \"https://a.example\"}}\r\n}\r\n",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n{\n  \"vim_mode\": true,\n  \"context_servers\": {\n    \
         \"a\": { \"command\": \"x\", \"args\": [] },\n  },\n}\n",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\"mcpServers\":{\"a\":{\"serverUrl\":\"https://a.example/sse\"}}}",
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"a\": {\"type\": \"local\", \
         \"command\": [\"x\", \"1\"], \"enabled\": false}\n  }\n}\n",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "# mine\nGOOSE_MODEL: x\nextensions:\n  a: # the first\n    enabled: true\n    type: stdio\n    name: a\n    \
         cmd: x\n    args: []\n    envs: {}\n    timeout: 300\n",
    ),
    (
        "kiro",
        ".kiro/settings/mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}}}",
    ),
];

fn connect(workspace: &Workspace, words: &[&str]) -> Run {
    workspace.run(&[&["connect"], words].concat())
}

fn connect_json(workspace: &Workspace, words: &[&str]) -> Value {
    workspace.run(&[&["connect", "--format", "json"], words].concat()).json()
}

fn read(workspace: &Workspace, path: &str) -> String {
    fs::read_to_string(workspace.path().join(path)).unwrap()
}

/// The names of the servers that the reader of this project finds in a file.
fn servers(workspace: &Workspace, path: &Path) -> Vec<String> {
    let document = workspace.run(&["import", "--from", path.to_str().unwrap(), "--format", "json"]).json();
    let names = document["found"][0]["servers"].as_array().unwrap();
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// RPT-370, RPT-372
#[test]
fn rpt_370_client_receives_one_entry_and_gets_its_file_back() {
    for (client, path, text) in CLIENTS {
        let workspace = Workspace::empty();
        workspace.write(path, text);
        let dry = connect(&workspace, &[client, "--dry-run"]);
        assert!(dry.code == Some(0) && dry.out.contains("mcp-host"), "{client}: {dry:?}");
        assert_eq!(read(&workspace, path), text, "a dry run writes nothing");
        assert!(!workspace.path().join(CONFIG).exists(), "a dry run writes nothing");
        let run = connect(&workspace, &[client]);
        assert_eq!(run.code, Some(0), "{client}: {run:?}");
        let after = read(&workspace, path);
        let config = workspace.path().join(CONFIG);
        assert_eq!(servers(&workspace, &workspace.path().join(path)), ["mcp-host"], "{client}: {after}");
        assert!(after.contains(PROGRAM) && after.contains(config.to_str().unwrap()), "{client}: {after}");
        assert!(servers(&workspace, &config).starts_with(&["a".to_owned()]), "{client}");
        assert_eq!(mode(&config), 0o600, "{client}");
        for comment in ["# mine", "// mine", "// Zed settings", "model = \"o3\"", "\"vim_mode\": true"] {
            assert_eq!(after.contains(comment), text.contains(comment), "{client}: {after}");
        }
        assert_eq!(connect_json(&workspace, &[client])["clients"][0]["outcome"], "connected", "{client}");
        let undone = connect(&workspace, &[client, "--undo"]);
        assert_eq!(undone.code, Some(0), "{client}: {undone:?}");
        assert_eq!(read(&workspace, path), text, "{client}");
        let again = connect(&workspace, &[client, "--undo"]);
        assert!(again.code == Some(1) && again.out.contains("it is not connected"), "{client}: {again:?}");
    }
}

/// RPT-371
#[test]
fn rpt_371_server_that_cannot_move_stays_and_is_told() {
    let workspace = Workspace::empty();
    workspace.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "same": {"command": "x", "args": ["1"]}, "other": {"command": "y"}, "broken": {"args": []},
            "open": {"command": "x", "cwd": "${workspaceFolder}"}, "own": {"command": "mcp-host",
            "args": ["serve", "."]},
            "key": {"command": "x", "env": {"API_TOKEN": "sk-very-secret-value"}}
        }}"#,
    );
    workspace.write(
        CONFIG,
        r#"{"mcpServers": {"same": {"command": "x", "args": ["1"]}, "other": {"command": "z"}}}"#,
    );
    let run = connect_json(&workspace, &["cursor"]);
    let client = &run["clients"][0];
    assert_eq!(client["outcome"], "changed", "{run}");
    assert_eq!(client["moved"], serde_json::json!(["key"]), "{run}");
    assert_eq!(client["known"], serde_json::json!(["same"]), "{run}");
    assert_eq!(client["secrets"], serde_json::json!(["key: env.API_TOKEN"]), "{run}");
    let left: Vec<&str> =
        client["left"].as_array().unwrap().iter().map(|it| it["server"].as_str().unwrap()).collect();
    assert_eq!(left, ["other", "broken", "open", "own"], "{run}");
    assert!(!run.to_string().contains("very-secret"), "{run}");
    assert!(read(&workspace, CONFIG).contains("sk-very-secret-value"));
    assert_eq!(mode(&workspace.path().join(CONFIG)), 0o600);
    let left_and_own = ["other", "broken", "open", "own", "mcp-host"];
    assert_eq!(servers(&workspace, &workspace.path().join(".cursor/mcp.json")), left_and_own);
}

/// RPT-372
#[test]
fn rpt_372_changed_file_loses_only_the_entry() {
    let workspace = Workspace::empty();
    let text = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n";
    workspace.write(".cursor/mcp.json", text);
    let copy = connect_json(&workspace, &["cursor"])["clients"][0]["copy"].as_str().unwrap().to_owned();
    assert_eq!((fs::read_to_string(&copy).unwrap().as_str(), mode(Path::new(&copy))), (text, 0o600));
    let after = read(&workspace, ".cursor/mcp.json");
    workspace.write(".cursor/mcp.json", &after.replacen("{\n", "{\n  \"mine\": 1,\n", 1));
    let undone = connect(&workspace, &["cursor", "--undo"]);
    assert!(
        undone.code == Some(0) && undone.out.contains("was changed since it was connected"),
        "{undone:?}"
    );
    assert!(undone.out.contains(&copy), "{undone:?}");
    let left = read(&workspace, ".cursor/mcp.json");
    assert!(left.contains("\"mine\": 1") && !left.contains("mcp-host"), "{left}");
    assert_eq!(fs::read_to_string(copy).unwrap(), text);
}

/// RPT-373
#[test]
fn rpt_373_clients_are_listed_without_a_change() {
    let workspace = Workspace::empty();
    assert!(connect(&workspace, &[]).out.starts_with("no file of a known program"));
    workspace.write(".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    workspace.write(".config/zed/settings.json", "{");
    let run = connect(&workspace, &[]);
    assert!(run.code == Some(0) && run.out.contains("Cursor is not connected"), "{run:?}");
    assert!(
        run.out.contains("Zed") && run.out.contains("moved to the configuration of mcp-host: a"),
        "{run:?}"
    );
    assert!(!workspace.path().join(CONFIG).exists());
    // A client without a file gets one; an unknown or missing client is an error.
    fs::create_dir(workspace.path().join(".gemini")).unwrap();
    let run = connect(&workspace, &["gemini-cli", "--config", "own/mcp.json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let own = workspace.path().canonicalize().unwrap().join("own/mcp.json");
    let settings = read(&workspace, ".gemini/settings.json");
    assert!(settings.contains(own.to_str().unwrap()) && own.exists(), "{settings}");
    assert_eq!(connect(&workspace, &["gemini-cli", "--undo"]).code, Some(0));
    assert!(!workspace.path().join(".gemini/settings.json").exists());
    for words in [&["emacs"][..], &["windsurf"], &["--undo"]] {
        assert_eq!(connect(&workspace, words).code, Some(2), "{words:?}");
    }
}

/// The host that an entry starts has the servers that were moved.
#[test]
fn rpt_370_connected_client_sees_the_servers() {
    let workspace = Workspace::empty();
    let entry =
        format!(r#"{{"mcpServers": {{"demo": {{"command": "{PROGRAM}", "args": ["demo-server"]}}}}}}"#);
    workspace.write(".cursor/mcp.json", &entry);
    assert_eq!(connect(&workspace, &["cursor"]).code, Some(0));
    let run = workspace.run(&["call", ".cursor/mcp.json", "demo__echo", "text=moved"]);
    let other = workspace.run(&["tools", ".cursor/mcp.json"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "moved\n"), "{run:?} {other:?}");
}

/// RPT-374
#[test]
fn rpt_374_real_files_are_restored_byte_by_byte() {
    let Some(corpus) = std::env::var_os("MCP_HOST_CORPUS").map(PathBuf::from) else {
        let _ = writeln!(std::io::stderr(), "skipped: MCP_HOST_CORPUS is not set");
        return;
    };
    let mut changed = 0;
    for (folder, path) in [
        ("claude-code", ".mcp.json"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("cline", "cline_mcp_settings.json"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini-cli", ".gemini/settings.json"),
        ("kiro", ".kiro/settings/mcp.json"),
        ("mcpservers-generic", "mcp.json"),
        ("roo-code", ".roo/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("vscode-settings", ".vscode/settings.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json"),
    ] {
        let mut files: Vec<PathBuf> =
            fs::read_dir(corpus.join(folder)).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        for file in files {
            let workspace = Workspace::empty();
            let bytes = fs::read(&file).unwrap();
            let target = workspace.path().join(path);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(&target, &bytes).unwrap();
            let run = connect_json(&workspace, &[target.to_str().unwrap()]);
            let client = &run["clients"][0];
            if client["outcome"] == "failed" {
                assert!(client["error"].is_string(), "{file:?}: {run}");
                assert_eq!(fs::read(&target).unwrap(), bytes, "{file:?}");
                continue;
            }
            changed += 1;
            let left = client["left"].as_array().unwrap().iter().map(|it| it["server"].as_str().unwrap());
            let mut want: Vec<&str> = left.chain(["mcp-host"]).collect();
            let mut got = servers(&workspace, &target);
            want.sort_unstable();
            got.sort_unstable();
            assert_eq!(got, want, "{file:?}: {run}");
            let undone = connect(&workspace, &[target.to_str().unwrap(), "--undo"]);
            assert_eq!((undone.code, fs::read(&target).unwrap()), (Some(0), bytes), "{file:?}: {undone:?}");
        }
    }
    assert!(changed > 100, "{changed} files were connected");
}
