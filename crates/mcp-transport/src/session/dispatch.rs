//! What the server asks and tells on its own: hands it to the handler, answers, and counts changes of lists.

use std::sync::Arc;

use async_trait::async_trait;
use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::server::Announced;
use crate::engine::{Engine, ForeignId, Incoming};

/// How many of a server's requests are answered at once.
const MOST_AT_ONCE: usize = 64;

/// How often a server has said that a list of its changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Its tools.
    pub tools: u64,
    /// Its prompts.
    pub prompts: u64,
    /// Its resources.
    pub resources: u64,
}

/// Who hears a server's notifications and answers its requests. A handler runs beside the connection, never in its
/// way: it may call back into the session, and it may take its time.
#[async_trait]
pub trait Handler: Send + Sync {
    /// A notification arrived. Called in order; must not wait.
    fn notification(&self, method: &str, params: Option<RawJson>);
    /// A request arrived; `ping` never does, it is answered here.
    async fn request(&self, method: &str, params: Option<RawJson>) -> Result<RawJson, RpcError>;
}

/// Nobody: log messages go to `tracing`, requests are declined.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

#[async_trait]
impl Handler for Unattended {
    fn notification(&self, method: &str, params: Option<RawJson>) {
        if method == "notifications/message" {
            log(params.as_ref());
        }
    }

    async fn request(&self, method: &str, _params: Option<RawJson>) -> Result<RawJson, RpcError> {
        Err(match method {
            "sampling/createMessage" => {
                RpcError::new(code::INTERNAL_ERROR, "Sampling denied: no handler is configured")
            }
            _ => RpcError::new(code::METHOD_NOT_FOUND, "Method not found"),
        })
    }
}

/// MCP's eight levels on `tracing`'s (HD-FR027): the original one is a field.
fn log(params: Option<&RawJson>) {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(default)]
        level: String,
        logger: Option<String>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let Some(Ok(Message { level, logger, data })) = params.map(RawJson::read) else { return };
    let logger = logger.unwrap_or_default();
    let data = data.map_or("", RawValue::get);
    match level.as_str() {
        "debug" => tracing::debug!(target: "mcp_server", level, logger, "{data}"),
        "info" | "notice" => tracing::info!(target: "mcp_server", level, logger, "{data}"),
        "warning" => tracing::warn!(target: "mcp_server", level, logger, "{data}"),
        _ => tracing::error!(target: "mcp_server", level, logger, "{data}"),
    }
}

/// Works until the engine is gone.
pub(crate) async fn run(
    engine: Arc<Engine>,
    mut incoming: mpsc::Receiver<Incoming>,
    handler: Arc<dyn Handler>,
    changes: watch::Sender<Changes>,
) {
    // Requests are answered beside each other, for one may wait for a person; they end with this task.
    let mut answering = JoinSet::new();
    let mut ended = std::pin::pin!(engine.gone());
    loop {
        let message = tokio::select! {
            () = &mut ended => return,
            message = incoming.recv() => message,
            _ = answering.join_next(), if !answering.is_empty() => continue,
        };
        let Some(message) = message else { return };
        engine.taken(message.frame().len());
        match message {
            Incoming::Notification { epoch: _, method, frame } => {
                changes.send_if_modified(|it| it.count(&method));
                handler.notification(&method, params(&frame));
            }
            Incoming::Request { id, method, .. } if method == "ping" => {
                engine.answer(&id, &Ok(RawJson::empty_object()));
            }
            Incoming::Request { id, .. } if answering.len() >= MOST_AT_ONCE => {
                engine.answer(&id, &Err(RpcError::new(code::INTERNAL_ERROR, "too many requests at once")));
            }
            Incoming::Request { id, method, frame } => {
                let owed = Owed { engine: Arc::clone(&engine), id, outcome: None };
                let handler = Arc::clone(&handler);
                answering.spawn(async move {
                    let outcome = handler.request(&method, params(&frame)).await;
                    owed.pay(outcome);
                });
            }
        }
    }
}

/// An answer that the server gets in any case, also from a handler that panics.
struct Owed {
    engine: Arc<Engine>,
    id: ForeignId,
    outcome: Option<Result<RawJson, RpcError>>,
}

impl Owed {
    fn pay(mut self, outcome: Result<RawJson, RpcError>) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let failed = || Err(RpcError::new(code::INTERNAL_ERROR, "the handler failed"));
        self.engine.answer(&self.id, &self.outcome.take().unwrap_or_else(failed));
    }
}

impl Changes {
    /// These lists have changed, or may have.
    pub(crate) fn add(&mut self, changed: Announced) {
        self.tools += u64::from(changed.tools);
        self.prompts += u64::from(changed.prompts);
        self.resources += u64::from(changed.resources);
    }

    fn count(&mut self, method: &str) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools += 1,
            "notifications/prompts/list_changed" => self.prompts += 1,
            "notifications/resources/list_changed" => self.resources += 1,
            _ => return false,
        }
        true
    }
}

fn params(frame: &bytes::Bytes) -> Option<RawJson> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    let message: Message<'_> = serde_json::from_slice(frame).ok()?;
    message.params.map(|it| RawJson::within(frame, it))
}
