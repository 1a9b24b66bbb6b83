//! A connection of a client.

use std::net::IpAddr;
use std::sync::Arc;

use crate::gateway::GatewayInner;
use crate::http::connection::active_requests::ActiveRequests;
use crate::http::connection::connection_table::ConnectionPermit;
use crate::session::dialog_table::ConnectionId;

/// A connection of a client. Its dialogs end when it is dropped.
pub(crate) struct ClientConnection {
    pub(crate) id: ConnectionId,
    pub(crate) permit: ConnectionPermit,
    pub(crate) requests: ActiveRequests,
    /// The address of the other side: of the client, or of a proxy.
    pub(crate) peer: IpAddr,
    pub(crate) gateway: Arc<GatewayInner>,
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.gateway.dialogs.end_connection(self.id);
    }
}
