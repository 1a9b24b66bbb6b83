//! Connections that rest, on a virtual clock and over pipes within the program.

use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::net::Response;
use crate::net::head::{Head, heard};
use crate::net::wire::{NoAnswer, Request};

/// A connection, and its server's end.
fn speaking() -> (Box<Single>, DuplexStream) {
    let (here, there) = tokio::io::duplex(64 << 10);
    (Box::new(Wire::new(Line::Through(Box::new(here)))), there)
}

/// One that has rested.
fn rested(pool: &Pool) -> Option<Box<Single>> {
    match pool.take()? {
        Lease::Single(single) => Some(single),
        Lease::Shared(_) => panic!("none is shared"),
    }
}

async fn ask(single: &mut Single) -> Result<Head, NoAnswer> {
    let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("x"))]);
    single.send(&Request { method: &Method::GET, target: "/", headers: &headers, body: None }).await
}

/// Hears a request and answers it.
async fn answer(server: &mut DuplexStream, said: &str) {
    assert!(heard(server).await.ends_with("\r\n\r\n"), "a request is whole");
    server.write_all(said.as_bytes()).await.unwrap();
}

/// Sends a request over a connection and reads the response to it, or its first chunk only.
async fn exchange(
    pool: &Arc<Pool>,
    mut single: Box<Single>,
    server: &mut DuplexStream,
    said: &str,
) -> Response {
    let (answered, ()) = tokio::join!(ask(&mut single), answer(server, said));
    Response::single(answered.unwrap(), single, pool)
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Is a connection kept after such a response of which so many chunks were read?
async fn check(said: &str, chunks: usize, want: bool) {
    let pool = Arc::new(Pool::default());
    let (single, mut server) = speaking();
    let mut response = exchange(&pool, single, &mut server, said).await;
    for _ in 0..chunks {
        let _ = response.chunk().await.unwrap();
    }
    drop(response);
    assert_eq!(rested(&pool).is_some(), want, "{said:?} {chunks}");
}

#[tokio::test]
async fn a_connection_is_kept_when_its_response_was_read() {
    check(WHOLE, 1, true).await;
    check(WHOLE, 2, true).await;
    check(WHOLE, 0, false).await;
    check("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 0, true).await;
    check("HTTP/1.1 204 No Content\r\n\r\n", 0, true).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 2, true).await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", 1, false).await;
    check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", 2, false).await;
    check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 2, false).await;
    // Nobody's answer lies behind this one.
    for behind in ["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "\r\n"] {
        check(&format!("{WHOLE}{behind}"), 1, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_rests_for_its_time_and_is_closed_then() {
    let pool = Arc::new(Pool::default());
    let (single, mut server) = speaking();
    let mut response = exchange(&pool, single, &mut server, WHOLE).await;
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"hi"[..]));
    tokio::time::sleep(REST - Duration::from_millis(1)).await;
    let single = rested(&pool).expect("it has not rested too long");
    let mut response = exchange(&pool, single, &mut server, WHOLE).await;
    assert!(response.chunk().await.unwrap().is_some());
    let begun = Instant::now();
    // Nobody asks for it any more, and its server hears of that.
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(begun.elapsed().as_secs(), REST.as_secs());
    assert!(rested(&pool).is_none());
}

#[tokio::test]
async fn to_drop_a_request_a_response_or_the_pool_closes_the_connection() {
    let pool = Arc::new(Pool::default());
    let (mut single, mut server) = speaking();
    let unanswered = async {
        tokio::select! {
            _ = ask(&mut single) => panic!("nobody answers"),
            read = server.read_u8() => assert_eq!(read.unwrap(), b'G'),
        }
    };
    unanswered.await;
    drop(single);
    while server.read(&mut [0; 64]).await.unwrap() > 0 {}
    let (single, mut server) = speaking();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nh";
    let mut response = exchange(&pool, single, &mut server, head).await;
    assert!(response.chunk().await.unwrap().is_some());
    drop(response);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    let (single, mut server) = speaking();
    drop(exchange(&pool, single, &mut server, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await);
    drop(pool);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_was_closed_while_it_rested_gives_the_request_back() {
    let pool = Arc::new(Pool::default());
    let (single, mut server) = speaking();
    drop(exchange(&pool, single, &mut server, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await);
    drop(server);
    let mut single = rested(&pool).expect("it cannot be known yet");
    let said = ask(&mut single).await.unwrap_err();
    assert!(matches!(said, NoAnswer::Unsent), "{said:?}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_whole_one() {
    let pool = Arc::new(Pool::default());
    let (single, mut server) = speaking();
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n2\r\n";
    let mut response = exchange(&pool, single, &mut server, head).await;
    assert!(response.chunk().await.unwrap().is_some());
    drop(server);
    assert_eq!(response.chunk().await.unwrap_err().words(), "the connection ended before it did");
    assert!(rested(&pool).is_none());
}

/// A server of HTTP/2 that echoes nothing, and answers with its own count of requests.
#[tokio::test]
async fn a_connection_of_http_2_is_shared() {
    let (here, there) = tokio::io::duplex(64 << 10);
    let service = hyper::service::service_fn(|request: http::Request<Incoming>| async move {
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>(http::Response::new(Full::new(body)))
    });
    let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(there), service);
    let mut tasks = JoinSet::new();
    tasks.spawn(async { drop(serving.await) });
    let pool = Arc::new(Pool::default());
    pool.share(Line::Through(Box::new(here))).await.unwrap();
    let asked = (0..8).map(|it: u8| {
        let pool = Arc::clone(&pool);
        async move {
            let Some(Lease::Shared(mut many)) = pool.take() else { panic!("it is shared") };
            let body = Full::new(Bytes::from(vec![it]));
            let request = http::Request::post("http://x.example/").body(body).unwrap();
            let mut response = Response::shared(many.send_request(request).await.unwrap());
            response.chunk().await.unwrap()
        }
    });
    let said = futures_util::future::join_all(asked).await;
    let want: Vec<_> = (0..8).map(|it: u8| Some(Bytes::from(vec![it]))).collect();
    assert_eq!(said, want);
}
