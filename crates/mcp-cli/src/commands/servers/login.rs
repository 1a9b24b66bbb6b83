//! `login` and `logout`: authorizes this program at a server, in a browser.
//!
//! A login is a connection with a user agent that can open a page. The tokens are stored, so that every other
//! command can use them. The host of the page is printed before it is opened, because it comes from the server. Without
//! a display the address is only printed. The user can open it on another machine and paste the address to which the
//! browser was redirected at the end.

use std::env;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, ErrorKind, Secret, Severity};
use mcp_host_oauth::{Grant, LoopbackRedirect, RegisteredClient, RevocationOutcome, TokenStore};
use mcp_host_runtime::{FileTokenStore, Logins, StateFolderError};
use mcp_host_transport::{CallError, DialOptions};
use serde::Serialize;
use tokio::sync::mpsc;
use url::Url;

use crate::args::{Format, LoginArgs, LoginTarget};
use crate::config::approval::{approval_error, ask_about_servers};
use crate::config::context::Context;
use crate::host::{self, select_server};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{json, sanitize, style};
use crate::runtime::browser::open_browser;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};
use crate::runtime::system;

/// How long the user may take to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// How long the server may take to close its connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an authorization server may take to revoke the tokens of a login.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum length of a pasted line: an address with a code in it.
const MAX_PASTED_LINE: u64 = 16 << 10;

/// The JSON document of `login` and `logout`.
#[derive(Debug, Default, Serialize)]
struct LoginJson<'a> {
    server: &'a str,
    url: String,
    /// Whether a login is stored now.
    authorized: bool,
    /// The authorization server.
    issuer: Option<String>,
    scopes: Vec<String>,
    /// The expiry of the token, in seconds since the epoch. It is renewed automatically if possible.
    expires_at: Option<u64>,
    /// The number of deleted logins.
    forgotten: usize,
    /// Whether the authorization server has revoked the login, so that copies of its tokens are invalid.
    revoked: bool,
    error: Option<ErrorJson>,
}

#[derive(Debug, Serialize)]
struct ErrorJson {
    kind: &'static str,
    message: String,
}

/// A configured server with a URL.
struct LoginServer {
    server: ResolvedServer,
    url: Url,
}

/// Logs in to a server.
pub(crate) async fn log_in(
    context: &Context,
    args: &LoginArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let report = run_until_signal(signals, try_log_in(context, args)).await??;
    Ok(context.print(report).await)
}

/// Revokes and deletes the logins to a server.
pub(crate) async fn log_out(
    context: &Context,
    target: &LoginTarget,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let report = run_until_signal(signals, try_log_out(context, target)).await??;
    Ok(context.print(report).await)
}

async fn try_log_in(context: &Context, args: &LoginArgs) -> Result<Report, Failure> {
    let server = find_server(context, &args.target).await?;
    ask_about_servers(context, std::slice::from_ref(&server.server)).await;
    if let Some(error) = approval_error(&server.server).await {
        return Err(error.into());
    }
    let client = registered_client(args)?;
    let is_page_shown = Arc::new(AtomicBool::new(false));
    let folder = host::login_folder().map_err(no_login_folder)?;
    let user = create_user_agent(args, &folder, Arc::clone(&is_page_shown))?;
    let mut options = host::login_options();
    options.user = Some(Arc::new(user));
    options.client = client;
    options.issuer.clone_from(&args.issuer);
    options.scopes.clone_from(&args.scopes);
    let store = Arc::clone(&options.store);
    let connected = connect(&server, &Logins::new(options)).await;
    let grant = store.latest(&server.url).unwrap_or_default();
    let is_in_file = FileTokenStore::new(folder).latest(&server.url).is_ok_and(|it| it.is_some());
    let place = if is_in_file { "a private file" } else { "the keyring of the system" };
    let stored_in = is_page_shown.load(Ordering::Relaxed).then_some(place);
    Ok(login_report(context, &server, connected.map(|()| stored_in), grant))
}

