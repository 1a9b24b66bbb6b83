//! The requests of one client that run now, so that he can take them back.
//!
//! Invariant: an id stands here once; it is free again when its guard is dropped.

use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_model::{RawJson, RpcError, code};
use tokio::sync::oneshot;

/// The requests of one client.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Each with the way to take it back, until that was done.
    requests: ahash::HashMap<Id, Option<oneshot::Sender<()>>>,
    /// The client has ended: no more is begun for him.
    is_over: bool,
}

/// What an id means, however it is written: `1` and `1.0` are one number, `"a"` and `"\\u0061"` one text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Id {
    Text(String),
    Whole(i128),
    /// Any other number, and what is none of both, as it is written.
    Other(String),
}

impl Id {
    fn of(id: &RawJson) -> Id {
        if let Some(text) = id.to_text() {
            return Id::Text(text.into_owned());
        }
        let whole = id.as_str().parse::<i128>().ok().or_else(|| {
            let number = id.as_str().parse::<f64>().ok()?;
            // Up to there every whole number is one of its own.
            let is_exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            is_exact.then_some(number as i128)
        });
        whole.map_or_else(|| Id::Other(id.as_str().to_owned()), Id::Whole)
    }
}

/// A request that runs. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Guard {
    running: Arc<Running>,
    id: Id,
    taken_back: oneshot::Receiver<()>,
}

impl Running {
    /// Enters a request, of `most` at once.
    pub(crate) fn begin(self: &Arc<Running>, id: &RawJson, most: usize) -> Result<Guard, RpcError> {
        let id = Id::of(id);
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.is_over {
            return Err(RpcError::new(code::SERVER_ERROR, "this session has ended: begin a new one"));
        }
        if table.requests.len() >= most {
            let message = format!("more than {most} requests at once: wait for some of them");
            return Err(RpcError::new(code::SERVER_ERROR, message));
        }
        let Entry::Vacant(free) = table.requests.entry(id.clone()) else {
            return Err(RpcError::new(code::INVALID_REQUEST, "a request with this id still runs"));
        };
        let (take_back, taken_back) = oneshot::channel();
        free.insert(Some(take_back));
        drop(table);
        Ok(Guard { running: Arc::clone(self), id, taken_back })
    }

    /// Takes a request back, if it still runs.
    pub(crate) fn take_back(&self, id: &RawJson) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(take_back) = table.requests.get_mut(&Id::of(id)).and_then(Option::take) {
            // Whoever does not wait for it is just ending.
            let _ = take_back.send(());
        }
    }

    /// Takes all of them back, and lets none begin any more.
    pub(crate) fn take_all_back(&self) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.is_over = true;
        for take_back in table.requests.values_mut().filter_map(Option::take) {
            let _ = take_back.send(());
        }
    }

    /// Does nothing run?
    pub(crate) fn is_idle(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).requests.is_empty()
    }
}

impl Guard {
    /// Resolves when the client takes the request back. Cancel-safe.
    pub(crate) async fn taken_back(&mut self) {
        if (&mut self.taken_back).await.is_err() {
            // Nobody can any more.
            std::future::pending().await
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    impl Guard {
        fn is_taken_back(&mut self) -> bool {
            self.taken_back.try_recv().is_ok()
        }
    }

    fn id(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn an_id_stands_once_and_is_free_again() {
        let running = Arc::new(Running::default());
        let mut first = running.begin(&id("1"), 2).unwrap();
        assert_eq!(running.begin(&id("1"), 2).unwrap_err().code, code::INVALID_REQUEST);
        let mut text = running.begin(&id("\"1\""), 2).unwrap();
        assert_eq!(running.begin(&id("3"), 2).unwrap_err().code, code::SERVER_ERROR);
        running.take_back(&id("1"));
        assert!(first.is_taken_back() && !text.is_taken_back());
        drop((first, text));
        assert!(running.is_idle());
        let mut again = running.begin(&id("1"), 2).unwrap();
        running.take_all_back();
        assert!(again.is_taken_back());
        // Whoever looked the session up before its end begins nothing after it.
        assert_eq!(running.begin(&id("2"), 2).unwrap_err().code, code::SERVER_ERROR);
    }

    #[track_caller]
    fn check_same(one: &'static str, other: &'static str, want: bool) {
        let running = Arc::new(Running::default());
        let mut begun = running.begin(&id(one), 2).unwrap();
        running.take_back(&id(other));
        assert_eq!(begun.is_taken_back(), want, "{one} {other}");
    }

    #[test]
    fn an_id_is_what_it_means_and_not_how_it_is_written() {
        check_same("1", "1.0", true);
        check_same("1e2", "100", true);
        check_same("-0", "0", true);
        check_same("\"a\"", "\"\\u0061\"", true);
        check_same("1", "\"1\"", false);
        check_same("1", "1.5", false);
        check_same("9007199254740993", "9007199254740992.0", false);
        check_same("1e400", "1e400", true);
        check_same("1e400", "1e401", false);
    }
}
