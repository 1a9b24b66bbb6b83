//! Secret leaks: every location for secrets has its own marker, servers echo them everywhere, and no command, log,
//! recording, document or `Debug` output contains one.
//!
//! Three exceptions write values on purpose: `convert` writes the literal values of its file, a recording has the
//! results of a server without the values that the server was given, and a login stores tokens in a file with mode
//! 0600.

mod acp;
mod debug_output;
mod echo_servers;
mod fixture;
mod gateway;
mod log_levels;
mod logins;
mod markers;
mod search;
mod written_files;

use std::sync::Arc;

use fixture::LeakFixture;
pub(crate) use markers::SecretLocation;
use search::{Search, rows, with};

const FILES: [&str; 5] = ["agent.yaml", ".minds/mcp.yaml", "mcp.json", "request.json", "wrong.yaml"];

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_commands_that_read_a_file_show_no_secret() {
    let world = Arc::new(LeakFixture::new().await);
    let mut search = Search::default();
    for file in FILES {
        let plain = rows(&[
            &["explain", file, "--server", "pipe-ok", "--tool", "fine"],
            &["disable", file, "pipe-ok", "--dry-run"],
            &["enable", file, "pipe-ok", "--dry-run"],
            &["remove", file, "http-ok", "--dry-run"],
            &["remove", file, "pipe-crash", "--dry-run"],
            &["import", "--from", file],
        ]);
        search.run(&world, with(&plain, &[&["--verbose"], &["--format", "json"]]), "").await;
        let formats = ["text", "json", "sarif", "github"].map(|it| ["check", file, "--format", it]);
        let checks: Vec<Vec<String>> = formats.iter().flat_map(|it| rows(&[it])).collect();
        search.run(&world, with(&checks, &[&["-v"], &["--env-file", "more.env"]]), "").await;
    }
    let pair = format!("KEY={}", SecretLocation::Literal.mark());
    let header = format!("X-Key={}", SecretLocation::Header.mark());
    let url = format!(
        "https://me:{}@h.example/?k={}",
        SecretLocation::Password.mark(),
        SecretLocation::Query.mark()
    );
    let capabilities = r#"{"http": true}"#;
    for row in [
        &["add", "mcp.json", "new", "--command", "x", "--env", &pair, "--dry-run", "--args", "--key", &pair]
            [..],
        &["add", ".minds/mcp.yaml", "new", "--url", &url, "--header", &header, "--dry-run"],
        &["add", "agent.yaml", "new", "--url", &url, "--header", &header],
        &["check", "wrong.yaml", "--fix=all"],
        &["check", "mcp.json", "--fix=all"],
        &["disable", "mcp.json", "pipe-ok"],
        &["remove", "mcp.json", "pipe-ok"],
    ] {
        search.ran(&row.join(" "), &world.run(row, "").await);
    }
    let servers = world.read("request.json");
    for params in [
        format!(r#"{{"cwd": "/", "mcpServers": {servers}}}"#),
        format!(r#"{{"cwd": "/", "mcpServers": {}}}"#, servers.replace("\"args\"", "\"arg\"")),
        format!(r#"{{"cwd": "{}", "mcpServers": 5}}"#, SecretLocation::AcpArgument.mark()),
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{params}}}"#);
        let row = ["acp-check", "--capabilities", capabilities];
        search.ran("acp-check", &world.run(&row, &request).await);
    }
    search.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_commands_that_start_servers_show_no_secret() {
    let world = Arc::new(LeakFixture::new().await);
    let mut search = Search::default();
    let typed = "tools\npipe-ok__errs\nhttp-ok__errs\nhttp-ok__fine\npipe-ok__dies\n";
    let mut all = Vec::new();
    // The dialect of the first file has no timeouts, so it waits longest for a server without valid responses.
    for file in [".minds/mcp.yaml", "agent.yaml", "mcp.json", "request.json"] {
        let commands = rows(&[
            &["tools", file],
            &["prompts", file, "--server", "pipe-ok"],
            &["resources", file, "--server", "http-ok"],
            &["call", file, "pipe-ok__fine"],
            &["call", file, "pipe-ok__errs"],
            &["call", file, "pipe-ok__dies"],
            &["call", file, "http-ok__fine"],
            &["call", file, "http-ok__errs"],
            &["doctor", file],
            &["shell", file],
        ]);
        // The most verbose log, and JSON output.
        let ends: [&[&str]; 2] =
            [&["--verbose", "--env-file", "more.env"], &["--format", "json", "--env-file", "more.env"]];
        all.extend(with(&commands, &ends));
    }
    search.run(&world, all, typed).await;
    search.end();
}