/// Creates the user agent, which opens or prints login pages and then sets `is_page_shown`.
fn create_user_agent(
    args: &LoginArgs,
    folder: &Path,
    is_page_shown: Arc<AtomicBool>,
) -> Result<LoopbackRedirect, Failure> {
    let mut user = if args.no_browser || !system::has_display() {
        let show = move |page: &Url| {
            is_page_shown.store(true, Ordering::Relaxed);
            anstream::eprintln!("open this page to log in:\n{page}");
            anstream::eprintln!("with a browser on another machine, paste the address at which it ends:");
        };
        let message =
            "this is not the final address of the login: it is one of this machine and contains a code";
        LoopbackRedirect::new(show)
            .with_manual_input(read_pasted_lines(), move || anstream::eprintln!("{message}"))
    } else {
        // Other users see the arguments of the browser, but not the terminal.
        LoopbackRedirect::with_start_page(folder, move |links| {
            is_page_shown.store(true, Ordering::Relaxed);
            let site = links.login_page.origin().ascii_serialization();
            anstream::eprintln!(
                "opening a page that leads to the login at {site}; if no browser shows it, open:"
            );
            anstream::eprintln!("{}", links.address);
            open_browser(links.file);
        })
    };
    if let Some(redirect) = &args.redirect_uri {
        user = user
            .with_redirect_uri(redirect.clone())
            .map_err(|error| Failure::usage(format!("--redirect-uri: {error}")))?;
    }
    Ok(user)
}

async fn try_log_out(context: &Context, target: &LoginTarget) -> Result<Report, Failure> {
    let server = find_server(context, target).await?;
    host::login_folder().map_err(no_login_folder)?;
    let options = host::login_options();
    let store = Arc::clone(&options.store);
    let logins = Logins::new(options);
    // The stored tokens are deleted in any case, so a failed revocation is only a warning.
    let revocation = tokio::time::timeout(REVOKE_TIMEOUT, revoke(&server, &logins)).await;
    let revocation =
        revocation.unwrap_or_else(|_| Err(format!("no response within {} s", REVOKE_TIMEOUT.as_secs())));
    let forgotten = store.remove(&server.url).map_err(|error| Failure::new(error.to_string()))?;
    let revoked = revocation == Ok(RevocationOutcome::Revoked);
    let document = LoginJson { forgotten, revoked, ..login_document(&server, None) };
    let name = sanitize::line(document.server);
    let text = match (forgotten, revoked) {
        (0, _) => format!("no login to `{name}` is stored\n"),
        (_, true) => format!("the login to `{name}` is revoked and deleted\n"),
        (_, false) => {
            format!("the login to `{name}` is deleted here; the server may accept it until it expires\n")
        }
    };
    let err = match revocation {
        Ok(_) => String::new(),
        Err(reason) => {
            let message = sanitize::line(&format!("server '{name}': {reason}"));
            format!("{}: {message}\n", style::severity(context.console.err_colour, Severity::Warning))
        }
    };
    Ok(Report { err, ..document_report(context, &document, text) })
}

/// Revokes the stored login at the authorization server. The error is a message.
async fn revoke(server: &LoginServer, logins: &Logins) -> Result<RevocationOutcome, String> {
    let ResolvedServer { spec, endpoint, config: _, .. } = &server.server;
    let options = DialOptions::default();
    logins.revoke(&spec.id, endpoint, &options.authorities).await.map_err(|error| error.to_string())
}

/// Starts a thread that reads lines from standard input. The thread is not joined, because a blocking read cannot be
/// cancelled.
fn read_pasted_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(MAX_PASTED_LINE).read_until(b'\n', &mut line);
            let line = String::from_utf8_lossy(&line).into_owned();
            if !read.is_ok_and(|length| length > 0) || sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Connects and lists the tools, because some servers require a login only for requests.
