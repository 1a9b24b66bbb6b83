//! A connection of a client, as its requests see it.

use std::net::IpAddr;
use std::sync::Arc;

use crate::gateway::GatewayInner;
use crate::http::connection::connection_table::ConnectionPermit;
use crate::session::dialogs::ConnectionId;

/// A connection. Its dialogs end when it is dropped.
pub(crate) struct ClientConnection {
    pub(crate) id: ConnectionId,
    pub(crate) permit: ConnectionPermit,
    /// The address of the other side: of the client, or of a proxy.
    pub(crate) peer: IpAddr,
    gateway: Arc<GatewayInner>,
}

impl ClientConnection {
    pub(crate) fn new(
        gateway: Arc<GatewayInner>,
        permit: ConnectionPermit,
        peer: IpAddr,
    ) -> Arc<ClientConnection> {
        Arc::new(ClientConnection { id: ConnectionId::unique(), permit, peer, gateway })
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.gateway.dialogs.end_connection(self.id);
    }
}
