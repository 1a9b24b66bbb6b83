//! A server that does what a script says, on every wire: the other side of the fault matrix.
//!
//! `faulty stdio <script>` speaks on its standard streams. `faulty listen` prints one JSON line with its ports and serves
//! until its standard input ends: each connection says in its path which script it is to be served by,
//! `/<key>/<script>/<sse|messages|ws|mcp|json>`, so that one process is as many servers as there are keys. It knows none
//! of our crates, so that it is a peer and not a mirror.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a server that cannot go on has nobody to tell")]

mod act;
mod connection;
mod framing;
mod http;
mod listeners;
mod message;
mod process;
mod secure;
mod websocket;

use mcp_tests::faults::Script;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stdio", script] => process::run(Script::parse(script).unwrap()).await,
        ["listen"] => listeners::listen().await,
        other => panic!("not a way to run it: {other:?}"),
    }
}
