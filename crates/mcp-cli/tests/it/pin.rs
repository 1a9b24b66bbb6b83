//! `check --fix=pin`: npm and uv look up versions in a registry on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_testkit::program::{installed_folder, installed_program};

use crate::support::{Run, Workspace};

const FILE: &str = r#"{
  "mcpServers": {
    // The newest one.
    "files": { "command": "npx", "args": ["-y", "@scope/server", "/tmp"] },
    "git": {"command": "uvx", "args": ["--from", "git-tools<2", "server"]},
    "missing": {"command": "npx", "args": ["none"]},
    "local": {"command": "npx", "args": ["./server"]},
    "pinned": {"command": "npx", "args": ["@scope/server@1.0.0"]}
  }
}
"#;

/// Serves the documents of npm and PyPI about one package each, until the process ends. Counts requests.
fn start_registry() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            counter.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || respond(stream));
        }
    });
    (address, requests)
}

fn respond(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|it| !it.is_empty()).for_each(drop);
    let npm = r#"{"name": "@scope/server", "dist-tags": {"latest": "2.1.0", "next": "3.0.0"}, "versions": {
        "2.1.0": {"name": "@scope/server", "version": "2.1.0"}, "3.0.0": {"name": "@scope/server", "version": "3.0.0"}}}"#;
    let wheel = |version: &str| {
        format!(r#"{{"filename": "git_tools-{version}-py3-none-any.whl", "url": "x.whl", "hashes": {{}}}}"#)
    };
    let wheels = ["1.9.0", "1.10.0", "2.0.0"].map(wheel).join(",");
    let python = format!(r#"{{"meta": {{"api-version": "1.0"}}, "name": "git-tools", "files": [{wheels}]}}"#);
    let (status, kind, body) = match first.split(' ').nth(1) {
        Some("/@scope%2fserver") => ("200 OK", "application/json", npm),
        Some("/simple/git-tools/") => ("200 OK", "application/vnd.pypi.simple.v1+json", &*python),
        _ => ("404 Not Found", "text/plain", ""),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    // The client may have closed the connection.
    let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
}

/// Runs in the project, with a registry that holds for npm and uv.
fn run(workspace: &Workspace, registry: &str, arguments: &[&str]) -> Run {
    let mut command = workspace.command(arguments);
    let venv = std::env::var("MCP_HOST_VENV").unwrap_or_default();
    command.env("PATH", format!("{}/bin:{venv}/bin:/usr/bin:/bin", workspace.path().display()));
    command.env("npm_config_registry", registry).env("UV_DEFAULT_INDEX", format!("{registry}/simple"));
    Run::of(command.current_dir(workspace.path().join("repo")).output().unwrap())
}

/// RPT-297
#[test]
fn rpt_297_packages_are_pinned_only_on_request_and_the_rest_of_the_file_stays() {
    if installed_folder("MCP_HOST_VENV").is_none() || !installed_program("npm") {
        return;
    }
    let workspace = Workspace::empty();
    let path = workspace.path().join("repo/.mcp.json");
    workspace.write("repo/.mcp.json", FILE);
    // A file of the project does not choose the registry.
    workspace.write("repo/.npmrc", "registry=http://127.0.0.1:1/\n");
    let (registry, requests) = start_registry();
    assert_eq!(run(&workspace, &registry, &["trust"]).code, Some(0));
    let hint = run(&workspace, &registry, &["check"]);
    let note =
        "files: each start may load another version of @scope/server and 3 more; `mcp-host check --fix=pin`";
    assert!(hint.err.contains(note), "{hint:?}");
    assert_eq!(requests.load(Ordering::SeqCst), 0, "a check looks up nothing");
    assert_eq!(fs::read_to_string(&path).unwrap(), FILE);

    let pinned = run(&workspace, &registry, &["check", "--fix=pin"]);
    assert_eq!(pinned.code, Some(0), "{pinned:?}");
    let want =
        FILE.replace("@scope/server\"", "@scope/server@2.1.0\"").replace("git-tools<2", "git-tools==1.10.0");
    assert_eq!(fs::read_to_string(&path).unwrap(), want, "{pinned:?}");
    assert!(
        pinned.out.contains("not pinned: missing: npm has failed (exit status: 1); run `npm view none"),
        "{pinned:?}"
    );
    assert!(
        pinned.out.contains("not pinned: local: `./server` does not name a package of a registry"),
        "{pinned:?}"
    );
    assert!(pinned.out.contains("; 2 fixed"), "{pinned:?}");
    // What was approved stays approved.
    let trusted = run(&workspace, &registry, &["trust"]);
    assert_eq!(trusted.out, "5 servers of this file: all approved\n", "{trusted:?}");
    let again = run(&workspace, &registry, &["check", "--fix=pin", "--format", "json"]);
    assert_eq!(again.json()["files"][0].get("pinned"), None, "{again:?}");
}

/// RPT-297
#[test]
fn rpt_297_missing_package_manager_is_named() {
    let workspace = Workspace::empty();
    workspace.write("repo/.mcp.json", r#"{"mcpServers": {"a": {"command": "pipx", "args": ["run", "b"]}}}"#);
    let mut command = workspace.command(&["check", "--fix=pin"]);
    command.env("PATH", workspace.path()).current_dir(workspace.path().join("repo"));
    let run = Run::of(command.output().unwrap());
    let want = "not pinned: a: uv is needed to look up its version, and is not on the PATH\n";
    assert!(run.out.contains(want), "{run:?}");
}
