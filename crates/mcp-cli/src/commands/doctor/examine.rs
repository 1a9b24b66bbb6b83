//! The steps themselves: one after the other, each with its time, until one fails.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Endpoint, StdioEndpoint, UrlEndpoint};
use mcp_transport::{CallError, ClientInfo, ConnectError, DialOptions, Session, SessionOptions, dialer};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::program::{Program, Search, fetches, look_up, remedy};
use super::{Blame, Examined, Outcome, Step};
use crate::context::blocking;

/// How long a server may take to end when it was examined.
const GRACE: Duration = Duration::from_secs(2);
/// How long one address is tried.
const TOUCH: Duration = Duration::from_secs(5);
/// How many addresses of a name are tried.
const ADDRESSES: usize = 4;
/// A start that takes longer is worth a word.
const SLOW: Duration = Duration::from_secs(5);
/// The variables that name a proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// A step's end without its time.
struct Said {
    outcome: Outcome,
    message: String,
    help: Option<String>,
}

impl Said {
    fn done(message: impl Into<String>) -> Said {
        Said { outcome: Outcome::Done, message: message.into(), help: None }
    }

    fn doubtful(message: impl Into<String>, help: impl Into<String>) -> Said {
        Said { outcome: Outcome::Doubtful, message: message.into(), help: Some(help.into()) }
    }

    fn failed(message: impl Into<String>, help: Option<String>) -> Said {
        Said { outcome: Outcome::Failed(Blame::World), message: message.into(), help }
    }
}

/// What has been seen of a server so far.
struct Course {
    steps: Vec<Step>,
    begun: Instant,
}

