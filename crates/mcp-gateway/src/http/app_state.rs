//! The state that all connections of the HTTP server share.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::access::admission::Credential;
use crate::access::oauth::TokenVerifier;
use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::access::tokens::Tokens;
use crate::gateway::GatewayInner;
use crate::http::authorization::guard::HostGuard;
use crate::http::authorization::refusals::RefusalLog;
use crate::http::options::RecorderPage;
use crate::http::permits::{ClientPermit, ClientPermits, PermitLimit};
use crate::http::request::client_address::TrustedProxies;
use crate::limits::bounds::Bounds;
use crate::limits::fair_queue::{FairQueue, Turn};

/// The state of the HTTP server.
pub(crate) struct AppState {
    pub(crate) gateway: Arc<GatewayInner>,
    /// The gateway's scope: that of each client that neither its token nor its request restricts further.
    pub(crate) scope: Arc<Scope>,
    /// The accepted tokens.
    pub(crate) tokens: watch::Sender<Tokens>,
    /// Checks the access tokens of the authorization server, if there is one.
    pub(crate) verifier: Option<TokenVerifier>,
    /// Checks `Host` and `Origin`.
    pub(crate) guard: HostGuard,
    /// The proxies whose headers name the addresses of clients.
    pub(crate) trusted_proxies: TrustedProxies,
    /// The end of the certificate's validity in seconds since the epoch, with HTTPS.
    pub(crate) certificate_expiry: Option<i64>,
    /// Logs refused tokens, hosts and origins.
    pub(crate) refusal_log: RefusalLog,
    /// Metrics to append to those of the gateway.
    pub(crate) metrics: Option<RecorderPage>,
    /// Permits for the running requests of all clients together.
    pub(crate) request_permits: Arc<Semaphore>,
    /// Permits of each client for running requests without a session.
    pub(crate) stateless_permits: Arc<ClientPermits>,
    /// Permits of each client for running requests in all of its sessions. Clients without tokens have no such
    /// limit, because they all count as one client.
    pub(crate) session_permits: Arc<ClientPermits>,
    /// Permits of each client for streams that stay open.
    pub(crate) stream_permits: Arc<ClientPermits>,
    /// The requests of clients with tokens that wait for their turn while the gateway is busy.
    pub(crate) fair_queue: Arc<FairQueue>,
    /// Cancelled when the shutdown begins.
    pub(crate) shutdown: CancellationToken,
}

/// The number of concurrent requests from which on clients have turns.
const MIN_REQUESTS_FOR_TURNS: usize = 4;

/// Resolves when a token is no longer accepted.
pub(crate) type RevocationFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl AppState {
    /// The address of the client of a request that arrived from `peer`.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.trusted_proxies.client_address(peer, headers)
    }

    /// Returns a future that resolves when a listed token is removed or expires or its view changes, or when an
    /// access token expires. Without a token it never resolves.
    pub(crate) fn watch_revocation(&self, credential: Option<Credential>) -> RevocationFuture {
        let token = match credential {
            None => return Box::pin(std::future::pending()),
            Some(Credential::Access(grant)) => {
                return Box::pin(sleep(Duration::from_secs(grant.remaining_seconds())));
            }
            Some(Credential::Listed(token)) => token,
        };
        let mut tokens = self.tokens.subscribe();
        Box::pin(async move {
            let remaining = token.remaining(SystemTime::now());
            let expired = async {
                match remaining {
                    Some(remaining) => sleep(remaining).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = expired => {}
                Ok(()) = async { tokens.wait_for(|tokens| !tokens.contains(&token)).await.map(drop) } => {}
                // The server has ended, which ends the stream by itself.
                else => std::future::pending().await,
            }
        })
    }

    /// Acquires one of the permits that all clients share, for a running request. `client` is the permit of the
    /// request's client, if it needs one. `None` if no permit is free, or if the client runs more requests than permits
    /// remain for the others.
    pub(crate) fn acquire_request_permit(
        &self,
        client: Option<&ClientPermit>,
    ) -> Option<OwnedSemaphorePermit> {
        if client.is_some_and(|client| client.client_permits() > self.request_permits.available_permits()) {
            return None;
        }
        Arc::clone(&self.request_permits).try_acquire_owned().ok()
    }

    /// Acquires a permit of a client for a request without a session. `None` if all are in use.
    pub(crate) fn acquire_stateless_permit(&self, principal: &Principal) -> Option<ClientPermit> {
        let limit = PermitLimit { per_client: self.bounds().requests_per_client, total: usize::MAX };
        ClientPermit::acquire(&self.stateless_permits, principal, limit)
    }

    /// Acquires a permit of a client with a token for a request in a session. All sessions of the client share its
    /// permits. `None` if all are in use.
    pub(crate) fn acquire_session_permit(&self, principal: &Principal) -> Option<ClientPermit> {
        let per_client = self.bounds().requests_per_client.saturating_mul(2);
        ClientPermit::acquire(&self.session_permits, principal, PermitLimit { per_client, total: usize::MAX })
    }

    /// Acquires a permit for a stream that stays open. `None` if all are in use. A client has at most half of them.
    pub(crate) fn acquire_stream_permit(&self, principal: &Principal) -> Option<ClientPermit> {
        let total = self.bounds().streams.max(1);
        let limit = PermitLimit { per_client: (total / 2).max(1), total };
        ClientPermit::acquire(&self.stream_permits, principal, limit)
    }

    /// The turn of a request that has its permits; `None` if it need not wait, because few requests run, or those of
    /// one client only. Without tokens all clients count as one.
    pub(crate) fn queue_for_turn(&self, principal: &Principal) -> Option<Turn> {
        let is_busy = || {
            let running = self.bounds().requests.saturating_sub(self.request_permits.available_permits());
            running >= MIN_REQUESTS_FOR_TURNS
                && self.session_permits.clients() + self.stateless_permits.clients() > 1
        };
        (self.fair_queue.is_active() || is_busy()).then(|| self.fair_queue.add(principal))
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
