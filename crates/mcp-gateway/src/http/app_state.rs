//! The state that all connections of the HTTP server share.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::access::oauth::{AccessGrant, TokenVerifier};
use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::access::tokens::{Token, Tokens};
use crate::gateway::GatewayInner;
use crate::http::authorization::guard::Guard;
use crate::http::authorization::refusals::RefusalLog;
use crate::http::options::RecorderPage;
use crate::http::permits::{ClientPermit, ClientPermits, PermitLimit};
use crate::limits::bounds::Bounds;

/// The state that all connections share.
pub(crate) struct AppState {
    pub(crate) gateway: Arc<GatewayInner>,
    /// The gateway's scope: that of each client that neither its token nor its request restricts further.
    pub(crate) scope: Arc<Scope>,
    /// The accepted tokens.
    pub(crate) tokens: watch::Sender<Tokens>,
    /// Checks the access tokens of the authorization server, if there is one.
    pub(crate) verifier: Option<TokenVerifier>,
    /// Checks `Host` and `Origin`.
    pub(crate) guard: Guard,
    /// Logs refused tokens.
    pub(crate) refusals: RefusalLog,
    /// Metrics to append to those of the gateway.
    pub(crate) metrics: Option<RecorderPage>,
    /// Permits for the running requests of all clients together.
    pub(crate) requests: Arc<Semaphore>,
    /// Permits of each client for running requests without a session.
    pub(crate) stateless_requests: Arc<ClientPermits>,
    /// Permits of each client for running requests in all of its sessions. Clients without tokens have no such
    /// limit, because they all count as one client.
    pub(crate) session_requests: Arc<ClientPermits>,
    /// Permits of each client for streams that stay open.
    pub(crate) streams: Arc<ClientPermits>,
    /// Cancelled when the shutdown begins.
    pub(crate) shutdown: CancellationToken,
}

/// Resolves when a token is no longer accepted.
pub(crate) type RevocationFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl AppState {
    /// Resolves when a listed token is removed or its view changes, or an access token expires; never without a token.
    pub(crate) fn revocation(
        &self,
        token: Option<Arc<Token>>,
        grant: Option<&AccessGrant>,
    ) -> RevocationFuture {
        if let Some(grant) = grant {
            return Box::pin(sleep(Duration::from_secs(grant.remaining_seconds())));
        }
        let Some(token) = token else { return Box::pin(std::future::pending()) };
        let mut tokens = self.tokens.subscribe();
        Box::pin(async move {
            let revoked = tokens.wait_for(|tokens| !tokens.contains(&token)).await.is_ok();
            if !revoked {
                // The server has ended, which ends the stream by itself.
                std::future::pending().await
            }
        })
    }

    /// Acquires a permit for a running request of all clients. A client with a permit of its own gets none if
    /// it runs more requests than remain for the others.
    pub(crate) fn running_permit(&self, client: Option<&ClientPermit>) -> Option<OwnedSemaphorePermit> {
        if client.is_some_and(|client| client.count() > self.requests.available_permits()) {
            return None;
        }
        Arc::clone(&self.requests).try_acquire_owned().ok()
    }

    /// Acquires a permit for a request without a session.
    pub(crate) fn stateless_permit(&self, principal: &Principal) -> Option<ClientPermit> {
        let limit = PermitLimit { per_client: self.bounds().requests_per_client, total: usize::MAX };
        ClientPermit::acquire(&self.stateless_requests, principal, limit)
    }

    /// Acquires a permit for a request in a session. All sessions of a client share its permits. Returns `None` if
    /// all are in use, and for clients without tokens, which need none.
    pub(crate) fn session_permit(&self, principal: &Principal) -> Option<ClientPermit> {
        if principal.is_anonymous() {
            return None;
        }
        let per_client = self.bounds().requests_per_client.saturating_mul(2);
        ClientPermit::acquire(
            &self.session_requests,
            principal,
            PermitLimit { per_client, total: usize::MAX },
        )
    }

    /// Acquires a permit for a stream that stays open. Half of the connections remain for other requests.
    pub(crate) fn stream_permit(&self, principal: &Principal) -> Option<ClientPermit> {
        let total = (self.bounds().connections / 2).max(1);
        ClientPermit::acquire(&self.streams, principal, PermitLimit { per_client: (total / 2).max(1), total })
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.gateway.options.bounds
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppState").finish_non_exhaustive()
    }
}
