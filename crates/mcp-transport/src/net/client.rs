//! The HTTP client of one connection, and its errors in plain words.
//!
//! Every request goes to the origin of the place: so says whoever names a target ([`super::exchange`] of redirects, the
//! older wire of its endpoint). Absent on purpose: a limit for whole requests, which is the wires' and the engine's, and
//! redirects, which [`super::exchange`] decides about.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;

use super::connect::{Connector, StreamUse, forward_proxy, uses_tls};
use super::http1::{Http1Connection, Request, describe};
use super::loopback::is_loopback;
use super::pool::{Lease, Pool};
use super::proxy::Proxy;
use super::request_target::{RequestTarget, insert_host};
use super::response::Response;
use super::{HttpEndpoint, proxy, tls, url_endpoint};
use crate::error::disconnect::{RequestError, StartError};
use crate::transport::StreamError;

/// How often a request is sent again that an HTTP/2 server reports as not processed.
const MAX_RETRIES: usize = 2;

/// No limit is longer: nobody waits for it, and it might be more than the clock can count.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24);

/// A request that brought no response to work with.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// It was not sent, or not taken.
    Refused(RequestError),
    /// It, or a part of it, was sent, and may have been worked on.
    Lost(RequestError),
}

/// The client of one connection to a place. Dropping it closes its sockets.
pub(crate) struct Client {
    pub(super) endpoint: Arc<HttpEndpoint>,
    proxy: Option<Proxy>,
    /// Where TLS is spoken.
    tls_config: Option<Arc<ClientConfig>>,
    pool: Arc<Pool>,
    /// Held while a connection is made that others may be able to share.
    connect_lock: tokio::sync::Mutex<()>,
    /// It is known that none can be shared.
    is_http1_only: AtomicBool,
}

impl Client {
    pub(crate) fn new(place: Arc<HttpEndpoint>) -> Result<Client, StartError> {
        Client::with_proxies(place, &Matcher::from_system())
    }

    /// One that goes through these proxies.
    fn with_proxies(place: Arc<HttpEndpoint>, proxies: &Matcher) -> Result<Client, StartError> {
        let failed = |why| StartError::System(format!("the HTTP client cannot be set up: {why}"));
        let proxy = match is_loopback(&place.url) {
            true => None,
            false => proxy::proxy_for(proxies, &place.url).map_err(failed)?,
        };
        let config = match uses_tls(&place.url) {
            // The system's certificates need not be read, nor be there at all.
            false => None,
            true => {
                let mut config = tls::client_config(&place.authorities).map_err(failed)?;
                config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                Some(Arc::new(config))
            }
        };
        let alone = AtomicBool::new(config.is_none());
        Ok(Client {
            endpoint: place,
            proxy,
            tls_config: config,
            pool: Arc::default(),
            connect_lock: tokio::sync::Mutex::default(),
            is_http1_only: alone,
        })
    }

