//! A URL that may be spoken to in either of the two ways over HTTP: Streamable HTTP first, and where the server refuses
//! that as a server of 2024-11-05 would, server-sent events.
//!
//! What was found is remembered, so that a server is not asked in the wrong way each time. A memory that proves wrong is
//! dropped: the next connection begins with Streamable HTTP again.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_model::{UrlEndpoint, code};
use url::Url;

use crate::dial::endpoint::DialOptions;
use crate::error::ConnectError;
use crate::error::disconnect::RequestError;
use crate::http::HttpDial;
use crate::sse::{Opened, SseDial};
use crate::transport::{Dial, HandshakeMode, Transport};

/// How many URLs are remembered. What is forgotten is found out again.
const MOST_REMEMBERED: usize = 1024;

/// The URLs that were found to speak HTTP with server-sent events only. Clones share what they know; a host that hands
/// the same one to each [`DialOptions`] spares its servers a question at every reconnect.
#[derive(Clone, Default)]
pub struct SseServerCache(Arc<Mutex<HashSet<Url>>>);

impl SseServerCache {
    fn lock(&self) -> MutexGuard<'_, HashSet<Url>> {
        // Every change under the lock is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, url: &Url) -> bool {
        self.lock().contains(url)
    }

    fn add(&self, url: &Url) {
        let mut urls = self.lock();
        if urls.len() < MOST_REMEMBERED {
            urls.insert(url.clone());
        }
    }

    fn remove(&self, url: &Url) {
        self.lock().remove(url);
    }
}

impl fmt::Debug for SseServerCache {
    /// How many there are: a URL may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseServerCache").field("urls", &self.lock().len()).finish()
    }
}

/// Where a server can be had that may speak either way.
pub(crate) struct EitherDial {
    http: HttpDial,
    sse: SseDial,
    url: Url,
    known: SseServerCache,
    /// The last wire was one with server-sent events, for the URL was remembered.
    remembered: AtomicBool,
}

impl EitherDial {
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<EitherDial, ConnectError> {
        let (url, known) = (endpoint.url.clone(), options.sse_servers.clone());
        let (place, memory) = (url.clone(), known.clone());
        let told = move |opened| match opened {
            Opened::Yes => memory.add(&place),
            Opened::No => memory.remove(&place),
        };
        Ok(EitherDial {
            http: HttpDial::new(endpoint, options)?,
            sse: SseDial::new(endpoint, options)?.telling(Arc::new(told)),
            url,
            known,
            remembered: AtomicBool::new(false),
        })
    }
}

impl Dial for EitherDial {
    fn dial(&self) -> Box<dyn Transport> {
        let remembered = self.known.has(&self.url);
        self.remembered.store(remembered, Ordering::Relaxed);
        match remembered {
            true => self.sse.dial(),
            false => self.http.dial(),
        }
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

    fn is_authorizing(&self) -> bool {
        self.http.is_authorizing()
    }

    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let newer = !self.remembered.load(Ordering::Relaxed);
        (newer && is_older(refusal)).then(|| Arc::new(self.sse.clone()) as Arc<dyn Dial>)
    }
}

/// Where a server can be had that is to be spoken to by Streamable HTTP alone. One that refuses it is asked in the older
/// way, too, for that is what its user wants to know.
pub(crate) struct NewerDial {
    http: HttpDial,
    sse: SseDial,
}

impl NewerDial {
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<NewerDial, ConnectError> {
        Ok(NewerDial { http: HttpDial::new(endpoint, options)?, sse: SseDial::new(endpoint, options)? })
    }
}

impl Dial for NewerDial {
    fn dial(&self) -> Box<dyn Transport> {
        self.http.dial()
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

    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        is_older(refusal).then(|| Arc::new(self.sse.clone()) as Arc<dyn Dial>)
    }
}

/// May a server that refuses the newer way like this speak the older one? An error of the modern era says that it does
/// not.
fn is_older(refusal: &RequestError) -> bool {
    let modern = refusal.error.as_ref().is_some_and(|it| code::is_modern(it.code));
    matches!(refusal.status, Some(400 | 404 | 405)) && !modern
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_model::RpcError;

    #[track_caller]
    fn check(status: Option<u16>, code: Option<i64>, want: bool) {
        let error = code.map(|it| RpcError::new(it, "no"));
        let fault = RequestError { status, message: String::new(), error };
        assert_eq!(is_older(&fault), want, "{status:?} {code:?}");
    }

    #[test]
    fn only_what_an_older_server_says_leads_to_the_older_way() {
        check(Some(404), None, true);
        check(Some(405), None, true);
        check(Some(400), Some(code::INVALID_REQUEST), true);
        check(Some(400), Some(code::UNSUPPORTED_PROTOCOL_VERSION), false);
        check(Some(401), None, false);
        check(Some(500), None, false);
        check(None, None, false);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_not_printed() {
        let known = SseServerCache::default();
        for number in 0..MOST_REMEMBERED + 10 {
            known.add(&format!("https://example.com/{number}?key=secret").parse().unwrap());
        }
        assert_eq!(format!("{known:?}"), "SseServerCache { urls: 1024 }");
    }
}
