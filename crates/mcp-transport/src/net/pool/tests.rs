//! Tests of the pool and its connections, over in-memory pipes.

use bytes::Bytes;
use http::header::HOST;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::net::Response;
use crate::net::http1::{Request, net_failure};
use crate::net::tests::read_head;

/// Creates a connection. Returns it with the stream of its server.
async fn connect() -> (Box<Http1Connection>, DuplexStream) {
    let (client, server) = tokio::io::duplex(64 << 10);
    (Box::new(Http1Connection::new(Box::new(client)).await.unwrap()), server)
}

fn take_http1(pool: &Pool) -> Option<Box<Http1Connection>> {
    match pool.take()? {
        PooledConnection::Http1(connection) => Some(connection),
        PooledConnection::Http2(_) => panic!("none is shared"),
    }
}

fn request(body_bytes: usize) -> Request {
    let body = RequestBody::from(Bytes::from(vec![b'x'; body_bytes]));
    http::Request::post("/").header(HOST, "x").body(body).unwrap()
}

/// Sends a request without a body to a server that responds with `answer` after it has read the head.
async fn exchange(
    pool: &Arc<Pool>,
    mut connection: Box<Http1Connection>,
    server: &mut DuplexStream,
    answer: &str,
) -> Result<Response, String> {
    let respond = async {
        assert!(read_head(server).await.ends_with("\r\n\r\n"), "the request's head is complete");
        server.write_all(answer.as_bytes()).await.unwrap();
    };
    let (response, ()) = tokio::join!(connection.send(request(0)), respond);
    let response = response.map_err(|error| net_failure(&error.into_error()).to_string())?;
    Response::http1(response, connection, pool).map_err(str::to_owned)
}

const COMPLETE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Checks whether a connection is kept after this number of chunks of its response was read.
async fn check(answer: &str, chunks: usize, expected: bool) {
    let pool = Arc::new(Pool::default());
    let (connection, mut server) = connect().await;
    let mut response = exchange(&pool, connection, &mut server, answer).await.unwrap();
    for _ in 0..chunks {
        let _ = response.chunk().await.unwrap();
    }
    drop(response);
    assert_eq!(take_http1(&pool).is_some(), expected, "{answer:?} {chunks}");
}

#[tokio::test]
async fn connection_is_kept_when_its_response_was_read() {
    check(COMPLETE, 1, true).await;
    check(COMPLETE, 2, true).await;
    check(COMPLETE, 0, false).await;
    check("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 0, true).await;
    check("HTTP/1.1 204 No Content\r\n\r\n", 0, true).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 2, true).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", 1, false).await;
    check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", 2, false).await;
    check("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", 2, false).await;
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    check(both, 2, false).await;
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    check(&format!("{early}{COMPLETE}"), 1, true).await;
    // An unrequested response must not answer the next request.
    for behind in ["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "\r\n"] {
        check(&format!("{COMPLETE}{behind}"), 1, false).await;
    }
}

#[tokio::test]
async fn malformed_response_is_an_error() {
    let check = async |answer: &str, expected: &str| {
        let pool = Arc::new(Pool::default());
        let (connection, mut server) = connect().await;
        let response = exchange(&pool, connection, &mut server, answer).await;
        assert_eq!(response.err().unwrap(), expected, "{answer:.100?}");
    };
    let length = "its response is not valid HTTP (invalid content-length parsed)";
    for field in
        ["1, 2", "1\r\nContent-Length: 2", "", "+1", "-1", "0x1", "1 2", "99999999999999999999", "1,"]
    {
        check(&format!("HTTP/1.1 200 OK\r\nContent-Length: {field}\r\n\r\nhello"), length).await;
    }
    let coding = "its response has a transfer coding that was not requested";
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", coding).await;
    let status = "its response is not valid HTTP (invalid HTTP status-code parsed)";
    check("HTTP/1.1 20x OK\r\n\r\n", status).await;
    let large = "the head of its response is too large";
    check(&format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(70_000)), large).await;
    check(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(200)), large).await;
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_its_time() {
    let pool = Arc::new(Pool::default());
    let (connection, mut server) = connect().await;
    let mut response = exchange(&pool, connection, &mut server, COMPLETE).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"hi"[..]));
    tokio::time::sleep(MAX_IDLE - Duration::from_millis(1)).await;
    let connection = take_http1(&pool).expect("it has not expired");
    let mut response = exchange(&pool, connection, &mut server, COMPLETE).await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    let start = Instant::now();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(start.elapsed().as_secs(), MAX_IDLE.as_secs());
    assert!(take_http1(&pool).is_none());
}

#[tokio::test]
async fn dropping_a_request_a_response_or_the_pool_closes_the_connection() {
    let pool = Arc::new(Pool::default());
    let (mut unanswered, mut server) = connect().await;
    tokio::select! {
        _ = unanswered.send(request(0)) => panic!("the server does not respond"),
        read = server.read_u8() => assert_eq!(read.unwrap(), b'P'),
    }
    drop(unanswered);
    while server.read(&mut [0; 64]).await.unwrap() > 0 {}
    let (unread, mut server) = connect().await;
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nh";
    let mut response = exchange(&pool, unread, &mut server, head).await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    drop(response);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    let (kept, mut server) = connect().await;
    let empty = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    drop(exchange(&pool, kept, &mut server, empty).await.unwrap());
    drop(pool);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn connection_closed_while_idle_returns_the_request() {
    for behind in ["", "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"] {
        let pool = Arc::new(Pool::default());
        let (connection, mut server) = connect().await;
        let empty = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
        drop(exchange(&pool, connection, &mut server, empty).await.unwrap());
        server.write_all(behind.as_bytes()).await.unwrap();
        let server = Some(server).filter(|_| !behind.is_empty());
        let mut connection = take_http1(&pool).expect("its end is not known yet");
        // Also for a task that has used up its budget.
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().await;
        }
        let mut error = connection.send(request(1)).await.unwrap_err();
        assert!(error.take_message().is_some(), "{error:?}");
        drop(server);
    }
}

