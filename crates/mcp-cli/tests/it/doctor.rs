//! `doctor`: the steps of a test, and the help for the first failed step.

use std::net::TcpListener;

use crate::support::{DEMO, HttpDemo, PROGRAM, Run, Workspace};

/// A Dominds file with one stdio server.
fn stdio(command: &str) -> String {
    format!("version: 1\nservers:\n  broken:\n    transport: stdio\n    command: {command}\n")
}

/// A Dominds file with one server over HTTP.
fn http(url: &str) -> String {
    format!("version: 1\nservers:\n  broken:\n    transport: streamable_http\n    url: {url}\n")
}

/// Checks the name, message and help of the last step of the only server.
#[track_caller]
fn check(workspace: &Workspace, exit: i32, want: (&str, &str, &str)) {
    let run = workspace.run(&["doctor", ".", "--format", "json"]);
    assert_eq!(run.code, Some(exit), "{run:?}");
    let document = run.json();
    let steps = document["servers"][0]["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    let has = |key: &str, part: &str| last[key].as_str().unwrap_or_default().contains(part);
    assert!(
        last["step"] == want.0
            && last["outcome"] == "failed"
            && has("message", want.1)
            && has("help", want.2),
        "{last:#}"
    );
    assert!(steps.iter().rev().skip(1).all(|it| it["outcome"] != "failed"), "{steps:#?}");
    // The same for people: the failure is the only line with this mark.
    let run = workspace.run(&["doctor", "."]);
    assert_eq!(run.out.matches("  ✗ ").count(), 1, "{run:?}");
}

#[test]
fn working_server_passes_every_step() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["doctor", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let steps: Vec<&str> = run.out.lines().skip(1).filter_map(|it| it.split_whitespace().nth(1)).collect();
    assert_eq!(
        steps,
        ["configuration", "program", "handshake", "tools", "prompts", "resources", "texts", "end"],
        "{run:?}"
    );
    assert!(run.out.contains("modern era, protocol 2026-07-28"), "{run:?}");
    let demo = HttpDemo::start(&workspace);
    workspace.write(".minds/mcp.yaml", &http(&demo.url));
    let document = workspace.run(&["doctor", ".", "--format", "json"]).json();
    let steps = document["servers"][0]["steps"].as_array().unwrap();
    assert!(steps.iter().all(|it| it["outcome"] == "done"), "{steps:#?}");
    let names: Vec<&str> = steps.iter().filter_map(|it| it["step"].as_str()).collect();
    assert_eq!(
        names,
        ["configuration", "address", "port", "handshake", "tools", "prompts", "resources", "texts", "end"]
    );
}

#[test]
fn missing_program_is_explained() {
    for (command, remedy) in [("npx", "install Node.js"), ("uvx", "install uv"), ("docker", "install Docker")]
    {
        let workspace = Workspace::dominds(&stdio(command));
        let output = workspace.command(&["doctor", "."]).env("PATH", workspace.path()).output().unwrap();
        let run = Run::of(output);
        assert_eq!(run.code, Some(3), "{run:?}");
        let want = format!("✗ broken  {command} is not on the PATH\n  help: {remedy}");
        assert!(run.out.starts_with(&want), "{run:?}");
    }
    let elsewhere = stdio("sh") + "    env:\n      PATH: /no/such/folder\n";
    check(
        &Workspace::dominds(&elsewhere),
        3,
        ("program", "not on the PATH that the entry's `env` sets", "remove PATH"),
    );
    check(
        &Workspace::dominds(&stdio("/no/such/x")),
        3,
        ("program", "the file /no/such/x does not exist", "correct the path"),
    );
    let workspace = Workspace::dominds(&stdio("./text"));
    workspace.write("text", "");
    check(&workspace, 3, ("program", "is not executable", "chmod +x"));
    let lost = stdio("sh") + "    cwd: /no/such/folder\n";
    check(&Workspace::dominds(&lost), 3, ("program", "/no/such/folder does not exist", "`cwd`"));
    let missing = stdio("sh") + "    env:\n      TOKEN: { env: NO_SUCH_VARIABLE_OF_OURS }\n";
    check(&Workspace::dominds(&missing), 1, ("configuration", "NO_SUCH_VARIABLE_OF_OURS", ""));
    check(
        &Workspace::dominds("version: 1\nservers:\n  broken:\n    transport: stdio\n"),
        1,
        ("configuration", "command", ""),
    );
}

#[test]
fn missing_handshake_is_explained() {
    let scripted = |script: &str| {
        let workspace = Workspace::dominds(&stdio("broken"));
        workspace.script("broken", script);
        workspace
    };
    check(&scripted("echo no licence >&2; exit 3"), 3, ("handshake", "no licence", "by hand"));
    check(&scripted("echo Welcome; exit 0"), 3, ("handshake", "Welcome", "make it log to standard error"));
}

#[test]
fn noise_and_forced_end_are_warnings() {
    let workspace = Workspace::dominds(&stdio("noisy"));
    workspace.script(
        "noisy",
        &format!("echo Welcome to the server; {PROGRAM} demo-server; trap '' TERM; sleep 600"),
    );
    let run = workspace.run(&["doctor", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out.starts_with("! broken  21 bytes on standard output are not MCP messages\n  help: "),
        "{run:?}"
    );
    assert!(run.out.contains("  ! noise          see above"), "{run:?}");
    assert!(run.out.contains("  ! end            the server did not end in time"), "{run:?}");
}

#[test]
fn unreachable_url_is_explained() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let workspace = Workspace::dominds(&http(&format!("http://{free}/mcp")));
    check(&workspace, 3, ("port", "connection refused", "start the server"));
    let workspace = Workspace::dominds(&http("http://no-such-host.invalid/mcp"));
    check(&workspace, 3, ("address", "cannot resolve the host name no-such-host.invalid", "spelling"));
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    workspace.write(".minds/mcp.yaml", &http(&demo.url.replace("/mcp", "/nowhere")));
    check(&workspace, 3, ("handshake", "404", "check the path"));
}

#[test]
fn proxy_is_checked_instead_of_the_host() {
    let workspace = Workspace::dominds(&http("http://no-such-host.invalid/mcp"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let run = |workspace: &Workspace| {
        let mut command = workspace.command(&["doctor", "."]);
        command.env("HTTP_PROXY", format!("http://user:hunter2@{proxy}"));
        Run::of(command.output().unwrap())
    };
    // The proxy accepts connections and closes them.
    let taking = std::thread::spawn(move || listener.incoming().take(3).for_each(drop));
    let there = run(&workspace);
    assert_eq!(there.code, Some(3), "{there:?}");
    assert!(there.out.contains(&format!("  ✓ proxy          the proxy {proxy} is reachable")), "{there:?}");
    assert!(there.out.contains("  ✗ handshake ") && !there.out.contains("address"), "{there:?}");
    assert!(!there.out.contains("hunter2"), "{there:?}");
    drop(taking);
}

#[test]
fn failed_server_does_not_stop_the_others() {
    let workspace = Workspace::dominds(&format!(
        "{DEMO}  broken:\n    transport: stdio\n    command: /no/such/program\n"
    ));
    let run = workspace.run(&["doctor", "."]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(
        run.out.starts_with("✓ demo  stdio  mcp-host\n")
            && run.out.contains("\n✗ broken  the file /no/such/program does not exist\n  help: "),
        "{run:?}"
    );
    assert_eq!(workspace.run(&["doctor", ".", "--server", "demo"]).code, Some(0));
    assert_eq!(workspace.run(&["doctor", ".", "--server", "other"]).code, Some(2));
}
