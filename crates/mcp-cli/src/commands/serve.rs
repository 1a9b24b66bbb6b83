//! `serve`: what a configuration says, served again as one MCP server, until its client or a signal ends it.
//!
//! On standard input and output nothing but the protocol may stand there; whatever is said besides goes to standard
//! error.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use mcp_gateway::{
    Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer, InvalidTokens, Names, OwnResource, Scope,
    ServeError, TlsFiles, Tokens, serve_stdio,
};
use mcp_host::{AdminTools, FollowEvent, FollowHandle, FollowRequest, Host, LoadRequest, Supervision};
use mcp_model::{RawJson, Secret, ServerId};
use mcp_transport::{ClientCapabilities, Eras};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::args::Reader;
use crate::context::{Context, blocking};
use crate::counted::Counted;
use crate::exit::Exit;
use crate::hosted;
use crate::locked::{approval, followed};
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{paint, plain};
use crate::signals::Signals;
use crate::target::{Target, locate};

/// How long requests that run are waited for when a signal has come.
const LEAVING: Duration = Duration::from_secs(6);

/// The largest file of tokens, in bytes.
const TOKENS_BYTES: u64 = 1024 * 1024;

/// What is served, and how.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("wire").required(true).args(["stdio", "http"]))]
pub(crate) struct Words {
    /// The configuration, or the folder it is in; a file need not be there yet. The nearest above this folder unless
    /// given
    file: Option<PathBuf>,
    /// Serve the one client on standard input and output
    #[arg(long)]
    stdio: bool,
    /// Serve over HTTP at this address, such as 127.0.0.1:8807; port 0 takes any free one. The path is /mcp, and
    /// /mcp/SERVER for one server alone
    #[arg(long, value_name = "ADDR", value_parser = crate::args::address)]
    http: Option<SocketAddr>,
    /// Serve only this server
    #[arg(long, value_name = "SERVER")]
    only: Option<String>,
    /// Under the names that the server itself gives
    #[arg(long, requires = "only")]
    raw_names: bool,
    /// Speak with the servers in this era of the protocol alone, for those that do more in one than in the other
    #[arg(long, value_enum, value_name = "ERA")]
    era: Option<EraName>,
    /// A file of bearer tokens, one a line, each with what it shows: TOKEN [name=NAME] [servers=a,b*] [tools=…]
    /// [prompts=…] [resources=…]. Without any, all clients are one: they share bounds,
    /// and dialogs of one name
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// The environment variable that holds such lines
    #[arg(long, value_name = "NAME", requires = "http")]
    token_env: Option<String>,
    /// A name by which clients may reach this, besides localhost and the address; may stand several times
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// An origin whose pages may come in and read the answers, such as https://app.example; may stand several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Serve HTTPS with this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Show the tools mcp_release, mcp_restart and mcp_disable, and the resources mcp-host://problems and
    /// mcp-host://servers
    #[arg(long)]
    admin: bool,
    /// How many seconds a session may lie unused before it ends
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
}

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EraName {
    /// With sessions: up to 2025-11-25
    Legacy,
    /// Without: 2026-07-28
    Modern,
}

/// Why nothing is served.
struct Refused {
    message: String,
    help: Option<String>,
    exit: Exit,
}

impl Refused {
    fn wrong(message: impl Into<String>) -> Refused {
        Refused { message: message.into(), help: None, exit: Exit::Wrong }
    }
}

impl From<ServeError> for Refused {
    fn from(error: ServeError) -> Refused {
        let exit = match error {
            ServeError::Open(_) => Exit::Usage,
            _ => Exit::Wrong,
        };
        Refused { message: chain(&error), help: error.help().map(str::to_owned), exit }
    }
}

impl From<InvalidTokens> for Refused {
    fn from(error: InvalidTokens) -> Refused {
        Refused::wrong(error.to_string())
    }
}