#[tokio::test]
async fn truncated_body_is_an_error() {
    let pool = Arc::new(Pool::default());
    for head in ["Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n2\r\n", "Content-Length: 4\r\n\r\nhi"] {
        let (connection, mut server) = connect().await;
        let answer = format!("HTTP/1.1 200 OK\r\n{head}");
        let mut response = exchange(&pool, connection, &mut server, &answer).await.unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        drop(server);
        let error = response.chunk().await.unwrap_err();
        assert_eq!(error.to_string(), "the connection was closed before the end of the response");
        assert_eq!(response.chunk().await.unwrap(), None);
        assert!(take_http1(&pool).is_none());
    }
}

#[tokio::test]
async fn large_body_is_sent_completely() {
    for bytes in [1, 16 << 10, 1 << 20] {
        let pool = Arc::new(Pool::default());
        let (mut connection, mut server) = connect().await;
        let respond = async {
            let head = read_head(&mut server).await;
            assert!(head.contains(&format!("content-length: {bytes}\r\n")), "{head}");
            let mut body = vec![0; bytes];
            server.read_exact(&mut body).await.unwrap();
            assert!(body.iter().all(|byte| *byte == b'x'));
            server.write_all(COMPLETE.as_bytes()).await.unwrap();
        };
        let (response, ()) = tokio::join!(connection.send(request(bytes)), respond);
        let mut response = Response::http1(response.unwrap(), connection, &pool).unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        assert!(take_http1(&pool).is_some());
    }
}

#[tokio::test]
async fn response_before_the_end_of_the_request_is_received() {
    let refused = "HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno";
    for closes in [false, true] {
        let pool = Arc::new(Pool::default());
        let (mut connection, mut server) = connect().await;
        let respond = async {
            read_head(&mut server).await;
            server.write_all(refused.as_bytes()).await.unwrap();
            Some(server).filter(|_| !closes)
        };
        let (response, server) = tokio::join!(connection.send(request(1 << 20)), respond);
        let mut response = Response::http1(response.unwrap(), connection, &pool).unwrap();
        assert_eq!(response.status, 413);
        assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"no"[..]));
        assert!(take_http1(&pool).is_none(), "the request was not sent completely");
        drop(server);
    }
}

#[tokio::test]
async fn request_is_sent_while_its_response_arrives() {
    let bytes = 1 << 20;
    let pool = Arc::new(Pool::default());
    let (mut connection, mut server) = connect().await;
    let echo = async {
        read_head(&mut server).await;
        server.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
        let mut count = 0;
        while count < bytes {
            let read = server.read(&mut [0; 500]).await.unwrap();
            count += read;
            server.write_all(format!("{:x}\r\n{}\r\n", read, "y".repeat(read)).as_bytes()).await.unwrap();
        }
        server.write_all(b"0\r\n\r\n").await.unwrap();
    };
    let receive = async {
        let response = connection.send(request(bytes)).await.unwrap();
        let mut response = Response::http1(response, connection, &pool).unwrap();
        let mut received = 0;
        while let Some(chunk) = response.chunk().await.unwrap() {
            received += chunk.len();
        }
        received
    };
    let (received, ()) = tokio::join!(receive, echo);
    assert_eq!(received, bytes);
    assert!(take_http1(&pool).is_some());
}

#[tokio::test]
async fn request_with_connection_close_ends_the_connection() {
    let pool = Arc::new(Pool::default());
    let (mut connection, mut server) = connect().await;
    let mut request = request(1);
    request.headers_mut().insert("connection", http::HeaderValue::from_static("x, Close"));
    let respond = async {
        read_head(&mut server).await;
        server.write_all(COMPLETE.as_bytes()).await.unwrap();
    };
    let (response, ()) = tokio::join!(connection.send(request), respond);
    let mut response = Response::http1(response.unwrap(), connection, &pool).unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    assert!(take_http1(&pool).is_none());
}

#[tokio::test]
async fn http2_connection_is_shared() {
    let (client, server) = tokio::io::duplex(64 << 10);
    let service = hyper::service::service_fn(|request: http::Request<Incoming>| async move {
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>(http::Response::new(Full::new(body)))
    });
    let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(server), service);
    let mut tasks = JoinSet::new();
    tasks.spawn(async { drop(serving.await) });
    let pool = Arc::new(Pool::default());
    pool.share(Box::new(client)).await.unwrap();
    let requests = (0..8).map(|number: u8| {
        let pool = Arc::clone(&pool);
        async move {
            let Some(PooledConnection::Http2(mut sender)) = pool.take() else { panic!("it is shared") };
            let body = RequestBody::from(Bytes::from(vec![number]));
            let request = http::Request::post("http://x.example/").body(body).unwrap();
            let mut response = Response::http2(sender.send_request(request).await.unwrap());
            response.chunk().await.unwrap()
        }
    });
    let received = futures_util::future::join_all(requests).await;
    let expected: Vec<_> = (0..8).map(|number: u8| Some(Bytes::from(vec![number]))).collect();
    assert_eq!(received, expected);
}