async fn connect(server: &LoginServer, logins: &Logins) -> Result<(), (ErrorKind, String)> {
    let server = &server.server;
    let mut limits = server.spec.limits.clone();
    (limits.startup, limits.request) = (LOGIN_TIMEOUT, LOGIN_TIMEOUT);
    let session = host::open_session(server, &server.endpoint, limits, Some(logins)).await;
    let session = session.map_err(|error| (error.kind(), error.to_string()))?;
    let listed = session.list_tools().await;
    session.close(CLOSE_TIMEOUT).await;
    match listed {
        // A JSON-RPC error is a response too: the login was accepted.
        Ok(_) | Err(CallError::Rpc(_)) => Ok(()),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

/// The named server of the configuration. Only servers over HTTP or SSE can have a login.
async fn find_server(context: &Context, target: &LoginTarget) -> Result<LoginServer, Failure> {
    let LoginTarget { server, file } = target;
    let config = context.open_and_report(file.as_deref()).await?;
    if config.loaded.refused {
        return Err(Failure::new("the file has an error that affects all servers"));
    }
    let mut desired = select_server(config.loaded.desired, Some(server))?;
    if let Some(entry) = desired.failed.pop() {
        return Err(entry.error.into());
    }
    let found = desired.servers.pop().expect("select_server returns one server");
    let url = match &found.endpoint {
        Endpoint::Http(endpoint) | Endpoint::Sse(endpoint) => endpoint.url.clone(),
        Endpoint::Stdio(_) | Endpoint::WebSocket(_) => {
            let message = format!("`{server}` cannot have a login: only servers over http and sse can");
            return Err(Failure::usage(message));
        }
    };
    Ok(LoginServer { server: found, url })
}

/// The registered client of the arguments.
fn registered_client(args: &LoginArgs) -> Result<Option<RegisteredClient>, Failure> {
    let Some(id) = &args.client_id else { return Ok(None) };
    let secret = match &args.client_secret_env {
        Some(name) => {
            let value =
                env::var(name).map_err(|_| Failure::usage(format!("the variable {name} is not set")))?;
            Some(Secret::new(value))
        }
        None => None,
    };
    let mut client = RegisteredClient::new(id.clone());
    client.secret = secret;
    Ok(Some(client))
}

fn login_document(server: &LoginServer, grant: Option<Grant>) -> LoginJson<'_> {
    let (name, url) = (server.server.spec.id.as_str(), server.server.endpoint.label());
    let document = LoginJson { server: name, url, ..LoginJson::default() };
    match grant {
        None => document,
        Some(Grant { issuer, scopes, expires_at, .. }) => {
            LoginJson { authorized: true, issuer: Some(issuer), scopes, expires_at, ..document }
        }
    }
}

/// The report of a login. `connected` is where a new login is stored, or the error of the connection.
fn login_report(
    context: &Context,
    server: &LoginServer,
    connected: Result<Option<&str>, (ErrorKind, String)>,
    grant: Option<Grant>,
) -> Report {
    let name = sanitize::line(server.server.spec.id.as_str());
    match connected {
        Ok(stored_in) => {
            let document = login_document(server, grant);
            let text = match (&document.issuer, stored_in) {
                (Some(issuer), Some(place)) => {
                    format!("logged in to `{name}` at {}; stored in {place}\n", sanitize::line(issuer))
                }
                (Some(issuer), None) => format!(
                    "the stored login to `{name}` at {} works; `--scope SCOPE` requests more, `logout` ends it\n",
                    sanitize::line(issuer)
                ),
                (None, _) => format!("`{name}` requires no login\n"),
            };
            document_report(context, &document, text)
        }
        Err((kind, message)) => {
            let message = sanitize::line(&format!("server '{name}': {message}"));
            let error = Some(ErrorJson { kind: kind.as_str(), message: message.clone() });
            let document = LoginJson { error, ..login_document(server, None) };
            let out = document_report(context, &document, String::new()).out;
            let help = format!("`mcp-host doctor --server {name}` tests it step by step");
            let failure = Failure::with_exit(Exit::Unreachable, &message).help(Some(help));
            Report { out, ..failure.report(&context.console) }
        }
    }
}

/// A success with the document as JSON, or the text.
fn document_report(context: &Context, document: &LoginJson<'_>, text: String) -> Report {
    Report::out(match context.format {
        Format::Json => json::document(document),
        Format::Text => text,
    })
}

fn no_login_folder(error: StateFolderError) -> Failure {
    Failure::new(format!("there is no folder to store logins in: {error}")).help(Some(error.help()))
}
