//! `login` and `logout`: a server that wants to know who asks, told once by its user in a browser.
//!
//! Logging in is connecting, with somebody there to agree: what works here works for every other command. The page is
//! shown on standard error before it is opened, for its host is a stranger's word; without a screen it is only shown, and
//! the address that a browser elsewhere ended at may be typed.

use std::env;
use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Endpoint, ErrorKind, Secret, Severity};
use mcp_transport::{
    CallError, ClientInfo, DialOptions, Grant, LoopbackRedirect, RegisteredClient, Revocation, Session,
    SessionOptions, TokenStore, dialer,
};
use serde::Serialize;
use tokio::sync::mpsc;
use url::Url;

use crate::args::Format;
use crate::commands::listing::only;
use crate::context::{Context, unless_signalled};
use crate::exit::Exit;
use crate::hosted::{self, Asked};
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::signals::Signals;

/// How long the user may take.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// How long a server that is not needed any more may take to end.
const PARTING: Duration = Duration::from_secs(2);

/// How long an authorization server may take to end a login.
const REVOKING: Duration = Duration::from_secs(20);

/// The longest line that is read of what somebody types: an address with a code in it.
const LINE_BYTES: u64 = 16 << 10;

/// The words of `login`.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    #[command(flatten)]
    which: Which,
    /// The id of a client that was registered by hand with the server's authorization server
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The variable of the environment that holds that client's secret
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// Show the page's address and open nothing; so it is where there is no screen. With a browser on another machine, type
    /// the address that it ends at, though it shows an error there
    #[arg(long)]
    no_browser: bool,
}

/// A server.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The server's name
    server: String,
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    file: Option<PathBuf>,
}

/// What came of a login, or of its end.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    server: &'a str,
    url: String,
    /// Is there a login now?
    authorized: bool,
    /// Who gave it.
    issuer: Option<String>,
    /// What for.
    scopes: Vec<String>,
    /// When its token ends, in seconds since the epoch; it is renewed by itself where that can be done.
    expires_at: Option<u64>,
    /// How many logins were forgotten.
    forgotten: usize,
    /// Has its authorization server ended the login, so that copies of its tokens are worth nothing?
    revoked: bool,
    error: Option<Failure>,
}

/// Why there is none.
#[derive(Debug, Serialize)]
struct Failure {
    kind: &'static str,
    message: String,
}

/// A server that may want a login.
struct Place {
    server: ResolvedServer,
    url: Url,
}

/// Logs in.
pub(crate) async fn log_in(context: &Context, words: &Words, signals: &mut Signals) -> Exit {
    match unless_signalled(signals, logged_in(context, words)).await {
        Ok(Ok(report)) | Ok(Err(report)) => context.tell(report).await,
        Err(signal) => Exit::Signal(signal),
    }
}

/// Forgets the logins.
pub(crate) async fn log_out(context: &Context, which: &Which, signals: &mut Signals) -> Exit {
    match unless_signalled(signals, logged_out(context, which)).await {
        Ok(Ok(report)) | Ok(Err(report)) => context.tell(report).await,
        Err(signal) => Exit::Signal(signal),
    }
}

async fn logged_in(context: &Context, words: &Words) -> Result<Report, Report> {
    let place = place(context, &words.which).await?;
    let client = client(words).map_err(|it| context.console.failure(Exit::Usage, &it, None))?;
    let manner = if words.no_browser || !has_screen() { Manner::Show } else { Manner::Open };
    let mut user = LoopbackRedirect::new(move |page| manner.show(page));
    if let Manner::Show = manner {
        let refused =
            "this is not the address that the login ended at: it begins with http://127.0.0.1 and has a code";
        user = user.with_manual_input(typed(), move || anstream::eprintln!("{refused}"));
    }
    let logins = hosted::logins(Asked::User(Arc::new(user)), client).ok_or_else(|| homeless(context))?;
    let store = hosted::tokens().ok_or_else(|| homeless(context))?;
    let done = connect(&place, &logins).await;
    let grant = store.latest(&place.url).unwrap_or_default();
    Ok(report(context, &place, done, grant))
}

