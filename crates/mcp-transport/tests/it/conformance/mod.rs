//! Conformance tests: the table of `mcp_host_transport::testing`, run on all transports in both eras against
//! a peer that can misbehave. Streamable HTTP is tested with event streams and with JSON documents as
//! responses. [`peers`] performs the scripts on each transport; [`ends`] has the outcomes that differ between
//! the transports.
//!
//! Known failures of other clients, and the tests that show that this one does not have them:
//!
//! - a silent server: the rows of the silent peer; output in UTF-16:
//!   `stdio::hd_135_utf_16_output_is_noise_until_the_timeout`
//! - a line in Latin-1: `stdio::hd_106_response_in_another_encoding_ends_its_call`, and with the encoding configured
//!   `stdio::hd_106_configured_encoding_is_used_in_both_directions`; a message over the limit, an error whose
//!   code is no integer: the rows of these names
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
//! - GETs again and again, a stream that breaks off, `retry: 0`, a first GET that fails:
//!   `http::streams::listening_retries_with_backoff`
//! - HTTP 4xx with an error without an id: `http::faults::error_contains_the_servers_message`, and where it
//!   means that the session is forgotten `http::sessions::lost_session_is_reopened_once`
//! - a server that is down: the row of the peer that dies after the handshake, whose calls end at once

#[cfg(target_os = "linux")]
mod cycles;
mod ends;
mod framing;
mod peers;
mod process;
mod relay;
mod streams;

use std::cell::RefCell;

use mcp_host_transport::testing::{ResponseForm, check_transport, scripted_dial_with_limits};
use tokio::sync::Mutex;

use peers::{PLAIN, Peer, TransportKind, UNUSUAL};

/// One table runs at a time. Each has large messages, and a time limit.
pub(crate) static TABLE: Mutex<()> = Mutex::const_new(());

/// Runs the table on one transport, with peers that write in both styles. Fails with the differences.
async fn check(transport: TransportKind) {
    let _running = TABLE.lock().await;
    for style in [PLAIN, UNUSUAL] {
        let peers = RefCell::new(Vec::new());
        let start = async |script, limits| {
            let peer = Peer::start(transport, style, script).await;
            let dial = peer.dial(&limits);
            peers.borrow_mut().push(peer);
            dial
        };
        let report = check_transport(transport.response_form(), start).await;
        assert!(report.is_ok(), "{transport:?}, {style:?}: {report}");
    }
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

#[tokio::test]
async fn hd_117_hd_119_in_memory_matches_the_table() {
    let _running = TABLE.lock().await;
    let start = async |script, limits| scripted_dial_with_limits(script, &limits);
    check_transport(ResponseForm::Shared, start).await.assert_ok();
}
