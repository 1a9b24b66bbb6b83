//! `resources/read`, and who wants to hear when a resource changes.

use std::time::Duration;

use mcp_host::{RequestError, RequestOptions, Subscription};
use mcp_model::{Era, ErrorKind, RawJson, RpcError, ServerId, code};
use serde_json::json;

use super::Asked;
use crate::access::scope::{Leased, Scope};
use crate::gateway::Inner;
use crate::lists::definitions::Target;
use crate::lists::gateway_resources::OwnResource;
use crate::protocol::frame::Request;
use crate::protocol::upstream_error;
use crate::session::caller::Caller;

/// How long the URI of a subscription may be, in bytes: it is kept.
const MOST_URI: usize = 8 * 1024;

/// How long servers are waited for that are to tell of their resources.
const AGREEING: Duration = Duration::from_secs(10);

impl Asked<'_> {
    /// Reads a resource.
    pub(super) async fn read_resource(&self) -> Result<RawJson, RpcError> {
        let uri = self.text("uri")?;
        if let Some(own) = self.own(&uri) {
            return Ok(own.read(&self.gateway.published()));
        }
        let server = self.home(&uri)?;
        let asking = self.asking(server, &uri, &["uri"])?;
        match self.gateway.host.read_resource_raw(&uri, asking).await {
            Ok(received) => self.received(received, &uri),
            Err(unanswered) => Err(self.not_read(&uri, unanswered)),
        }
    }

    /// It is one of the gateway's own, and shown.
    fn own(&self, uri: &str) -> Option<OwnResource> {
        let own = self.gateway.options.own_resources.iter().find(|it| it.uri() == uri)?;
        self.caller.scope.is_whole().then_some(*own)
    }

    /// Whom a URI is asked of; `None` where the host is to find out.
    pub(super) fn home(&self, uri: &str) -> Result<Option<ServerId>, RpcError> {
        if let Some(Target { server, .. }) = self.listing().resource(uri) {
            return Ok(Some(server.clone()));
        }
        let Scope { server, views, .. } = &*self.caller.scope;
        let is_offered = |it: &&ServerId| {
            views.is_empty() && (self.caller.scope.leased == Leased::Offered || self.gateway.is_shared(it))
        };
        if let Some(server) = server.as_ref().filter(is_offered) {
            return Ok(Some(server.clone()));
        }
        if let Some(Target { server, .. }) = self.listing().fitting(uri) {
            return Ok(Some(server.clone()));
        }
        match self.caller.scope.is_all() {
            // The host says best why there is none.
            true => Ok(None),
            // Whose a URI is that no list has, nobody knows before it is read: it may be one that is not to be seen.
            false => Err(self.no_such(uri)),
        }
    }

    fn not_read(&self, uri: &str, unanswered: RequestError) -> RpcError {
        let RequestError { error: failure, rpc, server } = unanswered;
        match rpc {
            Some(error) if matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS) => {
                let code = self.no_such(uri).code;
                let data = error.data.or_else(|| self.no_such(uri).data);
                RpcError { code, message: error.message, data }
            }
            Some(error) => self.refused(RequestError { error: failure, rpc: Some(error), server }),
            None if failure.kind == ErrorKind::Validation => {
                RpcError { message: failure.to_string(), ..self.no_such(uri) }
            }
            None => upstream_error::rpc_error(&failure),
        }
    }

    /// There is no such resource: the eras have different numbers for it.
    fn no_such(&self, uri: &str) -> RpcError {
        let code = match self.caller.era() {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        };
        let uri: String = uri.chars().take(2048).collect();
        let data = RawJson::from_value(&json!({ "uri": uri })).expect("its keys are strings");
        RpcError { data: Some(data), ..RpcError::new(code, "Resource not found") }
    }

    /// Wants to hear when a resource changes.
    pub(super) async fn subscribe(&self) -> Result<RawJson, RpcError> {
        let uri = self.text("uri")?;
        let Some(session) = &self.caller.session else { return Ok(RawJson::empty_object()) };
        if self.own(&uri).is_none() && !session.subscriptions.has(&uri) {
            if uri.len() > MOST_URI {
                let message = format!("a URI to subscribe to has at most {MOST_URI} bytes");
                return Err(RpcError::new(code::INVALID_PARAMS, message));
            }
            session.subscriptions.has_room()?;
            let asking = self.asking(self.home(&uri)?, &uri, &["uri"])?;
            let subscribed = self.gateway.host.subscribe_resource(&uri, asking).await;
            session.subscriptions.add(subscribed.map_err(|it| self.not_read(&uri, it))?);
        }
        Ok(RawJson::empty_object())
    }

    /// Wants to hear it no longer.
    pub(super) async fn unsubscribe(&self) -> Result<RawJson, RpcError> {
        let uri = self.text("uri")?;
        if let Some(session) = &self.caller.session {
            session.subscriptions.remove(&uri);
        }
        Ok(RawJson::empty_object())
    }
}

impl Inner {
    /// Subscribes to what a stream of the era without sessions is about; gives those that agreed, soon.
    pub(crate) async fn subscribe_all(
        &self,
        caller: &Caller,
        request: &Request,
        uris: &[String],
    ) -> Vec<Subscription> {
        let asked = Asked { gateway: self, caller, request, desk: None };
        let one = async |uri: &String| {
            let server = asked.home(uri).ok().filter(|_| uri.len() <= MOST_URI)?;
            let asking = RequestOptions { server, dialog: asked.dialog(), ..RequestOptions::default() };
            let subscribed = self.host.subscribe_resource(uri, asking);
            tokio::time::timeout(AGREEING, subscribed).await.ok()?.ok()
        };
        futures_util::future::join_all(uris.iter().map(one)).await.into_iter().flatten().collect()
    }
}
