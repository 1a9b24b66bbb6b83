//! Planted secrets: every place that can hold one has a value of its own, servers repeat them wherever they can, and no
//! command, log, recording, document or debug print has any of them.
//!
//! Three things write values because that is what they are for, and nothing else does: `convert` writes the literal values
//! of its file (`kept`), a recording has what a server answered but for what it was given, and a login's tokens are in one
//! file of mode 0600.

mod acp;
mod echoing;
mod given_back;
mod kept;
mod levels;
mod marks;
mod search;
mod served;
mod values;
mod world;

use std::sync::Arc;

pub(crate) use marks::Spot;
use search::{Search, rows, with};
use world::World;

const FILES: [&str; 5] = ["agent.yaml", ".minds/mcp.yaml", "mcp.json", "request.json", "wrong.yaml"];

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_no_command_that_reads_a_file_shows_a_secret_of_it() {
    let world = Arc::new(World::new().await);
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
    let pair = format!("KEY={}", Spot::Literal.mark());
    let header = format!("X-Key={}", Spot::Header.mark());
    let url = format!("https://me:{}@h.example/?k={}", Spot::Password.mark(), Spot::Query.mark());
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
        format!(r#"{{"cwd": "{}", "mcpServers": 5}}"#, Spot::AcpArgument.mark()),
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{params}}}"#);
        let row = ["acp-check", "--capabilities", capabilities];
        search.ran("acp-check", &world.run(&row, &request).await);
    }
    search.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_no_command_that_starts_servers_shows_what_they_were_given() {
    let world = Arc::new(World::new().await);
    let mut search = Search::default();
    let typed = "tools\npipe-ok__errs\nhttp-ok__errs\nhttp-ok__fine\npipe-ok__dies\n";
    let mut all = Vec::new();
    // The dialect of the first one has no time limits, so that a server which never makes sense is waited for longest.
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
        // The log tells all that the words do, and JSON what programs read.
        let ends: [&[&str]; 2] =
            [&["--verbose", "--env-file", "more.env"], &["--format", "json", "--env-file", "more.env"]];
        all.extend(with(&commands, &ends));
    }
    search.run(&world, all, typed).await;
    search.end();
}
