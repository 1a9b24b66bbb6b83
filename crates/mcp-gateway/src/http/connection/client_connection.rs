//! A connection of a client.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_host_model::RawJson;
use parking_lot::Mutex;

use crate::gateway::GatewayInner;
use crate::http::connection::active_requests::ActiveRequests;
use crate::http::connection::connection_table::ConnectionPermit;
use crate::session::dialog_table::ConnectionId;
use crate::session::features::ClientFeatures;

/// A connection of a client. Its dialogs end when it is dropped.
pub(crate) struct ClientConnection {
    pub(crate) id: ConnectionId,
    pub(crate) permit: ConnectionPermit,
    pub(crate) requests: ActiveRequests,
    /// The address of the other side: of the client, or of a proxy.
    pub(crate) peer: IpAddr,
    pub(crate) gateway: Arc<GatewayInner>,
    /// The capabilities in the latest request without a session. A client sends the same ones each time.
    pub(crate) features: Mutex<Option<Arc<ClientFeatures>>>,
}

impl ClientConnection {
    /// Returns the parsed capabilities of a request.
    pub(crate) fn features(&self, capabilities: &RawJson) -> Arc<ClientFeatures> {
        let mut latest = self.features.lock();
        if let Some(features) = latest.as_ref().filter(|features| features.capabilities == *capabilities) {
            return Arc::clone(features);
        }
        let features = self.gateway.features_cache.get(capabilities);
        *latest = Some(Arc::clone(&features));
        features
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.gateway.dialogs.end_connection(self.id);
    }
}
