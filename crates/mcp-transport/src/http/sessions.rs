//! The current session of a connection, and the headers of its messages.
//!
//! A session id arrives with the response to `initialize` and belongs to that request's epoch. The state changes before
//! the response is delivered, because the caller may send its next message at once.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use mcp_host_model::{Era, Method, MethodName, ProtocolVersion, UrlEndpoint};
use parking_lot::Mutex;

use crate::error::ConnectError;
use crate::net::headers::{self, LAST_EVENT_ID, METHOD, NAME, PROTOCOL_VERSION, SESSION_ID};
use crate::transport::{Epoch, OutboundMessage};

/// The configured session id as a header value. Fails unless it is visible ASCII.
pub(super) fn configured_session_id(endpoint: &UrlEndpoint) -> Result<Option<HeaderValue>, ConnectError> {
    let Some(id) = &endpoint.session_id else { return Ok(None) };
    let is_visible_ascii = !id.expose().is_empty() && id.expose().bytes().all(|it| it.is_ascii_graphic());
    let value = HeaderValue::from_str(id.expose()).ok().filter(|_| is_visible_ascii);
    let Some(mut value) = value else {
        let message = "the session id may contain visible ASCII characters only".to_owned();
        return Err(ConnectError::Invalid(message));
    };
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The current session of a connection.
pub(super) struct HttpSessions(Mutex<HttpSessionState>);

/// The session, and the headers of its messages.
struct HttpSessionState {
    /// The epoch of the session.
    epoch: Epoch,
    /// The session id; `None` for a server without sessions.
    id: Option<HeaderValue>,
    /// The id is configured: the session must not be deleted.
    configured: bool,
    /// The server has reported that it does not know the session.
    lost: bool,
    /// The version of the last message in the session.
    version: Option<ProtocolVersion>,
    /// The headers of a POST without a session.
    base_headers: HeaderMap,
    /// The headers of the last message in the session, with their version.
    cached_headers: Option<(Option<ProtocolVersion>, Arc<HeaderMap>)>,
}

/// How a message relates to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageContext {
    /// `initialize` or `server/discover`.
    Handshake,
    /// In a session with an id.
    Session,
    /// In the legacy era, without a session id.
    Sessionless,
    /// In the modern era, without a session.
    Modern,
}

/// The headers of a message.
#[derive(Debug)]
pub(super) struct MessageHeaders {
    pub(super) headers: Arc<HeaderMap>,
    pub(super) context: MessageContext,
    /// Its session is the configured one.
    pub(super) configured: bool,
}

impl HttpSessions {
    /// The state of a new connection, with the headers of every message and the configured session id.
    pub(super) fn new(base_headers: HeaderMap, id: Option<HeaderValue>) -> HttpSessions {
        HttpSessions(Mutex::new(HttpSessionState {
            epoch: Epoch(0),
            configured: id.is_some(),
            id,
            lost: false,
            version: None,
            base_headers,
            cached_headers: None,
        }))
    }

    /// The headers for a message; `None` if its session is lost.
    pub(super) fn headers_for(&self, message: &OutboundMessage) -> Option<MessageHeaders> {
        let (epoch, head) = (message.epoch, &message.head);
        let mut state = self.0.lock();
        let state = &mut *state;
        // A response to a server request belongs to the session of the request.
        let version = if head.method.is_none() { state.version } else { head.version };
        let is_modern = version.is_some_and(|it| it.era() == Era::Modern);
        let is_handshake =
            head.method.as_ref().and_then(MethodName::as_known).is_some_and(Method::is_handshake);
        let is_lost = epoch < state.epoch || (epoch == state.epoch && state.lost);
        if is_lost && !is_handshake && !is_modern {
            return None;
        }
        if is_handshake || is_modern {
            let mut headers = state.base_headers.clone();
            state.insert_version(version, &mut headers);
            if is_modern && let Some(method) = &head.method {
                headers.insert(METHOD, headers::encode_header_value(method.as_str()));
                if let Some(name) = &head.name {
                    headers.insert(NAME, headers::encode_header_value(name));
                }
                for param in &head.header_params {
                    headers::insert_header_param(param, &mut headers);
                }
            }
            let context = if is_handshake { MessageContext::Handshake } else { MessageContext::Modern };
            return Some(MessageHeaders { headers: Arc::new(headers), context, configured: false });
        }
        state.version = version;
        let context = if state.id.is_some() { MessageContext::Session } else { MessageContext::Sessionless };
        Some(MessageHeaders {
            headers: state.session_headers(version),
            context,
            configured: state.configured,
        })
    }

