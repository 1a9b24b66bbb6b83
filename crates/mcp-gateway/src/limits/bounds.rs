//! How much one gateway takes on: clients are as hostile as servers.

use std::time::Duration;

/// The bounds of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The largest message of a client, in bytes.
    pub message_bytes: usize,
    /// The most sessions at once, all clients together; dialogs of the stateless era count as well.
    pub sessions: usize,
    /// The most of them for one token.
    pub sessions_of_one: usize,
    /// How long a session, or a dialog, may lie unused before it ends.
    pub idle: Duration,
    /// The most requests of one session at once; of the stateless era, of one token. All sessions of a token together
    /// may have twice as many.
    pub requests_of_one: usize,
    /// The most requests at once, all clients together.
    pub requests: usize,
    /// The most calls of one token, of the stateless era, that wait for input at once.
    pub parked_of_one: usize,
    /// The most connections over HTTP at once.
    pub connections: usize,
    /// How many bytes of clients' messages and of answers to them are held at once, all clients together; messages of
    /// less than 16 KiB do not count. Over HTTP another one is refused then, on a pipe it waits.
    pub held_bytes: usize,
    /// How many messages may wait for a client that does not read; of more, his stream ends.
    pub queue_messages: usize,
    /// How many bytes of them.
    pub queue_bytes: usize,
    /// How long the head of a request, and then its body, may take.
    pub receive: Duration,
    /// How long a client may take nothing of what is sent to him.
    pub send: Duration,
    /// How long a client may take to answer what he is asked.
    pub answer: Duration,
}

impl Default for Bounds {
    /// 4 MiB; 1,024 sessions, 256 of one; 30 minutes; 256 requests of one, 4,096 in all; 16 calls of one that wait
    /// for input; 1,024 connections; 256 MiB held; 1,024 messages and 16 MiB; 30 s for receiving and sending; 10 minutes for answers.
    fn default() -> Bounds {
        Bounds {
            message_bytes: 4 * 1024 * 1024,
            sessions: 1024,
            sessions_of_one: 256,
            idle: Duration::from_secs(30 * 60),
            requests_of_one: 256,
            requests: 4096,
            parked_of_one: 16,
            connections: 1024,
            held_bytes: 256 * 1024 * 1024,
            queue_messages: 1024,
            queue_bytes: 16 * 1024 * 1024,
            receive: Duration::from_secs(30),
            send: Duration::from_secs(30),
            answer: Duration::from_secs(600),
        }
    }
}
