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
    /// The called tool. `None` for other methods, and for a tool that is not listed.
    tool: Option<ListedTool>,
}

/// The tool that a request calls.
#[derive(Debug, Clone)]
struct ListedTool {
    /// The tool, for a call of the host.
    reference: ToolRef,
    /// Its position in the list.
    position: usize,
}

impl Resolution {
    /// Resolves a request. `listing` is that of the snapshot.
    pub(crate) fn new(
        snapshot: Arc<HostSnapshot>,
        listing: Arc<Listing>,
        request: &ClientRequest,
    ) -> Resolution {
        let name = request.params.name().filter(|_| request.method == Method::CallTool);
        let tool = name.and_then(|name| {
            let position = listing.position(CatalogList::Tools, name)?;
            Some(ListedTool { reference: ToolRef::new(&snapshot, position)?, position })
        });
        Resolution { snapshot, listing, tool }
    }

    /// The called tool with its server and its name in the catalog.
    pub(crate) fn called_tool(&self) -> Option<(&ToolRef, &CatalogTarget)> {
        let ListedTool { reference, position } = self.tool.as_ref()?;
        Some((reference, self.listing.target(CatalogList::Tools, *position)?))
    }

    /// The arguments of the call that headers repeat.
    pub(crate) fn header_arguments(&self) -> &[HeaderArgument] {
        self.tool.as_ref().map_or(&[], |tool| self.listing.header_arguments(tool.position))
    }

    /// Whether the request may use a leased server.
    pub(crate) fn may_use_lease(&self) -> bool {
        match &self.tool {
            Some(tool) => self.listing.is_leased(&tool.reference.tool().server),
            None => self.listing.has_leased(),
        }
    }

    /// The era of the shared connection to a server; `None` without one.
    pub(crate) fn era(&self, server: &ServerId) -> Option<Era> {
        self.snapshot.server(server)?.era
    }
}
