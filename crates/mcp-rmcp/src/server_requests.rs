//! The server's requests that the SDK works on, each with the session that it belongs to.
//!
//! Ids begin anew in each session of a connection, and the SDK knows a request by its id alone. So a request whose id is
//! in use is given to the SDK under another one, and every answer goes out under the server's own id, in the session that
//! asked: the answer to a question of a session that is forgotten must not become that to the next session's. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use mcp_transport::Epoch;

/// How many requests of the server's the SDK may work on at once.
const MOST: usize = 1024;

/// The longest id that is sent back, in bytes.
const LONGEST_ID: usize = 1024;

/// Requests that wait for the SDK's answer, by the JSON text of the id that it knows them by.
#[derive(Default)]
pub(crate) struct ServerRequestGuard {
    open: HashMap<String, Theirs>,
    renamed: u64,
}

struct Theirs {
    epoch: Epoch,
    /// The id's JSON text, as the server wrote it.
    id: Box<[u8]>,
}

/// Why a request is not given to the SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// Too many are being worked on.
    TooMany,
    /// Its id is longer than any that is sent back.
    Id,
}

/// An answer of the SDK's, as it goes out.
pub(crate) struct Replied {
    pub(crate) epoch: Epoch,
    pub(crate) body: Bytes,
}

impl ServerRequestGuard {
    /// A request of the server's, whose id stands at `id`. Gives it as the SDK is to have it.
    pub(crate) fn enter(&mut self, epoch: Epoch, frame: &Bytes, id: Range<usize>) -> Result<Bytes, Unasked> {
        let text = &frame[id.clone()];
        if text.len() > LONGEST_ID {
            return Err(Unasked::Id);
        }
        if self.open.len() >= MOST {
            return Err(Unasked::TooMany);
        }
        let known = known_as(text).filter(|it| !self.open.contains_key(it));
        let known = known.unwrap_or_else(|| self.another());
        let given = match known.as_bytes() == text {
            true => frame.clone(),
            false => [&frame[..id.start], known.as_bytes(), &frame[id.end..]].concat().into(),
        };
        self.open.insert(known, Theirs { epoch, id: text.into() });
        Ok(given)
    }

    /// The server takes a request of its own back: what the SDK is to be told, if it works on that one. No answer to it
    /// goes out any more.
    pub(crate) fn taken_back(&mut self, epoch: Epoch, frame: &[u8]) -> Option<Bytes> {
        let Cancelled { params } = serde_json::from_slice(frame).ok()?;
        let named = params.request_id.get().as_bytes();
        let same =
            |it: &Theirs| it.epoch == epoch && (*it.id == *named || known_as(&it.id) == known_as(named));
        let known = self.open.iter().find(|(_, it)| same(it)).map(|(known, _)| known.clone())?;
        self.open.remove(&known);
        let reason = serde_json::to_string(&params.reason.unwrap_or_default()).expect("a string is JSON");
        let told = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{known},"reason":{reason}}}}}"#
        );
        Some(told.into())
    }

    /// An answer of the SDK's under this id. `None` where nobody asked, or asks no more.
    pub(crate) fn answered(&mut self, id: &RawValue, body: &Bytes) -> Option<Replied> {
        let theirs = self.open.remove(&known_as(id.get().as_bytes())?)?;
        let text = id.get();
        if text.as_bytes() == &*theirs.id {
            return Some(Replied { epoch: theirs.epoch, body: body.clone() });
        }
        // The text is a part of the body.
        let start = (text.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
        let (before, rest) = body.split_at_checked(start)?;
        let after = rest.get(text.len()..)?;
        Some(Replied { epoch: theirs.epoch, body: [before, &theirs.id, after].concat().into() })
    }

    fn another(&mut self) -> String {
        loop {
            self.renamed += 1;
            let name = format!("\"another-{}\"", self.renamed);
            if !self.open.contains_key(&name) {
                return name;
            }
        }
    }
}

#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow)]
    params: TakenBack<'a>,
}

#[derive(Deserialize)]
struct TakenBack<'a> {
    #[serde(rename = "requestId", borrow)]
    request_id: &'a RawValue,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

