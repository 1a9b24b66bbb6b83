//! Requests that no caller waits for: the log level and the resource subscriptions of a new or reopened legacy session,
//! and the cancellation of tasks.
//!
//! Errors are logged only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{LogLevel, Method};

use crate::rpc::engine::{CallSettings, Engine};
use crate::rpc::frame;
use crate::rpc::handlers::ServerEvent;
use crate::rpc::outcome::RpcOutcome;
use crate::session::incoming::server_event_router::{OnSessionNotification, SessionNotification};
use crate::session::negotiated::NegotiatedSession;
use crate::session::server_error::read_error;
use crate::transport::{Epoch, MessageHead, OutboundMessage, StreamError};

/// Sends requests from a task of the connection.
#[derive(Clone)]
pub(crate) struct BackgroundRequester {
    pub(crate) engine: Arc<Engine>,
    pub(crate) negotiated: Arc<NegotiatedSession>,
    pub(crate) epoch: Epoch,
    /// The timeout of each request.
    pub(crate) timeout: Duration,
}

impl BackgroundRequester {
    /// Sets the log level.
    pub(crate) async fn set_log_level(self, level: LogLevel) {
        if let Err(error) = self.send(Method::SetLevel, None, &format!(r#""level":"{level}""#)).await {
            let server = &self.negotiated.server.name;
            tracing::warn!(server, level = level.as_str(), "the log level was not set: {error}");
        }
    }

    /// Subscribes to the resources of the previous session. Changes in between were missed, so each resource is
    /// reported as changed.
    pub(crate) async fn subscribe(
        self,
        resources: BTreeSet<String>,
        on_notification: Option<OnSessionNotification>,
    ) {
        for uri in resources {
            match self.send(Method::Subscribe, None, &format!(r#""uri":{}"#, frame::json_string(&uri))).await
            {
                Ok(()) => {
                    if let Some(on_notification) = &on_notification {
                        on_notification(SessionNotification {
                            event: ServerEvent::ResourceUpdated { uri },
                            caller: None,
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(server = self.negotiated.server.name, "not subscribed again: {error}");
                }
            }
        }
    }

    /// Sends a request and waits for its response. `name` is the value that Streamable HTTP repeats in a header. The
    /// error is a text for the log.
    pub(crate) async fn send(&self, method: Method, name: Option<&str>, params: &str) -> Result<(), String> {
        let mut head = MessageHead::new(None, method, Some(self.negotiated.version));
        head.name = name.map(Into::into);
        let message = |id| OutboundMessage {
            epoch: self.epoch,
            head: MessageHead { id: Some(id), ..head },
            body: frame::request(id, method.as_str(), params, &self.negotiated.meta),
        };
        let settings = CallSettings { timeout: Some(self.timeout), ..CallSettings::default() };
        match self.engine.call(settings, message).await.1 {
            RpcOutcome::Response { is_error: false, .. } | RpcOutcome::Closed(_) => Ok(()),
            RpcOutcome::Response { is_error: true, frame, payload_start } => {
                Err(read_error(&frame[payload_start..]).code.to_string())
            }
            RpcOutcome::StreamFailed(
                StreamError::Lost(_) | StreamError::NotExecuted(_) | StreamError::TooLarge(_),
            ) => Err("the response was lost".to_owned()),
            RpcOutcome::StreamFailed(StreamError::Unreachable(error) | StreamError::Refused(error)) => {
                Err(error.to_string())
            }
            RpcOutcome::Expired(_) => Err(format!("no response within {} s", self.timeout.as_secs_f64())),
        }
    }
}
