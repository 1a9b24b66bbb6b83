//! What must hold of any bytes that a server answers with, for the fuzz target `http_answer`: they are the same answer
//! however they are cut, and hold no more than came.

use std::future::poll_fn;

use http::{HeaderMap, Method};

use super::{MOST_BELIEVED, NoAnswer, Request, Wire};
use crate::fuzzing::pieces::{Pieces, at_once};

/// The bytes of a connection.
pub(crate) fn answer(bytes: &[u8]) {
    let whole = told(bytes, bytes.len().max(1), 1);
    for (length, wanted) in [(1, 1), (7, 3), (64, 1000), (usize::MAX, usize::MAX)] {
        assert_eq!(told(bytes, length, wanted), whole, "in pieces of {length}, of which {wanted} are wanted");
    }
}

/// What is understood of an answer that comes in pieces of so many bytes: its status and its body, and whether the connection
/// may be used again.
pub(super) fn told(bytes: &[u8], length: usize, wanted: usize) -> String {
    at_once(async {
        let mut wire = Wire::new(Pieces { rest: bytes, length });
        let headers = HeaderMap::new();
        let request = Request { method: &Method::GET, target: "/", headers: &headers, body: None };
        let head = match wire.send(&request).await {
            Ok(head) => head,
            Err(NoAnswer::Broken(broken)) => return broken.words(),
            Err(NoAnswer::Unsent) => panic!("nothing has rested"),
        };
        let (mut body, status) = (Vec::new(), head.status);
        loop {
            let left = wire.left();
            match poll_fn(|cx| wire.poll_piece(cx, wanted)).await {
                Ok(Some(piece)) => {
                    assert!(!piece.is_empty());
                    let least = wanted.min(MOST_BELIEVED) as u64;
                    assert!(left.is_none_or(|it| (it.min(least)..=it).contains(&(piece.len() as u64))));
                    body.extend_from_slice(&piece);
                }
                Ok(None) => break,
                Err(broken) => return format!("{status} {}", broken.words()),
            }
        }
        assert!(body.len() < bytes.len() && wire.is_read());
        // What came behind it may be there already, or come now: either way no other answer is taken for it.
        let rests = wire.rests() && matches!(wire.send(&request).await, Err(NoAnswer::Unsent));
        let stays = rests && wire.input.is_empty();
        let body = String::from_utf8_lossy(&body);
        format!("{} {body} {}", status.as_u16(), if stays { "stays" } else { "ends" })
    })
}
