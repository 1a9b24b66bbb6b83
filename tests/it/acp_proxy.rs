//! The example proxy in front of real agents: it rejects invalid entries for an agent without validation, and passes
//! everything else unchanged.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use mcp_host_acp::AcpVersion;
use mcp_testkit::process::is_alive;
use mcp_testkit::program::{build_binary, root};
use mcp_testkit::wait::block_until;
use serde_json::{Value, json};

use crate::acp_clients::conversation::{Client, PAIRS, Scenario};
use crate::acp_clients::servers::DemoHttpServer;
use crate::acp_clients::{INHERITING, agent, assert_colours, colours};

fn proxy() -> &'static Path {
    static PROXY: OnceLock<PathBuf> = OnceLock::new();
    PROXY.get_or_init(|| build_binary("acp-proxy", "acp-proxy"))
}

/// The command of an agent behind the proxy.
pub(crate) fn guarded(agent: &[String]) -> Vec<String> {
    std::iter::once(proxy().display().to_string()).chain(agent.iter().cloned()).collect()
}

/// An agent of the official npm SDK that validates nothing.
fn trusting() -> Vec<String> {
    vec!["node".to_owned(), root().join("tests/node/acp_agent.mjs").display().to_string()]
}

#[test]
fn acp_048_an_agent_behind_the_proxy_works_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let web = DemoHttpServer::start(folder.path());
    for (client, version) in PAIRS {
        let Some(conversation) = colours(version, &web).run(client, &guarded(&agent(INHERITING))) else {
            return;
        };
        assert_colours(version, &conversation);
    }
}

