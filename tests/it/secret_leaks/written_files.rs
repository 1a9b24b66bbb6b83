//! Written files: recordings, conversions, and the output of `watch`.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use super::fixture::LeakFixture;
use super::markers::{SecretLocation, found};
use super::search::Search;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_no_recording_has_an_echoed_secret() {
    let world = Arc::new(LeakFixture::new().await);
    let mut search = Search::default();
    let arguments =
        ["record", ".minds/mcp.yaml", "-o", "it.jsonl", "-v", "--call", "pipe-ok__fine", "{}", "--call"];
    let arguments = [&arguments[..], &["pipe-ok__errs", "{}", "--call", "http-ok__fine", "{}"]].concat();
    search.ran("record", &world.run(&arguments, "").await);
    search.look("the recording", &world.read("it.jsonl"));
    for format in ["text", "json"] {
        search.ran("replay", &world.run(&["replay", "it.jsonl", "--format", format, "-v"], INITIALIZE).await);
    }

    // Between a host and a server; the program knows only its own secrets.
    let server = world.path("bin/echoing").display().to_string();
    let mark = SecretLocation::Argument.mark();
    let input = format!(
        "{INITIALIZE}\n{}\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"errs","arguments":{}}}"#
    );
    let ran = world.run(&["record", "-o", "between.jsonl", "--", &server, "ok", "key", &mark], &input).await;
    assert!(ran.stdout.contains("protocolVersion"), "{ran:#?}");
    // Forwarded bytes are unchanged; the log and the recording are redacted.
    search.look("record (standard error)", &own_output(&ran.stderr));
    search.look("the recording in between", &world.read("between.jsonl"));
    search.end();
}

/// The output of this program, without the server's standard error.
fn own_output(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("heard: ")).collect::<Vec<_>>().join("\n")
}

/// A conversion contains the literal values of its file, because the servers stay the same. Its report does not, and
/// no environment variable is expanded.
#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_a_conversion_has_literal_values_only() {
    let world = LeakFixture::new().await;
    let given = [SecretLocation::Environment, SecretLocation::EnvFile, SecretLocation::DotEnv];
    for file in ["agent.yaml", ".minds/mcp.yaml", "mcp.json", "request.json"] {
        for dialect in ["mcp-json", "dominds", "holodeck", "acp-v1"] {
            let shown = world.run(&["convert", file, "--to", dialect, "--env-file", "more.env"], "").await;
            let what = format!("{file} to {dialect}");
            assert_eq!(found(&shown.stderr), [], "{what}: {}", shown.stderr);
            let put_in: Vec<SecretLocation> =
                found(&shown.stdout).into_iter().filter(|it| given.contains(it)).collect();
            assert_eq!(put_in, [], "{what}: {}", shown.stdout);

            let out = format!("{dialect}-of-{}.out", file.replace('/', "-"));
            let kept = world.run(&["convert", file, "--to", dialect, "--output", &out, "-v"], "").await;
            assert_eq!((found(&kept.stdout), found(&kept.stderr)), (vec![], vec![]), "{what}: {kept:#?}");
            if kept.code == Some(0) {
                assert!(!found(&world.read(&out)).is_empty(), "{what}: the values are where they are to be");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_long_running_commands_print_no_secret() {
    let world = LeakFixture::new().await;
    let mut search = Search::default();
    for (file, format) in [(".minds/mcp.yaml", "text"), (".minds/mcp.yaml", "json"), ("agent.yaml", "text")] {
        let arguments = ["watch", file, "--plain", "--format", format, "-v", "--env-file", "more.env"];
        let mut child = world.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let told = std::thread::spawn(move || {
            let mut text = String::new();
            BufReader::new(stderr).read_to_string(&mut text).map(|_| text)
        });
        let (sender, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || out.map(|it| sender.send(it)).all(|it| it.is_ok()));
        let mut seen = String::new();
        // Until one server is ready and one has reported its error. Missing output fails below.
        while !(seen.contains("ready") && seen.contains("***")) {
            let Ok(line) = lines.recv_timeout(Duration::from_secs(30)) else { break };
            seen += &format!("{line}\n");
        }
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        child.wait().unwrap();
        seen.extend(lines.iter().map(|it| it + "\n"));
        search.look(&format!("watch {file} {format}"), &seen);
        search.look(&format!("watch {file} {format} (standard error)"), &told.join().unwrap().unwrap());
    }
    search.end();
}
