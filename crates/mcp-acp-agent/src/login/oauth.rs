//! OAuth logins that run concurrently with the session.
//!
//! A 401 starts a login, and the client receives the URL of its page. Connections wait for the login. It continues if a
//! connection times out, and the server is started again after it. A failed login is not repeated in this session,
//! because each restart of the server would ask the user again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use mcp_host_config::ResolvedServer;
use mcp_host_oauth::{Login, LoopbackRedirect, MemoryTokenStore, RegisteredClient, TokenStore, UserAgent};
use mcp_host_runtime::{Dialer, FileTokenStore, LoginOptions, Logins};
use mcp_host_transport::{
    Authorities, Authorization, AuthorizedRequest, Challenge, ChallengeAction, Credentials, Unauthorized,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use url::Url;

use super::{LoginPage, LoginState, LoginStates};

/// The default timeout of a login.
const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// The maximum length of a page's URL in bytes.
const MAX_PAGE_BYTES: usize = 8 << 10;

/// Logins with OAuth to servers over HTTP and SSE whose entries have no `Authorization` header.
///
/// The page redirects the user's browser to a port of 127.0.0.1, so the browser has to run on the agent's machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OAuthLogins {
    /// The store of tokens. A stored login is used by all sessions with the same URL.
    pub store: Arc<dyn TokenStore>,
    /// The agent's name, which the user sees on the page.
    pub client_name: String,
    /// The agent's client metadata document: an https URL with a path.
    pub client_metadata: Option<Url>,
    /// An OAuth client that was registered by hand; it is used for every server.
    pub client: Option<RegisteredClient>,
    /// How long the user may take; 5 minutes unless set.
    pub timeout: Duration,
}

impl OAuthLogins {
    /// Creates logins with this store.
    pub fn new(client_name: impl Into<String>, store: Arc<dyn TokenStore>) -> OAuthLogins {
        OAuthLogins {
            store,
            client_name: client_name.into(),
            client_metadata: None,
            client: None,
            timeout: DEFAULT_LOGIN_TIMEOUT,
        }
    }

    /// Creates logins that are forgotten when the agent exits.
    pub fn in_memory(client_name: impl Into<String>) -> OAuthLogins {
        OAuthLogins::new(client_name, Arc::new(MemoryTokenStore::default()))
    }

    /// Creates logins that are stored in a private folder.
    pub fn stored_in(client_name: impl Into<String>, folder: impl Into<PathBuf>) -> OAuthLogins {
        OAuthLogins::new(client_name, Arc::new(FileTokenStore::new(folder)))
    }
}

/// Called after a login, to start the server.
type OnLogin = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// The logins of a set of servers, which run in the background. Dropping it ends those that are running.
pub(crate) struct BackgroundLogins {
    options: OAuthLogins,
    states: Arc<LoginStates>,
    /// The logins by server name. All connections to a server share one.
    servers: Mutex<HashMap<String, Arc<ServerLogin>>>,
    tasks: Arc<Mutex<JoinSet<()>>>,
    on_login: Arc<OnceLock<OnLogin>>,
}

impl BackgroundLogins {
    pub(crate) fn new(options: OAuthLogins, states: Arc<LoginStates>) -> BackgroundLogins {
        BackgroundLogins {
            options,
            states,
            servers: Mutex::default(),
            tasks: Arc::default(),
            on_login: Arc::default(),
        }
    }

    /// Sets the function that is called after a login. Only the first call has an effect.
    pub(crate) fn set_on_login(&self, on_login: OnLogin) {
        let _ = self.on_login.set(on_login);
    }

    /// Returns a dialer whose connections can begin a login.
    pub(crate) fn dialer(self: &Arc<BackgroundLogins>, inner: Dialer) -> Dialer {
        let logins = Arc::clone(self);
        Arc::new(move |server, options| {
            let mut options = options.clone();
            if let Some(login) = logins.server_login(server, &options.authorities) {
                options.authorization = Some(login);
            }
            inner(server, &options)
        })
    }

    /// Ends the logins that are running.
    pub(crate) fn abort(&self) {
        lock(&self.tasks).abort_all();
    }

