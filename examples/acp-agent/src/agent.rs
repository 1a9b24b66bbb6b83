//! What the two versions have in common: sessions, their servers, and the turns that can be cancelled.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::{Client, ConnectionTo, Error};
use mcp_acp::{Capabilities, Policy};
use mcp_acp_agent::{ConnectOptions, OverAcp, SessionMcp, Sessions, SetUpRequest};
use tokio::sync::watch;

/// One agent, serving one client.
pub(crate) struct Agent {
    pub(crate) capabilities: Capabilities,
    policy: Policy,
    options: ConnectOptions,
    pub(crate) sessions: Sessions,
    turns: Mutex<HashMap<String, Turns>>,
    made: AtomicU64,
}

/// The turns of a session.
#[derive(Clone)]
pub(crate) struct Turns {
    /// Held by the turn that is under way; those that come meanwhile wait in the order of their prompts.
    pub(crate) one: Arc<tokio::sync::Mutex<()>>,
    /// Changes with every `session/cancel`, and with the end of the session.
    cancels: watch::Sender<u64>,
}

impl Turns {
    fn new() -> Turns {
        Turns { one: Arc::default(), cancels: watch::Sender::new(0) }
    }

    /// Changes when a turn that begins now is cancelled.
    pub(crate) fn cancelled(&self) -> watch::Receiver<u64> {
        self.cancels.subscribe()
    }

    fn cancel(&self) {
        self.cancels.send_modify(|it| *it += 1);
    }
}

impl Agent {
    pub(crate) fn new(capabilities: Capabilities, policy: Policy, options: ConnectOptions) -> Agent {
        Agent {
            capabilities,
            policy,
            options,
            sessions: Sessions::new(),
            turns: Mutex::default(),
            made: AtomicU64::new(0),
        }
    }

    /// Connects the servers of a request, and begins its session, or gives the one that it names a new set. Dropping
    /// the future leaves everything as it was.
    pub(crate) async fn set_up(
        &self,
        request: &impl SetUpRequest,
        connection: ConnectionTo<Client>,
    ) -> Result<(String, Arc<SessionMcp>), Error> {
        let session = match request.session_id() {
            Some(session) if !session.is_empty() => session,
            // Only `session/new` and `session/fork` make a session.
            _ if request.method() == "session/new" => self.fresh(),
            _ => return Err(Error::invalid_params().data("'sessionId' is required")),
        };
        let validated = request.validate(&self.capabilities, self.policy)?;
        let place = self.sessions.place(session.as_str())?;
        let over_acp = Some(OverAcp::new(connection)?);
        let options = ConnectOptions { over_acp, ..self.options.clone() };
        let servers = SessionMcp::connect(validated, options).await?;
        // Both or none, for `close` does it under the same lock. Nothing is awaited: what was exchanged is answered.
        let mut turns = self.turns();
        let exchanged = self.sessions.put(servers, place)?;
        turns.entry(session.clone()).or_insert_with(Turns::new);
        Ok((session, exchanged.servers))
    }

    /// The turns of a session. Its servers are asked for when a turn begins: they may be others by then.
    pub(crate) fn session(&self, session: &str) -> Option<Turns> {
        self.turns().get(session).cloned()
    }

    /// The id of a new session. A client may load sessions of an earlier run: a number would come again.
    fn fresh(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        // The standard library's only source of chance: a keyed hash, whose keys are of the system.
        let half = |salt: u64| RandomState::new().hash_one((number, salt));
        format!("session-{:016x}{:016x}", half(0), half(1))
    }

    /// A message's id, and whatever else has to be told from others.
    pub(crate) fn name(&self, kind: &str) -> String {
        format!("{kind}-{}", self.made.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Cancels what is under way in a session, and what waits.
    pub(crate) fn cancel(&self, session: &str) {
        if let Some(turns) = self.turns().get(session) {
            turns.cancel();
        }
    }

    /// Ends a session, and returns when nothing is left of it.
    pub(crate) async fn close(&self, session: &str) -> bool {
        let former = {
            let mut turns = self.turns();
            if let Some(turns) = turns.remove(session) {
                turns.cancel();
            }
            self.sessions.take(session)
        };
        match former {
            Some(former) => {
                former.close().await;
                true
            }
            None => false,
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<String, Turns>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
