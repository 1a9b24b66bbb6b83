//! What the two versions have in common: sessions, their servers, and the turns that can be cancelled.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema;
use agent_client_protocol::{Client, ConnectionTo, Error, RequestCancellation};
use mcp_acp::{Capabilities, Policy, SessionMethod};
use mcp_acp_agent::{ConnectOptions, OverAcp, SessionMcp, SessionRegistry, TypedSessionRequest};

use crate::turn::{Turns, Waiting};

/// One agent, serving one client.
pub(crate) struct Agent {
    pub(crate) capabilities: Capabilities,
    policy: Policy,
    options: ConnectOptions,
    pub(crate) sessions: SessionRegistry,
    turns: Mutex<HashMap<String, Turns>>,
    made: AtomicU64,
}

/// A session that has its servers.
pub(crate) struct Begun {
    pub(crate) session: String,
    pub(crate) servers: Arc<SessionMcp>,
}

/// There is no such session. Both versions say it alike.
pub(crate) fn unknown(session: &str) -> Error {
    schema::Error::session_not_found(session.to_owned()).into()
}

impl Agent {
    pub(crate) fn new(capabilities: Capabilities, policy: Policy, options: ConnectOptions) -> Agent {
        Agent {
            capabilities,
            policy,
            options,
            sessions: SessionRegistry::new(),
            turns: Mutex::default(),
            made: AtomicU64::new(0),
        }
    }

    /// Carries out a request that sets a session up, beside the connection, which goes on meanwhile; `answer` is told
    /// what came of it.
    pub(crate) fn begin(
        self: &Arc<Agent>,
        request: impl TypedSessionRequest,
        connection: ConnectionTo<Client>,
        cancelled: RequestCancellation,
        answer: impl FnOnce(Result<Begun, Error>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (agent, through) = (Arc::clone(self), connection.clone());
        connection.spawn(async move {
            answer(cancelled.run_until_cancelled(agent.set_up(&request, through)).await)
        })
    }

    /// Connects the servers of a request, and begins its session, or gives the one that it names a new set. Dropping
    /// the future leaves everything as it was.
    async fn set_up<R: TypedSessionRequest>(
        &self,
        request: &R,
        connection: ConnectionTo<Client>,
    ) -> Result<Begun, Error> {
        let named = request.session_id().filter(|it| !it.is_empty());
        let session = match (R::METHOD, named) {
            (SessionMethod::New, _) => self.fresh(),
            (_, None) => return Err(Error::invalid_params().data("'sessionId' is required")),
            // What was said is nothing that this agent knows of, so that a fork is a session of the same place.
            (SessionMethod::Fork, Some(forked)) if self.sessions.get(&forked).is_some() => self.fresh(),
            (SessionMethod::Fork, Some(forked)) => return Err(unknown(&forked)),
            (SessionMethod::Load | SessionMethod::Resume, Some(session)) => session,
        };
        let validated = request.validate(&self.capabilities, self.policy).await?;
        let place = self.sessions.reserve(session.as_str())?;
        let over_acp = Some(OverAcp::new(connection)?);
        let options = ConnectOptions { over_acp, ..self.options.clone() };
        let servers = SessionMcp::connect(validated, options).await?;
        // Both or none, for `close` does it under the same lock. Nothing is awaited: what was exchanged is answered.
        let mut turns = self.turns();
        let exchanged = self.sessions.install(servers, place)?;
        turns.entry(session.clone()).or_insert_with(Turns::new);
        Ok(Begun { session, servers: exchanged.servers })
    }

    /// Puts a prompt behind those that its session has. What cancels it is listened to before this returns, so that no
    /// cancellation comes too early. Its servers are asked for when its turn begins: they may be others by then.
    pub(crate) fn queue(
        self: &Arc<Agent>,
        session: &str,
        withdrawn: RequestCancellation,
    ) -> Result<Waiting, Error> {
        let turns = self.turns().get(session).cloned().ok_or_else(|| unknown(session))?;
        Ok(turns.queue(Arc::clone(self), session.to_owned(), withdrawn))
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

    /// Ends a session, and returns when nothing is left of it. False where there is none.
    pub(crate) async fn close(&self, session: &str) -> bool {
        let former = {
            let mut turns = self.turns();
            if let Some(turns) = turns.remove(session) {
                turns.cancel();
            }
            self.sessions.remove(session)
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
