//! `serve --stdio --shared`: clients that share a host, and what happens when one of the processes ends.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use mcp_testkit::process::{children, is_alive, only_child, send_signal, wait_for_exit, wait_until_dead};
use mcp_testkit::random::Random;
use mcp_testkit::wait::block_until;
use serde_json::Value;

use crate::serve::INITIALIZE;
use crate::support::{PROGRAM, SHARED_DEMO, Workspace};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A client with its shim, which is killed when it is dropped.
struct Client {
    shim: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Client {
    /// Starts a shim, without waiting for it.
    fn spawn(workspace: &Workspace, arguments: &[&str], variables: &[(&str, &str)]) -> Client {
        let all = [&["serve", ".", "--stdio", "--shared", "--shared-idle", "1"], arguments].concat();
        let mut command = workspace.command(&all);
        command.envs(variables.iter().copied());
        Client::of(command)
    }

    /// Starts the shim of a command.
    fn of(mut command: Command) -> Client {
        let mut shim = command.stdin(Stdio::piped()).spawn().unwrap();
        Client {
            input: shim.stdin.take(),
            output: BufReader::new(shim.stdout.take().unwrap()).lines(),
            notes: BufReader::new(shim.stderr.take().unwrap()).lines(),
            shim,
        }
    }

    /// Starts a shim, and a session.
    fn start(workspace: &Workspace, variables: &[(&str, &str)]) -> (Client, u32) {
        let mut client = Client::spawn(workspace, &[], variables);
        let host = client.host();
        client.initialize();
        (client, host)
    }

    fn initialize(&mut self) {
        assert_eq!(self.ask(INITIALIZE)["result"]["serverInfo"]["name"], "mcp-host");
        self.send(INITIALIZED);
    }

    /// The process id of the host that the next note names.
    #[track_caller]
    fn host(&mut self) -> u32 {
        let note = self.notes.next().unwrap().unwrap();
        let (before, _) = note.split_once("; its log is ").unwrap_or_else(|| panic!("{note}"));
        before.split(' ').find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("{note}"))
    }

    fn send(&mut self, message: &str) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    /// Sends a request, and returns the next message with an id.
    fn ask(&mut self, request: &str) -> Value {
        self.send(request);
        loop {
            let message = self.next();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    #[track_caller]
    fn echo(&mut self, id: u32, text: &str) {
        let reply = self.ask(&call(id, "echo", &format!(r#"{{"text":"{text}"}}"#)));
        assert_eq!(
            (&reply["id"], &reply["result"]["content"][0]["text"]),
            (&id.into(), &text.into()),
            "{reply}"
        );
    }

    /// Closes standard input, and returns the exit code.
    fn close(mut self) -> Option<i32> {
        self.input = None;
        wait_for_exit(&mut self.shim)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.shim.kill();
        let _ = self.shim.wait();
    }
}

fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// The proportional set size of a process in KiB.
fn proportional_memory(process: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    line.trim_end_matches("kB").trim().parse().unwrap_or_default()
}

// SH-001: several that start at once have one host. SH-006: it ends after the last client.
#[test]
fn sh_001_five_clients_have_one_host_and_each_server_once() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let mut clients: Vec<Client> = (0..5).map(|_| Client::spawn(&workspace, &[], &[])).collect();
    let hosts: Vec<u32> = clients.iter_mut().map(Client::host).collect();
    assert!(hosts.iter().all(|host| *host == hosts[0]), "{hosts:?}");
    for (id, client) in (10..).zip(&mut clients) {
        client.initialize();
        client.echo(id, &format!("client {id}"));
    }
    let server = only_child(hosts[0]);
    for client in &clients {
        assert!(children(client.shim.id()).is_empty());
        println!("memory of a shim: {} KiB", proportional_memory(client.shim.id()));
    }
    println!("memory of the host: {} KiB", proportional_memory(hosts[0]));
    for client in clients {
        assert_eq!(client.close(), Some(0));
    }
    wait_until_dead(&[hosts[0], server]);
}

// The clients are themselves mcp-host, which marks the processes that it starts.
#[test]
fn sh_001_commands_whose_server_is_a_shim_have_one_host() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    workspace.write(
        "client.json",
        r#"{"mcpServers": {"all": {"command": "mcp-host",
            "args": ["serve", ".minds/mcp.yaml", "--stdio", "--shared", "--shared-idle", "60"]}}}"#,
    );
    for text in ["one", "two"] {
        let run = workspace.run(&["call", "client.json", "all__echo", &format!("text={text}")]);
        assert_eq!((run.code, run.out), (Some(0), format!("{text}\n")), "{}", run.err);
    }
    let hosts = workspace.run(&["ps", "--format", "json"]);
    let stopped = workspace.run(&["stop", ".minds/mcp.yaml"]);
    assert_eq!(hosts.out.matches("\"file\"").count(), 1, "{hosts:?}");
    assert_eq!(stopped.out.lines().count() + stopped.err.lines().count(), 1, "{stopped:?}");
}

