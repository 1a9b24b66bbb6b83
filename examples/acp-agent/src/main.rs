//! A complete ACP agent, versions 1 and 2, with its user as the model: `/tool {"a": 1}` calls a tool of the session's
//! MCP servers, and the result is streamed.
//!
//! It shows how to use mcp-acp-agent. `session/new`, `load` and `resume` receive their servers raw and report all
//! errors at once. No handler blocks. A cancelled request, a closed session and a disconnected client leave no
//! process. The next agent ends the processes of a killed one.

#![forbid(unsafe_code)]

mod agent;
mod prompt;
mod turn;
mod v1;
mod v2;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::{ConnectTo, Stdio};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use mcp_host_acp::{Capabilities, InvalidEntryPolicy, Leniency, Policy, Tolerance};
use mcp_host_acp_agent::{
    ConnectOptions, OAuthLogins, RequiredServers, SessionRegistry, SharedServers, StartPolicy,
};
use mcp_host_model::EnvInheritance;
use mcp_host_runtime::{LoadRequest, load, state_path};
use tokio::signal::unix::{SignalKind, signal};

use agent::Agent;

/// An ACP agent on standard input and output.
#[derive(Parser)]
struct Arguments {
    /// The declared transports; servers with others are refused. Version 1 always has stdio, version 2 has no sse.
    #[arg(long, value_delimiter = ',', default_value = "stdio,http,sse")]
    transports: Vec<Transport>,
    /// Drop a server with an invalid entry instead of refusing the request.
    #[arg(long)]
    drop_bad_entries: bool,
    /// Accept a command that is not an absolute path, and entries without `args`, `env` or `headers`.
    #[arg(long)]
    lenient: bool,
    /// Refuse a session if one of its servers cannot be connected.
    #[arg(long)]
    require_all: bool,
    /// How long a session waits for its servers, in milliseconds. It begins without the others, which join it later.
    #[arg(long, default_value_t = 30_000)]
    wait: u64,
    /// How long a server may take to start, in milliseconds. After that it is ended, and started again later.
    #[arg(long, default_value_t = 300_000)]
    limit: u64,
    /// The number of sessions with running servers. One more stops those of the session that was idle for longest,
    /// until its next prompt.
    #[arg(long, default_value_t = 64)]
    max_sessions: usize,
    /// Start servers with the whole environment of the agent, not only with the variables that programs need to run.
    #[arg(long)]
    inherit_environment: bool,
    /// A configuration file with servers that every session has. A server of the client replaces one of the same name.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Start the servers of a session with its first prompt.
    #[arg(long)]
    first_use: bool,
    /// Have sessions with equal lists of servers use the same servers.
    #[arg(long)]
    share: bool,
    /// Log in to servers that require it, with OAuth. The client receives the page that its user has to open.
    /// Logins are stored in the user's state folder.
    #[arg(long)]
    login: bool,
    /// How long the user may take to log in, in milliseconds.
    #[arg(long, default_value_t = 300_000)]
    login_timeout: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
    Http,
    Sse,
    Acp,
}

impl Arguments {
    fn agent(&self) -> Result<Agent, Box<dyn Error>> {
        let has = |transport| self.transports.contains(&transport);
        let mut capabilities = Capabilities::STDIO;
        capabilities.stdio = has(Transport::Stdio);
        capabilities.http = has(Transport::Http);
        capabilities.sse = has(Transport::Sse);
        capabilities.acp = has(Transport::Acp);
        let mut policy = Policy::default();
        if self.drop_bad_entries {
            policy.invalid_entries = InvalidEntryPolicy::Drop;
        }
        if self.lenient {
            policy.leniency = {
                let mut leniency = Leniency::default();
                leniency.relative_commands = Tolerance::Warn;
                leniency.missing_lists = Tolerance::Warn;
                leniency
            };
        }
        let mut options = ConnectOptions::default();
        if self.inherit_environment {
            options.environment = EnvInheritance::All;
        }
        options.limits.startup = Duration::from_millis(self.limit.max(1));
        options.total_timeout = Duration::from_millis(self.wait);
        if self.require_all {
            options.required = RequiredServers::All;
        }
        if let Some(file) = &self.config {
            options.own_servers = load(&LoadRequest::new(file))?.into_desired()?;
        }
        if self.first_use {
            options.start = StartPolicy::FirstUse;
        }
        options.shared = self.share.then(SharedServers::new);
        options.set_logins(self.login.then(|| self.logins()));
        let sessions = SessionRegistry::with_capacity(self.max_sessions);
        Ok(Agent::new(capabilities, policy, options, sessions))
    }

    fn logins(&self) -> OAuthLogins {
        let logins = match state_path("acp-agent/logins", &|name| env::var_os(name)) {
            Ok(folder) => OAuthLogins::stored_in("acp-agent", folder),
            Err(_) => OAuthLogins::in_memory("acp-agent"),
        };
        let mut res = logins;
        res.timeout = Duration::from_millis(self.login_timeout);
        res
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = match Arguments::parse().agent() {
        Ok(agent) => Arc::new(agent),
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            Arguments::command().error(ErrorKind::Io, format!("{error}{cause}")).exit();
        }
    };
    let served = agent_client_protocol::Agent
        .protocol_router()
        .with_v1(v1::serve(&agent))
        .with_v2(v2::serve(&agent))
        .connect_to(Stdio::new());
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let ended = tokio::select! {
        ended = served => ended,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    };
    // All servers of the sessions end before the process does.
    agent.sessions.close_all().await;
    Ok(ended?)
}
