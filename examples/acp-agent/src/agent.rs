//! The part that both versions share: sessions, their servers, and cancellable turns.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_client_protocol::v1::schema;
use agent_client_protocol::{Client, ConnectionTo, Error, RequestCancellation};
use mcp_host_acp::{Capabilities, Policy, SessionMethod};
use mcp_host_acp_agent::{
    ConnectOptions, NoticeSupport, OverAcp, SessionRegistry, SessionServers, StatusUpdates,
    TypedSessionRequest,
};

use crate::turn::{QueuedTurn, TurnQueue};

/// One agent, serving one client.
pub(crate) struct Agent {
    pub(crate) capabilities: Capabilities,
    policy: Policy,
    options: ConnectOptions,
    pub(crate) sessions: SessionRegistry,
    /// What the client declared in `initialize`.
    pub(crate) notices: OnceLock<NoticeSupport>,
    turns: Mutex<HashMap<String, TurnQueue>>,
    /// The number of ids so far.
    id_count: AtomicU64,
}

/// A session with connected servers.
pub(crate) struct ConnectedSession {
    pub(crate) session: String,
    pub(crate) servers: Arc<SessionServers>,
    /// Sent after the response.
    pub(crate) updates: StatusUpdates,
}

/// The error for an unknown session, in both versions.
pub(crate) fn session_not_found(session: &str) -> Error {
    schema::Error::session_not_found(session.to_owned()).into()
}

impl Agent {
    pub(crate) fn new(
        capabilities: Capabilities,
        policy: Policy,
        options: ConnectOptions,
        sessions: SessionRegistry,
    ) -> Agent {
        Agent {
            capabilities,
            policy,
            options,
            sessions,
            notices: OnceLock::new(),
            turns: Mutex::default(),
            id_count: AtomicU64::new(0),
        }
    }

    /// Sets up a session in the background, so the connection is not blocked. `respond` receives the result.
    pub(crate) fn set_up(
        self: &Arc<Agent>,
        request: impl TypedSessionRequest,
        connection: ConnectionTo<Client>,
        cancelled: RequestCancellation,
        respond: impl FnOnce(Result<ConnectedSession, Error>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (agent, over_acp) = (Arc::clone(self), connection.clone());
        connection.spawn(async move {
            respond(cancelled.run_until_cancelled(agent.connect(&request, over_acp)).await)
        })
    }

    /// Connects the servers of a request, and creates its session or replaces the servers of an existing one.
    /// Dropping the future changes nothing.
    async fn connect<R: TypedSessionRequest>(
        &self,
        request: &R,
        connection: ConnectionTo<Client>,
    ) -> Result<ConnectedSession, Error> {
        let requested = request.session_id().filter(|id| !id.is_empty());
        let session = match (R::METHOD, requested) {
            (SessionMethod::New, _) => self.new_session_id(),
            (_, None) => return Err(Error::invalid_params().data("'sessionId' is required")),
            // This agent keeps no history, so a fork is a new session in the same folder.
            (SessionMethod::Fork, Some(forked)) if self.sessions.get(&forked).is_some() => {
                self.new_session_id()
            }
            (SessionMethod::Fork, Some(forked)) => return Err(session_not_found(&forked)),
            (SessionMethod::Load | SessionMethod::Resume | _, Some(session)) => session,
        };
        let validated = request.validate(&self.capabilities, self.policy).await?;
        let slot = self.sessions.reserve(session.as_str(), &validated, &self.options)?;
        let over_acp = Some(OverAcp::new(connection)?);
        let mut options = self.options.clone();
        options.set_over_acp(over_acp);
        let servers = SessionServers::connect(validated, options).await?;
        // Both or none, because `close` uses the same lock. There is no await: an installed set is reported.
        let mut turns = self.turns();
        let replaced = self.sessions.install(servers, slot)?;
        turns.entry(session.clone()).or_insert_with(TurnQueue::new);
        let servers = replaced.servers;
        let updates = servers.status_updates(self.notices.get().copied().unwrap_or_default());
        Ok(ConnectedSession { session, servers, updates })
    }

    /// Queues a prompt of a session. Its cancellation is observed from now on, so that none is missed. Its servers
    /// are looked up when its turn starts, because they may change until then.
    pub(crate) fn queue(
        self: &Arc<Agent>,
        session: &str,
        request: RequestCancellation,
    ) -> Result<QueuedTurn, Error> {
        let turns = self.turns().get(session).cloned().ok_or_else(|| session_not_found(session))?;
        Ok(turns.queue(Arc::clone(self), session.to_owned(), request))
    }

    /// Returns the id of a new session. It is random, because a client may load sessions of an earlier run.
    fn new_session_id(&self) -> String {
        let number = self.id_count.fetch_add(1, Ordering::Relaxed);
        // The standard library's only source of randomness: the keys of its hasher.
        let half = |salt: u64| RandomState::new().hash_one((number, salt));
        format!("session-{:016x}{:016x}", half(0), half(1))
    }

    /// Returns a unique id, for example of a message.
    pub(crate) fn new_id(&self, kind: &str) -> String {
        format!("{kind}-{}", self.id_count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Cancels the running and the queued turns of a session.
    pub(crate) fn cancel(&self, session: &str) {
        if let Some(turns) = self.turns().get(session) {
            turns.cancel();
        }
    }

    /// Closes a session and waits. False if there is none.
    pub(crate) async fn close(&self, session: &str) -> bool {
        let removed = {
            let mut turns = self.turns();
            if let Some(turns) = turns.remove(session) {
                turns.cancel();
            }
            self.sessions.remove(session)
        };
        let Some(removed) = removed else { return false };
        removed.close().await;
        true
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<String, TurnQueue>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