/// Serves until the client is gone, or a signal comes.
pub(crate) async fn run(context: &Context, words: Words, signals: &mut Signals) -> Exit {
    let refuse = async |refused: Refused| {
        let Refused { message, help, exit } = refused;
        let err = paint::error(context.console.err, &plain::line(&message), help.as_deref());
        context.tell(Report { out: String::new(), err, exit, after: String::new() }).await
    };
    let prepared = match prepare(&words).await {
        Ok(prepared) => prepared,
        Err(refused) => return refuse(refused).await,
    };
    let Target { path, found } = match locate(words.file.as_deref().unwrap_or(Path::new(""))) {
        Ok(target) => target,
        Err(message) => return refuse(Refused::wrong(message)).await,
    };
    if found {
        say(context, &format!("reading {}", path.display()));
    }
    let approval = match approval(context, &path).await {
        Ok(approval) => approval,
        Err(unreadable) => return refuse(Refused::wrong(unreadable.message)).await,
    };
    let Reader { dialect, profile } = context.reader;
    let lock = followed(context, &path);
    let request = LoadRequest { path, dialect, profile, env_file: context.env_file.clone() };
    let mut options = hosted::options(Supervision::default());
    options.approval = approval;
    options.admin = if words.admin { AdminTools::Enabled } else { AdminTools::Disabled };
    options.eras = match words.era {
        None => Eras::Both,
        Some(EraName::Legacy) => Eras::Legacy,
        Some(EraName::Modern) => Eras::Modern,
    };
    // Clients come and go, and servers are asked once what they may ask: whoever cannot answer says so then.
    let everything = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;
    options.declared_capabilities = RawJson::parse(everything.into()).ok().and_then(ClientCapabilities::new);
    let host = Arc::new(Host::start(options));
    let (stop, stopped) = oneshot::channel::<()>();
    let served = {
        let serving = async {
            let following = host.follow(FollowRequest { lock, ..FollowRequest::new(vec![request]) }).await;
            serve(context, &host, following, (prepared, stopped)).await
        };
        tokio::pin!(serving);
        tokio::select! {
            biased;
            signal = signals.next() => {
                // Requests that run may end, and clients are told; a second signal waits for nothing.
                drop(stop);
                tokio::select! {
                    biased;
                    _ = signals.next() => {}
                    _ = timeout(LEAVING, &mut serving) => {}
                }
                Ok(Exit::Signal(signal))
            }
            served = &mut serving => served.map(|()| Exit::Done),
        }
    };
    let exit = match served {
        Ok(exit) => exit,
        Err(refused) => refuse(refused).await,
    };
    hosted::stop(&host, exit, signals).await
}

/// What the words mean, before anything is started.
struct Prepared {
    scope: Scope,
    own_resources: Vec<OwnResource>,
    idle: Duration,
    wire: Wire,
}

enum Wire {
    Stdio,
    Http(SocketAddr, HttpOptions, Option<Counted>),
}

async fn prepare(words: &Words) -> Result<Prepared, Refused> {
    let server = match &words.only {
        Some(name) => Some(ServerId::parse(name).map_err(|it| Refused {
            message: it.to_string(),
            help: None,
            exit: Exit::Usage,
        })?),
        None => None,
    };
    let names = if words.raw_names { Names::Original } else { Names::Exposed };
    let wire = match words.http {
        None => Wire::Stdio,
        Some(address) => {
            let tls = words.tls_cert.clone().zip(words.tls_key.clone());
            let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
            let tokens = tokens(words).await?;
            let (hosts, origins) = (words.allow_host.clone(), words.allow_origin.clone());
            // Before anything is started: what a gauge has not seen begin it cannot see end.
            let counted = Counted::begin();
            let metrics = counted.as_ref().map(Counted::page);
            Wire::Http(address, HttpOptions { tokens, hosts, origins, tls, metrics }, counted)
        }
    };
    Ok(Prepared {
        scope: Scope { server, names, ..Scope::default() },
        own_resources: if words.admin { OwnResource::ALL.to_vec() } else { Vec::new() },
        idle: Duration::from_secs(words.idle),
        wire,
    })
}