async fn logged_out(context: &Context, which: &Which) -> Result<Report, Report> {
    let place = place(context, which).await?;
    let store = hosted::tokens().ok_or_else(|| homeless(context))?;
    let logins = hosted::logins(Asked::Nobody, None).ok_or_else(|| homeless(context))?;
    let ended = tokio::time::timeout(REVOKING, revoked(&place, &logins)).await;
    let ended = ended.unwrap_or_else(|_| Err(format!("nothing came within {} s", REVOKING.as_secs())));
    let forgotten = store.remove(&place.url);
    let failed =
        |it: mcp_transport::TokenStoreError| context.console.failure(Exit::Wrong, &it.to_string(), None);
    let forgotten = forgotten.map_err(failed)?;
    let revoked = ended == Ok(Revocation::Revoked);
    let outcome = Outcome { forgotten, revoked, ..outcome(&place, None) };
    let name = plain::line(outcome.server);
    let text = match (forgotten, revoked) {
        (0, _) => format!("there was no login to `{name}`\n"),
        (_, true) => format!("the login to `{name}` is over\n"),
        (_, false) => {
            format!("the login to `{name}` is forgotten here; the server may know it until it ends\n")
        }
    };
    let err = match ended {
        Ok(_) => String::new(),
        Err(why) => {
            let why = plain::line(&format!("server '{name}': {why}"));
            format!("{}: {why}\n", paint::severity(context.console.err, Severity::Warning))
        }
    };
    Ok(Report { err, ..told(context, &outcome, text) })
}

/// Ends the login where it was given. What is kept here is forgotten in any case, so that a failure is only told.
async fn revoked(place: &Place, logins: &mcp_host::Logins) -> Result<Revocation, String> {
    let ResolvedServer { spec, endpoint, config: _ } = &place.server;
    let authorities = DialOptions::default().authorities;
    logins.revoke(&spec.id, endpoint, &authorities).await.map_err(|it| it.to_string())
}

/// What is typed, line by line, until the input ends. Nobody waits for the thread that reads it: a read cannot be stopped.
fn typed() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(LINE_BYTES).read_until(b'\n', &mut line);
            let line = String::from_utf8_lossy(&line).into_owned();
            if !read.is_ok_and(|it| it > 0) || sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Connects, and asks for something: some servers want nothing for a connection alone.
