//! The HTTP client of one connection to a server, and its errors.
//!
//! Every request is sent to the origin of the endpoint; the callers check that. [`super::exchange`] adds tokens and
//! follows redirects. Timeouts of requests belong to the transports and the engine.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Uri, Version};
use hyper_util::client::proxy::matcher::Matcher;
use mcp_host_model::internal::is_loopback;
use rustls::ClientConfig;

use super::connect::{StreamConnector, StreamUse, proxy_authorization, speaks_tls};
use super::http1::{Request, net_failure};
use super::inline_connection::Http1Connection;
use super::pool::{Pool, PooledConnection};
use super::proxy::Proxy;
use super::request_target::{RequestTarget, insert_host};
use super::response::Response;
use super::timeouts::MAX_TIMEOUT;
use super::{HttpEndpoint, RequestParts, proxy, tls, url_endpoint};
use crate::error::disconnect::StartError;
use crate::error::net_failure::NetFailure;
use crate::error::request_error::RequestError;
use crate::transport::StreamError;

/// How often a request is sent again that an HTTP/2 server reports as not processed.
const MAX_RETRIES: usize = 2;

/// Why a request has no usable response.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// It was not sent, because there is no connection to the server.
    Unreachable(RequestError),
    /// It was not sent for another reason, or the server refused it.
    Refused(RequestError),
    /// It was sent, at least in part, and the server may have processed it.
    Lost(RequestError),
}

/// The client of one connection to an endpoint. Dropping it closes its sockets.
pub(crate) struct Client {
    pub(super) endpoint: Arc<HttpEndpoint>,
    proxy: Option<Proxy>,
    /// `None` for an endpoint without TLS.
    tls_config: Option<Arc<ClientConfig>>,
    pool: Arc<Pool>,
    /// Held while a connection is opened that other requests may share.
    connect_lock: tokio::sync::Mutex<()>,
    /// The server does not speak HTTP/2: no connection can be shared.
    is_http1_only: AtomicBool,
    /// The server has sent an HTTP response.
    has_responded: AtomicBool,
}

impl Client {
    pub(crate) async fn new(endpoint: Arc<HttpEndpoint>) -> Result<Client, StartError> {
        Client::with_proxies(endpoint, &Matcher::from_system()).await
    }

    async fn with_proxies(endpoint: Arc<HttpEndpoint>, proxies: &Matcher) -> Result<Client, StartError> {
        let failed = |failure| {
            StartError::Refused(RequestError::NotConnected { server: endpoint.label.clone(), failure })
        };
        let proxy = if is_loopback(&endpoint.url) {
            None
        } else {
            proxy::find_proxy(proxies, &endpoint.url).map_err(failed)?
        };
        // Without TLS, the system's certificates need not exist.
        let tls_config = if tls::uses_tls(&endpoint.url) {
            let mut config = tls::client_config(&endpoint.authorities).await.map_err(failed)?;
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Some(Arc::new(config))
        } else {
            None
        };
        let is_http1_only = AtomicBool::new(tls_config.is_none());
        Ok(Client {
            endpoint,
            proxy,
            tls_config,
            pool: Arc::default(),
            connect_lock: tokio::sync::Mutex::default(),
            is_http1_only,
            has_responded: AtomicBool::new(false),
        })
    }

