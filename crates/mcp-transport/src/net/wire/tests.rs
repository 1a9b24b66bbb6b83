//! Answers that come in any pieces, and requests whose server does not hear them to the end.

use http::header::CONNECTION;
use http::{HeaderMap, HeaderValue, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream, duplex};

use super::*;

#[track_caller]
fn check(text: &str, want: &str) {
    let text = text.replace(" | ", "\r\n");
    for length in 1..=text.len().max(1) {
        for wanted in [1, 3, usize::MAX] {
            let got = fuzzing::told(text.as_bytes(), length, wanted);
            assert_eq!(got, want, "{text:?} in pieces of {length}, of which {wanted} are wanted");
        }
    }
}

#[test]
fn an_answer_is_the_same_wherever_its_bytes_were_cut() {
    check("HTTP/1.1 200 OK | content-length: 5 |  | hello", "200 hello stays");
    check("HTTP/1.1 200 OK | content-length: 5 |  | hello, and more", "200 hello ends");
    check("HTTP/1.1 200 OK | content-length: 0 |  | HTTP/1.1 200 OK |  | ", "200  ends");
    check("HTTP/1.1 200 OK | transfer-encoding: chunked |  | 2 | hi | 0 |  |  | ", "200 hi ends");
    check(" | HTTP/1.1 200 OK | content-length: 2 |  | hi", "200 hi stays");
    check("HTTP/1.1 202 Accepted | content-length: 0 |  | ", "202  stays");
    check(
        "HTTP/1.1 200 OK | transfer-encoding: chunked |  | 3 | hel | 2;a=b | lo | 0 | x: y |  | ",
        "200 hello stays",
    );
    check("HTTP/1.1 200 OK |  | all to the end", "200 all to the end ends");
    check("HTTP/1.0 200 OK | content-length: 2 |  | hi", "200 hi ends");
    check("HTTP/1.1 200 OK | connection: close | content-length: 2 |  | hi", "200 hi ends");
    check("HTTP/1.1 204 No Content |  | ", "204  stays");
    check(
        "HTTP/1.1 200 OK\ncontent-length: 9\n\nhi\r\n\r\nyou",
        "200 hi | | you stays".replace(" | | ", "\r\n\r\n").as_str(),
    );
}

#[test]
fn answers_before_the_answer_are_passed_over() {
    let early = "HTTP/1.1 103 Early Hints | link: </x> |  | HTTP/1.1 100 Continue |  | ";
    check(&format!("{early}HTTP/1.1 200 OK | content-length: 2 |  | hi"), "200 hi stays");
    check("HTTP/1.1 101 Switching Protocols |  | bytes", "101  ends");
}

#[test]
fn who_says_again_and_again_that_he_works_has_an_end() {
    let after = |count| {
        let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(count);
        fuzzing::told(format!("{interim}HTTP/1.1 204 No Content\r\n\r\n").as_bytes(), usize::MAX, 1)
    };
    assert_eq!(after(MOST_INTERIM), "204  stays");
    assert_eq!(after(MOST_INTERIM + 1), "it goes on without an answer");
}

#[test]
fn what_is_no_whole_answer_is_told_in_words() {
    check("", "it closed the connection without an answer");
    check("HTTP/1.1 200 OK | a: b", "its answer broke off");
    check("SSH-2.0-OpenSSH_9.9 | ", "its answer is no HTTP");
    check("HTTP/2 200 OK |  | ", "its answer is no HTTP");
    check("HTTP/1.1 20x OK |  | ", "its answer is no HTTP");
    let early = "200 OK the connection ended before it did";
    check("HTTP/1.1 200 OK | content-length: 5 |  | hell", early);
    check("HTTP/1.1 200 OK | transfer-encoding: chunked |  | 5 | hello", early);
    check("HTTP/1.1 200 OK | transfer-encoding: chunked |  | 5 | hello | 0 | ", early);
    let chunks = "200 OK it does not come in chunks as it should";
    check("HTTP/1.1 200 OK | transfer-encoding: chunked |  | hello | ", chunks);
    let coded = "its answer is coded in a way that was not asked for";
    check("HTTP/1.1 200 OK | transfer-encoding: gzip |  | hello", coded);
    check("HTTP/1.1 200 OK | content-length: 1, 2 |  | hello", "its answer says two lengths");
}

/// Sends a body of so many bytes to a server; what is understood of its answer.
async fn post(wire: &mut Wire<impl AsyncRead + AsyncWrite + Unpin>, bytes: usize) -> Result<String, String> {
    post_with(wire, &HeaderMap::new(), bytes, 1).await
}

