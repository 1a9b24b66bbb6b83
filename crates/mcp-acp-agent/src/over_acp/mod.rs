//! MCP over the ACP connection: servers that the client provides (ACPX-12).
//!
//! Each MCP request is one ACP request, `mcp/message`, from the agent to the client. The server's messages during a
//! request are notifications that carry its id. The server sends no requests and there is no session, so only MCP's
//! stateless era is supported.

mod connection;
mod message;
mod transport;

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_runtime::Dialer;

pub use connection::OverAcp;
use transport::OverAcpDial;

impl OverAcp {
    /// Returns a dialer. `servers` has the servers on the connection: their ids by name. Others are dialed by
    /// `default`.
    pub(crate) fn dialer(self, servers: HashMap<String, String>, default: Dialer) -> Dialer {
        Arc::new(move |server, options| match servers.get(server.spec.id.as_str()) {
            Some(id) => Ok(Arc::new(OverAcpDial {
                connection: self.clone(),
                server_id: id.clone(),
                max_response_bytes: options.limits.message_bytes,
            })),
            None => default(server, options),
        })
    }
}
