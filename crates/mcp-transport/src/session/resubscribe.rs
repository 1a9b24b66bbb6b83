//! What a legacy session is told that has just been opened, also when it is opened again: which log messages are wanted, and
//! of which resources changes.
//!
//! That the server refuses it is no failure of the connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::LogLevel;

use super::handshake::{Negotiated, read_error};
use super::{OnSessionNotification, ServerEvent, SessionNotification};
use crate::rpc::engine::{CallSettings, Engine};
use crate::rpc::frame;
use crate::rpc::pending::CallOutcome;
use crate::transport::{Epoch, MessageHead, OutboundMessage, StreamError};

/// A session of the legacy era that was opened.
pub(super) struct Resubscription {
    pub(super) engine: Arc<Engine>,
    pub(super) negotiated: Arc<Negotiated>,
    pub(super) epoch: Epoch,
    /// How long an answer may take.
    pub(super) limit: Duration,
}

impl Resubscription {
    /// Asks for log messages from a level on.
    pub(super) async fn set_log_level(self, level: LogLevel) {
        if let Err(why) = self.send("logging/setLevel", &format!(r#""level":"{level}""#)).await {
            let server = &self.negotiated.server.name;
            tracing::warn!(server, level = level.as_str(), "the log level was not set: {why}");
        }
    }

    /// Asks to be told when these resources change, as the session before was asked. What has changed meanwhile is unknown.
    pub(super) async fn subscribe(self, resources: BTreeSet<String>, said: Option<OnSessionNotification>) {
        for uri in resources {
            match self.send("resources/subscribe", &format!(r#""uri":{}"#, frame::text(&uri))).await {
                Ok(()) => {
                    if let Some(said) = &said {
                        said(SessionNotification {
                            event: ServerEvent::ResourceUpdated { uri },
                            caller: None,
                        });
                    }
                }
                Err(why) => {
                    tracing::warn!(server = self.negotiated.server.name, "not subscribed again: {why}");
                }
            }
        }
    }

    async fn send(&self, method: &'static str, params: &str) -> Result<(), String> {
        let message = |id| OutboundMessage {
            epoch: self.epoch,
            head: MessageHead::new(Some(id), method.into(), Some(self.negotiated.version)),
            body: frame::request(id, method, params, ""),
        };
        let settings = CallSettings { timeout: Some(self.limit), ..CallSettings::default() };
        match self.engine.call(settings, message).await.1 {
            CallOutcome::Response { is_error: false, .. } | CallOutcome::Closed(_) => Ok(()),
            CallOutcome::Response { is_error: true, frame, payload } => {
                Err(read_error(&frame[payload..]).code.to_string())
            }
            CallOutcome::StreamFailed(
                StreamError::Lost(_) | StreamError::NotExecuted(_) | StreamError::TooLarge(_),
            ) => Err("the answer was lost".to_owned()),
            CallOutcome::StreamFailed(StreamError::Refused(fault)) => Err(fault.message),
            CallOutcome::Expired(_) => Err(format!("no answer within {} s", self.limit.as_secs_f64())),
        }
    }
}
