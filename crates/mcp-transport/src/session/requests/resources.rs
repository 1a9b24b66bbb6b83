//! Prompts, resources, completions, subscriptions, log levels and pings.

use std::collections::BTreeSet;

use mcp_host_model::{
    Completion, Era, LogLevel, Method, PromptResult, RawJson, ResourceResult, code, read_prompt_result,
    read_resource_result,
};
use serde_json::json;
use tokio::time::Instant;

use crate::error::CallError;
use crate::error::Expiry;
use crate::rpc::frame;
use crate::rpc::request_owner::MessageOwner;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::request::{OutboundRequest, RequestParams};
use crate::session::requests::response::CallResponse;
use crate::session::state::Session;
use crate::transport::{MessageHead, OutboundMessage};

/// The prompt or resource template that a completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "mcp-host looks up each kind, so that none is forgotten")]
pub enum CompletionReference {
    /// An argument of the prompt with this name.
    Prompt(String),
    /// A variable of this URI template.
    ResourceTemplate(String),
}

/// The argument to complete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// The name.
    pub name: String,
    /// The value that the user has entered so far.
    pub value: String,
    /// The arguments that are already known, with their values.
    pub context: Vec<(String, String)>,
}

impl CompletionArgument {
    /// An argument without a context.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> CompletionArgument {
        CompletionArgument { name: name.into(), value: value.into(), context: Vec::new() }
    }
}

/// Removes a subscription when it is dropped, because the server did not acknowledge it in time.
struct SubscriptionGuard<'a> {
    session: &'a Session,
    uri: &'a str,
}

impl Drop for SubscriptionGuard<'_> {
    fn drop(&mut self) {
        self.session.remove_subscription(self.uri);
    }
}

