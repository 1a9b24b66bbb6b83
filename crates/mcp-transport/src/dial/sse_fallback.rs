//! Fallback from Streamable HTTP to HTTP with SSE, for servers that refuse the former as a server of 2024-11-05 would.
//!
//! A cache remembers the URLs of SSE servers. A wrong entry is dropped: the next connection starts with
//! Streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_host_model::{SseFallback, TransportKind, UrlEndpoint, code};
use url::Url;

use crate::dial::options::DialOptions;
use crate::dial::sse_servers::SseServerCache;
use crate::error::ConnectError;
use crate::error::request_error::RequestError;
use crate::http::HttpDial;
use crate::net::url_endpoint::UrlOptions;
use crate::sse::{SseDial, StreamOutcome};
use crate::transport::{Dial, HandshakeMode, Transport, TransportProbe};

/// Connects with Streamable HTTP. When the server refuses it, SSE is used as a fallback if the endpoint allows that;
/// otherwise SSE is only probed, for the error message.
pub(crate) struct HttpOrSseDial {
    http: HttpDial,
    sse: SseDial,
    url: Url,
    /// `None` if the fallback is not allowed.
    sse_servers: Option<SseServerCache>,
    /// The last connection used SSE because of the cache.
    used_cache: AtomicBool,
}

impl HttpOrSseDial {
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<HttpOrSseDial, ConnectError> {
        let url_options = options.for_url();
        let http = HttpDial::new(endpoint, &url_options)?;
        let mut sse = SseDial::new(endpoint, &url_options)?;
        let url = endpoint.url.clone();
        let is_allowed = endpoint.sse_fallback == SseFallback::Allowed;
        let sse_servers = is_allowed.then(|| options.sse_servers.clone());
        if let Some(cache) = sse_servers.clone() {
            let url = url.clone();
            sse = sse.with_observer(Arc::new(move |outcome| match outcome {
                StreamOutcome::Opened => cache.add(&url),
                StreamOutcome::Refused => cache.remove(&url),
            }));
        }
        Ok(HttpOrSseDial { http, sse, url, sse_servers, used_cache: AtomicBool::new(false) })
    }
}

impl Dial for HttpOrSseDial {
    fn dial(&self) -> Box<dyn Transport> {
        let use_sse = self.sse_servers.as_ref().is_some_and(|cache| cache.contains(&self.url));
        self.used_cache.store(use_sse, Ordering::Relaxed);
        if use_sse { self.sse.dial() } else { self.http.dial() }
    }

    fn label(&self) -> String {
        self.http.label()
    }

    fn redact(&self, text: &str) -> String {
        self.http.redact(text)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.http.redact_json(json)
    }

    fn handshake_mode(&self) -> HandshakeMode {
        self.http.handshake_mode()
    }

    fn can_lose_session(&self) -> bool {
        !self.used_cache.load(Ordering::Relaxed)
    }

    fn is_authorizing(&self) -> bool {
        self.http.is_authorizing()
    }

    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let may_fall_back = self.sse_servers.is_some() && !self.used_cache.load(Ordering::Relaxed);
        (may_fall_back && suggests_sse(refusal)).then(|| Arc::new(self.sse.clone()) as Arc<dyn Dial>)
    }

    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<TransportProbe> {
        let is_probed = self.sse_servers.is_none() && suggests_sse(refusal);
        is_probed.then(|| TransportProbe { kind: TransportKind::Sse, dial: Arc::new(self.sse.clone()) })
    }
}

/// Connects with SSE. When the server refuses it, Streamable HTTP is probed for the error message.
pub(crate) struct SseOrHttpDial {
    sse: SseDial,
    endpoint: UrlEndpoint,
    options: UrlOptions,
}

impl SseOrHttpDial {
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<SseOrHttpDial, ConnectError> {
        let options = options.for_url();
        let sse = SseDial::new(endpoint, &options)?;
        Ok(SseOrHttpDial { sse, endpoint: endpoint.clone(), options })
    }
}

impl Dial for SseOrHttpDial {
    fn dial(&self) -> Box<dyn Transport> {
        self.sse.dial()
    }

    fn label(&self) -> String {
        self.sse.label()
    }

    fn redact(&self, text: &str) -> String {
        self.sse.redact(text)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.sse.redact_json(json)
    }

    fn is_authorizing(&self) -> bool {
        self.sse.is_authorizing()
    }

    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<TransportProbe> {
        // The server was reached, and it is neither busy nor protected.
        let is_other_transport = matches!(refusal, RequestError::NotEventStream(_))
            || matches!(refusal.status()?, 400 | 404..=406 | 415 | 422);
        // Some servers answer 401 when the session is missing.
        if !is_other_transport && !refusal.wants_session() {
            return None;
        }
        let dial = HttpDial::new(&self.endpoint, &self.options).ok()?;
        Some(TransportProbe { kind: TransportKind::Http, dial: Arc::new(dial) })
    }
}

/// Whether a server with this error may support SSE. An error code of the modern era shows that it does not.
fn suggests_sse(refusal: &RequestError) -> bool {
    let modern = refusal.rpc_error().is_some_and(|it| code::is_modern(it.code));
    matches!(refusal.status(), Some(400 | 404 | 405)) && !modern
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::sse_servers::MAX_CACHED_URLS;
    use mcp_host_model::RpcError;

    use crate::error::request_error::ErrorResponse;

    #[track_caller]
    fn check(status: Option<u16>, code: Option<i64>, want: bool) {
        let mut refusal = RequestError::new("no");
        if let Some(status) = status {
            let error = code.map(|it| RpcError::new(it, "no"));
            refusal = ErrorResponse { error, ..ErrorResponse::new(status) }.into();
        }
        assert_eq!(suggests_sse(&refusal), want, "{status:?} {code:?}");
    }

    #[test]
    fn only_sse_server_errors_lead_to_the_fallback() {
        check(Some(404), None, true);
        check(Some(405), None, true);
        check(Some(400), Some(code::INVALID_REQUEST), true);
        check(Some(400), Some(code::UNSUPPORTED_PROTOCOL_VERSION), false);
        check(Some(401), None, false);
        check(Some(500), None, false);
        check(None, None, false);
    }

    #[test]
    fn cache_is_bounded_and_not_printed() {
        let cache = SseServerCache::default();
        for number in 0..MAX_CACHED_URLS + 10 {
            cache.add(&format!("https://example.com/{number}?key=secret").parse().unwrap());
        }
        assert_eq!(format!("{cache:?}"), "SseServerCache { urls: 1024 }");
    }
}
