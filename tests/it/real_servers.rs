//! The examples with the npm and PyPI servers that they name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_testkit::program::{ProgramOutput, Run, installed_folder, root};
use serde_json::Value;

/// The folders of locked packages: npx finds its package from the current folder, uvx from its cache.
struct Installed {
    node: PathBuf,
    path: OsString,
    uv_tools: PathBuf,
    state: tempfile::TempDir,
}

fn ready() -> Option<Installed> {
    let modules = installed_folder("MCP_HOST_NODE_MODULES")?;
    let venv = installed_folder("MCP_HOST_VENV")?;
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let paths = [modules.join(".bin"), venv.join("bin")].into_iter().chain(std::env::split_paths(&inherited));
    let path = std::env::join_paths(paths).unwrap();
    let node = modules.parent().unwrap().to_owned();
    let uv_tools = venv.join("uv-tools");
    Some(Installed { node, path, uv_tools, state: tempfile::tempdir().unwrap() })
}

impl Installed {
    fn run(&self, arguments: &[&str]) -> ProgramOutput {
        Run::new(&self.node, self.state.path(), arguments)
            .env("PATH", &self.path)
            .env("UV_TOOL_DIR", &self.uv_tools)
            .env("UV_OFFLINE", "1")
            .finish()
    }
}

fn example(path: &str) -> String {
    root().join("examples").join(path).display().to_string()
}

