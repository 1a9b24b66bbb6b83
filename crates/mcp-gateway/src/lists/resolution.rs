//! Resolution of a request: what it refers to is found once, in one snapshot.

use std::sync::Arc;

use mcp_host_model::{Era, HeaderArgument, Method, ServerId};
use mcp_host_runtime::{HostSnapshot, ToolRef};

use crate::lists::definitions::{CatalogList, CatalogTarget};
use crate::lists::listing::Listing;
use crate::protocol::frame::ClientRequest;

/// What a request refers to: the lists of its client in one snapshot, and the listed tool that the request calls.
#[derive(Debug, Clone)]
pub(crate) struct Resolution {
    pub(crate) snapshot: Arc<HostSnapshot>,
    pub(crate) listing: Arc<Listing>,
    /// The position of the called tool in the list and in the catalog. `None` for other methods, and for a tool that is
    /// not listed.
    tool: Option<usize>,
}

impl Resolution {
    /// Resolves a request. `listing` is that of the snapshot.
    pub(crate) fn new(
        snapshot: Arc<HostSnapshot>,
        listing: Arc<Listing>,
        request: &ClientRequest,
    ) -> Resolution {
        let name = request.params.text("name").filter(|_| request.method == Method::CallTool);
        let tool = name.and_then(|name| listing.position(CatalogList::Tools, &name));
        Resolution { snapshot, listing, tool }
    }

    /// The server and the catalog name of the called tool.
    pub(crate) fn tool_target(&self) -> Option<&CatalogTarget> {
        self.listing.target(CatalogList::Tools, self.tool?)
    }

    /// The reference of the called tool, for a call of the host.
    pub(crate) fn tool_ref(&self) -> Option<ToolRef> {
        ToolRef::new(&self.snapshot, self.tool?)
    }

    /// The arguments of the call that headers repeat.
    pub(crate) fn header_arguments(&self) -> &[HeaderArgument] {
        self.tool.map_or(&[], |at| self.listing.header_arguments(at))
    }

    /// Whether the request may use a leased server.
    pub(crate) fn may_use_lease(&self) -> bool {
        match self.tool_target() {
            Some(target) => self.listing.is_leased(&target.server),
            None => self.listing.has_leased(),
        }
    }

    /// The era of the shared connection to a server; `None` without one.
    pub(crate) fn era(&self, server: &ServerId) -> Option<Era> {
        self.snapshot.server(server)?.era
    }
}
