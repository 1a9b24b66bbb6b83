//! One list of behaviours, run through all four wires against a peer that misbehaves on request: [`table`] says what
//! the peer does and what comes of it, [`wires`] what that means on each wire.

#[cfg(target_os = "linux")]
mod cycles;
mod drive;
mod framing;
mod lanes;
mod process;
mod road;
mod script;
mod table;
mod wires;

use std::time::Duration;

use wires::{Peer, Wire};

/// Nothing hangs: what a row does is done long before this.
const BOUND: Duration = Duration::from_secs(60);

/// All rows on one wire; what differs from the table, in words.
async fn check(wire: Wire) {
    let mut wrong = Vec::new();
    for row in table::rows() {
        let want = row.want(wire);
        let peer = Peer::start(wire, row.manner, row.script).await;
        let got = tokio::time::timeout(BOUND, (row.drive)(wire, peer, row.limits)).await;
        let got = got.unwrap_or_else(|_| "it hangs".to_owned());
        if got != want {
            wrong.push(format!("{}: {got}, and not {want}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{wire:?}\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn hd_100_hd_117_hd_119_stdio_is_as_the_table_says() {
    check(Wire::Stdio).await;
}

#[tokio::test]
async fn hd_117_hd_119_sse_is_as_the_table_says() {
    check(Wire::Sse).await;
}

#[tokio::test]
async fn hd_117_hd_119_websocket_is_as_the_table_says() {
    check(Wire::WebSocket).await;
}

#[tokio::test]
async fn hd_117_hd_119_http_is_as_the_table_says() {
    check(Wire::Http).await;
}
