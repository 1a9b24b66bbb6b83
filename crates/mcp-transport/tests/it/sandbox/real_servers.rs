//! Real servers in a sandbox: of npm and PyPI, directly and over their launchers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mcp_host_model::{RawJson, Sandbox, SandboxPreset, Secret, StdioEndpoint};
use mcp_host_transport::{CallOptions, Session};
use mcp_testkit::program::installed_folder;

use super::{kernel_has_sandbox, skip};
use crate::stdio::connect;

/// A folder with a file, which the servers may read, and a folder `out`, which they may write.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Project {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        fs::write(folder.path().join("a.txt"), "content").unwrap();
        Project(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Connects to a server in the preset `project`.
    async fn connect(&self, command: &str, args: &[&str], edit: impl FnOnce(&mut StdioEndpoint)) -> Session {
        let mut endpoint = StdioEndpoint::new(command);
        endpoint.args = args.iter().map(|it| Secret::new(*it)).collect();
        endpoint.cwd = Some(self.0.path().to_owned());
        let mut sandbox = Sandbox::new(SandboxPreset::Project);
        sandbox.write = vec![self.path("out")];
        endpoint.sandbox = Some(sandbox);
        edit(&mut endpoint);
        connect(endpoint).await.unwrap_or_else(|error| panic!("{command} {args:?}: {error}"))
    }
}

/// The text of a call, and whether it succeeded.
async fn call(session: &Session, tool: &str, arguments: &str) -> String {
    let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
    let options = CallOptions::with_timeout(Duration::from_secs(30));
    session.call_tool(tool, &arguments, options).await.unwrap().value.text()
}

#[track_caller]
fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// Adds what the tests installed outside of the usual folders.
fn may_read(endpoint: &mut StdioEndpoint, folders: &[&Path]) {
    let sandbox = endpoint.sandbox.as_mut().unwrap();
    sandbox.read.extend(folders.iter().map(|it| it.display().to_string()));
}

