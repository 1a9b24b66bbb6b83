//! A URL of which it is not said in which of the two ways over HTTP it is spoken to.

use std::sync::Arc;

use mcp_host_model::SseFallback;
use mcp_host_transport::Dial;
use mcp_testkit::wait::wait_until;

use super::*;

fn either(url: &str, fallback: SseFallback) -> Arc<dyn Dial> {
    let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
    endpoint.sse_fallback = fallback;
    dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap()
}

async fn connect(dial: &Arc<dyn Dial>) -> Result<Session, ConnectError> {
    Session::connect(Arc::clone(dial), SessionOptions::default()).await
}

/// A server of 2024-11-05, which refuses a POST at its stream's URL with this status.
async fn older(status: u16) -> Peer {
    Peer::start(move |request| match (request.verb.as_str(), request.path.as_str()) {
        ("POST", "/sse") => reply(status, "Cannot POST /sse"),
        _ => greeting(request),
    })
    .await
}

#[tokio::test]
async fn dia_08_sse_server_is_detected_and_remembered() {
    for status in [400, 404, 405] {
        let peer = older(status).await;
        let dial = either(&peer.url, SseFallback::Allowed);
        let session = connect(&dial).await.unwrap();
        assert_eq!(
            (session.server().name.as_str(), call(&session).await.unwrap()),
            ("older", "hello".to_owned())
        );
        session.close(Duration::from_secs(1)).await;
        let asked = peer.received().len();
        let session = connect(&dial).await.unwrap();
        assert_eq!(call(&session).await.unwrap(), "hello");
        assert_eq!(peer.received()[asked].verb, "GET", "{status}");
        session.close(Duration::from_secs(1)).await;
        wait_until(|| peer.streams() == 0).await;
    }
}

#[tokio::test]
async fn other_errors_and_configurations_do_not_fall_back() {
    for status in [401, 403, 406, 500] {
        let peer = older(status).await;
        let error = connect(&either(&peer.url, SseFallback::Allowed)).await.err().unwrap().to_string();
        assert!(error.starts_with(&format!("the server answered HTTP {status} ")), "{error}");
        assert_eq!(peer.count("GET"), 0, "{status}");
    }
    let peer = older(405).await;
    let error = connect(&either(&peer.url, SseFallback::Never)).await.err().unwrap().to_string();
    let refused = "the server answered HTTP 405 Method Not Allowed: Cannot POST /sse";
    // It is asked in the older way, too, to be able to say so, and no session is made of that.
    let want =
        format!("it speaks HTTP with server-sent events at this URL, and not Streamable HTTP: {refused}");
    assert_eq!(error, want);
    wait_until(|| peer.streams() == 0).await;
    let modern = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}}"#;
    let peer = Peer::start(move |_| reply(400, modern).header("content-type", "application/json")).await;
    let error = connect(&either(&peer.url, SseFallback::Allowed)).await.err().unwrap().to_string();
    assert_eq!(error, "the server supports protocol version 2030-01-01, which this client does not support");
    assert_eq!(peer.count("GET"), 0);
}

#[tokio::test]
async fn failed_fallback_reports_both_errors() {
    let peer = Peer::start(|request| match request.verb.as_str() {
        "POST" => reply(405, "no POST"),
        _ => reply(404, "no GET"),
    })
    .await;
    let error = connect(&either(&peer.url, SseFallback::Allowed)).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "the server answered HTTP 405 Method Not Allowed: no POST; and with server-sent events: the server answered \
         HTTP 404 Not Found: no GET"
    );
    assert!(error.help().unwrap().starts_with("check the path of the URL"));
    let peer = Peer::start(|request| match request.verb.as_str() {
        "POST" => reply(404, ""),
        _ => reply(401, "").header("www-authenticate", "Basic"),
    })
    .await;
    let error = connect(&either(&peer.url, SseFallback::Allowed)).await.err().unwrap();
    assert!(error.to_string().ends_with("it requires authorization (Basic)"), "{error}");
    assert!(error.help().unwrap().starts_with("the server requires authorization"));
}

#[tokio::test]
async fn wrong_cached_transport_is_dropped() {
    let newer = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = Arc::clone(&newer);
    let peer = Peer::start(move |request| {
        let is_newer = now.load(std::sync::atomic::Ordering::SeqCst);
        match (request.verb.as_str(), request.path.as_str(), request.kind().as_str()) {
            ("GET", ..) if is_newer => reply(405, ""),
            ("POST", "/sse", "server/discover") if is_newer => {
                let result = json!({
                    "supportedVersions": ["2026-07-28"], "capabilities": {},
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "newer", "version": "1"}},
                });
                let answer = json!({"jsonrpc": "2.0", "id": request.rpc()["id"], "result": result});
                reply(200, answer.to_string()).header("content-type", "application/json")
            }
            ("POST", "/sse", _) => reply(405, ""),
            _ => greeting(request),
        }
    })
    .await;
    let dial = either(&peer.url, SseFallback::Allowed);
    connect(&dial).await.unwrap().close(Duration::from_secs(1)).await;
    newer.store(true, std::sync::atomic::Ordering::SeqCst);
    let error = connect(&dial).await.err().unwrap().to_string();
    assert_eq!(error, "the server answered HTTP 405 Method Not Allowed");
    assert_eq!(connect(&dial).await.unwrap().server().name, "newer");
}
