//! `completion/complete` and `logging/setLevel`.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_host_model::{LogLevel, RawJson, RpcError, code};
use mcp_host_transport::{CompletionArgument, CompletionReference};
use serde::Deserialize;

use crate::lists::definitions::{CatalogList, Target};
use crate::methods::context::RequestContext;
use crate::protocol::result_body::CheckedResult;

/// How long servers may take to accept a log level.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct CompleteParams {
    #[serde(rename = "ref")]
    reference: RawReference,
    argument: CompletedArgument,
    context: Option<CompletionContext>,
}

#[derive(Deserialize)]
struct RawReference {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize)]
struct CompletedArgument {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct CompletionContext {
    arguments: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct SetLevelParams {
    level: String,
}

impl RequestContext<'_> {
    /// Completes an argument of a prompt or resource template.
    pub(super) async fn complete(&self) -> Result<CheckedResult, RpcError> {
        let CompleteParams { reference, argument, context } = self.request.params.read()?;
        let invalid = |what: &str| RpcError::new(code::INVALID_PARAMS, what);
        let (reference, server) = match (reference.kind.as_str(), reference.name, reference.uri) {
            ("ref/prompt", Some(name), _) => {
                let Target { server, name } = self.prompt(&name)?;
                (CompletionReference::Prompt(name), server)
            }
            ("ref/resource", _, Some(uri)) => {
                let listing = self.listing();
                let template = listing.find(CatalogList::Templates, &uri);
                let target = template.or_else(|| listing.find(CatalogList::Resources, &uri)).cloned();
                let Target { server, name } =
                    target.ok_or_else(|| invalid("`ref` names no resource template that is listed"))?;
                (CompletionReference::ResourceTemplate(name), server)
            }
            _ => {
                return Err(invalid(
                    "`ref` must be a `ref/prompt` with `name` or a `ref/resource` with `uri`",
                ));
            }
        };
        self.admit_server(&server)?;
        let CompletedArgument { name, value } = argument;
        let context = context.and_then(|context| context.arguments).unwrap_or_default();
        let mut argument = CompletionArgument::new(name, value);
        argument.context = context.into_iter().collect();
        let options = self.request_options(Some(server), "", &["ref", "argument", "context"])?;
        let result = self.gateway.host.complete_raw(&reference, &argument, options).await;
        self.check_result(result.map_err(|error| self.call_error(error))?, "")
    }

    /// Sets the session's log level.
    pub(super) async fn set_log_level(&self) -> Result<RawJson, RpcError> {
        let SetLevelParams { level } = self.request.params.read()?;
        let level: LogLevel = level.parse().map_err(|_| {
            RpcError::new(
                code::INVALID_PARAMS,
                "`level` must be one of debug, info, notice, warning, error, critical, alert, emergency",
            )
        })?;
        if let Some(session) = &self.caller.session {
            session.set_log_level(level);
            // Servers send at the lowest level of all sessions; the gateway filters for each session.
            let lowest = self.gateway.sessions.lowest_level().map_or(level, |lowest| lowest.min(level));
            let accepted = self.gateway.host.set_log_level(lowest);
            if tokio::time::timeout(LOG_LEVEL_TIMEOUT, accepted).await.is_err() {
                tracing::debug!("some servers did not accept the log level within {LOG_LEVEL_TIMEOUT:?}");
            }
        }
        Ok(RawJson::empty_object())
    }
}