    /// The headers of a GET in the session of `epoch`, to listen or to resume a stream; `None` if the session is lost.
    pub(super) fn listen_headers(&self, epoch: Epoch, last_id: Option<&HeaderValue>) -> Option<HeaderMap> {
        let mut state = self.0.lock();
        if state.epoch != epoch || state.lost {
            return None;
        }
        let version = state.version;
        let mut headers = headers::get_or_delete_headers((*state.session_headers(version)).clone());
        if let Some(last_id) = last_id {
            headers.insert(LAST_EVENT_ID, last_id.clone());
        }
        Some(headers)
    }

    /// Starts the session of `epoch`, with or without an id, unless it is older than the current one.
    pub(super) fn open(&self, epoch: Epoch, id: Option<HeaderValue>) {
        let mut state = self.0.lock();
        if epoch < state.epoch {
            return;
        }
        state.epoch = epoch;
        state.id = id;
        state.configured = false;
        state.lost = false;
        state.version = None;
        state.cached_headers = None;
    }

    /// Marks the session of `epoch` as lost, because the server does not know it.
    pub(super) fn mark_lost(&self, epoch: Epoch) {
        let mut state = self.0.lock();
        if state.epoch == epoch {
            state.lost = true;
        }
    }

    /// The headers that delete the session; `None` unless we opened it.
    pub(super) fn delete_headers(&self) -> Option<HeaderMap> {
        let mut state = self.0.lock();
        if state.id.is_none() || state.configured || state.lost {
            return None;
        }
        let version = state.version;
        Some(headers::get_or_delete_headers((*state.session_headers(version)).clone()))
    }
}

impl HttpSessionState {
    /// The headers of a message in the session. Cached for each version.
    fn session_headers(&mut self, version: Option<ProtocolVersion>) -> Arc<HeaderMap> {
        if let Some((cached_for, headers)) = &self.cached_headers
            && *cached_for == version
        {
            return Arc::clone(headers);
        }
        let mut headers = self.base_headers.clone();
        self.insert_version(version, &mut headers);
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        let headers = Arc::new(headers);
        self.cached_headers = Some((version, Arc::clone(&headers)));
        headers
    }