// SH-002
#[test]
fn sh_002_clients_with_other_variables_options_or_folders_do_not_share() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let (_first, first) = Client::start(&workspace, &[("KEY", "one")]);
    let (_second, second) = Client::start(&workspace, &[("KEY", "two")]);
    let (_third, third) = Client::start(
        &workspace,
        &[("KEY", "one"), ("TERM_PROGRAM", "other"), ("MCP_HOST_INSTANCE", "1-2-3")],
    );
    assert_ne!(first, second);
    assert_eq!(first, third);
    let variables = fs::read(format!("/proc/{first}/environ")).unwrap();
    let variables = String::from_utf8(variables).unwrap();
    assert!(
        variables.contains("KEY=one")
            && !variables.contains("TERM_PROGRAM")
            && !variables.contains("MCP_HOST_INSTANCE")
    );
    let mut option = Client::spawn(&workspace, &["--admin"], &[("KEY", "one")]);
    assert_ne!(option.host(), first);
    workspace.write("other/.minds/mcp.yaml", SHARED_DEMO);
    let mut command = workspace.command(&["serve", ".", "--stdio", "--shared", "--shared-idle", "1"]);
    command.env("KEY", "one").current_dir(workspace.path().join("other"));
    assert_ne!(Client::of(command).host(), first);
}