impl Course {
    /// Ends the step that began when the one before it ended. `None` where it was the last.
    fn step(&mut self, name: &'static str, said: Said) -> Option<()> {
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
pub(super) async fn server(server: ResolvedServer) -> Examined {
    let mut course = Course { steps: Vec::new(), begun: Instant::now() };
    // An early end is an end like any other: the last step tells which.
    let _ = walk(&mut course, &server).await;
    Examined {
        name: server.spec.id.to_string(),
        transport: Some(server.endpoint.kind().as_str()),
        target: Some(server.endpoint.label()),
        steps: course.steps,
    }
}

async fn walk(course: &mut Course, server: &ResolvedServer) -> Option<()> {
    course.step("configuration", Said::done("it is sound, and its variables are there"))?;
    let mut endpoint = server.endpoint.clone();
    match &mut endpoint {
        Endpoint::Stdio(it) => {
            let said = program(it).await;
            course.step("program", said)?;
        }
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => reach(course, it).await?,
    }
    let session = connect(course, server, &endpoint).await?;
    let res = lists(course, server, &session).await;
    let (noise, dropped) = session.counters();
    if noise > 0 {
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
    res?;
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

/// Looks the host up and knocks at its port. Where a proxy is named that may be in between, neither ends the course.
async fn reach(course: &mut Course, endpoint: &UrlEndpoint) -> Option<()> {
    let (Some(host), Some(port)) = (endpoint.url.host_str(), endpoint.url.port_or_known_default()) else {
        return course.step("address", Said::failed("the URL names no host", None));
    };
    // An address of six groups stands in brackets in a URL.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let proxy = PROXIES.into_iter().find(|it| env::var_os(it).is_some_and(|it| !it.is_empty()));
    let unless_proxied = |said: Said| match (&said.outcome, proxy) {
        (Outcome::Failed(_), Some(proxy)) => {
            let help = format!("{proxy} is set: the proxy may reach it all the same");
            Said::doubtful(said.message, help)
        }
        _ => said,
    };
    let found: io::Result<Vec<SocketAddr>> =
        lookup_host((host.as_str(), port)).await.map(|it| it.take(ADDRESSES).collect());
    let addresses = match found {
        Ok(addresses) if !addresses.is_empty() => addresses,
        Ok(_) => {
            let help = Some("check the spelling of the host, and the network".to_owned());
            return course
                .step("address", unless_proxied(Said::failed(format!("{host} has no address"), help)));
        }
        Err(error) => {
            let help = Some("check the spelling of the host, and the network".to_owned());
            let said = Said::failed(format!("the name {host} cannot be looked up: {error}"), help);
            return course.step("address", unless_proxied(said));
        }
    };
    let shown: Vec<String> = addresses.iter().map(|it| it.ip().to_string()).collect();
    course.step("address", Said::done(shown.join(", ")))?;
    let said = knock(&addresses, port).await;
    course.step("port", unless_proxied(said))
}

async fn knock(addresses: &[SocketAddr], port: u16) -> Said {
    let mut last = None;
    for address in addresses {
        match timeout(TOUCH, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Said::done(format!("port {port} of {} is open", address.ip())),
            Ok(Err(error)) => last = Some(refusal(&error)),
            Err(_) => last = Some(silence()),
        }
    }
    let (what, help) = last.unwrap_or_else(silence);
    Said::failed(format!("port {port}: {what}"), Some(help.to_owned()))
}

fn silence() -> (String, &'static str) {
    let what = format!("nobody answers within {} s", TOUCH.as_secs());
    (what, "a firewall may be in between, or the host is down")
}

fn refusal(error: &io::Error) -> (String, &'static str) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            ("nobody listens there".to_owned(), "start the server, or correct the port")
        }
        _ => (error.to_string(), "check the network, and the host in the URL"),
    }
}

async fn connect(course: &mut Course, server: &ResolvedServer, endpoint: &Endpoint) -> Option<Session> {
    let limits = server.spec.limits.clone();
    let dial = DialOptions { limits: limits.clone(), ..DialOptions::default() };
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

async fn lists(course: &mut Course, server: &ResolvedServer, session: &Session) -> Option<()> {
    let discovery = server.spec.discovery;
    let startup = server.spec.limits.startup;
    match discovery.tools {
        false => course.step("tools", Said::done("not asked for: `load_tools` is false"))?,
        true => {
            let said = listed("tool", startup, async {
                session.list_tools().await.map(|it| (it.items.len(), it.rejected.len()))
            });
            course.step("tools", said.await)?;
        }
    }
    // A server whose prompts or resources cannot be listed has its tools all the same.
    let lenient = |said: Said| match said.outcome {
        Outcome::Failed(_) => Said { outcome: Outcome::Doubtful, ..said },
        Outcome::Done | Outcome::Doubtful => said,
    };
    match discovery.prompts {
        false => course.step("prompts", Said::done("not asked for: `load_prompts` is false"))?,
        true => {
            let said = listed("prompt", startup, async {
                session.list_prompts().await.map(|it| (it.items.len(), it.rejected.len()))
            });
            course.step("prompts", lenient(said.await))?;
        }
    }
    let said = listed("resource", startup, async {
        session.list_resources().await.map(|it| (it.items.len(), it.rejected.len()))
    });
    course.step("resources", lenient(said.await))
}

async fn listed(
    item: &str,
    limit: Duration,
    list: impl Future<Output = Result<(usize, usize), CallError>>,
) -> Said {
    let plural = |count: usize| if count == 1 { format!("1 {item}") } else { format!("{count} {item}s") };
    match timeout(limit, list).await {
        Ok(Ok((count, 0))) => Said::done(plural(count)),
        Ok(Ok((count, bad))) => Said::doubtful(
            format!("{}, and {bad} that cannot be read", plural(count)),
            "`mcp-host tools` names them; only the server's authors can mend them",
        ),
        Ok(Err(error)) => Said::failed(format!("they cannot be listed: {error}"), error.help()),
        Err(_) => Said::failed(
            format!("they were not listed within {} s", limit.as_secs_f64()),
            Some("raise the start-up limit if the server is merely slow".to_owned()),
        ),
    }
}