    /// The place's URL without the user and password that it may hold, and the headers of a POST, in which these are.
    pub(crate) fn post_target(&self) -> (RequestTarget, HeaderMap) {
        let url = &self.endpoint.url;
        // The host first, as servers expect it.
        let mut headers = HeaderMap::with_capacity(self.endpoint.headers.len() + 8);
        insert_host(url, &mut headers);
        headers.extend(self.endpoint.headers.clone());
        let mut basic = url_endpoint::basic_credentials(url)
            .and_then(|it| HeaderValue::try_from(format!("Basic {it}")).ok());
        if let Some(value) = &mut basic {
            value.set_sensitive(true);
        }
        if let Some(value) = basic {
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        if let Some(Some(known)) = forward_proxy(self.proxy.as_ref(), url) {
            headers.insert(PROXY_AUTHORIZATION, known.clone());
        }
        (RequestTarget::new(url.clone()), headers)
    }

    /// Does a request share nothing with others, neither a connection nor a token? Then it may be left alone at any moment
    /// without holding them up.
    #[cfg(feature = "http")]
    pub(crate) fn is_exclusive(&self) -> bool {
        self.is_http1_only.load(Ordering::Relaxed) && self.endpoint.authorization.is_none()
    }

    /// Sends a request; resolves when the head of the response is there. Cancel-safe: dropping the future closes the
    /// connection, or the stream of a connection that carries several.
    pub(super) async fn send_to(
        &self,
        target: &RequestTarget,
        method: &Method,
        headers: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Response, RequestError> {
        let label = &self.endpoint.label;
        let uris = target.uris().map_err(|why| {
            RequestError::Refused(fault(format!("the request cannot be sent to {label}: {why}")))
        })?;
        let mut unprocessed = 0;
        loop {
            let (lease, was_idle) = match self.pool.take() {
                Some(lease) => (lease, true),
                // Boxed because it is rare, and would enlarge every request's future.
                None => (Box::pin(self.connect()).await?, false),
            };
            let mut error = match lease {
                Lease::Http1(mut connection) => {
                    let uri = match forward_proxy(self.proxy.as_ref(), &self.endpoint.url) {
                        None => &uris.path,
                        Some(_) => &uris.absolute,
                    };
                    match connection.send(request(method, uri, headers, body)).await {
                        Ok(response) => {
                            return Response::http1(response, connection, &self.pool)
                                .map_err(|why| self.lost(why));
                        }
                        Err(error) => error,
                    }
                }
                Lease::Http2(mut sender) => {
                    let mut request = request(method, &uris.absolute, headers, body);
                    // The host is in the URI.
                    request.headers_mut().remove(HOST);
                    *request.version_mut() = Version::HTTP_2;
                    // Boxed because the connection's task costs more than the allocation.
                    match Box::pin(sender.try_send_request(request)).await {
                        Ok(response) => return Ok(Response::http2(response)),
                        Err(error) => error,
                    }
                }
            };
            if was_idle && error.take_message().is_some() {
                tracing::debug!("a connection to {label} was closed while it was idle");
                continue;
            }
            let error = error.into_error();
            if unprocessed < MAX_RETRIES && is_unprocessed(&error) {
                unprocessed += 1;
                continue;
            }
            return Err(self.lost(&describe(&error)));
        }
    }

    fn lost(&self, why: &str) -> RequestError {
        RequestError::Lost(fault(format!("{} broke off before it answered: {why}", self.endpoint.label)))
    }

    /// A connection to the server, or one that somebody else has just made and that can be shared.
    async fn connect(&self) -> Result<Lease, RequestError> {
        let limit = self.endpoint.connect_timeout;
        let connected = match tokio::time::timeout(limit.min(MAX_TIMEOUT), self.open_connection()).await {
            Ok(connected) => connected,
            Err(_) => {
                let why = format!("no connection within {} s", limit.as_secs_f64());
                Err(match &self.proxy {
                    Some(proxy) => format!("{}: {why}", proxy.label()),
                    None => why,
                })
            }
        };
        let label = &self.endpoint.label;
        connected.map_err(|why| RequestError::Refused(fault(format!("cannot connect to {label}: {why}"))))
    }

    async fn open_connection(&self) -> Result<Lease, String> {
        let _sharing = match self.is_http1_only.load(Ordering::Relaxed) {
            true => None,
            false => {
                let held = self.connect_lock.lock().await;
                if let Some(lease) = self.pool.take() {
                    return Ok(lease);
                }
                Some(held)
            }
        };
        let way = Connector {
            url: &self.endpoint.url,
            proxy: self.proxy.as_ref(),
            stream_use: StreamUse::Requests,
            authorities: &self.endpoint.authorities,
            tls_config: self.tls_config.as_ref(),
        };
        let line = way.connect(&|_| {}).await?;
        self.is_http1_only.store(!line.speaks_http2(), Ordering::Relaxed);
        match line.speaks_http2() {
            true => self.pool.share(line).await,
            false => Http1Connection::new(line).await.map(|connection| Lease::Http1(Box::new(connection))),
        }
        .map_err(|error| describe(&error))
    }
}

/// A request of the parts that it shares with others.
fn request(method: &Method, uri: &Uri, headers: &HeaderMap, body: Option<&Bytes>) -> Request {
    let mut request = Request::new(Full::new(body.cloned().unwrap_or_default()));
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers.clone();
    request
}

/// Whether the server reports that it has not processed the request.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let Some(error) = error.source().and_then(|it| it.downcast_ref::<h2::Error>()) else { return false };
    let said = error.is_remote().then(|| error.reason()).flatten();
    (error.is_go_away() && said == Some(h2::Reason::NO_ERROR))
        || (error.is_reset() && said == Some(h2::Reason::REFUSED_STREAM))
}

impl From<RequestError> for StreamError {
    fn from(failed: RequestError) -> StreamError {
        match failed {
            RequestError::Refused(fault) => StreamError::Refused(fault),
            RequestError::Lost(fault) => StreamError::Lost(fault),
        }
    }
}

/// A fault without a response.
pub(crate) fn fault(message: String) -> RequestError {
    RequestError { status: None, message, error: None }
}

#[cfg(test)]
mod tests;
