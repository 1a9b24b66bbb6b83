//! Tests of requests post_through_proxy proxies, of invalid responses, and of failed connections.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use mcp_host_model::{Limits, UrlEndpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::net::tests::read_head;
use crate::net::url_endpoint::UrlOptions;

fn endpoint(url: &str) -> Arc<HttpEndpoint> {
    let mut limits = Limits::default();
    limits.connect = Duration::from_millis(300);
    let options = UrlOptions { limits, ..UrlOptions::default() };
    Arc::new(HttpEndpoint::new(&UrlEndpoint::new(url.parse().unwrap()), &options).unwrap())
}

/// Posts a message of two bytes. Returns the body of the response, or the error.
async fn post(client: &Client) -> Result<String, String> {
    let (target, headers) = client.target_and_headers();
    let body = Bytes::from_static(b"{}");
    match client.send_plain(&target, RequestParts::new(&Method::POST, &headers, Some(&body))).await {
        Ok(mut response) => {
            let mut res = String::new();
            while let Some(chunk) = response.chunk().await.unwrap() {
                res.push_str(str::from_utf8(&chunk).unwrap());
            }
            Ok(res)
        }
        Err(ExchangeError::Unreachable(error) | ExchangeError::Refused(error)) => {
            Err(format!("refused: {error}"))
        }
        Err(ExchangeError::Lost(error)) => Err(format!("lost: {error}")),
    }
}

/// Posts to `url` post_through_proxy a proxy that responds with `answer`. Returns the request to the proxy, and the
/// result.
async fn post_through_proxy(url: &str, answer: &str) -> (String, Result<String, String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxies = format!("user:hunter2@{}", listener.local_addr().unwrap());
    let client = Client::with_proxies(endpoint(url), &Matcher::builder().all(proxies).build()).await.unwrap();
    let proxy = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_head(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        // The stream stays open until the client has its result.
        (request, stream)
    };
    let ((request, _stream), posted) = tokio::join!(proxy, post(&client));
    let port = listener.local_addr().unwrap().port().to_string();
    (request, posted.map_err(|it| it.replace(&port, "PORT")))
}

#[tokio::test]
async fn plain_http_request_is_sent_to_the_proxy() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let (request, posted) = post_through_proxy("http://ann:pw@mcp.example:81/mcp?key=1", answer).await;
    assert_eq!(posted, Ok("hello".to_owned()));
    let mut lines: Vec<&str> = request.lines().filter(|it| !it.is_empty()).collect();
    assert_eq!(lines.remove(0), "POST http://mcp.example:81/mcp?key=1 HTTP/1.1");
    lines.sort_unstable();
    let agent = concat!("user-agent: ", env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    let want = [
        "accept-encoding: identity",
        "accept: application/json, text/event-stream",
        "authorization: Basic YW5uOnB3",
        "content-length: 2",
        "content-type: application/json",
        "host: mcp.example:81",
        "proxy-authorization: Basic dXNlcjpodW50ZXIy",
        agent,
    ];
    assert_eq!(lines, want);
}

#[tokio::test]
async fn hd_sc5_tunnel_failure_is_reported_without_its_password() {
    for (answer, want) in [
        ("HTTP/1.1 407 No\r\n\r\n", "requires authorization (HTTP 407)"),
        ("HTTP/1.1 502 No\r\n\r\n", "refused the tunnel (HTTP 502)"),
        ("HTTP/1.1 200 Connected\r\n\r\n", ": no connection within 0.3 s"),
    ] {
        let (request, posted) = post_through_proxy("https://mcp.example/mcp", answer).await;
        let tunnel = "CONNECT mcp.example:443 HTTP/1.1\r\nHost: mcp.example:443\r\nProxy-Authorization: Basic \
                      dXNlcjpodW50ZXIy\r\n\r\n";
        assert_eq!(request, tunnel);
        let proxy = "cannot connect to https://mcp.example/mcp: the proxy 127.0.0.1:PORT";
        let gap = if want.starts_with(':') { "" } else { " " };
        assert_eq!(posted, Err(format!("refused: {proxy}{gap}{want}")));
    }
}

/// The error for a server that responds with `answer` to the first byte, at a URL of this scheme.
async fn error_for(scheme: &str, answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let client = Client::new(endpoint(&format!("{scheme}://{address}/mcp?key=secret"))).await.unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    };
    let (posted, _stream) = tokio::join!(post(&client), server);
    posted.unwrap_err().replace(&address, "HOST")
}

#[tokio::test]
async fn invalid_response_is_reported() {
    let lost = "lost: http://HOST/mcp did not respond:";
    assert_eq!(
        error_for("http", "").await,
        format!("{lost} the connection was closed before the end of the response")
    );
    assert_eq!(
        error_for("http", "SSH-2.0-OpenSSH_9.9\r\n").await,
        format!("{lost} its response is not valid HTTP (invalid HTTP version parsed)")
    );
    let plain = "refused: cannot connect to https://HOST/mcp: TLS failed: the server does not speak TLS (received \
                 corrupt message of type InvalidContentType)";
    assert_eq!(error_for("https", "HTTP/1.1 400 Bad Request\r\n\r\n").await, plain);
}

#[tokio::test]
async fn connection_closed_while_idle_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client =
        Client::new(endpoint(&format!("http://{}/mcp", listener.local_addr().unwrap()))).await.unwrap();
    let respond_once = async || {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(read_head(&mut stream).await.starts_with("POST /mcp "));
        stream.read_exact(&mut [0; 2]).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
        stream
    };
    for _ in 0..3 {
        let (posted, stream) = tokio::join!(post(&client), respond_once());
        assert_eq!(posted, Ok("hi".to_owned()));
        drop(stream);
        // The runtime is notified of the closed stream before the next request is sent.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn refused_connection_is_reported() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let client = Client::new(endpoint(&format!("http://{address}/"))).await.unwrap();
    let want = "refused: cannot connect to http://HOST/: connection refused";
    assert_eq!(post(&client).await.unwrap_err().replace(&address, "HOST"), want);
}

#[tokio::test]
async fn request_with_an_invalid_uri_is_not_sent() {
    let client = Client::new(endpoint(&format!("http://127.0.0.1:1/{}", "a".repeat(70_000)))).await.unwrap();
    let error = post(&client).await.unwrap_err();
    assert!(error.starts_with("refused: the request cannot be sent to http://127.0.0.1:1/"), "{error}");
}
