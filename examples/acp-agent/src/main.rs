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

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::{ConnectTo, Stdio};
use clap::{Parser, ValueEnum};
use mcp_acp::{Capabilities, InvalidEntryPolicy, Leniency, Policy, Tolerance};
use mcp_acp_agent::{ConnectOptions, RequiredServers, SessionRegistry};
use mcp_model::EnvInherit;
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
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
    Http,
    Sse,
    Acp,
}

impl Arguments {
    fn agent(&self) -> Agent {
        let has = |transport| self.transports.contains(&transport);
        let capabilities = Capabilities {
            stdio: has(Transport::Stdio),
            http: has(Transport::Http),
            sse: has(Transport::Sse),
            acp: has(Transport::Acp),
            custom: Vec::new(),
        };
        let mut policy = Policy::default();
        if self.drop_bad_entries {
            policy.invalid_entries = InvalidEntryPolicy::Drop;
        }
        if self.lenient {
            policy.leniency = Leniency { relative_commands: Tolerance::Warn, missing_lists: Tolerance::Warn };
        }
        let mut options = ConnectOptions::default();
        if self.inherit_environment {
            options.environment = EnvInherit::All;
        }
        options.limits.startup = Duration::from_millis(self.limit.max(1));
        options.total_timeout = Duration::from_millis(self.wait);
        if self.require_all {
            options.required = RequiredServers::All;
        }
        Agent::new(capabilities, policy, options, SessionRegistry::with_capacity(self.max_sessions))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Arc::new(Arguments::parse().agent());
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
