//! `resources/read`, `resources/subscribe` and `resources/unsubscribe`.

use std::sync::{Arc, LazyLock};

use mcp_host_model::{Era, ErrorKind, Method, RawJson, RpcError, ServerId, code};
use mcp_host_runtime::{RequestFailure, RequestOptions};
use memchr::memmem::Finder;
use serde_json::json;

use crate::access::scope::NameStyle;
use crate::lists::definitions::{CatalogList, CatalogTarget};
use crate::lists::exposed_uri;
use crate::lists::gateway_resources::GatewayResource;
use crate::methods::context::RequestContext;
use crate::protocol::result_body::CheckedResult;
use crate::session::resource_origins::OriginKey;

/// Maximum size of a URI in bytes that is subscribed or remembered.
pub(super) const MAX_URI_BYTES: usize = 8 * 1024;

/// Maximum length of a URI in an error, in characters.
const MAX_ERROR_URI_CHARS: usize = 2048;

/// The server and the URI of a resource.
pub(super) struct ResourceTarget {
    /// The server, if it is known.
    pub(super) server: Option<ServerId>,
    /// If the server is not known, the servers on which the host searches the resource; `None` for all.
    pub(super) servers: Option<Arc<[ServerId]>>,
    /// The server's URI.
    pub(super) uri: String,
}

impl ResourceTarget {
    /// A resource of this server.
    fn at(server: ServerId, uri: &str) -> ResourceTarget {
        ResourceTarget { server: Some(server), servers: None, uri: uri.to_owned() }
    }
}

