//! References to tools of a snapshot.

use std::fmt;
use std::sync::Arc;

use mcp_host_registry::{ExposedTool, ServerSlice};

use crate::state::published::HostSnapshot;

/// A reference to a tool of a snapshot. A call of it reaches this tool, or fails if the latest snapshot has no tool
/// with the same name, server and input schema.
#[derive(Clone)]
pub struct ToolRef {
    snapshot: Arc<HostSnapshot>,
    /// The tools of its server.
    slice: Arc<ServerSlice>,
    /// The position of the tool among them.
    position: usize,
}

impl ToolRef {
    /// Creates a reference to the tool at this position of the snapshot's [catalog](mcp_host_registry::Catalog::tools),
    /// if there is one.
    pub fn new(snapshot: &Arc<HostSnapshot>, position: usize) -> Option<ToolRef> {
        let (slice, position) = snapshot.catalog.tools().locate(position)?;
        Some(ToolRef { snapshot: Arc::clone(snapshot), slice: Arc::clone(slice), position })
    }

    /// Creates a reference to a tool of the snapshot's catalog. Returns `None` if the tool is one of another catalog.
    pub fn of(snapshot: &Arc<HostSnapshot>, tool: &ExposedTool) -> Option<ToolRef> {
        let reference = ToolRef::new(snapshot, snapshot.catalog.tool_position(tool.name.as_str())?)?;
        std::ptr::eq(reference.tool(), tool).then_some(reference)
    }

    /// Returns the tool.
    pub fn tool(&self) -> &ExposedTool {
        &self.slice.tools()[self.position]
    }

    /// Returns the snapshot.
    pub fn snapshot(&self) -> &Arc<HostSnapshot> {
        &self.snapshot
    }
}

impl fmt::Debug for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool();
        let mut debug = f.debug_struct("ToolRef");
        debug.field("name", &tool.name).field("generation", &self.snapshot.generation).finish()
    }
}