impl Session {
    /// Gets a prompt. `arguments` is a JSON object of strings. After a lost response the request is sent once more.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<PromptResult>, CallError> {
        let options = options.with_handled_input();
        self.get_prompt_raw(name, arguments, options).await?.try_map(|it| read_prompt_result(&it))
    }

    /// Gets a prompt and returns the result byte for byte.
    pub async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        if !arguments.is_object() {
            return Err(CallError::InvalidParams("a prompt's arguments are a JSON object".to_owned()));
        }
        self.send_repeatable_request(Method::GetPrompt, RequestParams::Named { name, arguments }, options)
            .await
    }

    /// Reads a resource. After a lost response the request is sent once more. A result is cached for the time that the
    /// server allows, unless the server announces a change.
    pub async fn read_resource(&self, uri: &str, options: CallOptions) -> Result<ResourceResult, CallError> {
        let changes = *self.connection.list_changes.borrow();
        let has_ended = self.connection.engine.disconnect().is_some();
        if let Some(cached) = self.cache.read_results.get(uri, changes, Instant::now()).filter(|_| !has_ended)
        {
            return Ok(cached);
        }
        let version = self.cache.read_results.version(changes);
        let options = options.with_handled_input();
        let response = self.read_resource_raw(uri, options).await?;
        let received_at = Instant::now();
        let result = response.try_map(|it| read_resource_result(&it))?.value;
        self.cache.read_results.insert(uri, &result, version, received_at);
        Ok(result)
    }

    /// Reads a resource and returns the result byte for byte, without using the cache.
    pub async fn read_resource_raw(
        &self,
        uri: &str,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        match self.send_repeatable_request(Method::ReadResource, RequestParams::Uri(uri), options).await {
            // The only parameter is the URI, so invalid parameters mean that the resource does not exist.
            Err(CallError::Rpc(error))
                if matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS) =>
            {
                Err(CallError::ResourceNotFound(error))
            }
            outcome => outcome,
        }
    }

    /// Completes an argument.
    pub async fn complete(
        &self,
        reference: &CompletionReference,
        argument: &CompletionArgument,
        options: CallOptions,
    ) -> Result<Completion, CallError> {
        Ok(self.complete_raw(reference, argument, options).await?.try_map(|it| it.read())?.value)
    }

    /// Completes an argument and returns the result byte for byte.
    pub async fn complete_raw(
        &self,
        reference: &CompletionReference,
        argument: &CompletionArgument,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let reference = match reference {
            CompletionReference::Prompt(name) => json!({"type": "ref/prompt", "name": name}),
            CompletionReference::ResourceTemplate(uri) => json!({"type": "ref/resource", "uri": uri}),
        };
        let CompletionArgument { name, value, context: known_arguments } = argument;
        let mut text = format!(r#""ref":{reference},"argument":{}"#, json!({"name": name, "value": value}));
        if !known_arguments.is_empty() {
            let known_arguments: serde_json::Map<_, _> =
                known_arguments.iter().map(|(name, it)| (name.clone(), json!(it))).collect();
            text.push_str(&format!(r#","context":{}"#, json!({"arguments": known_arguments})));
        }
        self.send_repeatable_request(Method::Complete, RequestParams::members(&text), options).await
    }

    /// Pings the server. The modern era has no ping.
    pub async fn ping(&self, options: CallOptions) -> Result<(), CallError> {
        if self.era() == Era::Modern {
            let message = format!("`ping` is not part of protocol version {}", self.version());
            return Err(CallError::Unsupported(message));
        }
        let options = CallOptions { retry: RetryPolicy::Once, ..options };
        self.request(&OutboundRequest::new(Method::Ping, RequestParams::NONE, &options)).await.map(drop)
    }

    /// Subscribes to changes of a resource; the session's listener receives
    /// [`ServerEvent::ResourceUpdated`](crate::ServerEvent). The subscription is repeated when the server
    /// loses the session or closes the notification stream. Resolves when the server has acknowledged it.
    pub async fn subscribe_resource(&self, uri: &str) -> Result<(), CallError> {
        match self.era() {
            Era::Legacy => {
                self.send_own_request(Method::Subscribe, RequestParams::Uri(uri)).await?;
                self.connection.subscriptions.send_if_modified(|it| it.insert(uri.to_owned()));
                Ok(())
            }
            Era::Modern => {
                let is_new = self.connection.subscriptions.send_if_modified(|it| it.insert(uri.to_owned()));
                let guard = is_new.then(|| SubscriptionGuard { session: self, uri });
                let limit = self.limits().request;
                let mut acknowledged = self.connection.subscription_ack.subscribe();
                let acknowledgement = acknowledged.wait_for(|it| it.is_acknowledged(uri).is_some());
                let is_acknowledged = tokio::select! {
                    acknowledgement = acknowledgement => acknowledgement.ok().and_then(|ack| ack.is_acknowledged(uri)),
                    ended = self.connection.disconnected() => return Err(CallError::Closed(ended)),
                    () = tokio::time::sleep(limit) => return Err(CallError::TimedOut(Expiry::Absolute(limit))),
                };
                if is_acknowledged == Some(true) {
                    std::mem::forget(guard);
                    return Ok(());
                }
                self.remove_subscription(uri);
                Err(CallError::Unsupported("the server does not send changes of this resource".to_owned()))
            }
        }
    }

    /// Ends the subscription to a resource.
    pub async fn unsubscribe_resource(&self, uri: &str) -> Result<(), CallError> {
        self.remove_subscription(uri);
        match self.era() {
            Era::Legacy => self.send_own_request(Method::Unsubscribe, RequestParams::Uri(uri)).await,
            Era::Modern => Ok(()),
        }
    }

    /// Sets the minimum level of log messages. In the modern era later requests carry it; in a reopened legacy session
    /// it is set again.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), CallError> {
        if !self.negotiated().server.capabilities.logging {
            return Err(CallError::Unsupported("the server sends no log messages".to_owned()));
        }
        match self.era() {
            Era::Legacy => {
                let text = format!(r#""level":"{level}""#);
                self.send_own_request(Method::SetLevel, RequestParams::members(&text)).await?;
                *self.log_level.lock() = Some(level);
            }
            Era::Modern => self.update_negotiated(|it| it.set_log_level(Some(level), &self.options)),
        }
        Ok(())
    }

    /// Notifies a legacy server that the roots have changed. A modern server requests them when it needs them.
    pub fn notify_roots_changed(&self) {
        if self.era() == Era::Legacy
            && self.responder.can_handle(&MessageOwner::Session, &Method::ListRoots.into())
        {
            let method = Method::RootsListChanged;
            let head = MessageHead::new(None, method, Some(self.version()));
            let body = frame::notification(method.as_str(), "", "");
            self.connection.engine.send(OutboundMessage { epoch: self.epoch(), head, body });
        }
    }

    fn remove_subscription(&self, uri: &str) {
        self.connection.subscriptions.send_if_modified(|it: &mut BTreeSet<String>| it.remove(uri));
    }
}