    fn insert_version(&self, version: Option<ProtocolVersion>, headers: &mut HeaderMap) {
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{HeaderParam, MessageHead};

    fn head(method: &'static str, version: Option<ProtocolVersion>) -> MessageHead {
        MessageHead::new(Some(1), method, version)
    }

    const LEGACY: Option<ProtocolVersion> = Some(ProtocolVersion::V2025_06_18);
    const MODERN: Option<ProtocolVersion> = Some(ProtocolVersion::V2026_07_28);

    /// Checks the context and our headers of a message.
    #[track_caller]
    fn check(sessions: &HttpSessions, epoch: u32, head: &MessageHead, want: &str) {
        let message = OutboundMessage { epoch: Epoch(epoch), head: head.clone(), body: bytes::Bytes::new() };
        let got = match sessions.headers_for(&message) {
            None => "lost".to_owned(),
            Some(MessageHeaders { headers, context, configured: _ }) => {
                let mirrored = ["mcp-param-region", "mcp-param-note"].map(http::HeaderName::from_static);
                let values = [PROTOCOL_VERSION, SESSION_ID, METHOD, NAME]
                    .iter()
                    .chain(&mirrored)
                    .filter_map(|it| headers.get(it)?.to_str().ok())
                    .collect::<Vec<_>>();
                format!("{context:?} {}", values.join(" ")).trim_end().to_owned()
            }
        };
        assert_eq!(got, want);
    }

    fn new_sessions() -> HttpSessions {
        HttpSessions::new(HeaderMap::new(), None)
    }

    #[test]
    fn session_id_is_visible_ascii() {
        let read = |id: &str| {
            let mut endpoint = UrlEndpoint::new("https://example.com/mcp".parse().unwrap());
            endpoint.session_id = Some(id.into());
            configured_session_id(&endpoint).map(|it| it.is_some()).map_err(|it| it.to_string())
        };
        assert_eq!(read("abc-123"), Ok(true));
        for odd in ["a b", "é", "", "a\n"] {
            assert_eq!(
                read(odd),
                Err("the session id may contain visible ASCII characters only".to_owned()),
                "{odd:?}"
            );
        }
    }

    #[test]
    fn session_belongs_to_its_epoch() {
        let sessions = new_sessions();
        check(&sessions, 0, &head("initialize", None), "Handshake");
        sessions.open(Epoch(0), Some(HeaderValue::from_static("one")));
        check(&sessions, 0, &head("tools/list", LEGACY), "Session 2025-06-18 one");
        sessions.mark_lost(Epoch(0));
        check(&sessions, 0, &head("tools/list", LEGACY), "lost");
        check(&sessions, 1, &head("initialize", None), "Handshake");
        sessions.open(Epoch(1), Some(HeaderValue::from_static("two")));
        check(&sessions, 0, &head("tools/list", LEGACY), "lost");
        check(&sessions, 1, &head("tools/list", LEGACY), "Session 2025-06-18 two");
        sessions.mark_lost(Epoch(0));
        check(&sessions, 1, &head("tools/list", LEGACY), "Session 2025-06-18 two");
    }

    #[test]
    fn server_without_sessions_is_sent_no_session_id() {
        let sessions = new_sessions();
        sessions.open(Epoch(0), None);
        check(&sessions, 0, &head("tools/list", LEGACY), "Sessionless 2025-06-18");
        assert!(sessions.delete_headers().is_none());
    }

    #[test]
    fn modern_headers_name_method_and_tool() {
        let sessions = new_sessions();
        check(&sessions, 0, &head("server/discover", MODERN), "Handshake 2026-07-28 server/discover");
        let mut call = MessageHead { name: Some("grün".into()), ..head("tools/call", MODERN) };
        check(&sessions, 0, &call, "Modern 2026-07-28 tools/call =?base64?Z3LDvG4=?=");
        let mirrored = |name: &str, value: &str| HeaderParam { name: name.into(), value: value.into() };
        call.header_params = vec![mirrored("Region", "us-west1"), mirrored("Note", " a")];
        let want = "Modern 2026-07-28 tools/call =?base64?Z3LDvG4=?= us-west1 =?base64?IGE=?=";
        check(&sessions, 0, &call, want);
        call.version = LEGACY;
        check(&sessions, 0, &call, "Sessionless 2025-06-18");
    }

    #[test]
    fn response_is_sent_in_the_session_of_its_request_only() {
        let sessions = new_sessions();
        sessions.open(Epoch(3), Some(HeaderValue::from_static("s")));
        check(&sessions, 3, &head("tools/list", LEGACY), "Session 2025-06-18 s");
        check(&sessions, 3, &MessageHead::response(None), "Session 2025-06-18 s");
        check(&sessions, 2, &MessageHead::response(None), "lost");
        sessions.mark_lost(Epoch(3));
        check(&sessions, 3, &MessageHead::response(None), "lost");
    }

    #[test]
    fn only_an_own_session_is_deleted() {
        let resumed = HttpSessions::new(HeaderMap::new(), Some(HeaderValue::from_static("theirs")));
        check(&resumed, 0, &head("tools/list", LEGACY), "Session 2025-06-18 theirs");
        assert!(resumed.delete_headers().is_none());
        resumed.mark_lost(Epoch(0));
        resumed.open(Epoch(1), Some(HeaderValue::from_static("ours")));
        assert_eq!(resumed.delete_headers().unwrap()[SESSION_ID], "ours");
        resumed.mark_lost(Epoch(1));
        assert!(resumed.delete_headers().is_none());
    }

    #[test]
    fn listening_headers_have_the_last_event_id() {
        let sessions = new_sessions();
        sessions.open(Epoch(0), Some(HeaderValue::from_static("s")));
        let headers = sessions.listen_headers(Epoch(0), Some(&HeaderValue::from_static("7"))).unwrap();
        assert_eq!(
            (&headers[SESSION_ID], &headers[LAST_EVENT_ID]),
            (&HeaderValue::from_static("s"), &HeaderValue::from_static("7"))
        );
        assert!(sessions.listen_headers(Epoch(1), None).is_none());
        sessions.mark_lost(Epoch(0));
        assert!(sessions.listen_headers(Epoch(0), None).is_none());
    }
}