async fn tokens(words: &Words) -> Result<Tokens, Refused> {
    let mut text = String::new();
    if let Some(path) = words.token_file.clone() {
        let shown = path.display().to_string();
        let unreadable = |why: &dyn std::fmt::Display| Refused::wrong(format!("cannot read {shown}: {why}"));
        let read = blocking(move || {
            if std::fs::metadata(&path)?.len() > TOKENS_BYTES {
                return Err(io::Error::other(format!("it has more than {TOKENS_BYTES} bytes")));
            }
            std::fs::read_to_string(path)
        });
        text = read.await.map_err(|it| unreadable(&it))?;
    }
    if let Some(name) = &words.token_env {
        let value = std::env::var(name)
            .map_err(|_| Refused::wrong(format!("the environment variable {name} is not set, or no text")))?;
        text.push('\n');
        text.push_str(&value);
    }
    let tokens = Tokens::read(&Secret::new(text))?;
    if tokens.is_empty() && (words.token_file.is_some() || words.token_env.is_some()) {
        return Err(Refused::wrong("there is no token where tokens were to be"));
    }
    Ok(tokens)
}

async fn serve(
    context: &Context,
    host: &Arc<Host>,
    following: FollowHandle,
    (prepared, stopped): (Prepared, oneshot::Receiver<()>),
) -> Result<(), Refused> {
    let Prepared { scope, own_resources, idle, wire } = prepared;
    if let Some(server) = &scope.server {
        let published = host.snapshot();
        let names: Vec<&str> = published.servers.iter().map(|it| it.id.as_str()).collect();
        if !names.contains(&server.as_str()) {
            let help = match names[..] {
                [] => "it has no servers".to_owned(),
                _ => format!("there are: {}", plain::line(&names.join(", "))),
            };
            let message = format!("there is no server '{server}' in the configuration");
            return Err(Refused { help: Some(help), ..Refused::wrong(message) });
        }
    }
    let bounds = Bounds { idle, ..Bounds::default() };
    let options = GatewayOptions { scope, own_resources, bounds, ..GatewayOptions::default() };
    let gateway = Gateway::new(Arc::clone(host), options);
    let served = async {
        match wire {
            Wire::Stdio => {
                tokio::select! {
                    () = serve_stdio(&gateway, tokio::io::stdin(), tokio::io::stdout()) => {}
                    _ = stopped => {}
                }
                Ok(())
            }
            Wire::Http(address, options, counted) => {
                let keeping = async {
                    match &counted {
                        Some(counted) => counted.keep().await,
                        None => std::future::pending().await,
                    }
                };
                let server = HttpServer::bind(address, gateway, options).await?;
                say(context, &format!("serving MCP at {}", server.url()));
                tokio::select! {
                    () = server.serve(async { drop(stopped.await) }) => {}
                    never = keeping => match never {},
                }
                Ok(())
            }
        }
    };
    tokio::select! {
        served = served => served,
        never = tell(context, following) => match never {},
    }
}

/// Tells what becomes of the file.
async fn tell(context: &Context, mut following: FollowHandle) -> std::convert::Infallible {
    while let Some(event) = following.next().await {
        match event {
            FollowEvent::Refused(file) => say(context, &plain::line(&file.error.to_string())),
            FollowEvent::Approved(path) => say(context, &format!("{path} says what is approved")),
            other => tracing::info!(?other, "the configuration"),
        }
    }
    std::future::pending().await
}

fn say(context: &Context, text: &str) {
    let note = paint::paint(context.console.err, paint::NOTE, "note");
    // Where standard error is gone there is nobody to hear it, and the gateway serves all the same.
    let line = plain::shown(&format!("{note}: {}\n", plain::line(text)), context.console.err);
    let _ = io::stderr().write_all(line.as_bytes());
}
