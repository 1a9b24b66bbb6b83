//! What one client of the era with sessions is asked, and has not answered yet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcp_model::{RawJson, RpcError, code};
use tokio::sync::oneshot;

use crate::protocol::response;
use crate::session::outbound_queue::Outlet;

/// How many questions one client may have at once.
const MOST: usize = 64;

/// The questions of one client.
#[derive(Debug, Default)]
pub(crate) struct Asked(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<RawJson, RpcError>>>,
}

/// Takes the question back when it is dropped before the answer is there.
struct Question<'a> {
    asked: &'a Asked,
    outlet: &'a Outlet,
    id: u64,
}

impl Asked {
    /// Asks, by `outlet`, and waits for the answer, at most for `limit`. Dropping the future takes the question back.
    pub(crate) async fn ask(
        &self,
        outlet: &Outlet,
        method: &str,
        params: &str,
        limit: Duration,
    ) -> Result<RawJson, RpcError> {
        let (answer, taken) = oneshot::channel();
        let id = {
            let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if table.waiting.len() >= MOST {
                return Err(failed("the client has too many questions to answer"));
            }
            table.last += 1;
            let id = table.last;
            table.waiting.insert(id, answer);
            id
        };
        let question = Question { asked: self, outlet, id };
        outlet
            .send(response::request(id, method, params))
            .map_err(|_| failed("the client does not listen"))?;
        let res = match tokio::time::timeout(limit, taken).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(failed("the client is gone")),
            Err(_) => Err(failed(&format!("the client did not answer within {} s", limit.as_secs_f64()))),
        };
        drop(question);
        res
    }

    /// Takes an answer in. One to no question is nothing.
    pub(crate) fn answered(&self, id: &RawJson, outcome: Result<RawJson, RpcError>) {
        // Some clients send a number back as a string.
        let text = id.as_str().trim_matches('"');
        let waiting = text
            .parse()
            .ok()
            .and_then(|id: u64| self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&id));
        if let Some(waiting) = waiting {
            // Who asked may be gone.
            let _ = waiting.send(outcome);
        }
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let open = self.asked.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&self.id);
        if open.is_some() {
            let params = format!(r#"{{"requestId":{},"reason":"it is not needed any more"}}"#, self.id);
            // A client that does not listen needs not hear it.
            let _ = self.outlet.send(response::notification("notifications/cancelled", &params));
        }
    }
}

fn failed(message: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, message)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::limits::bounds::Bounds;
    use crate::session::outbound_queue::outlet;

    fn json(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_has_its_answer_or_its_end() {
        let asked = Asked::default();
        let (out, mut inlet) = outlet(&Bounds::default());
        let limit = Duration::from_secs(5);
        let ask = asked.ask(&out, "roots/list", "{}", limit);
        let client = async {
            let question = inlet.next().await.unwrap();
            assert_eq!(question, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}"#);
            asked.answered(&json("7"), Ok(json("0")));
            asked.answered(&json("\"1\""), Ok(json("{}")));
        };
        assert_eq!(tokio::join!(ask, client).0, Ok(json("{}")));

        let late = asked.ask(&out, "roots/list", "{}", limit).await.unwrap_err();
        assert_eq!(late.message, "the client did not answer within 5 s");
        assert!(inlet.next().await.unwrap().ends_with(br#""method":"roots/list","params":{}}"#));
        let taken_back = inlet.next().await.unwrap();
        assert!(
            taken_back.starts_with(
                br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"#
            )
        );
    }
}