impl RequestContext<'_> {
    /// Reads a resource.
    pub(super) async fn read_resource(&self) -> Result<CheckedResult, RpcError> {
        let uri = self.required_text("uri")?;
        if let Some(resource) = self.gateway_resource(&uri) {
            return Ok(resource.read(&self.gateway.snapshot()).into());
        }
        let (server_uri, options) = self.prepare_resource_request(&uri)?;
        let is_searched = options.server.is_none();
        match self.gateway.host.read_resource_raw(&server_uri, options).await {
            Ok(result) => {
                if is_searched && uri.len() <= MAX_URI_BYTES {
                    self.gateway.resource_origins.claim(&OriginKey::of(self.client), &uri, &result.server);
                }
                if is_searched {
                    // The request has been executed, so it is counted but not refused.
                    let _ = self.gateway.rate_limiters.admit_server(&result.server);
                }
                self.check_result(result, &uri)
            }
            Err(failure) => Err(self.resource_error(&uri, failure)),
        }
    }

    /// Prepares a host request for a resource: returns the server's URI and the options. Counts the request for the
    /// rate limit of the server, if that is known.
    pub(super) fn prepare_resource_request(&self, uri: &str) -> Result<(String, RequestOptions), RpcError> {
        let ResourceTarget { server, servers, uri: server_uri } = self.resource_target(uri)?;
        server.as_ref().map_or(Ok(()), |server| self.admit_server(server))?;
        Ok((server_uri, {
            let mut options = self.request_options(server, uri, &["uri"])?;
            options.servers = servers;
            options
        }))
    }

    /// Finds the gateway's own resource with this URI, if the scope shows it.
    fn gateway_resource(&self, uri: &str) -> Option<GatewayResource> {
        let resources = self.gateway.options.gateway_resources.iter();
        resources.copied().find(|resource| resource.uri() == uri && self.client.scope.is_unfiltered())
    }

    /// Finds the server of a URI. In this order: the server that lists it, the server whose tool has it, the server
    /// that sent it or its skill to this client, the server that the URI names, the scope's only server. Otherwise the
    /// host searches it on the servers that the scope shows.
    pub(super) fn resource_target(&self, uri: &str) -> Result<ResourceTarget, RpcError> {
        let listing = self.listing();
        if let Some(CatalogTarget { server, name }) = listing.find(CatalogList::Resources, uri) {
            return Ok(ResourceTarget::at(server.clone(), name));
        }
        let is_readable = |server: &ServerId, uri: &str| {
            self.shows_all_resources(server) || listing.matching_template(uri, Some(server)).is_some()
        };
        let snapshot = &self.resolution().snapshot;
        let known = [
            listing.uri_owners().get(uri).cloned(),
            self.gateway.resource_origins.get(&OriginKey::of(self.client), uri),
            self.skill_origin(uri),
        ];
        let mut known = known.into_iter().flatten();
        if let Some(server) =
            known.find(|server| snapshot.server(server).is_some() && is_readable(server, uri))
        {
            return Ok(ResourceTarget::at(server, uri));
        }
        if let Some((own, encoded)) = exposed_uri::split_server(uri)
            && let Some(server) =
                snapshot.server_ids().find(|server| exposed_uri::encode_server(server) == encoded)
            && is_readable(server, &own)
        {
            return Ok(ResourceTarget::at(server.clone(), &own));
        }
        if let Some(server) =
            self.client.scope.server.as_ref().filter(|server| self.shows_all_resources(server))
        {
            return Ok(ResourceTarget::at(server.clone(), uri));
        }
        let may_own = |server: &ServerId| {
            self.client.scope.may_show(server, |view| view.resources.contains(uri))
                || self.shows_all_resources(server)
        };
        if let Some(error) = self.gateway.host.unavailable_resource(uri, may_own) {
            return Err(self.call_error(error.into()));
        }
        if self.client.scope.is_whole_catalog() {
            // The host knows all servers and has the most precise error message.
            return Ok(ResourceTarget { server: None, servers: None, uri: uri.to_owned() });
        }
        let searched = snapshot.server_ids().filter(|server| self.shows_all_resources(server));
        let searched: Arc<[ServerId]> = searched.cloned().collect();
        match listing.matching_template(uri, None) {
            Some(CatalogTarget { server, .. }) if searched.is_empty() => {
                Ok(ResourceTarget::at(server.clone(), uri))
            }
            None if searched.is_empty() => Err(self.resource_not_found(uri)),
            Some(_) | None => {
                Ok(ResourceTarget { server: None, servers: Some(searched), uri: uri.to_owned() })
            }
        }
    }

    /// Whether the client may read any resource of a server.
    pub(super) fn shows_all_resources(&self, server: &ServerId) -> bool {
        self.client.scope.shows_all_resources(server)
    }

    /// Replaces the URIs in a server's result by exposed ones, and remembers the server of each. `requested` is the URI
    /// of `resources/read`; the results of other methods do not depend on it.
    pub(super) fn expose_uris(&self, result: RawJson, server: &ServerId, requested: &str) -> RawJson {
        // Fast path: results with URIs contain `resource`, `resourceUri` or `Resource`.
        static RESOURCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("esource"));
        let is_read = self.request.method == Method::ReadResource;
        if !is_read && RESOURCE.find(result.as_bytes()).is_none() {
            return result;
        }
        let scope = &self.client.scope;
        if scope.server.is_some() && scope.names == NameStyle::Original {
            return result;
        }
        let (listing, origin_key) = (self.latest_listing(), OriginKey::of(self.client));
        let requested_own = exposed_uri::split_server(requested).map(|(own, _)| own).filter(|_| is_read);
        exposed_uri::replace_uris(&result, |uri| {
            if uri.len() > MAX_URI_BYTES || (is_read && uri == requested) {
                return None;
            }
            if requested_own.as_deref() == Some(uri) {
                return Some(requested.to_owned());
            }
            let first = self.gateway.resource_origins.claim(&origin_key, uri, server);
            let owner = listing.uri_owners().get(uri).unwrap_or(&first);
            (owner != server).then(|| exposed_uri::with_server(uri, server))
        })
    }

    /// Converts a failed request for a resource into the error for the client. If the server does not know the
    /// resource, the error has the code of the client's era.
    pub(super) fn resource_error(&self, uri: &str, failure: RequestFailure) -> RpcError {
        match &failure.rpc {
            Some(error) if matches!(error.code, code::RESOURCE_NOT_FOUND | code::INVALID_PARAMS) => {
                let not_found = self.resource_not_found(uri);
                let data = error.data.clone().or(not_found.data);
                RpcError { code: not_found.code, message: error.message.clone(), data }
            }
            None if failure.error.kind == ErrorKind::Validation => {
                RpcError { message: failure.error.to_string(), ..self.resource_not_found(uri) }
            }
            Some(_) | None => self.call_error(failure),
        }
    }

    /// The error for an unknown resource. Its code depends on the client's era.
    fn resource_not_found(&self, uri: &str) -> RpcError {
        let code = match self.client.era() {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        };
        let uri: String = uri.chars().take(MAX_ERROR_URI_CHARS).collect();
        let data = RawJson::from_value(&json!({ "uri": uri })).expect("its keys are strings");
        RpcError { data: Some(data), ..RpcError::new(code, "Resource not found") }
    }

    /// Subscribes the session to a resource. A request without a session succeeds without effect.
    pub(super) async fn subscribe(&self) -> Result<RawJson, RpcError> {
        let uri = self.required_text("uri")?;
        let Some(session) = &self.client.session else { return Ok(RawJson::empty_object()) };
        if self.gateway_resource(&uri).is_none() && !session.subscriptions.contains(&uri) {
            if uri.len() > MAX_URI_BYTES {
                let message = format!("the URI of a subscription may have at most {MAX_URI_BYTES} bytes");
                return Err(RpcError::new(code::INVALID_PARAMS, message));
            }
            session.subscriptions.check_limit()?;
            let (server_uri, options) = self.prepare_resource_request(&uri)?;
            let subscribed = self.gateway.host.subscribe_resource(&server_uri, options).await;
            let subscribed = subscribed.map_err(|error| self.resource_error(&uri, error))?;
            session.subscriptions.add(&uri, subscribed);
        }
        Ok(RawJson::empty_object())
    }

    /// Removes a subscription of the session.
    pub(super) async fn unsubscribe(&self) -> Result<RawJson, RpcError> {
        let uri = self.required_text("uri")?;
        if let Some(session) = &self.client.session {
            session.subscriptions.remove(&uri);
        }
        Ok(RawJson::empty_object())
    }
}
