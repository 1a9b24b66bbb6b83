//! Sessions with a known era.

use std::time::Duration;

use mcp_host_model::{Era, Limits};
use mcp_host_transport::{ConnectError, Dial, Eras, Session, SessionOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

use crate::in_memory::{Reply, Server, answer, discovered, initialized, refuse};

/// The negotiated era, and the methods that the server received.
async fn connect(
    server: &Server,
    remembered: Option<Era>,
    eras: Eras,
) -> (Result<Era, ConnectError>, String) {
    let mut limits = Limits::default();
    limits.startup = Duration::from_secs(60);
    let mut options = SessionOptions::default();
    options.known_era = remembered;
    options.eras = eras;
    options.limits = limits;
    let session = Session::connect(Arc::clone(&server.dial) as Arc<dyn Dial>, options).await;
    (session.map(|it| it.era()), server.summary())
}

fn legacy() -> Server {
    Server::legacy(json!({}), |_| vec![])
}

#[tokio::test(start_paused = true)]
async fn known_era_skips_the_probe() {
    let server = legacy();
    let (first, _) = connect(&server, None, Eras::Both).await;
    let era = first.unwrap();
    let server = legacy();
    let (second, words) = connect(&server, Some(era), Eras::Both).await;
    assert_eq!((second.unwrap(), words.as_str()), (Era::Legacy, "initialize"));
    let server = Server::modern(json!({}), |_| vec![]);
    let (second, words) = connect(&server, Some(Era::Modern), Eras::Both).await;
    assert_eq!((second.unwrap(), words.as_str()), (Era::Modern, "server/discover"));
}

#[tokio::test(start_paused = true)]
async fn wrong_known_era_falls_back_without_failing() {
    let refusing = |message: &Value| match message["method"].as_str() {
        Some("server/discover") => answer(message, discovered(&["2026-07-28"])),
        _ => refuse(message, -32601, Value::Null),
    };
    let server = Server::new(refusing);
    let (era, words) = connect(&server, Some(Era::Legacy), Eras::Both).await;
    assert_eq!((era.unwrap(), words.as_str()), (Era::Modern, "initialize server/discover"));
    let server = legacy();
    let (era, words) = connect(&server, Some(Era::Modern), Eras::Both).await;
    assert_eq!(era.unwrap(), Era::Legacy);
    assert!(words.starts_with("server/discover initialize"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn known_modern_server_gets_a_longer_probe_timeout() {
    let silent = |message: &Value| match message["method"].as_str() {
        Some("initialize") => answer(message, initialized("2025-11-25")),
        _ => vec![],
    };
    let begun = Instant::now();
    let (era, _) = connect(&Server::new(silent), Some(Era::Modern), Eras::Both).await;
    assert_eq!((era.unwrap(), begun.elapsed()), (Era::Legacy, Duration::from_secs(31)));
}

#[tokio::test(start_paused = true)]
async fn configured_era_takes_precedence_over_the_known_one() {
    let server = Server::new(|message| refuse(message, -32601, Value::Null));
    let (era, words) = connect(&server, Some(Era::Legacy), Eras::Modern).await;
    assert!(era.is_err());
    assert_eq!(words, "server/discover");
    // A server that closes the connection gets a second connection, without the known era, and no third one.
    let server = Server::new(|_| vec![Reply::Disconnect]);
    let (era, words) = connect(&server, Some(Era::Legacy), Eras::Both).await;
    assert!(era.is_err());
    assert_eq!(words, "initialize server/discover");
}