// SH-003: the socket of the killed host is replaced. SH-004: no request is lost silently.
#[test]
fn sh_004_session_continues_in_another_host_after_a_kill() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let (mut client, first) = Client::start(&workspace, &[]);
    client.echo(10, "before");
    let server = only_child(first);
    client.send(&call(11, "sleep", r#"{"ms":60000}"#));
    client.send(&call(12, "sleep", r#"{"ms":60000}"#));
    // Both are in the host when a later request has its answer.
    client.echo(13, "between");
    send_signal("KILL", first);
    let errors = [client.next(), client.next()];
    for (error, id) in errors.iter().zip([11, 12]) {
        assert_eq!(error["id"], id, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("whether it was executed is unknown"));
    }
    let notice = client.next();
    assert_eq!(notice["method"], "notifications/message", "{notice}");
    let second = client.host();
    assert_ne!(first, second);
    client.echo(14, "after");
    wait_until_dead(&[first, server]);
    let server = only_child(second);
    assert_eq!(client.close(), Some(0));
    wait_until_dead(&[second, server]);
}

// SH-005
#[test]
fn sh_005_stopped_host_ends_its_shims() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let (mut client, host) = Client::start(&workspace, &[]);
    let server = only_child(host);
    send_signal("TERM", host);
    assert_eq!(wait_for_exit(&mut client.shim), Some(1));
    let text: Vec<String> = client.notes.by_ref().map_while(Result::ok).collect();
    assert!(text.iter().any(|line| line.contains("the shared host was stopped")), "{text:?}");
    wait_until_dead(&[host, server]);
}

// SH-008
#[test]
fn sh_008_host_that_cannot_start_is_told_with_its_reason() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let run = workspace.run(&["serve", ".", "--stdio", "--shared", "--only", "nobody"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.err.contains("there is no server `nobody`; the servers are: demo"), "{run:?}");
    assert!(run.err.contains("without --shared, this client has servers of its own"), "{run:?}");
    for wrong in [
        &["serve", ".", "--shared"][..],
        &["serve", ".", "--shared", "--http", "127.0.0.1:0"],
        &["serve", ".", "--stdio", "--shared-idle", "9"],
        &["serve", ".", "--stdio", "--shared", "--shared-idle", "0"],
    ] {
        assert_eq!(workspace.run(wrong).code, Some(2), "{wrong:?}");
    }
}

// SH-003
#[test]
fn sh_003_socket_is_private_and_survives_hostile_peers() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let (mut client, _host) = Client::start(&workspace, &[]);
    let folder = workspace.path().join("runtime/mcp-host");
    let sockets = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_shared = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("shared-") && name.ends_with(".sock")
    };
    let socket = sockets.into_iter().find(is_shared).unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    for bytes in [&b""[..], b"\n", b"{}\n", b"\xff\x00\n", &vec![b'x'; 100_000]] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The host may have ended the connection.
        let _ = stream.write_all(bytes);
        drop(stream);
    }
    client.echo(10, "still here");
    // Another user could place a socket in such a folder.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let run = workspace.run(&["serve", ".", "--stdio", "--shared"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("other users can open"), "{run:?}");
}

