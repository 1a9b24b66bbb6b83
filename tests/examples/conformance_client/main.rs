//! A client for the official conformance suite, on public interfaces of the crates.
//!
//! The suite starts it for each scenario with the URL of a server. It behaves like a host: it connects, reads the
//! lists, and uses what is there. Only the context of a scenario changes this.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the suite keeps what its client says")]

mod browser;
mod form;
mod user;
mod walk;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Endpoint, Secret, UrlEndpoint};
use mcp_host_oauth::{
    ClientAuthentication, IdentityProvider, MemoryTokenStore, OAuth, OAuthClient, OAuthOptions, PrivateKey,
    RegisteredClient, TokenSource, UnattendedGrant, UnattendedGrantKind,
};
use mcp_host_transport::{DialOptions, Eras, Handlers, Session, SessionOptions, dialer};
use serde_json::Value;

use browser::Browser;
use user::User;

/// The client metadata URL that the authorization servers of the suite accept.
const METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// The run as the suite describes it.
pub(crate) struct Assignment {
    /// The name of the scenario.
    pub(crate) scenario: String,
    /// The protocol revision.
    pub(crate) revision: String,
    /// The context: an object, or `null`.
    pub(crate) context: Value,
    /// The URL of the server.
    pub(crate) url: String,
}

impl Assignment {
    /// Reads arguments and environment.
    fn from_environment() -> Result<Assignment, String> {
        let url = env::args().nth(1).ok_or("usage: conformance_client URL; the suite starts it")?;
        let scenario = env::var("MCP_CONFORMANCE_SCENARIO").map_err(|it| it.to_string())?;
        let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => serde_json::from_str(&text).map_err(|it| format!("the context is no JSON: {it}"))?,
            Err(_) => Value::Null,
        };
        let revision = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").map_err(|it| it.to_string())?;
        Ok(Assignment { scenario, revision, context, url })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Assignment::from_environment() {
        Ok(assignment) => run(&assignment).await,
        Err(error) => Err(error),
    };
    // The last line, which `cargo xtask conformance` requires.
    match result {
        Ok(()) => {
            println!("outcome: done");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("outcome: {}", error.replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

/// Connects to the server, uses what it offers, and closes the session.
async fn run(assignment: &Assignment) -> Result<(), String> {
    let url = assignment.url.parse().map_err(|it| format!("the URL cannot be read: {it}"))?;
    let authorization = OAuth::new(&url, login_options(assignment)).map_err(|it| it.to_string())?;
    let endpoint = Endpoint::Http(UrlEndpoint::new(url));
    let mut options = DialOptions::default();
    options.authorization = Some(Arc::new(authorization));
    let dial = dialer(&endpoint, &options).map_err(|it| it.to_string())?;
    let user = Arc::new(User);
    let mut handlers = Handlers::default();
    handlers.sampling = Some(Arc::clone(&user) as _);
    handlers.elicitation = Some(Arc::clone(&user) as _);
    handlers.roots = Some(user);
    // A request of the wrong era fails a scenario, and a slow server could be probed in both. Older revisions are
    // detected like in any host.
    let eras = if assignment.revision == "2026-07-28" { Eras::Modern } else { Eras::Both };
    let mut options = SessionOptions::default();
    options.handlers = handlers;
    options.eras = eras;
    let session = Session::connect(dial, options).await.map_err(|it| it.to_string())?;
    eprintln!("connected, protocol version {}", session.version().as_str());
    let result = walk::walk(&session, assignment).await;
    session.close(Duration::from_secs(2)).await;
    result
}

/// The grant of a scenario without a user.
fn unattended_grant(assignment: &Assignment) -> Option<UnattendedGrant> {
    let text = |key: &str| assignment.context[key].as_str();
    let token = |key: &str| {
        let token = Secret::from(text(key)?);
        Some(TokenSource::new(move || Ok(token.clone())))
    };
    let kind = match assignment.scenario.as_str() {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => {
            UnattendedGrantKind::ClientCredentials
        }
        "auth/wif-jwt-bearer" => UnattendedGrantKind::JwtBearer(token("valid_jwt")?),
        "auth/enterprise-managed-authorization" => UnattendedGrantKind::EnterpriseManaged {
            provider: IdentityProvider::new(
                text("idp_issuer")?.to_owned(),
                text("idp_token_endpoint")?.parse().ok()?,
                OAuthClient::new(text("idp_client_id")?, ClientAuthentication::None),
            ),
            id_token: token("idp_id_token")?,
        },
        _ => return None,
    };
    let authentication = match (text("client_secret"), text("private_key_pem")) {
        (Some(secret), _) => ClientAuthentication::Secret(Secret::from(secret)),
        (None, Some(key)) => {
            ClientAuthentication::PrivateKey(PrivateKey::from_pem(&Secret::from(key), None).ok()?)
        }
        (None, None) => ClientAuthentication::None,
    };
    let client = OAuthClient::new(text("client_id")?, authentication);
    Some(UnattendedGrant::new(client, kind))
}

/// The login of the client. The context may have a registered client.
fn login_options(assignment: &Assignment) -> OAuthOptions {
    let text = |key: &str| assignment.context[key].as_str();
    let registered = text("client_id").map(|id| {
        let mut client = RegisteredClient::new(id.to_owned());
        client.secret = text("client_secret").map(Secret::from);
        client
    });
    let mut options = OAuthOptions::new(Arc::new(MemoryTokenStore::default()), "mcp-host conformance");
    options.user_agent = Some(Arc::new(Browser));
    options.client_metadata = METADATA_URL.parse().ok();
    options.client = registered;
    options.unattended = unattended_grant(assignment);
    options.login_hint = "there is a browser".to_owned();
    options
}