/// The JSON text under which the SDK sends an id back: it has strings, and whole numbers of 64 bits.
fn known_as(id: &[u8]) -> Option<String> {
    match serde_json::from_slice(id).ok()? {
        Value::Number(number) => number.as_i64().map(|it| it.to_string()),
        text @ Value::String(_) => Some(text.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_transport::internal::scan::{ScannedFrame, scan};

    /// A request as the SDK gets it.
    fn enter(asked: &mut ServerRequestGuard, epoch: u32, id: &str) -> Result<String, Unasked> {
        let frame = Bytes::from(format!(r#"{{"id": {id} ,"method":"ping"}}"#));
        let ScannedFrame::Request { id, .. } = scan(&frame) else { panic!("it is a request") };
        let given = asked.enter(Epoch(epoch), &frame, id)?;
        Ok(String::from_utf8(given.to_vec()).unwrap())
    }

    /// What goes out for an answer under this id, with its session.
    fn answer(asked: &mut ServerRequestGuard, id: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let body = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        let Answer { id } = serde_json::from_slice(&body).unwrap();
        let Replied { epoch, body } = asked.answered(id, &body)?;
        Some(format!("@{} {}", epoch.0, String::from_utf8(body.to_vec()).unwrap()))
    }

    #[test]
    fn an_answer_goes_to_the_session_that_asked_under_its_own_id() {
        let asked = &mut ServerRequestGuard::default();
        assert_eq!(enter(asked, 0, "7").unwrap(), r#"{"id": 7 ,"method":"ping"}"#);
        assert_eq!(enter(asked, 1, "7").unwrap(), r#"{"id": "another-1" ,"method":"ping"}"#);
        assert_eq!(enter(asked, 1, "\"another-2\"").unwrap(), r#"{"id": "another-2" ,"method":"ping"}"#);
        assert_eq!(enter(asked, 2, "7").unwrap(), r#"{"id": "another-3" ,"method":"ping"}"#);
        let want = |epoch, id| Some(format!(r#"@{epoch} {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        assert_eq!(answer(asked, "\"another-1\""), want(1, "7"));
        assert_eq!(answer(asked, "7"), want(0, "7"));
        assert_eq!(answer(asked, "\"another-2\""), want(1, "\"another-2\""));
        assert_eq!(answer(asked, "\"another-3\""), want(2, "7"));
        for nobody in ["7", "\"another-1\"", "8", "null"] {
            assert_eq!(answer(asked, nobody), None, "{nobody}");
        }
    }

    #[test]
    fn an_id_is_sent_back_as_it_came() {
        for (id, known) in [
            (r#""\u0061""#, "\"a\""),
            ("1.0", "\"another-1\""),
            ("99999999999999999999", "\"another-1\""),
            ("{}", "\"another-1\""),
        ] {
            let asked = &mut ServerRequestGuard::default();
            enter(asked, 0, id).unwrap();
            let want = format!(r#"@0 {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            assert_eq!(answer(asked, known), Some(want));
        }
    }

    #[test]
    fn what_is_taken_back_is_told_under_the_known_id_and_answered_no_more() {
        let asked = &mut ServerRequestGuard::default();
        enter(asked, 0, "7").unwrap();
        enter(asked, 1, "7").unwrap();
        let mut back = |epoch, id: &str| {
            let frame = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
            let told = asked.taken_back(Epoch(epoch), frame.as_bytes())?;
            let told: Value = serde_json::from_slice(&told).unwrap();
            Some(told["params"]["requestId"].clone())
        };
        assert_eq!(back(2, "7"), None);
        assert_eq!(back(0, "\"7\""), None);
        assert_eq!(back(1, "7"), Some(Value::from("another-1")));
        assert_eq!(back(1, "7"), None);
        assert_eq!(answer(asked, "\"another-1\""), None);
        assert!(answer(asked, "7").is_some_and(|it| it.starts_with("@0")));
    }

    #[test]
    fn a_flood_of_requests_is_bounded() {
        let asked = &mut ServerRequestGuard::default();
        let long = format!("\"{}\"", "x".repeat(LONGEST_ID));
        assert_eq!(enter(asked, 0, &long), Err(Unasked::Id));
        for id in 0..MOST {
            enter(asked, 0, &id.to_string()).unwrap();
        }
        assert_eq!(enter(asked, 0, "-1"), Err(Unasked::TooMany));
        answer(asked, "0").unwrap();
        assert!(enter(asked, 0, "-1").is_ok());
    }
}
