//! A fair queue of requests: while the gateway is busy with requests of several clients, each client has its turn,
//! however many requests another one has.
//!
//! Requests wait here only while several clients run several requests. They are given turns in rounds. A round begins
//! when the thread has done what was ready, so a slow server delays no round.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::HashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;

use crate::access::principal::Principal;

/// The number of turns in a round, unless more clients wait. Fewer cost throughput, more delay the other clients.
const TURNS_PER_ROUND: usize = 2;

/// The number of rounds with one waiting client after which its requests wait no longer.
const MAX_ROUNDS_ALONE: usize = 1000;

/// The queue of the requests that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    /// Whether requests have to wait. Changes under the lock only.
    is_active: AtomicBool,
    waiting: Mutex<WaitingRequests>,
    /// Notified when turns are needed.
    started: Notify,
}

/// Resolves when it is the request's turn. Dropping it gives the turn up.
pub(crate) type Turn = oneshot::Receiver<()>;

/// The waiting requests, and the order of turns.
#[derive(Debug, Default)]
struct WaitingRequests {
    /// The waiting requests of each client, in the order of their arrival.
    by_client: HashMap<Principal, VecDeque<oneshot::Sender<()>>>,
    /// The clients in the order of their next turns.
    order: VecDeque<Principal>,
    /// The number of rounds since several clients waited.
    rounds_alone: usize,
}

impl FairQueue {
    /// Whether requests have to wait.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Adds a request. From now on requests have to wait, until none waits or only one client has waited for long.
    pub(crate) fn add(&self, principal: &Principal) -> Turn {
        let (sender, turn) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.add(principal, sender);
        if !self.is_active.swap(true, Ordering::Relaxed) {
            self.started.notify_one();
        }
        turn
    }

    /// Gives turns to the waiting requests, and waits for further ones.
    pub(crate) async fn run(&self) -> ! {
        loop {
            self.started.notified().await;
            loop {
                // Resumed when no task of this thread is ready, or after many of them.
                yield_now().await;
                let mut waiting = self.waiting.lock();
                waiting.give_round();
                if waiting.order.is_empty() {
                    self.is_active.store(false, Ordering::Relaxed);
                    break;
                }
            }
        }
    }
}

impl WaitingRequests {
    /// Adds a request of a client. `sender` tells it when it is its turn.
    fn add(&mut self, principal: &Principal, sender: oneshot::Sender<()>) {
        if let Some(requests) = self.by_client.get_mut(principal) {
            requests.push_back(sender);
        } else {
            self.by_client.insert(principal.clone(), VecDeque::from([sender]));
            self.order.push_back(principal.clone());
        }
    }

    /// Gives each client a turn, and further ones up to the number of a round. Gives all of them if one client has
    /// waited alone for long.
    fn give_round(&mut self) {
        self.rounds_alone = if self.order.len() > 1 { 0 } else { self.rounds_alone + 1 };
        let turns = match self.rounds_alone > MAX_ROUNDS_ALONE {
            true => usize::MAX,
            false => self.order.len().max(TURNS_PER_ROUND),
        };
        for _ in 0..turns {
            let Some(principal) = self.order.pop_front() else { break };
            let requests = self.by_client.get_mut(&principal).expect("each client in the order waits");
            // The turn of a request that was dropped, because its client disconnected, is given to the next one.
            while requests.pop_front().is_some_and(|sender| sender.send(()).is_err()) {}
            if requests.is_empty() {
                self.by_client.remove(&principal);
            } else {
                self.order.push_back(principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of clients, which are the letters of `text`.
    fn waiting(text: &str) -> (WaitingRequests, Vec<(char, Turn)>) {
        let mut requests = WaitingRequests::default();
        let turns = text.chars().map(|client| {
            let (sender, turn) = oneshot::channel();
            requests.add(&Principal::named(&client.to_string()), sender);
            (client, turn)
        });
        let turns = turns.collect();
        (requests, turns)
    }

    /// The clients whose requests have got their turn, removed from those that wait.
    fn take_given(turns: &mut Vec<(char, Turn)>) -> String {
        let given = turns.extract_if(.., |(_, turn)| turn.try_recv().is_ok());
        given.map(|(client, _)| client).collect()
    }

    // RPT-480
    #[test]
    fn clients_have_turns_one_after_the_other() {
        #[track_caller]
        fn check(text: &str, want: &[&str]) {
            let (mut requests, mut turns) = waiting(text);
            let mut rounds = Vec::new();
            while !turns.is_empty() {
                requests.give_round();
                rounds.push(take_given(&mut turns));
            }
            assert_eq!(rounds, want);
            assert!(requests.order.is_empty() && requests.by_client.is_empty());
        }
        check("a", &["a"]);
        check("aaaaab", &["ab", "aa", "aa"]);
        check("aaaabbcaa", &["abc", "ab", "aa", "aa"]);
    }

    #[test]
    fn dropped_request_gives_its_turn_up() {
        let (mut requests, mut turns) = waiting("aaab");
        turns.remove(0);
        requests.give_round();
        assert_eq!(take_given(&mut turns), "ab");
    }

    #[test]
    fn client_alone_waits_no_longer_after_many_rounds() {
        let (mut requests, mut turns) = waiting(&"a".repeat(2 * MAX_ROUNDS_ALONE + 100));
        for _ in 0..MAX_ROUNDS_ALONE {
            requests.give_round();
        }
        assert_eq!(turns.len() - take_given(&mut turns).len(), 100);
        requests.give_round();
        assert!(requests.order.is_empty());
    }

    #[tokio::test]
    async fn queued_requests_get_their_turns() {
        let queue = FairQueue::default();
        let client = Principal::named("a");
        let (first, second) = (queue.add(&client), queue.add(&client));
        assert!(queue.is_active());
        tokio::select! {
            _ = queue.run() => {}
            given = async { (first.await, second.await) } => assert_eq!(given, (Ok(()), Ok(()))),
        }
        assert!(!queue.is_active());
    }
}
