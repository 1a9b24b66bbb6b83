//! The official SDK's client over our wires: what it does well it still does, and where it would wait for ever it is
//! told.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Endpoint, Limits};
use mcp_transport::{Dial, DialOptions, RmcpOptions, RmcpTransport, dialer};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{RoleClient, ServiceError, ServiceExt};

type Client = RunningService<RoleClient, ()>;

fn dial(endpoint: &Endpoint) -> Arc<dyn Dial> {
    let limits = Limits { message_bytes: 1 << 20, ..Limits::default() };
    dialer(endpoint, &DialOptions { limits, ..DialOptions::default() }).unwrap()
}

async fn serve(endpoint: &Endpoint) -> Result<Client, ClientInitializeError> {
    // Long enough for any machine that answers, short enough for a test of a server that does not.
    let options = RmcpOptions { handshake: Duration::from_secs(20), grace: Duration::from_secs(1) };
    ().serve(RmcpTransport::new(&*dial(endpoint), options)).await
}

async fn call(client: &Client) -> Result<String, ServiceError> {
    let result = client.call_tool(CallToolRequestParams::new("t")).await?;
    let text = result.content.iter().filter_map(|it| it.as_text().map(|it| it.text.clone()));
    Ok(text.collect::<Vec<_>>().join("\n"))
}

#[cfg(feature = "stdio")]
mod stdio {
    use super::*;
    use crate::stdio::{script, server};

    /// Calls the tool of a server that does this, twice, and says what came of it.
    async fn twice(tool: &str) -> [String; 2] {
        let client = serve(&Endpoint::Stdio(server(tool))).await.unwrap();
        let said = |it: Result<String, ServiceError>| it.unwrap_or_else(|error| error.to_string());
        let res = [said(call(&client).await), said(call(&client).await)];
        client.cancel().await.unwrap();
        res
    }

