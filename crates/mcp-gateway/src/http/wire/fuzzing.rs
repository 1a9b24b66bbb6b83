//! What must hold of any bytes on a connection, for the fuzz target `gateway_wire`: they are the same requests however
//! they are cut, and no request's end is a matter of opinion.

use bytes::Bytes;
use http::StatusCode;

use super::{Body, Name, NoHead, Response, Wire};
use crate::fuzzing::pieces::{Pieces, at_once};
use crate::limits::byte_budget::Budget;

/// How long a body may be, in bytes.
const MOST: usize = 1000;

/// The bytes of a connection.
pub(crate) fn wire(bytes: &[u8]) {
    let whole = requests(bytes, bytes.len().max(1));
    for length in [1, 7, 64] {
        assert_eq!(requests(bytes, length), whole, "in pieces of {length}");
    }
}

/// What is asked, in pieces of so many bytes.
fn requests(bytes: &[u8], length: usize) -> Vec<String> {
    at_once(async {
        let mut wire = Wire::new(Pieces { rest: bytes, length });
        let budget = Budget::new(usize::MAX);
        let mut res = Vec::new();
        loop {
            let head = match wire.head().await {
                Ok(head) => head,
                Err(NoHead::Refused(refused)) => {
                    res.push(format!("{refused:?}"));
                    break res;
                }
                Err(NoHead::Gone | NoHead::Io(_)) => break res,
            };
            let lengths: Vec<&[u8]> = head.fields.all(Name::ContentLength).collect();
            assert!(lengths.is_empty() || head.fields.get(Name::TransferEncoding).is_none());
            let body = wire.body(MOST, &budget).await;
            if let Ok(body) = &body {
                let announced = lengths.first().and_then(|it| str::from_utf8(it).ok()?.parse().ok());
                assert!(body.len() <= MOST && announced.is_none_or(|it: usize| it == body.len()));
            }
            res.push(format!("{} {} {body:?}", head.method, head.target));
            let follows = wire.respond(Response::new(StatusCode::OK, Body::Whole(Bytes::new()))).await;
            // Where a request had no end, nothing follows.
            assert!(body.is_ok() || matches!(follows, Ok(false)));
            if !matches!(follows, Ok(true)) {
                break res;
            }
        }
    })
}
