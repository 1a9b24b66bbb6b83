//! The state that the stream and the POSTs of a connection share.

use std::sync::Arc;

use http::HeaderMap;

use crate::net::{Client, HttpEndpoint, RequestTarget};
use crate::transport::FrameSink;

/// The state that the stream and the POSTs of a connection share.
pub(super) struct SseConnection {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) client: Client,
    /// The target of POSTs.
    pub(super) message_target: RequestTarget,
    /// The headers of each POST.
    pub(super) headers: HeaderMap,
    /// The engine, which receives the messages of the server.
    pub(super) inbound: Arc<dyn FrameSink>,
}