/// The same with these headers, and so much of the answer's body at once.
async fn post_with(
    wire: &mut Wire<impl AsyncRead + AsyncWrite + Unpin>,
    headers: &HeaderMap,
    bytes: usize,
    wanted: usize,
) -> Result<String, String> {
    let body = Bytes::from(vec![b'x'; bytes]);
    let request = Request { method: &Method::POST, target: "/", headers, body: Some(&body) };
    let head = match wire.send(&request).await {
        Ok(head) => head,
        Err(NoAnswer::Unsent) => return Err("unsent".to_owned()),
        Err(NoAnswer::Broken(broken)) => return Err(broken.words()),
    };
    let mut res = head.status.as_u16().to_string();
    while let Some(piece) = poll_fn(|cx| wire.poll_piece(cx, wanted)).await.map_err(|it| it.words())? {
        res = format!("{res} {}", String::from_utf8_lossy(&piece));
    }
    Ok(res)
}

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[tokio::test]
async fn a_body_of_any_length_arrives_as_a_whole() {
    for bytes in [0, 1, GATHERED, GATHERED + 1, 1 << 20] {
        let (near, mut far) = duplex(1000);
        let mut wire = Wire::new(near);
        let hear = async {
            let head = format!("POST / HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n");
            let mut heard = vec![0; head.len() + bytes];
            far.read_exact(&mut heard).await.unwrap();
            assert!(heard.starts_with(head.as_bytes()) && heard.ends_with(&vec![b'x'; bytes]));
            far.write_all(TAKEN).await.unwrap();
        };
        let (told, ()) = tokio::join!(post(&mut wire, bytes), hear);
        assert_eq!(told.unwrap(), "200 hi");
        assert!(wire.rests());
    }
}

#[tokio::test]
async fn who_answers_before_he_has_heard_all_is_heard() {
    // He does not listen any more, or has gone: neither has taken the request as a whole.
    for goes in [false, true] {
        let (near, mut far) = duplex(1000);
        let mut wire = Wire::new(near);
        far.write_all(b"HTTP/1.1 413 Too Much\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
        let far = Some(far).filter(|_| !goes);
        assert_eq!(post(&mut wire, 1 << 20).await.unwrap(), "413 no");
        assert!(!wire.rests());
        drop(far);
    }
}

#[tokio::test]
async fn the_rest_of_a_request_is_sent_while_its_answer_comes() {
    let (near, mut far) = duplex(1000);
    let mut wire = Wire::new(near);
    let bytes = 1 << 20;
    let echo = async {
        let head = format!("POST / HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n");
        far.read_exact(&mut vec![0; head.len()]).await.unwrap();
        far.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
        let mut heard = 0;
        while heard < bytes {
            let read = far.read(&mut [0; 500]).await.unwrap();
            heard += read;
            far.write_all(format!("{:x}\r\n{}\r\n", read, "y".repeat(read)).as_bytes()).await.unwrap();
        }
        far.write_all(b"0\r\n\r\n").await.unwrap();
    };
    let (told, ()) = tokio::join!(post(&mut wire, bytes), echo);
    assert_eq!(told.unwrap().matches('y').count(), bytes);
    assert!(wire.rests());
}

#[tokio::test]
async fn what_ended_or_spoke_while_it_rested_takes_no_request() {
    for said in ["", "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"] {
        let (near, mut far) = duplex(1 << 16);
        let mut wire = Wire::new(near);
        far.write_all(TAKEN).await.unwrap();
        assert_eq!(post(&mut wire, 1).await.unwrap(), "200 hi");
        assert!(wire.rests());
        far.write_all(said.as_bytes()).await.unwrap();
        let far = Some(far).filter(|_| !said.is_empty());
        assert_eq!(post(&mut wire, 1).await.unwrap_err(), "unsent");
        drop(far);
    }
}

#[tokio::test]
async fn what_was_much_is_not_kept() {
    let (much, headers) = (4 << 20, HeaderMap::new());
    for (wanted, late) in [(1, 0), (1, 500), (much, 0), (much, 500), (much, 1 << 20)] {
        let (near, mut far) = duplex(much + 1000);
        let mut wire = Wire::new(near);
        let answer = async {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {much}\r\n\r\n");
            let body = vec![b'x'; much];
            for part in [head.as_bytes(), &body[late..], &body[..late]] {
                far.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let (told, ()) = tokio::join!(post_with(&mut wire, &headers, 1, wanted), answer);
        assert_eq!(told.unwrap().matches('x').count(), much);
        assert!(wire.rests());
        for _ in 0..3 {
            far.write_all(TAKEN).await.unwrap();
            // It is there before it was asked for, which no connection that rests may have: as a request sees it.
            (wire.sending, wire.left) = (Sending::Never, Framing::Exact(0));
            assert_eq!(post(&mut wire, 1).await.unwrap(), "200 hi");
            assert!(wire.rests() && wire.input.capacity() <= 2 * PART, "{wanted} {late}");
        }
    }
}

#[tokio::test]
async fn a_request_that_ends_its_connection_ends_it_whatever_is_answered() {
    let (near, mut far) = duplex(1 << 16);
    let mut wire = Wire::new(near);
    far.write_all(TAKEN).await.unwrap();
    let headers = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("x, Close"))]);
    assert_eq!(post_with(&mut wire, &headers, 1, 1).await.unwrap(), "200 hi");
    assert!(!wire.rests());
}

#[tokio::test(start_paused = true)]
async fn what_a_stream_holds_back_is_pushed_through() {
    let (near, mut far) = duplex(1000);
    let mut wire = Wire::new(BufStream::new(near));
    for bytes in [1, 1 << 20] {
        let hear = async {
            let mut heard = Vec::new();
            while !heard.ends_with(&vec![b'x'; bytes]) {
                assert_ne!(far.read_buf(&mut heard).await.unwrap(), 0);
            }
            far.write_all(TAKEN).await.unwrap();
        };
        let (told, ()) = tokio::join!(post(&mut wire, bytes), hear);
        assert_eq!(told.unwrap(), "200 hi");
        assert!(wire.rests());
    }
}