#[tokio::test]
async fn rpt_313_servers_of_npm_work_in_their_sandbox() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    if !kernel_has_sandbox().await {
        return;
    }
    let project = Project::new();
    let script = |package: &str| modules.join("@modelcontextprotocol").join(package).display().to_string();
    let read = |endpoint: &mut StdioEndpoint| may_read(endpoint, &[&modules]);

    let files = script("server-filesystem/dist/index.js");
    let root = project.path("");
    let session = project.connect("node", &[&files, &root, "/etc"], read).await;
    let path = |name: &str| format!("{{\"path\": {:?}}}", project.path(name));
    assert_contains(&call(&session, "read_text_file", &path("a.txt")).await, "content");
    let write = |name: &str| format!("{{\"path\": {:?}, \"content\": \"x\"}}", project.path(name));
    call(&session, "write_file", &write("out/b.txt")).await;
    assert_eq!(fs::read_to_string(project.path("out/b.txt")).unwrap(), "x");
    // The server itself would allow both.
    let refused = call(&session, "write_file", &write("c.txt")).await;
    assert_contains(&refused, "EACCES");
    assert_contains(&call(&session, "read_text_file", "{\"path\": \"/etc/shadow\"}").await, "EACCES");
    session.close(Duration::from_secs(2)).await;

    let everything = script("server-everything/dist/index.js");
    let session = project.connect("node", &[&everything, "stdio"], read).await;
    assert_contains(&call(&session, "echo", "{\"message\": \"hello\"}").await, "hello");
    session.close(Duration::from_secs(2)).await;

    let memory = script("server-memory/dist/index.js");
    let session = project
        .connect("node", &[&memory], |endpoint| {
            read(endpoint);
            endpoint.env.push(("MEMORY_FILE_PATH".to_owned(), Secret::new(project.path("out/memory.jsonl"))));
        })
        .await;
    let entity = r#"{"entities": [{"name": "n", "entityType": "t", "observations": ["o"]}]}"#;
    call(&session, "create_entities", entity).await;
    assert_contains(&fs::read_to_string(project.path("out/memory.jsonl")).unwrap(), "\"n\"");
    session.close(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn rpt_313_servers_of_python_work_in_their_sandbox() {
    let Some(venv) = installed_folder("MCP_HOST_VENV") else { return };
    if !kernel_has_sandbox().await {
        return;
    }
    let project = Project::new();
    let git = |args: &[&str]| {
        let status = Command::new("git").args(args).current_dir(project.path("out")).status().unwrap();
        assert!(status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(project.path("out/a.txt"), "a").unwrap();
    // The environment brings its packages: it is the folder above the program.
    let server = venv.join("bin/mcp-server-git").display().to_string();
    let repository = project.path("out");
    let session = project.connect(&server, &["--repository", &repository], |_| {}).await;
    let arguments = format!("{{\"repo_path\": {repository:?}}}");
    assert_contains(&call(&session, "git_status", &arguments).await, "a.txt");
    let add = format!("{{\"repo_path\": {repository:?}, \"files\": [\"a.txt\"]}}");
    call(&session, "git_add", &add).await;
    assert_contains(&call(&session, "git_status", &arguments).await, "new file");
    session.close(Duration::from_secs(2)).await;

    let python = venv.join("bin/python").display().to_string();
    let session = project.connect(&python, &["-m", "mcp_server_time"], |_| {}).await;
    assert_contains(&call(&session, "get_current_time", "{\"timezone\": \"UTC\"}").await, "UTC");
    session.close(Duration::from_secs(2)).await;
}

/// `npx` and `uvx` start the server as a grandchild.
#[tokio::test]
async fn rpt_313_launchers_of_packages_work_in_their_sandbox() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let Some(venv) = installed_folder("MCP_HOST_VENV") else { return };
    if !kernel_has_sandbox().await {
        return;
    }
    let project = Project::new();
    // npx finds the installed package from the folder above.
    std::os::unix::fs::symlink(&modules, project.path("node_modules")).unwrap();
    let session = project
        .connect("npx", &["-y", "@modelcontextprotocol/server-everything@2026.8.31"], |endpoint| {
            may_read(endpoint, &[modules.parent().unwrap()]);
            endpoint.cwd = modules.parent().map(PathBuf::from);
        })
        .await;
    assert_contains(&call(&session, "echo", "{\"message\": \"hello\"}").await, "hello");
    session.close(Duration::from_secs(2)).await;

    let uvx = venv.join("bin/uvx").display().to_string();
    let tools = venv.join("uv-tools").display().to_string();
    let cache = project.path("out/cache");
    let session = project
        .connect(&uvx, &["mcp-server-time@2026.10.19"], |endpoint| {
            for (name, value) in [("UV_OFFLINE", "1"), ("UV_TOOL_DIR", &*tools), ("UV_CACHE_DIR", &*cache)] {
                endpoint.env.push((name.to_owned(), Secret::new(value)));
            }
            // uv locks the folder of a tool.
            endpoint.sandbox.as_mut().unwrap().write.push(tools.clone());
        })
        .await;
    assert_contains(&call(&session, "get_current_time", "{\"timezone\": \"UTC\"}").await, "UTC");
    session.close(Duration::from_secs(2)).await;
}

/// Debian's Chromium without windows. The one with windows needs a socket in a file, which no preset allows, and so do
/// later versions of the server.
const CHROMIUM: &str = "/usr/bin/chromium-headless-shell";

/// Serves a page to every request, until the process ends.
fn serve_page() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.take_while(|it| !it.is_empty()).for_each(drop);
            let page = "<title>page-of-the-test</title><h1>Hello</h1>";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length";
            // The browser may have closed the connection.
            let _ = stream.write_all(format!("{head}: {}\r\n\r\n{page}", page.len()).as_bytes());
        }
    });
    address
}

#[tokio::test]
async fn rpt_313_playwright_with_chromium_works_in_its_sandbox() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let server = modules.join("@playwright/mcp/cli.js").display().to_string();
    if !Path::new(CHROMIUM).exists() || !Path::new(&server).exists() {
        skip("chromium-headless-shell of Debian or @playwright/mcp is not installed");
        return;
    }
    if !kernel_has_sandbox().await {
        return;
    }
    let project = Project::new();
    let out = project.path("out");
    let options =
        ["--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM, "--output-dir", &out];
    let session = project
        .connect("node", &[&[&*server], &options[..]].concat(), |endpoint| {
            may_read(endpoint, &[&modules, Path::new("/proc")]);
            endpoint.sandbox.as_mut().unwrap().preset = SandboxPreset::Network;
        })
        .await;
    let page = format!("{{\"url\": \"http://{}/\"}}", serve_page());
    assert_contains(&call(&session, "browser_navigate", &page).await, "Page Title: page-of-the-test");
    session.close(Duration::from_secs(5)).await;
}