    /// Returns the login of a server, which is created if it is missing; `None` if the server can have none.
    fn server_login(&self, server: &ResolvedServer, authorities: &Authorities) -> Option<Arc<ServerLogin>> {
        let name = server.spec.id.as_str();
        let mut servers = lock(&self.servers);
        if let Some(known) = servers.get(name) {
            return Some(Arc::clone(known));
        }
        let OAuthLogins { store, client_name, client_metadata, client, timeout } = self.options.clone();
        let recorder =
            Arc::new(LoginRecorder { server: name.to_owned(), states: Arc::clone(&self.states), timeout });
        let logins = Logins::new({
            let mut options = LoginOptions::new(store, client_name, Arc::new(|_| String::new()));
            options.user = Some(Arc::new(PageUserAgent(Arc::clone(&recorder))));
            options.client_metadata = client_metadata;
            options.client = client;
            options
        });
        let oauth = logins.authorization(&server.spec.id, &server.endpoint, authorities)?;
        let (tasks, on_login) = (Arc::clone(&self.tasks), Arc::clone(&self.on_login));
        let login = Arc::new(ServerLogin { oauth, recorder, tasks, on_login });
        servers.insert(name.to_owned(), Arc::clone(&login));
        Some(login)
    }
}

/// The authorization of one server.
#[derive(derive_more::Debug)]
#[debug("ServerLogin {{ server: {:?}, .. }}", recorder.server)]
struct ServerLogin {
    oauth: Arc<dyn Authorization>,
    recorder: Arc<LoginRecorder>,
    tasks: Arc<Mutex<JoinSet<()>>>,
    on_login: Arc<OnceLock<OnLogin>>,
}

#[async_trait]
impl Authorization for ServerLogin {
    async fn credentials(&self, request: AuthorizedRequest<'_>) -> Result<Option<Credentials>, Unauthorized> {
        self.oauth.credentials(request).await
    }

    fn is_in_progress(&self) -> bool {
        self.oauth.is_in_progress()
    }

    /// Handles the challenge on its own task, because a login continues when this connection ends.
    async fn on_challenge(&self, challenge: Challenge) -> Result<ChallengeAction, Unauthorized> {
        let (oauth, recorder, on_login) =
            (Arc::clone(&self.oauth), Arc::clone(&self.recorder), Arc::clone(&self.on_login));
        let (sender, handled) = oneshot::channel();
        let task = async move {
            let outcome = oauth.on_challenge(challenge).await;
            let was_asked = recorder.finish(&outcome);
            // An error means that the connection has ended.
            let _ = sender.send(outcome);
            if was_asked && let Some(on_login) = on_login.get() {
                on_login().await;
            }
        };
        {
            let mut tasks = lock(&self.tasks);
            // Reaps finished tasks.
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
        handled.await.unwrap_or_else(|_| Err(Unauthorized::new("the session has ended")))
    }
}

/// Records the login of one server in the states of all logins.
struct LoginRecorder {
    server: String,
    states: Arc<LoginStates>,
    timeout: Duration,
}

impl LoginRecorder {
    /// Records the outcome of a challenge. Returns whether the user was asked to log in for it.
    fn finish(&self, outcome: &Result<ChallengeAction, Unauthorized>) -> bool {
        let mut was_asked = false;
        self.states.0.send_if_modified(|states| {
            was_asked = matches!(states.get(&self.server), Some(LoginState::Pending(_)));
            if was_asked {
                match outcome {
                    Ok(_) => states.remove(&self.server),
                    Err(reason) => states.insert(self.server.clone(), LoginState::Failed(reason.to_string())),
                };
            }
            was_asked
        });
        was_asked
    }
}

/// The user agent of one server. It records the login page, which is then sent to the client.
struct PageUserAgent(Arc<LoginRecorder>);

#[async_trait]
impl UserAgent for PageUserAgent {
    async fn start_login(&self) -> Result<Box<dyn Login>, String> {
        if let Some(reason) = self.0.states.failure(&self.0.server) {
            return Err(reason);
        }
        // The page is passed to the client by `PageLogin`.
        let redirect = LoopbackRedirect::new(|_| {}).start_login().await?;
        Ok(Box::new(PageLogin { redirect, recorder: Arc::clone(&self.0) }))
    }
}

/// A login whose page is recorded.
struct PageLogin {
    redirect: Box<dyn Login>,
    recorder: Arc<LoginRecorder>,
}

#[async_trait]
impl Login for PageLogin {
    fn redirect_uri(&self) -> &Url {
        self.redirect.redirect_uri()
    }

    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String> {
        let PageLogin { redirect, recorder } = *self;
        if page.as_str().len() > MAX_PAGE_BYTES {
            return Err(format!("the URL of the login page has more than {MAX_PAGE_BYTES} bytes"));
        }
        let pending = LoginState::Pending(LoginPage(page.clone()));
        recorder.states.0.send_modify(|states| {
            states.insert(recorder.server.clone(), pending);
        });
        let expired = || format!("no login within {} s", recorder.timeout.as_secs_f64());
        let authorized = tokio::time::timeout(recorder.timeout, redirect.authorize(page)).await;
        authorized.unwrap_or_else(|_| Err(expired()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave the contents inconsistent: each change is one call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