// SH-009: `ps` shows hosts, servers and clients. SH-010: `restart` and `stop`.
#[test]
fn sh_010_running_hosts_are_listed_restarted_and_stopped() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    assert_eq!(workspace.run(&["ps"]).out, "no host runs\n");
    let none = workspace.run(&["stop"]);
    assert!(none.code == Some(1) && none.err.contains("no host runs"), "{none:?}");
    let (mut first, host) = Client::start(&workspace, &[]);
    let (mut second, _) = Client::start(&workspace, &[]);
    first.echo(10, "a");
    let server = only_child(host);
    let listed = workspace.run(&["ps", "--format", "json"]).json();
    let shown = &listed["hosts"][0];
    assert_eq!((&shown["id"], &shown["kind"]), (&host.into(), &"shared".into()), "{listed}");
    assert!(shown["file"].as_str().unwrap().ends_with(".minds/mcp.yaml"), "{listed}");
    let servers = &shown["servers"][0];
    assert_eq!((&servers["name"], &servers["state"]), (&"demo".into(), &"ready".into()), "{listed}");
    assert_eq!(servers["instances"][0]["process"], server, "{listed}");
    let clients: Vec<u64> =
        shown["clients"].as_array().unwrap().iter().map(|it| it["process"].as_u64().unwrap()).collect();
    assert_eq!(clients, [first.shim.id(), second.shim.id()].map(u64::from), "{listed}");
    let has_memory = |process: &Value| process["memory_bytes"].as_u64().is_some_and(|memory| memory > 0);
    assert!(has_memory(shown) && shown["processes"].as_array().unwrap().iter().all(has_memory), "{listed}");
    let text = workspace.run(&["ps"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    for (line, words) in lines.iter().zip([
        ["ID", "MEMORY", "FOLDER"],
        ["host (shared)", "running", "mcp.yaml"],
        ["server demo", "ready", "MiB"],
        ["client", "connected", workspace.path().to_str().unwrap()],
        ["client", "connected", "MiB"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} {text}");
    }

    let unknown = workspace.run(&["restart", "nobody"]);
    assert!(unknown.code == Some(1) && unknown.err.contains("the servers are: demo"), "{unknown:?}");
    let other = workspace.run(&["restart", "demo", "--host", "other.json"]);
    assert!(other.code == Some(1) && other.err.contains("no host runs for `other.json`"), "{other:?}");
    let restarted = workspace.run(&["restart", "demo", "--host", "."]);
    assert!(restarted.out.starts_with(&format!("restarted demo in the host {host} (")), "{restarted:?}");
    wait_until_dead(&[server]);
    second.echo(11, "b");
    let server = only_child(host);

    let stopped = workspace.run(&["stop", &host.to_string()]);
    assert!(stopped.out.starts_with(&format!("stopped {host} (")), "{stopped:?}");
    assert!(!is_alive(host) && !is_alive(server));
    for client in [&mut first, &mut second] {
        assert_eq!(wait_for_exit(&mut client.shim), Some(1));
    }
    assert_eq!(workspace.run(&["ps"]).out, "no host runs\n");
}

// SH-011
#[test]
fn sh_011_lines_of_a_server_are_printed_and_followed() {
    let workspace = Workspace::empty();
    let server = format!("echo 'line one' >&2; echo 'line two' >&2; exec {PROGRAM} demo-server");
    workspace.write(
        "mcp.json",
        &format!(r#"{{"mcpServers":{{"a":{{"command":"sh","args":["-c",{server:?}]}}}}}}"#),
    );
    let arguments = ["serve", "mcp.json", "--stdio", "--shared", "--shared-idle", "1"];
    let mut client = Client::of(workspace.command(&arguments));
    let _host = client.host();
    client.initialize();
    client.ask(&call(10, "a__echo", r#"{"text":"x"}"#));
    let mut printed = String::new();
    block_until(|| {
        printed = workspace.run(&["logs", "a"]).out;
        printed.lines().count() == 2
    });
    assert_eq!(printed, "line one\nline two\n");
    let json = workspace.run(&["logs", "a", "--format", "json"]).out;
    assert!(json.lines().next().unwrap().contains(r#""line":"line one""#), "{json}");
    let unknown = workspace.run(&["logs", "b"]);
    assert!(unknown.code == Some(1) && unknown.err.contains("the servers are: a"), "{unknown:?}");
    let mut follow = workspace.command(&["logs", "a", "-f"]).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!([lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()], ["line one", "line two"]);
    assert_eq!(workspace.run(&["restart", "a"]).code, Some(0));
    // The new process writes the same lines.
    assert_eq!([lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()], ["line one", "line two"]);
    assert_eq!(workspace.run(&["stop"]).code, Some(0));
    assert_eq!(wait_for_exit(&mut follow), Some(0));
}

/// Clients and hosts are killed in a random order. `MCP_TEST_KILLS` sets a larger number of kills.
#[test]
fn sh_004_killed_processes_leave_no_orphan_and_no_wrong_answer() {
    let kills = std::env::var("MCP_TEST_KILLS").map_or(6, |kills| kills.parse::<u32>().unwrap());
    let workspace = Workspace::dominds(SHARED_DEMO);
    let mut random = Random::new(45);
    let mut processes = Vec::new();
    let mut clients: Vec<(Client, u32)> = (0..3).map(|_| Client::start(&workspace, &[])).collect();
    for kill in 0..kills {
        let host = clients[0].1;
        processes.extend(children(host));
        processes.push(host);
        if random.below(2) == 0 {
            let client = random.below(clients.len());
            send_signal("KILL", clients[client].0.shim.id());
            clients[client] = Client::start(&workspace, &[]);
        } else {
            send_signal("KILL", host);
            for (client, host) in &mut clients {
                *host = client.host();
            }
        }
        for (number, (client, _)) in (0..).zip(&mut clients) {
            client.echo(100 + kill * 10 + number, &format!("{kill} {number}"));
        }
    }
    let host = clients[0].1;
    processes.extend(children(host));
    processes.push(host);
    drop(clients);
    block_until(|| !processes.iter().any(|process| is_alive(*process)));
}