async fn connect(place: &Place, logins: &mcp_host::Logins) -> Result<(), (ErrorKind, String)> {
    let ResolvedServer { spec, endpoint, config } = &place.server;
    let mut limits = spec.limits.clone();
    (limits.startup, limits.request) = (PATIENCE, PATIENCE);
    let given = config.iter().cloned().collect();
    let mut dial = DialOptions { limits: limits.clone(), extra_secrets: given, ..DialOptions::default() };
    dial.authorization = logins.authorization(&spec.id, endpoint, &dial.authorities);
    let dial = dialer(endpoint, &dial).map_err(|it| (it.kind(), it.to_string()))?;
    let client = ClientInfo { name: "mcp-host".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let options = SessionOptions { client, limits, config: config.clone(), ..SessionOptions::default() };
    let session = Session::connect(dial, options).await.map_err(|it| (it.kind(), it.to_string()))?;
    let listed = session.list_tools().await;
    session.close(PARTING).await;
    match listed {
        // What it answers, it answers to somebody whom it knows by now.
        Ok(_) | Err(CallError::Rpc(_)) => Ok(()),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

/// The server that is meant, where it is one to log in to.
async fn place(context: &Context, which: &Which) -> Result<Place, Report> {
    let Which { server, file } = which;
    let colour = context.console.err;
    let wrong =
        |message: &str, help: Option<&str>| context.console.failure(Exit::Wrong, &plain::line(message), help);
    let source = context.open(&file.clone().unwrap_or_default()).await;
    let source = source.map_err(|it| wrong(&it.message, it.help.as_deref()))?;
    let err = source.taken(colour) + &source.complaints(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    if source.loaded.refused {
        return Err(wrong("nothing of this file is used as long as it has errors", None));
    }
    let wanted = only(source.loaded.desired, server);
    let mut wanted = wanted.map_err(|it| context.console.failure(Exit::Usage, &it, None))?;
    if let Some(failed) = wanted.failed.pop() {
        return Err(wrong(&failed.error.to_string(), failed.error.help.as_deref()));
    }
    let found = wanted.servers.pop().expect("what is wanted has one server");
    let url = match &found.endpoint {
        Endpoint::Http(it) | Endpoint::Sse(it) => it.url.clone(),
        Endpoint::Stdio(_) | Endpoint::WebSocket(_) => {
            let message = format!("there is no login to `{server}`: only servers over http and sse have one");
            return Err(context.console.failure(Exit::Usage, &plain::line(&message), None));
        }
    };
    Ok(Place { server: found, url })
}

/// The client that the words name.
fn client(words: &Words) -> Result<Option<RegisteredClient>, String> {
    let Some(id) = &words.client_id else { return Ok(None) };
    let secret = match &words.client_secret_env {
        Some(name) => {
            let value =
                env::var(name).map_err(|_| format!("the variable {} is not set", plain::line(name)))?;
            Some(Secret::new(value))
        }
        None => None,
    };
    Ok(Some(RegisteredClient { id: id.clone(), secret, redirect_uri: None }))
}

fn outcome(place: &Place, grant: Option<Grant>) -> Outcome<'_> {
    let authorized = grant.is_some();
    let (issuer, scopes, expires_at) = match grant {
        Some(it) => (Some(it.issuer), it.scopes, it.expires_at),
        None => (None, Vec::new(), None),
    };
    Outcome {
        server: place.server.spec.id.as_str(),
        url: place.server.endpoint.label(),
        authorized,
        issuer,
        scopes,
        expires_at,
        forgotten: 0,
        revoked: false,
        error: None,
    }
}

fn report(
    context: &Context,
    place: &Place,
    done: Result<(), (ErrorKind, String)>,
    grant: Option<Grant>,
) -> Report {
    let name = plain::line(place.server.spec.id.as_str());
    match done {
        Ok(()) => {
            let outcome = outcome(place, grant);
            let text = match &outcome.issuer {
                Some(issuer) => format!("logged in to `{name}`, by {}\n", plain::line(issuer)),
                None => format!("`{name}` wants no login\n"),
            };
            told(context, &outcome, text)
        }
        Err((kind, message)) => {
            let message = plain::line(&format!("server '{name}': {message}"));
            let error = Some(Failure { kind: kind.as_str(), message: message.clone() });
            let outcome = Outcome { authorized: false, error, ..outcome(place, None) };
            let out = told(context, &outcome, String::new()).out;
            let doctor = format!("`mcp-host doctor --server {name}` examines it step by step");
            Report { out, ..context.console.failure(Exit::Unreachable, &message, Some(&doctor)) }
        }
    }
}

fn told(context: &Context, outcome: &Outcome<'_>, text: String) -> Report {
    let out = match context.format {
        Format::Json => json::document(outcome),
        Format::Text => text,
    };
    Report { out, err: String::new(), exit: Exit::Done, after: String::new() }
}

fn homeless(context: &Context) -> Report {
    let help = Some("set HOME, or XDG_STATE_HOME");
    context.console.failure(Exit::Wrong, "there is no folder to keep logins in", help)
}

/// How a page is brought to the user.
#[derive(Clone, Copy)]
enum Manner {
    Show,
    Open,
}

impl Manner {
    fn show(self, page: &Url) {
        let text = match self {
            Manner::Show => "open this page to log in",
            Manner::Open => "a browser opens this page to log in",
        };
        anstream::eprintln!("{text}:\n{page}");
        if let Manner::Show = self {
            anstream::eprintln!("or, from a browser on another machine, type the address that it ends at:");
        }
        if let Manner::Open = self {
            open(page);
        }
    }
}

/// The system's way to open a page, no shell in between. Where it fails the address is shown already.
fn open(page: &Url) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(page.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Somebody has to hear that it has ended.
        std::thread::spawn(move || child.wait());
    }
}

fn has_screen() -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|it| env::var_os(it).is_some())
}
