//! Connections on which anything comes in any pieces.

use std::pin::pin;

use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};

use super::*;
use crate::limits::byte_budget::Budget;

const MOST: usize = 100_000;

/// What of a connection is answered by saying what was asked, until it ends.
async fn echoed(stream: DuplexStream) {
    let mut wire = Wire::new(stream);
    let budget = Budget::new(1_000_000);
    loop {
        let res = match wire.head().await {
            Ok(head) => match head.target.path() {
                "/unread" => Response::new(StatusCode::OK, Body::Whole(Bytes::from_static(b"unread"))),
                "/nothing" => Response::new(StatusCode::NO_CONTENT, Body::empty()),
                "/events" => {
                    let events = ["a", "", "bc"].map(|it| Bytes::from_static(it.as_bytes()));
                    Response::new(StatusCode::OK, Body::Events(Box::pin(stream::iter(events))))
                }
                path => match wire.body(MOST, &budget).await {
                    Ok(body) => {
                        let said = format!("{} {path} {}", head.method, String::from_utf8_lossy(&body));
                        Response::new(StatusCode::OK, Body::Whole(said.into()))
                    }
                    Err(it) => Response::new(StatusCode::IM_A_TEAPOT, Body::Whole(format!("{it:?}").into())),
                },
            },
            Err(NoHead::Refused(it)) => Response::new(it.status(), Body::empty()),
            Err(NoHead::Gone | NoHead::Io(_)) => return,
        };
        if !wire.respond(res).await.unwrap() {
            return wire.end().await;
        }
    }
}

/// What is answered to `pieces`: statuses and bodies, one line each, and of a head what is said of the connection.
async fn answers(pieces: &[&[u8]]) -> Vec<String> {
    let (near, mut far) = duplex(1 << 20);
    let echoing = tokio::spawn(echoed(near));
    for piece in pieces {
        if far.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    far.shutdown().await.unwrap();
    let mut read = Vec::new();
    far.read_to_end(&mut read).await.unwrap();
    echoing.await.unwrap();
    let read = String::from_utf8(read).unwrap();
    let responses = read.split("HTTP/1.1 ").skip(1);
    responses
        .map(|it| {
            let (head, body) = it.split_once("\r\n\r\n").unwrap();
            let mut res = head[..3].to_owned();
            for line in head.lines().skip(1).filter(|it| !it.starts_with("date: ")) {
                res.push_str(&format!(", {}", line.trim_start_matches("content-")));
            }
            format!("{res}: {}", body.replace("\r\n", "|"))
        })
        .collect()
}

#[track_caller]
fn check(text: &str, want: &[&str]) {
    let text = text.replace(" | ", "\r\n");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        assert_eq!(answers(&[text.as_bytes()]).await, want, "{text:?}");
        for cut in 1..text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(answers(&[one, other]).await, want, "{text:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(answers(&single).await, want, "{text:?} byte by byte");
    });
}

#[test]
fn requests_on_one_connection_are_answered_one_after_the_other() {
    check(
        "POST /a HTTP/1.1 | content-length: 2 |  | xyGET /b HTTP/1.1 |  |  | \r\nPUT /c HTTP/1.1 | \
         transfer-encoding: chunked |  | 3 | abc | 1 | d | 0 |  | ",
        &["200, length: 10: POST /a xy", "200, length: 7: GET /b ", "200, length: 11: PUT /c abcd"],
    );
    check(
        "GET /a HTTP/1.1 | connection: close |  | GET /b HTTP/1.1 |  | ",
        &["200, length: 7, connection: close: GET /a "],
    );
    check(
        "GET /a HTTP/1.0 | connection: keep-alive |  | GET /b HTTP/1.0 |  | GET /c HTTP/1.0 |  | ",
        &["200, length: 7, connection: keep-alive: GET /a ", "200, length: 7, connection: close: GET /b "],
    );
}

