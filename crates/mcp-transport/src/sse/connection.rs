//! One connection: what the stream and the POSTs share.

use std::sync::Arc;

use http::HeaderMap;

use crate::net::{Client, HttpEndpoint, RequestTarget};
use crate::transport::FrameSink;

/// One connection.
pub(super) struct SseConnection {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) client: Client,
    /// The target of POSTs.
    pub(super) message_target: RequestTarget,
    /// The headers of each POST.
    pub(super) headers: HeaderMap,
    pub(super) inbox: Arc<dyn FrameSink>,
}