/// Entries that the official SDK accepts, and the invalid field of each.
const TRUSTED: [(&str, &str); 6] = [
    (r#"{"type":"sse","name":"b","url":"https://b.example","headers":[]}"#, "type"),
    (r#"{"type":"websocket","name":"b","command":"/b","args":["SECRET"],"env":[]}"#, "type"),
    (r#"{"name":"b","command":"npx","args":[],"env":[]}"#, "command"),
    (r#"{"name":"","command":"/b","args":[],"env":[]}"#, "name"),
    (r#"{"type":"http","name":"b","url":"SECRET","headers":[]}"#, "url"),
    (
        r#"{"type":"http","name":"b","url":"https://b.example","headers":[{"name":"K","value":"SECRET\r\nX: y"}]}"#,
        "headers[0].value",
    ),
];

#[test]
fn acp_016_acp_039_the_proxy_rejects_what_the_official_sdk_accepts() {
    let good = json!({ "name": "a", "command": "/a", "args": ["x"], "env": [{ "name": "K", "value": "v" }] });
    for client in [Client::Node, Client::Python] {
        let mut scenario = Scenario::new(AcpVersion::V1);
        scenario.new_session(json!([good])).prompt("?");
        for method in ["session/new", "session/load"] {
            for (entry, _) in TRUSTED {
                let servers = [good.clone(), serde_json::from_str(entry).unwrap()];
                scenario.step(method, json!({ "cwd": "/", "mcpServers": servers }));
            }
        }
        // It takes them all, alone; that is what the proxy is for.
        let Some(run_isolated) = scenario.run(client, &trusting()) else { return };
        assert!(run_isolated.steps.iter().all(|it| it.get("result").is_some()), "{run_isolated:#?}");

        let Some(conversation) = scenario.run(client, &guarded(&trusting())) else { return };
        assert!(!conversation.of_agent().contains("SECRET"), "{conversation:#?}");
        assert_eq!(serde_json::from_str::<Value>(&conversation.said()[0]).unwrap(), json!([good]));
        let wanted = TRUSTED.iter().chain(&TRUSTED);
        for ((entry, field), step) in wanted.zip(&conversation.steps[3..]) {
            let error = &step["error"];
            assert_eq!(error["code"], -32602, "{entry}: {step:#}");
            let errors = error["data"]["errors"].as_array().unwrap();
            assert_eq!((errors.len(), &errors[0]["field"]), (1, &json!(field)), "{entry}: {step:#}");
        }
        assert_eq!(conversation.steps.len(), 3 + 2 * TRUSTED.len());
        let message = "SSE transport not supported: agent did not declare mcpCapabilities.sse";
        assert_eq!(conversation.steps[3]["error"]["message"], message);
    }
}

/// A shell script as the agent behind the proxy.
struct Shell(Child);

impl Shell {
    fn start(script: &str) -> Shell {
        let mut command = Command::new(proxy());
        command.args(["/bin/sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Shell(command.spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the first byte from the agent. By then the proxy handles signals.
    fn begins(&mut self) {
        self.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }

    fn code(&mut self) -> Option<i32> {
        // Waiting would close the input, which is another reason to exit.
        let _open = self.0.stdin.take();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn acpx_09_lenient_proxy_passes_what_known_clients_send() {
    // A relative command, and no `env`.
    let request = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/new\",\"params\":{\"cwd\":\"/\",\
                   \"mcpServers\":[{\"name\":\"a\",\"command\":\"npx\",\"args\":[]}]}}\n";
    let initialize =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n";
    // The agent answers the first line, and returns all others.
    let agent =
        "read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}'; exec cat";
    let passed = |arguments: &[&str]| {
        let mut command = Command::new(proxy());
        command.args(arguments).args(["/bin/sh", "-c", agent]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut input, mut output) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        input.write_all(initialize.as_bytes()).unwrap();
        output.read_line(&mut String::new()).unwrap();
        input.write_all(request.as_bytes()).unwrap();
        drop(input);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        child.wait().unwrap();
        rest
    };
    assert_eq!(passed(&["--lenient"]), request);
    let refused: Value = serde_json::from_str(&passed(&[])).unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32602)), "{refused:#}");
}

#[test]
fn other_messages_pass_unchanged() {
    let long = format!("{{\"id\":4,\"method\":\"session/prompt\",\"params\":\"{}\"}}\n", "x".repeat(3 << 20));
    let lines: [&[u8]; 6] = [
        b"  {\"params\": 1e400,\"jsonrpc\":\"2.0\" ,\"method\":\"session/prompt\",\"id\":1}  \r\n",
        b"\n",
        "{\"method\":\"x\u{2028}\\u2028\u{1f600}\",\"id\":18446744073709551616}\n".as_bytes(),
        long.as_bytes(),
        b"{\"id\":5,\"result\":null}\n",
        b"{\"method\":\"session/cancel\"}",
    ];
    let mut shell = Shell::start("exec cat");
    let (mut input, mut output) = (shell.0.stdin.take().unwrap(), shell.0.stdout.take().unwrap());
    let sent = lines.concat();
    let whole = sent.clone();
    let writing = std::thread::spawn(move || input.write_all(&whole).unwrap());
    let mut got = Vec::new();
    output.read_to_end(&mut got).unwrap();
    writing.join().unwrap();
    assert!(got == sent, "{} bytes came of {}", got.len(), sent.len());
    assert_eq!(shell.code(), Some(0));
}

#[test]
fn a_rejected_request_does_not_reach_a_busy_agent() {
    let initialized = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
    let mut shell = Shell::start(&format!("read line; echo '{initialized}'; exec cat"));
    let mut input = shell.0.stdin.take().unwrap();
    let mut lines = BufReader::new(shell.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    writeln!(input, r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":1}}}}"#)
        .unwrap();
    assert_eq!(lines.next().unwrap(), initialized);
    writeln!(
        input,
        r#"{{"jsonrpc":"2.0","id":"é","method":"session/new","params":{{"cwd":"/","mcpServers":[7]}}}}"#
    )
    .unwrap();
    let refused: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("é"), &json!(-32602)), "{refused}");
    let good = r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    writeln!(input, "{good}").unwrap();
    assert_eq!(lines.next().unwrap(), good);
    drop(input);
    assert_eq!((lines.next(), shell.code()), (None, Some(0)));
}

#[test]
fn an_agent_that_writes_before_it_reads_does_not_block() {
    // After the first byte of the prompt, the proxy blocks in the write of the rest, which exceeds the pipe.
    let mut shell = Shell::start(
        "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}'; \
         dd bs=1 count=1 of=/dev/null 2> /dev/null; \
         yes '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":\"01234567890123456789\"}' | head -n 4000; \
         wc -c",
    );
    let prompt =
        format!("{{\"id\":1,\"method\":\"session/prompt\",\"params\":\"{}\"}}\n", "z".repeat(400_000));
    let rest = prompt.len() - 1;
    let mut input = shell.0.stdin.take().unwrap();
    let mut output = BufReader::new(shell.0.stdout.take().unwrap());
    let writing = std::thread::spawn(move || {
        let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
        writeln!(input, "{open}").and_then(|()| input.write_all(prompt.as_bytes()))
    });
    let reading = std::thread::spawn(move || {
        let mut said = String::new();
        output.read_to_string(&mut said).map(|_| said)
    });
    block_until(|| reading.is_finished());
    let said = reading.join().unwrap().unwrap();
    writing.join().unwrap().unwrap();
    assert_eq!(said.matches("session/update").count(), 4000);
    assert_eq!(said.lines().last().unwrap().trim(), rest.to_string());
    assert_eq!(shell.code(), Some(0));
}

#[test]
fn the_agent_receives_the_signals_of_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let trap = format!("trap 'echo > \"{}\"; exit 0' TERM; echo; sleep 600 & wait", heard.display());
    let mut shell = Shell::start(&trap);
    shell.begins();
    shell.signal("-TERM");
    assert_eq!(shell.code(), Some(128 + 15));
    assert!(heard.exists(), "it was ended by force");
}

#[cfg(target_os = "linux")]
#[test]
fn the_agent_inherits_the_signal_mask_of_the_proxy() {
    let mask = ["SigBlk", "/proc/self/status"];
    let of = |command: &mut Command| {
        let output = command.args(mask).stdin(Stdio::piped()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let run_isolated = of(&mut Command::new("grep"));
    assert!(run_isolated.starts_with("SigBlk:"), "{run_isolated}");
    assert_eq!(of(Command::new(proxy()).arg("grep")), run_isolated);
}

#[test]
fn the_agent_group_ends_with_the_proxy_and_its_code_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let script = format!(
        "sleep 600 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; echo $$ > '{1}.new'; mv '{1}.new' '{1}'; echo; ",
        file("grandchild").display(),
        file("child").display()
    );
    let pid = |name: &str| std::fs::read_to_string(file(name)).ok()?.trim().parse::<u32>().ok();
    for (signal, then, want) in [
        // The agent ignores the signal that ends the proxy.
        (Some("-TERM"), "trap '' INT; wait", Some(128 + 15)),
        (Some("-HUP"), "exec sleep 600", Some(128 + 1)),
        // The agent exits at the end of its input and leaves a child.
        (None, "cat > /dev/null; exit 7", Some(7)),
    ] {
        let mut shell = Shell::start(&format!("{script}{then}"));
        shell.begins();
        let (child, grandchild) = (pid("child").unwrap(), pid("grandchild").unwrap());
        assert!(is_alive(child) && is_alive(grandchild));
        match signal {
            Some(signal) => shell.signal(signal),
            None => drop(shell.0.stdin.take()),
        }
        assert_eq!(shell.code(), want, "{then}");
        assert!(!is_alive(child) && !is_alive(grandchild), "{then}");
        std::fs::remove_file(file("child")).unwrap();
    }
}

#[test]
fn an_agent_that_cannot_be_started_is_reported() {
    for (arguments, code, want) in
        [(&["/no/such/agent"][..], 127, "cannot start /no/such/agent"), (&[], 2, "usage: acp-proxy")]
    {
        let output = Command::new(proxy()).args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains(want)), (Some(code), true), "{said}");
        assert!(output.stdout.is_empty());
    }
}
