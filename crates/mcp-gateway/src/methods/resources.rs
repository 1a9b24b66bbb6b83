//! `resources/read`, `resources/subscribe` and `resources/unsubscribe`.

use mcp_host::RequestError;
use mcp_model::{Era, ErrorKind, RawJson, RpcError, ServerId, code};
use serde_json::json;

use super::RequestContext;
use crate::access::scope::Scope;
use crate::lists::definitions::{ListKind, Target};
use crate::lists::gateway_resources::GatewayResource;

/// Maximum size of a subscribed URI in bytes. It is limited because it is stored.
pub(super) const MAX_URI_BYTES: usize = 8 * 1024;

impl RequestContext<'_> {
    /// Reads a resource.
    pub(super) async fn read_resource(&self) -> Result<RawJson, RpcError> {
        let uri = self.text("uri")?;
        if let Some(resource) = self.gateway_resource(&uri) {
            return Ok(resource.read(&self.gateway.snapshot()));
        }
        let server = self.resource_server(&uri)?;
        let options = self.request_options(server, &uri, &["uri"])?;
        match self.gateway.host.read_resource_raw(&uri, options).await {
            Ok(result) => self.check_result(result, &uri),
            Err(request_error) => Err(self.resource_error(&uri, request_error)),
        }
    }

    /// The gateway's own resource with this URI, if the scope shows it.
    fn gateway_resource(&self, uri: &str) -> Option<GatewayResource> {
        let resources = self.gateway.options.gateway_resources.iter();
        resources.copied().find(|resource| resource.uri() == uri && self.caller.scope.is_whole())
    }

    /// Finds the server of a URI: a server that lists the resource, the scope's only server, or the server of a
    /// matching template. Otherwise the resource is not found; in an unfiltered scope the host decides (`None`).
    pub(super) fn resource_server(&self, uri: &str) -> Result<Option<ServerId>, RpcError> {
        if let Some(Target { server, .. }) = self.listing().find(ListKind::Resources, uri) {
            return Ok(Some(server.clone()));
        }
        let Scope { server, views, .. } = &*self.caller.scope;
        // A resource that is not listed can be requested from the scope's only server, unless a view filters.
        if let Some(server) = server.as_ref().filter(|_| views.is_empty()) {
            return Ok(Some(server.clone()));
        }
        if let Some(Target { server, .. }) = self.listing().matching_template(uri) {
            return Ok(Some(server.clone()));
        }
        match self.caller.scope.is_all() {
            // The host knows all servers and has the most precise error message.
            true => Ok(None),
            // An unlisted URI may belong to a server that the scope hides.
            false => Err(self.resource_not_found(uri)),
        }
    }

    /// Converts a failed request for a resource to an error. If the server does not know the resource, the error
    /// has the code of the client's era.
    fn resource_error(&self, uri: &str, request_error: RequestError) -> RpcError {
        match &request_error.rpc {
            Some(error) if matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS) => {
                let not_found = self.resource_not_found(uri);
                let data = error.data.clone().or(not_found.data);
                RpcError { code: not_found.code, message: error.message.clone(), data }
            }
            None if request_error.error.kind == ErrorKind::Validation => {
                RpcError { message: request_error.error.to_string(), ..self.resource_not_found(uri) }
            }
            Some(_) | None => self.call_error(request_error),
        }
    }

    /// The error for an unknown resource. Its code depends on the client's era.
    fn resource_not_found(&self, uri: &str) -> RpcError {
        let code = match self.caller.era() {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        };
        let uri: String = uri.chars().take(2048).collect();
        let data = RawJson::from_value(&json!({ "uri": uri })).expect("its keys are strings");
        RpcError { data: Some(data), ..RpcError::new(code, "Resource not found") }
    }

    /// Subscribes the session to a resource. A request without a session succeeds without effect.
    pub(super) async fn subscribe(&self) -> Result<RawJson, RpcError> {
        let uri = self.text("uri")?;
        let Some(session) = &self.caller.session else { return Ok(RawJson::empty_object()) };
        if self.gateway_resource(&uri).is_none() && !session.subscriptions.contains(&uri) {
            if uri.len() > MAX_URI_BYTES {
                let message = format!("the URI of a subscription may have at most {MAX_URI_BYTES} bytes");
                return Err(RpcError::new(code::INVALID_PARAMS, message));
            }
            session.subscriptions.check_limit()?;
            let options = self.request_options(self.resource_server(&uri)?, &uri, &["uri"])?;
            let subscribed = self.gateway.host.subscribe_resource(&uri, options).await;
            session.subscriptions.add(subscribed.map_err(|error| self.resource_error(&uri, error))?);
        }
        Ok(RawJson::empty_object())
    }

    /// Removes a subscription of the session.
    pub(super) async fn unsubscribe(&self) -> Result<RawJson, RpcError> {
        let uri = self.text("uri")?;
        if let Some(session) = &self.caller.session {
            session.subscriptions.remove(&uri);
        }
        Ok(RawJson::empty_object())
    }
}