    #[tokio::test]
    async fn tools_are_listed_and_called() {
        let client = serve(&Endpoint::Stdio(server(r#"text "$id" hello"#))).await.unwrap();
        assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "sh");
        assert_eq!(client.list_all_tools().await.unwrap()[0].name, "t");
        assert_eq!(call(&client).await.unwrap(), "hello");
        client.cancel().await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_ends_its_request_and_nothing_else() {
        // An error whose code is no integer; the SDK alone drops it, and the request hangs.
        let odd = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":"E_NOPE","message":"odd"}}\n' "$id""#;
        let [first, second] = twice(odd).await;
        assert!(first.contains("odd"), "{first}");
        assert_eq!(first, second);
        // A result of a shape that a call does not have, and an error without an id: neither waits.
        let [first, _] = twice(r#"answer "$id" 7"#).await;
        assert!(!first.is_empty());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_connection_with_words() {
        let long = r#"head -c 3000000 /dev/zero | tr '\0' x; echo; exit 3"#;
        let [first, second] = twice(long).await;
        assert!(first.contains("no longer available"), "{first}");
        assert!(!second.is_empty());
    }

    #[tokio::test]
    async fn a_server_that_dies_in_a_call_leaves_its_last_words() {
        let [first, _] = twice("echo 'out of cheese' >&2; exit 7").await;
        assert!(
            first.contains("exit status") && first.contains('7') && first.contains("out of cheese"),
            "{first}"
        );
    }

    #[tokio::test]
    async fn a_grandchild_that_holds_the_pipe_holds_nobody_up() {
        let [first, _] = twice("sleep 600 & exit 5").await;
        assert!(first.contains("no longer available"), "{first}");
    }

    #[tokio::test]
    async fn an_exit_before_the_handshake_is_told_with_its_evidence() {
        let error =
            serve(&Endpoint::Stdio(script("echo 'no key' >&2; exit 4"))).await.err().unwrap().to_string();
        assert!(error.contains("no key") && error.contains('4'), "{error}");
        let gone = serve(&Endpoint::Stdio(mcp_model::StdioEndpoint::new("no-such-program-at-all"))).await;
        let error = gone.err().unwrap().to_string();
        assert!(error.contains("the command was not found"), "{error}");
    }

    #[tokio::test]
    async fn a_silent_server_ends_the_handshake_and_its_process() {
        let options = RmcpOptions { handshake: Duration::from_millis(50), grace: Duration::from_millis(50) };
        let transport = RmcpTransport::new(&*dial(&Endpoint::Stdio(script("exec sleep 600"))), options);
        let ended = transport.ended();
        let error = ().serve(transport).await.err().unwrap().to_string();
        assert!(error.contains("did not answer within 0.05 s"), "{error}");
        ended.await;
    }

    #[tokio::test]
    async fn a_close_takes_no_longer_than_its_grace_when_the_server_does_not_read() {
        let client = serve(&Endpoint::Stdio(server("exec sleep 600"))).await.unwrap();
        let peer = client.peer().clone();
        let waiting = tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("t")).await });
        client.cancel().await.unwrap();
        assert!(waiting.await.unwrap().is_err());
    }
}

#[cfg(feature = "http")]
mod http {
    use serde_json::json;

    use super::*;
    use crate::http::peer::{Heard, Peer, Reply, json_reply, reply};
    use crate::http::{legacy, said};

    async fn connect(peer: &Peer) -> Client {
        let url = peer.url.parse().unwrap();
        serve(&Endpoint::Http(mcp_model::UrlEndpoint::new(url))).await.unwrap()
    }

    async fn forgetful(refusal: fn(&Heard) -> Reply) -> Peer {
        let opened = std::sync::atomic::AtomicUsize::new(0);
        Peer::start(move |it| {
            if it.what() == "initialize" {
                opened.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            let session = format!("s-{}", opened.load(std::sync::atomic::Ordering::SeqCst));
            legacy(it, &session, |it| match it.header("mcp-session-id") {
                "s-1" => refusal(it),
                _ => json_reply(said(it, "hello")),
            })
        })
        .await
    }

    #[tokio::test]
    async fn a_forgotten_session_is_opened_again_and_the_calls_are_made() {
        for refusal in [(|_: &Heard| reply(404, "", "")) as fn(&Heard) -> Reply, |_| {
            reply(400, "", "Bad Request: No valid session ID provided")
        }] {
            let peer = forgetful(refusal).await;
            let client = connect(&peer).await;
            for called in futures_util::future::join_all((0..8).map(|_| call(&client))).await {
                assert_eq!(called.unwrap(), "hello", "{}", peer.words());
            }
            assert_eq!(peer.count("initialize"), 2, "{}", peer.words());
            client.cancel().await.unwrap();
            assert_eq!(peer.first("DELETE").header("mcp-session-id"), "s-2");
        }
    }

    #[tokio::test]
    async fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
        let peer = Peer::start(|it| legacy(it, "s", |_| reply(404, "", ""))).await;
        let client = connect(&peer).await;
        let error = call(&client).await.unwrap_err().to_string();
        assert!(error.contains("forgotten the session"), "{error}");
        assert!(peer.count("initialize") <= 4, "{}", peer.words());
    }

    #[tokio::test]
    async fn a_refusal_without_an_id_ends_its_request() {
        let peer = Peer::start(|it| {
            legacy(it, "s", |_| {
                let error = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "Bad things"}});
                reply(400, "Content-Type: application/json\r\n", error.to_string())
            })
        })
        .await;
        let error = call(&connect(&peer).await).await.unwrap_err().to_string();
        assert!(error.contains("Bad things"), "{error}");
    }

    #[tokio::test]
    async fn the_negotiated_version_and_the_headers_of_the_protocol_are_sent() {
        let peer = Peer::start(|it| legacy(it, "s", |it| json_reply(said(it, "hello")))).await;
        let client = connect(&peer).await;
        assert_eq!(call(&client).await.unwrap(), "hello");
        let heard = peer.first("tools/call");
        assert_eq!(heard.header("mcp-session-id"), "s");
        assert!(!heard.header("mcp-protocol-version").is_empty());
        client.cancel().await.unwrap();
    }
}
