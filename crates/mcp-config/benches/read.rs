//! Benchmarks of reading a configuration, by number of servers.
//!
//! The plain parsers are measured on the same text for comparison. They check nothing and keep no positions; the
//! YAML parser does not even build a tree.

use std::fmt::Write;

use divan::{AllocProfiler, Bencher, black_box, counter::BytesCount};
use mcp_host_config::{Document, Profile, read};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The numbers of servers.
const SERVERS: [usize; 4] = [1, 10, 100, 1_000];

fn mcp_json_text(servers: usize) -> String {
    let entry = |at: usize| {
        format!(
            r#""server-{at}":{{"command":"npx","args":["-y","@acme/server-{at}@1.2.3","--root","/srv/data/{at}"],"env":{{"API_KEY":"${{KEY_{at}}}","LOG_LEVEL":"info"}}}}"#
        )
    };
    let entries: Vec<String> = (0..servers).map(entry).collect();
    format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(","))
}

fn dominds_text(servers: usize) -> String {
    let mut text = "version: 1\nservers:\n".to_owned();
    for at in 0..servers {
        writeln!(
            text,
            "  server-{at}:\n    transport: stdio\n    command: npx\n    args: ['-y', '@acme/server-{at}@1.2.3', \
            --root, /srv/data/{at}]\n    env:\n      LOG_LEVEL: info\n    tools:\n      whitelist: ['get_*', \
            'list_*']\n      blacklist:\n        - '*_admin_*'\n    transform:\n      - prefix: s{at}_"
        )
        .expect("writing to a text does not fail");
    }
    text
}

fn holodeck_text(servers: usize) -> String {
    let mut text = "tools:\n".to_owned();
    for at in 0..servers {
        writeln!(
            text,
            "  - name: server_{at}\n    type: mcp\n    description: what it is for\n    server: server-{at}\n    \
            transport: stdio\n    command: npx\n    args: ['-y', '@acme/server-{at}@1.2.3']\n    env:\n      \
            API_KEY: ${{KEY_{at}}}"
        )
        .expect("writing to a text does not fail");
    }
    text
}

fn session_text(servers: usize) -> String {
    let entry = |at: usize| {
        format!(
            r#"{{"name":"server-{at}","command":"/usr/bin/npx","args":["-y","@acme/server-{at}@1.2.3"],"env":[{{"name":"LOG_LEVEL","value":"info"}}]}}"#
        )
    };
    let entries: Vec<String> = (0..servers).map(entry).collect();
    format!(r#"{{"mcpServers":[{}]}}"#, entries.join(","))
}

fn bench_reading(bencher: Bencher<'_, '_>, name: &str, text: &str, profile: Profile) {
    let document = Document::new(name, text, profile);
    assert!(!read(&document).refused, "the file has no mistake");
    bencher.counter(BytesCount::of_str(text)).bench_local(|| read(black_box(&document)));
}

#[divan::bench(args = SERVERS)]
fn mcp_json(bencher: Bencher<'_, '_>, servers: usize) {
    bench_reading(bencher, "mcp.json", &mcp_json_text(servers), Profile::McpJson);
}

#[divan::bench(args = SERVERS)]
fn dominds(bencher: Bencher<'_, '_>, servers: usize) {
    bench_reading(bencher, "mcp.yaml", &dominds_text(servers), Profile::Dominds);
}

#[divan::bench(args = SERVERS)]
fn holodeck(bencher: Bencher<'_, '_>, servers: usize) {
    bench_reading(bencher, "agent.yaml", &holodeck_text(servers), Profile::HoloDeck);
}

#[divan::bench(args = SERVERS)]
fn acp_session(bencher: Bencher<'_, '_>, servers: usize) {
    bench_reading(bencher, "session", &session_text(servers), Profile::AcpV1);
}

/// Reads a file in which each server has a mistake. Each diagnostic has a position and a help.
#[divan::bench(args = SERVERS)]
fn mcp_json_with_mistakes(bencher: Bencher<'_, '_>, servers: usize) {
    let text = mcp_json_text(servers).replace("\"args\"", "\"arg\"");
    let document = Document::new("mcp.json", &text, Profile::McpJson);
    assert_eq!(read(&document).diagnostics.len(), servers);
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| read(black_box(&document)));
}

#[divan::bench(args = SERVERS)]
fn json_by_serde_json_alone(bencher: Bencher<'_, '_>, servers: usize) {
    let text = mcp_json_text(servers);
    let parse = || serde_json::from_str::<serde_json::Value>(black_box(&text));
    bencher.counter(BytesCount::of_str(&text)).bench_local(parse);
}

#[divan::bench(args = SERVERS)]
fn yaml_by_the_parser_alone(bencher: Bencher<'_, '_>, servers: usize) {
    let text = dominds_text(servers);
    let parse = || granit_parser::Parser::new_from_str(black_box(&text)).filter(Result::is_ok).count();
    bencher.counter(BytesCount::of_str(&text)).bench_local(parse);
}