    /// The endpoint's URL without credentials, and the headers of its requests, which contain the credentials. They are
    /// those of a POST; [`get_or_delete_headers`](super::headers::get_or_delete_headers) converts them.
    pub(crate) fn target_and_headers(&self) -> (RequestTarget, HeaderMap) {
        let url = &self.endpoint.url;
        // The host first, as servers expect it.
        let mut headers = HeaderMap::with_capacity(self.endpoint.headers.len() + 8);
        insert_host(url, &mut headers);
        headers.extend(self.endpoint.headers.clone());
        let basic = url_endpoint::basic_credentials(url)
            .and_then(|credentials| HeaderValue::try_from(format!("Basic {credentials}")).ok());
        if let Some(mut value) = basic {
            value.set_sensitive(true);
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        if let Some(Some(authorization)) = proxy_authorization(self.proxy.as_ref(), url) {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        (RequestTarget::new(url.clone()), headers)
    }

    /// Whether requests share neither a connection nor a token. A request that its task stops polling then
    /// blocks no other.
    #[cfg(feature = "http")]
    pub(crate) fn is_exclusive(&self) -> bool {
        self.is_http1_only.load(Ordering::Relaxed) && self.endpoint.authorization.is_none()
    }

    /// Sends a request as [`Client::send`] does, without a token and without following redirects. Sends it again if the
    /// server cannot have processed it.
    pub(super) async fn send_plain(
        &self,
        target: &RequestTarget,
        parts: RequestParts<'_>,
    ) -> Result<Response, ExchangeError> {
        let label = &self.endpoint.label;
        let uris = target.uris().map_err(|why| {
            ExchangeError::Refused(RequestError::Other(format!(
                "the request cannot be sent to {label}: {why}"
            )))
        })?;
        let mut retries = 0;
        loop {
            let (connection, was_idle) = match self.pool.take() {
                Some(connection) => (connection, true),
                // Boxed because it is rare, and would enlarge every request's future.
                None => (Box::pin(self.connect()).await?, false),
            };
            let mut error = match connection {
                PooledConnection::Http1(mut connection) => {
                    let uri = match proxy_authorization(self.proxy.as_ref(), &self.endpoint.url) {
                        None => &uris.path,
                        Some(_) => &uris.absolute,
                    };
                    match connection.send(new_request(uri, parts)).await {
                        Ok(response) => {
                            self.has_responded.store(true, Ordering::Relaxed);
                            return Response::http1(response, connection, &self.pool)
                                .map_err(|why| self.lost(why.into()));
                        }
                        Err(error) => error,
                    }
                }
                PooledConnection::Http2(mut sender) => {
                    let mut request = new_request(&uris.absolute, parts);
                    // The host is in the URI.
                    request.headers_mut().remove(HOST);
                    *request.version_mut() = Version::HTTP_2;
                    // Boxed because the connection's task costs more than the allocation.
                    match Box::pin(sender.try_send_request(request)).await {
                        Ok(response) => return Ok(Response::http2(response)),
                        Err(error) => Box::new(error),
                    }
                }
            };
            if was_idle && error.take_message().is_some() {
                tracing::debug!("a connection to {label} was closed while it was idle");
                continue;
            }
            let error = error.into_error();
            if retries < MAX_RETRIES && is_unprocessed(&error) {
                retries += 1;
                continue;
            }
            let failure = net_failure(&error);
            // Boxed because it is rare, and would enlarge every request's future.
            if !self.has_responded.load(Ordering::Relaxed)
                && self.proxy.is_none()
                && Box::pin(speaks_tls(&self.endpoint.url, &self.endpoint.authorities)).await
            {
                let failure = NetFailure::SpeaksTls(failure.to_string());
                return Err(ExchangeError::Refused(self.no_response(failure)));
            }
            return Err(self.lost(failure));
        }
    }

    /// The error of a request that the server may have processed.
    fn lost(&self, failure: NetFailure) -> ExchangeError {
        ExchangeError::Lost(self.no_response(failure))
    }

    fn no_response(&self, failure: NetFailure) -> RequestError {
        RequestError::NoResponse { server: self.endpoint.label.clone(), failure }
    }

    /// Opens a connection, or returns one that another request has just opened and that can be shared.
    async fn connect(&self) -> Result<PooledConnection, ExchangeError> {
        let timeout = self.endpoint.connect_timeout;
        let connected = match tokio::time::timeout(timeout.min(MAX_TIMEOUT), self.open_connection()).await {
            Ok(connected) => connected,
            Err(_) => {
                let failure = NetFailure::Other(format!("no connection within {} s", timeout.as_secs_f64()));
                Err(match &self.proxy {
                    Some(proxy) => proxy.connection_failure(failure),
                    None => failure,
                })
            }
        };
        connected.map_err(|failure| {
            let server = self.endpoint.label.clone();
            ExchangeError::Unreachable(RequestError::NotConnected { server, failure })
        })
    }

    /// Opens a connection, without a timeout.
    async fn open_connection(&self) -> Result<PooledConnection, NetFailure> {
        let _connect_lock = if self.is_http1_only.load(Ordering::Relaxed) {
            None
        } else {
            let guard = self.connect_lock.lock().await;
            if let Some(connection) = self.pool.take() {
                return Ok(connection);
            }
            Some(guard)
        };
        let connector = StreamConnector {
            url: &self.endpoint.url,
            proxy: self.proxy.as_ref(),
            stream_use: StreamUse::Requests,
            authorities: &self.endpoint.authorities,
            tls_config: self.tls_config.as_ref(),
        };
        let stream = connector.connect(&|_| {}).await?;
        self.is_http1_only.store(!stream.is_http2(), Ordering::Relaxed);
        let connection = if stream.is_http2() {
            self.pool.share(stream).await
        } else {
            Http1Connection::new(stream).await.map(|connection| PooledConnection::Http1(Box::new(connection)))
        };
        connection.map_err(|error| net_failure(&error))
    }
}

/// Builds a request with this URI.
fn new_request(uri: &Uri, RequestParts { method, headers, body, .. }: RequestParts<'_>) -> Request {
    let mut request = Request::new(body.cloned().unwrap_or_default().into());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers.clone();
    // hyper would add the header, for which the clone has no capacity.
    let length = request.headers_mut().iter_mut().find(|(name, _)| *name == CONTENT_LENGTH);
    if let (Some((_, length)), Some(body)) = (length, body) {
        *length = HeaderValue::try_from(body.len().to_string()).expect("digits are a header value");
    }
    request
}

/// Whether an HTTP/2 server reports that it has not processed the request.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let Some(error) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) else {
        return false;
    };
    let reason = error.is_remote().then(|| error.reason()).flatten();
    (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR))
        || (error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM))
}

impl ExchangeError {
    /// The error without what it means for the request.
    pub(crate) fn into_error(self) -> RequestError {
        match self {
            ExchangeError::Unreachable(error)
            | ExchangeError::Refused(error)
            | ExchangeError::Lost(error) => error,
        }
    }
}

impl From<ExchangeError> for StreamError {
    fn from(error: ExchangeError) -> StreamError {
        match error {
            ExchangeError::Unreachable(error) => StreamError::Unreachable(error),
            ExchangeError::Refused(error) => StreamError::Refused(error),
            ExchangeError::Lost(error) => StreamError::Lost(error),
        }
    }
}

#[cfg(test)]
mod tests;
