//! `completion/complete`, and from which level on a client wants log messages.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_model::{LogLevel, RawJson, RpcError, code};
use mcp_transport::{CompletionArgument, CompletionReference};
use serde::Deserialize;

use super::Asked;
use crate::lists::definitions::Target;

/// How long servers are waited for that are to tell more, or less.
const TELLING: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "ref")]
    of: Reference,
    argument: Argument,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Context {
    arguments: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Level {
    level: String,
}

impl Asked<'_> {
    /// Says what an argument could be.
    pub(super) async fn complete(&self) -> Result<RawJson, RpcError> {
        let Params { of, argument, context } = self.request.params.read()?;
        let invalid = |what: &str| RpcError::new(code::INVALID_PARAMS, what);
        let (of, server) = match (of.kind.as_str(), of.name, of.uri) {
            ("ref/prompt", Some(name), _) => {
                let Target { server, name } = self.prompt(&name)?;
                (CompletionReference::Prompt(name), server)
            }
            ("ref/resource", _, Some(uri)) => {
                let listing = self.listing();
                let target = listing.template(&uri).or_else(|| listing.resource(&uri)).cloned();
                let Target { server, name } =
                    target.ok_or_else(|| invalid("`ref` names no resource template that is shown"))?;
                (CompletionReference::ResourceTemplate(name), server)
            }
            _ => {
                return Err(invalid(
                    "`ref` must be a `ref/prompt` with `name` or a `ref/resource` with `uri`",
                ));
            }
        };
        let Argument { name, value } = argument;
        let known = context.and_then(|it| it.arguments).unwrap_or_default().into_iter().collect();
        let argument = CompletionArgument { name, value, context: known };
        let asking = self.asking(Some(server), "", &["ref", "argument", "context"])?;
        let received = self.gateway.host.complete_raw(&of, &argument, asking).await;
        self.received(received.map_err(|it| self.refused(it))?, "")
    }

    /// Takes the level in.
    pub(super) async fn set_log_level(&self) -> Result<RawJson, RpcError> {
        let Level { level } = self.request.params.read()?;
        let level: LogLevel = level.parse().map_err(|_| {
            RpcError::new(
                code::INVALID_PARAMS,
                "`level` must be one of debug, info, notice, warning, error, critical, alert, emergency",
            )
        })?;
        if let Some(session) = &self.caller.session {
            session.set_log_level(level);
            // Servers tell as much as anybody wants to hear; each client then hears what he wants.
            let lowest = self.gateway.sessions.lowest_level().map_or(level, |it| it.min(level));
            let told = self.gateway.host.set_log_level(lowest);
            if tokio::time::timeout(TELLING, told).await.is_err() {
                tracing::debug!("not all servers have agreed to a log level yet");
            }
        }
        Ok(RawJson::empty_object())
    }
}