fn names(tools: &Value) -> Vec<&str> {
    tools["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[track_caller]
fn call(installed: &Installed, file: &str, tool: &str, arguments: &str, want: &str) {
    let ran = installed.run(&["call", file, tool, arguments, "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let result = ran.json();
    assert_eq!(result["success"], true);
    assert!(result["content"].to_string().contains(want), "{result:#}");
    assert!(result["metadata"]["duration_ms"].is_number());
}

#[test]
fn hd_100_hd_112_the_holodeck_example_lists_and_calls() {
    let Some(installed) = ready() else { return };
    let file = example("holodeck/agent.yaml");
    let ran = installed.run(&["tools", &file, "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let tools = ran.json();
    let names = names(&tools);
    for name in ["everything__echo", "files__read_text_file", "time__get_current_time"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let servers = tools["servers"].as_array().unwrap();
    assert!(servers.iter().all(|it| it["state"] == "ready" && it["era"].is_string()), "{servers:?}");

    call(&installed, &file, "everything__echo", r#"{"message":"hello"}"#, "hello");
    // This tool must run as a task.
    call(&installed, &file, "everything__simulate-research-query", r#"{"topic":"ants"}"#, "Report: ants");
    call(&installed, &file, "get_current_time", r#"{"timezone":"UTC"}"#, "UTC");
    // Without `cwd`, in the folder of the file.
    call(&installed, &file, "files__list_directory", r#"{"path":"."}"#, "agent.yaml");
}

#[test]
fn dm_056_the_dominds_example_lists_and_calls() {
    let Some(installed) = ready() else { return };
    let file = example("dominds/.minds/mcp.yaml");
    let ran = installed.run(&["tools", &file, "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let tools = ran.json();
    let names = names(&tools);
    for name in ["everything_echo", "files_list_directory", "time_get_current_time"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("write_file") || name.contains("get-env")), "{names:?}");

    call(&installed, &file, "everything_echo", r#"{"message":"hello"}"#, "hello");
    call(&installed, &file, "time_get_current_time", r#"{"timezone":"UTC"}"#, "UTC");
}

#[test]
fn hd_fr007_a_real_server_over_streamable_http() {
    let Some(installed) = ready() else { return };
    let script = installed.node.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let port = free_port();
    let mut server = std::process::Command::new("node")
        .arg(script)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    mcp_testkit::wait::block_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        &format!(
            "version: 1\nservers:\n  web:\n    transport: streamable_http\n    url: http://127.0.0.1:{port}/mcp\n"
        ),
    );
    let ran = installed.run(&["tools", &file, "--format", "json"]);
    let called = installed.run(&["call", &file, "echo", r#"{"message":"hello"}"#, "--format", "json"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(names(&ran.json()).contains(&"echo"));
    assert_eq!(called.json()["content"][0]["text"], "Echo: hello", "{called:#?}");
}

/// Servers of npm and PyPI, started as their packages document it.
const SERVERS: [(&str, &str, &str); 3] = [
    ("everything", "npx", "-y, '@modelcontextprotocol/server-everything@2026.8.31'"),
    ("files", "npx", "-y, '@modelcontextprotocol/server-filesystem@2026.8.31', ."),
    ("time", "uvx", "mcp-server-time@2026.10.19"),
];

#[test]
fn a_recording_of_real_servers_has_their_results() {
    let Some(installed) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |of: &dyn Fn(&str, &str, &str) -> String| -> String {
        let servers = SERVERS.iter().map(|(name, command, arguments)| of(name, command, arguments));
        format!("version: 1\nservers:\n{}", servers.collect::<String>())
    };
    let entry = |name: &str, command: &str, arguments: &str| {
        format!("  {name}:\n    transport: stdio\n    command: {command}\n    args: [{arguments}]\n")
    };
    let real = write(folder.path(), &file(&entry));
    let out = folder.path().join("out.jsonl").display().to_string();
    let calls = [
        ("echo", r#"{"message":"hello"}"#),
        ("get-sum", r#"{"a":2,"b":3}"#),
        ("list_directory", r#"{"path":"."}"#),
        ("read_text_file", r#"{"path":"/no/such/file"}"#),
        ("get_current_time", r#"{"timezone":"UTC"}"#),
    ];
    let mut arguments = vec!["record", &real, "-o", &out, "--format", "json"];
    for (tool, it) in &calls {
        arguments.extend(["--call", tool, it]);
    }
    let recorded = installed.run(&arguments);
    assert_eq!(recorded.code, Some(0), "{recorded:#?}");
    let recorded = recorded.json();

    let replayed = folder.path().join("replayed.yaml");
    let replay =
        |name: &str, _: &str, _: &str| entry(name, "mcp-host", &format!("replay, '{out}', --server, {name}"));
    std::fs::write(&replayed, file(&replay)).unwrap();
    let replayed = replayed.display().to_string();
    let tools = |file: &str| {
        let ran = installed.run(&["tools", file, "--dialect", "dominds", "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let tools = ran.json();
        (tools["tools"].clone(), tools["servers"].clone())
    };
    assert_eq!(tools(&real), tools(&replayed));
    for ((tool, arguments), was) in calls.iter().zip(recorded["calls"].as_array().unwrap()) {
        let ran =
            installed.run(&["call", &replayed, tool, arguments, "--dialect", "dominds", "--format", "json"]);
        let now = ran.json();
        for part in ["success", "content", "error"] {
            assert_eq!(now[part], was[part], "{tool}: {ran:#?}");
        }
        assert_eq!(now["metadata"]["structured_content"], was["metadata"]["structured_content"], "{tool}");
    }
    assert_eq!(recorded["calls"][0]["content"][0]["text"], "Echo: hello");
}

/// HD-SC2: a usual call of each real server ends. The duration is printed but not asserted, because it depends on the
/// machine; `docs/commands.md` has measured values.
#[test]
fn hd_sc2_a_usual_call_of_each_real_server_ends() {
    let Some(installed) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository").display().to_string();
    let git = std::process::Command::new("git").args(["init", "--quiet", &repository]).status().unwrap();
    assert!(git.success());
    let status = serde_json::json!({"repo_path": repository}).to_string();
    let usual: [(&str, String, &str, &str, &str); 5] = [
        ("npx", SERVERS[0].2.to_owned(), "echo", r#"{"message":"hello"}"#, "Echo: hello"),
        ("npx", SERVERS[1].2.to_owned(), "list_directory", r#"{"path":"."}"#, ".minds"),
        (
            "npx",
            "-y, '@modelcontextprotocol/server-memory@2026.8.31'".to_owned(),
            "read_graph",
            "{}",
            "entities",
        ),
        ("uvx", SERVERS[2].2.to_owned(), "get_current_time", r#"{"timezone":"UTC"}"#, "UTC"),
        (
            "mcp-server-git",
            format!("--repository, '{repository}'"),
            "git_status",
            &status,
            "Repository status",
        ),
    ];
    for (at, (command, arguments, tool, given, want)) in usual.iter().enumerate() {
        let folder = folder.path().join(at.to_string());
        let text = format!(
            "version: 1\nservers:\n  it:\n    transport: stdio\n    command: {command}\n    args: [{arguments}]\n"
        );
        let file = write(&folder, &text);
        let begun = std::time::Instant::now();
        call(&installed, &file, tool, given, want);
        eprintln!("{tool} of {command} {arguments}: {:.1} s", begun.elapsed().as_secs_f64());
    }
}

/// A refused call changes nothing that the real server could change.
#[test]
fn cp_005_refused_call_reaches_no_real_server() {
    let Some(installed) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new.txt");
    let text = format!(
        "version: 1\nservers:\n  files:\n    transport: stdio\n    command: npx\n    args: [{}, '{}']\n    \
         calls: [deny tools=write_*]\n",
        "-y, '@modelcontextprotocol/server-filesystem@2026.8.31'",
        folder.path().display()
    );
    let file = write(folder.path(), &text);
    let arguments = serde_json::json!({"path": target, "content": "x"}).to_string();
    let call = |more: &[&str]| installed.run(&[&["call", &file, "write_file", &arguments], more].concat());
    let refused = call(&[]);
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    assert!(refused.stderr.contains("MCPCallRefusedError"), "{refused:#?}");
    let unanswered = call(&["--call-rule", "ask tools=write_file"]);
    assert_eq!(unanswered.code, Some(1), "{unanswered:#?}");
    assert!(!target.exists());
    let allowed = call(&["--call-rule", "allow tools=write_file"]);
    assert_eq!(allowed.code, Some(0), "{allowed:#?}");
    assert_eq!(std::fs::read_to_string(target).unwrap(), "x");
}

fn write(folder: &Path, text: &str) -> String {
    let path = folder.join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
