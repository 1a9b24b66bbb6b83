//! Resolution of a request: what it refers to is found once, in one snapshot.

use std::sync::Arc;

use mcp_host_model::{Era, HeaderArgument, Method, ServerId};
use mcp_host_runtime::{HostSnapshot, ToolRef};

use crate::lists::definitions::{CatalogList, CatalogTarget, DefinitionRef};
use crate::lists::listing::Listing;
use crate::protocol::frame::ClientRequest;

/// What a request refers to: the lists of its client in one snapshot, and the listed tool that the request calls.
#[derive(Debug, Clone)]
pub(crate) struct Resolution {
    pub(crate) snapshot: Arc<HostSnapshot>,
    pub(crate) listing: Arc<Listing>,
    /// The called tool. `None` for other methods, and for a tool that is not listed.
    pub(crate) tool: Option<ResolvedTool>,
}

/// The listed tool that a request calls.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedTool {
    /// The tool, for a call of the host.
    pub(crate) tool: ToolRef,
    definition: DefinitionRef,
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
            let at = listing.position(CatalogList::Tools, name)?;
            let definition = listing.tool_definition(at);
            Some(ResolvedTool { tool: ToolRef::new(&snapshot, at)?, definition })
        });
        Resolution { snapshot, listing, tool }
    }

    /// The arguments of the call that headers repeat.
    pub(crate) fn header_arguments(&self) -> &[HeaderArgument] {
        self.tool.as_ref().map_or(&[], |tool| tool.definition.header_arguments())
    }

    /// Whether the request may use a leased server.
    pub(crate) fn may_use_lease(&self) -> bool {
        match &self.tool {
            Some(tool) => self.listing.is_leased(&tool.tool.tool().server),
            None => self.listing.has_leased(),
        }
    }

    /// The era of the shared connection to a server; `None` without one.
    pub(crate) fn era(&self, server: &ServerId) -> Option<Era> {
        self.snapshot.server(server)?.era
    }
}

impl ResolvedTool {
    /// The server and the catalog name of the tool.
    pub(crate) fn target(&self) -> &CatalogTarget {
        self.definition.target().expect("a tool is of a server")
    }
}
