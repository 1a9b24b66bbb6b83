//! The steps themselves: one after the other, each with its time, until one fails.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_host::ServerDefinitions;
use mcp_model::{Endpoint, StdioEndpoint};
use mcp_transport::{ClientInfo, ConnectError, DialOptions, Session, SessionOptions, dialer};
use tokio::time::Instant;

use super::lists::{Allowed, Offered, lists};
use super::locked::Locked;
use super::program::{Program, Search, fetches, look_up, remedy};
use super::reach::reach;
use super::{Blame, Examined, Outcome, Step};
use crate::context::blocking;
use crate::hosted;

/// How long a server may take to end when it was examined.
const GRACE: Duration = Duration::from_secs(2);
/// A start that takes longer is worth a word.
const SLOW: Duration = Duration::from_secs(5);
/// A step's end without its time.
pub(super) struct Said {
    pub(super) outcome: Outcome,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Said {
    pub(super) fn done(message: impl Into<String>) -> Said {
        Said { outcome: Outcome::Done, message: message.into(), help: None }
    }

    pub(super) fn doubtful(message: impl Into<String>, help: impl Into<String>) -> Said {
        Said { outcome: Outcome::Doubtful, message: message.into(), help: Some(help.into()) }
    }

    pub(super) fn failed(message: impl Into<String>, help: Option<String>) -> Said {
        Said { outcome: Outcome::Failed(Blame::World), message: message.into(), help }
    }
}

/// What has been seen of a server so far.
pub(super) struct Course {
    steps: Vec<Step>,
    begun: Instant,
}

impl Course {
    /// Ends the step that began when the one before it ended. `None` where it was the last.
    pub(super) fn step(&mut self, name: &'static str, said: Said) -> Option<()> {
        let now = Instant::now();
        let Said { outcome, message, help } = said;
        self.steps.push(Step { name, outcome, message, help, took: now.duration_since(self.begun) });
        self.begun = now;
        match outcome {
            Outcome::Done | Outcome::Doubtful => Some(()),
            Outcome::Failed(_) => None,
        }
    }
}

/// Examines one server. Dropping the future ends what was started.
pub(super) async fn server(server: ResolvedServer, locked: Locked) -> Examined {
    let mut course = Course { steps: Vec::new(), begun: Instant::now() };
    // An early end is an end like any other: the last step tells which.
    let _ = walk(&mut course, &server, &locked).await;
    Examined {
        name: server.spec.id.to_string(),
        transport: Some(server.endpoint.kind().as_str()),
        target: Some(server.endpoint.label()),
        steps: course.steps,
    }
}

async fn walk(course: &mut Course, server: &ResolvedServer, locked: &Locked) -> Option<()> {
    course.step("configuration", Said::done("it is sound, and its variables are there"))?;
    if let Some(said) = locked.before() {
        course.step("lock", said)?;
    }
    let mut endpoint = server.endpoint.clone();
    match &mut endpoint {
        Endpoint::Stdio(it) => {
            let said = program(it).await;
            course.step("program", said)?;
        }
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => {
            reach(course, it, server.spec.limits.connect).await?;
        }
    }
    // As in a host, all of a start has one limit: what the handshake took, the lists have no more.
    let allowed = Allowed::from_now(server.spec.limits.startup);
    let session = connect(course, server, &endpoint).await?;
    let res = lists(course, server, &session, allowed).await;
    let (noise, dropped) = session.counters();
    // What is larger than a message may be is none either, and was told as what it is.
    let too_large = u64::try_from(server.spec.limits.message_bytes).unwrap_or(u64::MAX);
    if noise > 0 && noise < too_large {
        let help = "a stdio server may write nothing but protocol to its standard output; logs belong on standard error";
        course.step(
            "noise",
            Said::doubtful(format!("{noise} bytes on its standard output are no messages"), help),
        )?;
    }
    if dropped > 0 {
        let help = "the server sends faster than anybody can listen";
        course.step("messages", Said::doubtful(format!("{dropped} of its messages were dropped"), help))?;
    }
    let Offered { lists, read } = res?;
    let offer = ServerDefinitions::of(&session.server(), lists, read);
    if let Some(said) = locked.compared(&server.spec.id, &offer) {
        course.step("lock", said)?;
    }
    course.begun = Instant::now();
    let ended = session.close(GRACE).await;
    let took = course.begun.elapsed();
    let said = match took >= GRACE {
        true => Said::doubtful(
            format!("it did not end when it was asked to, and was ended by force{}", ended.evidence),
            "a server should end when its standard input is closed",
        ),
        false => Said::done("it ended when it was asked to"),
    };
    course.step("end", said)
}

/// Looks the program up, and puts this very executable in the place of its name.
async fn program(endpoint: &mut StdioEndpoint) -> Said {
    if endpoint.command == "mcp-host"
        && let Some(own) = env::current_exe().ok().and_then(|it| it.into_os_string().into_string().ok())
    {
        endpoint.command = own;
        return Said::done("this very program");
    }
    let directory =
        endpoint.cwd.clone().or_else(|| env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/"));
    if !directory.is_dir() {
        let help = Some("create the directory, or correct `cwd`".to_owned());
        return Said::failed(format!("its working directory {} is not there", directory.display()), help);
    }
    let own = endpoint
        .env
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.expose().to_owned());
    let is_own = own.is_some();
    let path = own.or_else(|| env::var("PATH").ok()).unwrap_or_default();
    let command = endpoint.command.clone();
    let found = blocking(move || look_up(&command, Search { path: &path, directory: &directory })).await;
    let command = &endpoint.command;
    match found {
        Program::At(path) => Said::done(path.display().to_string()),
        Program::NotExecutable(path) => Said::failed(
            format!("{} is there, and is no program: it may not be executed", path.display()),
            Some(format!("make it executable: chmod +x {}", path.display())),
        ),
        Program::Nowhere if command.contains('/') => {
            Said::failed(format!("there is no file {command}"), Some(remedy(command)))
        }
        Program::Nowhere if is_own => Said::failed(
            format!("{command} is not on the PATH that the entry's `env` sets"),
            Some("put the program's folder into that PATH, or leave PATH out of `env`".to_owned()),
        ),
        Program::Nowhere => Said::failed(format!("{command} is not on the PATH"), Some(remedy(command))),
    }
}

async fn connect(course: &mut Course, server: &ResolvedServer, endpoint: &Endpoint) -> Option<Session> {
    let limits = server.spec.limits.clone();
    let given = server.config.iter().cloned().collect();
    let mut dial = DialOptions { limits: limits.clone(), extra_secrets: given, ..DialOptions::default() };
    let logins = hosted::logins(hosted::Asked::Nobody, None);
    dial.authorization = logins.and_then(|it| it.authorization(&server.spec.id, endpoint, &dial.authorities));
    let refused = |error: &ConnectError| Said::failed(error.to_string(), error.help());
    let dial = match dialer(endpoint, &dial) {
        Ok(dial) => dial,
        Err(error) => {
            course.step("handshake", refused(&error));
            return None;
        }
    };
    let client = ClientInfo { name: "mcp-host".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let options =
        SessionOptions { client, limits, config: server.config.clone(), ..SessionOptions::default() };
    let session = match Session::connect(dial, options).await {
        Ok(session) => session,
        Err(error) => {
            course.step("handshake", refused(&error));
            return None;
        }
    };
    let info = session.server();
    let named = match (info.name.is_empty(), info.version.is_empty()) {
        (true, _) => "it does not say who it is".to_owned(),
        (false, true) => info.name.clone(),
        (false, false) => format!("{} {}", info.name, info.version),
    };
    let message = format!("{named}, {} era, protocol {}", session.era().as_str(), session.version().as_str());
    let fetched = match endpoint {
        Endpoint::Stdio(it) if fetches(&it.command) => Some(&it.command),
        Endpoint::Stdio(_) | Endpoint::Sse(_) | Endpoint::WebSocket(_) | Endpoint::Http(_) => None,
    };
    let said = match (course.begun.elapsed() >= SLOW, fetched) {
        (false, _) => Said::done(message),
        (true, Some(command)) => Said::doubtful(
            format!("{message}; slow"),
            format!(
                "the first `{command}` downloads the package, and the next ones do not; install it to be sure"
            ),
        ),
        (true, None) => Said::doubtful(
            format!("{message}; slow"),
            "look into the server's own log for what it does at its start",
        ),
    };
    course.step("handshake", said)?;
    Some(session)
}
