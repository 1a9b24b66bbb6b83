//! Conformance tests: one table of behaviours, run on all four transports in both eras against a scripted peer
//! that can misbehave. Streamable HTTP is tested with event streams and with JSON documents as responses.
//! [`table`] has the behaviour of the peer and the expected result; [`peers`] implements the behaviour on each
//! transport.
//!
//! Known failures of other clients, and the tests that show that this one does not have them:
//!
//! - a silent server: the rows of the silent peer; output in UTF-16: `stdio::hd_135_utf_16_output_is_noise_until_the_timeout`
//! - a line in Latin-1: `stdio::hd_106_response_in_another_encoding_ends_its_call`, and with the encoding configured
//!   `stdio::hd_106_configured_encoding_is_used_in_both_directions`; a message over the limit, an error whose code is no integer:
//!   the rows of these names
//! - a child that dies while a grandchild holds its output:
//!   `stdio::grandchild_that_holds_the_pipe_does_not_delay_the_call`
//! - a server that does not read: `stdio::call_to_a_server_that_does_not_read_times_out`,
//!   `websocket::closing::peer_that_does_not_read_times_out`
//! - a runtime that is dropped: `stdio::dropped_runtime_leaves_no_process`
//! - a grandchild in the background whose leader ends as it is asked to:
//!   `stdio::hd_117_close_leaves_no_grandchild`
//! - an exit before the handshake: `stdio::hd_135_sk_12_early_exit_is_reported_with_evidence`
//! - one tool without an object `inputSchema`: the row of this name
//! - a cursor that repeats: `session::endless_list_is_ended`
//! - lists that a server's `ttlMs` keeps alive after the end: the row of closing twice, where they are asked for
//! - GETs again and again, a stream that breaks off, `retry: 0`, a first GET that fails: `http::streams::listening_retries_with_backoff`
//! - HTTP 4xx with an error without an id: `http::faults::error_contains_the_servers_message`, and where it
//!   means that the session is forgotten `http::sessions::lost_session_is_reopened_once`
//! - a server that is down: the row of the peer that dies after the handshake, whose calls end at once

#[cfg(target_os = "linux")]
mod cycles;
mod drive;
mod framing;
mod peers;
mod process;
mod relay;
mod script;
mod streams;
mod table;

use std::time::Duration;

use mcp_model::Era;
use peers::{Peer, TransportKind, Variant};

/// The time limit of a row. A row that reaches it hangs.
const BOUND: Duration = Duration::from_secs(60);

/// Runs all rows on one transport in both eras. Fails with the differences from the table.
async fn check(transport: TransportKind) {
    let mut wrong = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let variant = Variant { transport, era };
        for row in table::rows().into_iter().filter(|it| it.is_for(variant)) {
            let want = row.want(variant);
            let peer = Peer::start(variant, row.style, row.script).await;
            let got = tokio::time::timeout(BOUND, (row.drive)(variant, peer, row.limits)).await;
            let got = got.unwrap_or_else(|_| "it hangs".to_owned());
            if got != want {
                wrong.push(format!("{era:?}, {}: {got}, and not {want}", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{transport:?}\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn hd_100_hd_117_hd_119_stdio_matches_the_table() {
    check(TransportKind::Stdio).await;
}

#[tokio::test]
async fn hd_117_hd_119_sse_matches_the_table() {
    check(TransportKind::Sse).await;
}

#[tokio::test]
async fn hd_117_hd_119_websocket_matches_the_table() {
    check(TransportKind::WebSocket).await;
}

#[tokio::test]
async fn hd_117_hd_119_http_matches_the_table() {
    check(TransportKind::Http).await;
}

#[tokio::test]
async fn hd_117_hd_119_http_with_json_matches_the_table() {
    check(TransportKind::HttpJson).await;
}