#[test]
fn behind_what_is_refused_nothing_is_a_request() {
    for (fields, status) in [
        ("content-length: 1 | transfer-encoding: chunked", 400),
        ("transfer-encoding: identity", 501),
        ("content-length: x", 400),
    ] {
        let refused = format!("{status}, length: 0, connection: close: ");
        check(&format!("POST /a HTTP/1.1 | {fields} |  | 0 |  | GET /b HTTP/1.1 |  | "), &[&refused]);
    }
    check("GET /a HTTP/3.0 |  | ", &["505, length: 0, connection: close: "]);
    // What is no body in chunks has no end either.
    check(
        "POST /a HTTP/1.1 | transfer-encoding: chunked |  | x |  | GET /b HTTP/1.1 |  | ",
        &["418, length: 6, connection: close: Broken"],
    );
    // What speaks another protocol is told at once, whatever would come.
    check("\u{16}\u{3}\u{1}", &["400, length: 0, connection: close: "]);
    check("GET /a HTTP/1.1\n\n", &["400, length: 0, connection: close: "]);
    // Neither is a head that broke off answered.
    check("GET /a HTTP/1.1 | x", &[]);
}

#[test]
fn a_response_says_where_its_body_ends() {
    check("HEAD /a HTTP/1.1 |  | GET /b HTTP/1.1 |  | ", &["200, length: 8: ", "200, length: 7: GET /b "]);
    check("GET /nothing HTTP/1.1 |  | GET /b HTTP/1.1 |  | ", &["204: ", "200, length: 7: GET /b "]);
    check(
        "GET /events HTTP/1.1 |  | GET /b HTTP/1.1 |  | ",
        &["200, transfer-encoding: chunked: 1|a|2|bc|0||", "200, length: 7: GET /b "],
    );
    check("GET /events HTTP/1.0 | connection: keep-alive |  | ", &["200, connection: close: abc"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_wants_is_passed_over_where_it_is_there() {
    let post = |fields: &str, body: &str| {
        format!("POST /unread HTTP/1.1\r\n{fields}\r\n\r\n{body}GET /b HTTP/1.1\r\n\r\n")
    };
    for (fields, body, passes) in [
        ("content-length: 3", "abc", true),
        ("transfer-encoding: chunked", "3\r\nabc\r\n0\r\n\r\n", true),
        ("content-length: 70000", "abc", false),
        ("transfer-encoding: chunked", "3\r\nabcd", false),
        // It is not sent until it is asked for.
        ("expect: 100-continue\r\ncontent-length: 3", "", false),
    ] {
        let got = answers(&[post(fields, body).as_bytes()]).await;
        let first =
            if passes { "200, length: 6: unread" } else { "200, length: 6, connection: close: unread" };
        assert_eq!(got[0], first, "{fields}");
        assert_eq!(got.get(1).map(String::as_str), passes.then_some("200, length: 7: GET /b "), "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_whether_to_send_is_told_to() {
    let (near, mut far) = duplex(1 << 16);
    let echoing = tokio::spawn(echoed(near));
    let head = b"POST /a HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n";
    far.write_all(head).await.unwrap();
    let mut told = [0; 25];
    far.read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    far.write_all(b"xy").await.unwrap();
    let mut rest = String::new();
    far.read_to_string(&mut rest).await.unwrap();
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n") && rest.ends_with("POST /a xy"), "{rest}");
    echoing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_refused() {
    let head = format!("GET /a HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(HEAD_BYTES));
    assert_eq!(answers(&[head.as_bytes()]).await, ["431, length: 0, connection: close: "]);
    let endless = format!("GET /a HTTP/1.1\r\nx: {}", "x".repeat(HEAD_BYTES + PART));
    assert_eq!(answers(&[endless.as_bytes()]).await, ["431, length: 0, connection: close: "]);
    let blank = "\r\n".repeat(HEAD_BYTES);
    assert_eq!(answers(&[blank.as_bytes()]).await, ["431, length: 0, connection: close: "]);
    let announced = "POST /a HTTP/1.1\r\ncontent-length: 100001\r\n\r\n";
    assert_eq!(answers(&[announced.as_bytes()]).await, ["418, length: 7, connection: close: TooLong"]);
    let chunk = format!("c000\r\n{}\r\n", "x".repeat(0xc000));
    let chunked = format!("POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk.repeat(3));
    assert_eq!(answers(&[chunked.as_bytes()]).await, ["418, length: 7, connection: close: TooLong"]);
}

#[tokio::test]
async fn a_large_body_keeps_no_memory_when_it_is_dropped_and_counts_until_then() {
    let (near, mut far) = duplex(1 << 10);
    let budget = Budget::new(1_000_000);
    let mut wire = Wire::new(near);
    let sent = format!("POST /a HTTP/1.1\r\ncontent-length: 90000\r\n\r\n{}", "x".repeat(90_000));
    let sending = tokio::spawn(async move {
        far.write_all(sent.as_bytes()).await.unwrap();
        far
    });
    assert_eq!(wire.head().await.unwrap().target.path(), "/a");
    assert_eq!(budget.held(), 0);
    let body = wire.body(MOST, &budget).await.unwrap();
    assert_eq!((body.len(), budget.held()), (90_000, 90_000));
    drop(body);
    assert_eq!((budget.held(), wire.input.capacity()), (0, 0));
    let _far = sending.await.unwrap();
}

#[tokio::test]
async fn a_client_that_goes_away_takes_his_request_with_him() {
    let (near, mut far) = duplex(1 << 10);
    let mut wire = Wire::new(near);
    far.write_all(b"GET /a HTTP/1.1\r\n\r\n").await.unwrap();
    wire.head().await.unwrap();
    assert_eq!(wire.while_there(pin!(async { 7 })).await, Some(7));
    // What he sends meanwhile is no reason to think that he has gone.
    far.write_all(b"GET /b HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(wire.while_there(pin!(tokio::task::yield_now())).await, Some(()));
    drop(far);
    assert_eq!(wire.while_there(pin!(std::future::pending::<()>())).await, None);
    assert_eq!(wire.head().await.unwrap().target.path(), "/b");
    let events = Body::Events(Box::pin(stream::pending()));
    let events = Response::new(StatusCode::OK, events).with(header::VARY, HeaderValue::from_static("x"));
    assert!(wire.respond(events).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_still_sends_hears_the_last_response_and_is_not_heard_for_ever() {
    let (near, mut far) = duplex(1 << 10);
    let echoing = tokio::spawn(echoed(near));
    far.write_all(b"POST /a HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n").await.unwrap();
    let (mut reading, mut writing) = tokio::io::split(far);
    let sending = tokio::spawn(async move {
        for _ in 0..1000 {
            writing.write_all(&[b'x'; 512]).await.unwrap();
        }
        // And then he says nothing more, and does not go either.
        writing
    });
    let mut read = String::new();
    reading.read_to_string(&mut read).await.unwrap();
    assert!(read.ends_with("TooLong"), "{read}");
    echoing.await.unwrap();
    drop((reading, sending.await.unwrap()));
}

#[tokio::test]
async fn what_was_written_in_part_goes_on_where_it_broke_off() {
    let (near, mut far) = duplex(100);
    let mut wire = Wire::new(near);
    let head = b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n";
    far.write_all(head).await.unwrap();
    wire.head().await.unwrap();
    // Room for a part of what asks for the body, which is given up then.
    wire.stream.write_all(&[b'-'; 90]).await.unwrap();
    {
        let budget = Budget::new(1000);
        let mut body = pin!(wire.body(MOST, &budget));
        assert!(futures_util::poll!(body.as_mut()).is_pending());
    }
    let refused = Response::new(StatusCode::REQUEST_TIMEOUT, Body::empty());
    let writing = tokio::spawn(async move { wire.respond(refused).await.unwrap() });
    let mut said = Vec::new();
    while !said.ends_with(b"GMT\r\n\r\n") {
        far.read_buf(&mut said).await.unwrap();
    }
    assert!(!writing.await.unwrap());
    let said = String::from_utf8(said).unwrap();
    assert!(
        said[90..].starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408 Request Timeout\r\n"),
        "{said}"
    );
}
