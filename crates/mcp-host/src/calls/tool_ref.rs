//! References to tools of a snapshot.

use std::fmt;
use std::sync::Arc;

use mcp_host_registry::ExposedTool;

use crate::state::published::HostSnapshot;

/// A reference to a tool of a snapshot. A call of it reaches this tool, or fails if the latest snapshot has no tool
/// with the same name, server and input schema.
#[derive(Clone)]
pub struct ToolRef {
    snapshot: Arc<HostSnapshot>,
    /// The position of the tool in the catalog.
    position: usize,
}

impl ToolRef {
    /// Creates a reference to the tool at this position of the snapshot's [catalog](mcp_host_registry::Catalog::tools),
    /// if there is one.
    pub fn new(snapshot: &Arc<HostSnapshot>, position: usize) -> Option<ToolRef> {
        snapshot.catalog.tools().get(position)?;
        Some(ToolRef { snapshot: Arc::clone(snapshot), position })
    }

    /// Creates a reference to a tool of the snapshot's catalog. Returns `None` if the tool is one of another catalog.
    pub fn of(snapshot: &Arc<HostSnapshot>, tool: &ExposedTool) -> Option<ToolRef> {
        let reference = ToolRef::new(snapshot, snapshot.catalog.tool_position(tool.name.as_str())?)?;
        std::ptr::eq(reference.tool(), tool).then_some(reference)
    }

    /// Returns the tool.
    pub fn tool(&self) -> &ExposedTool {
        self.snapshot.catalog.tools().get(self.position).expect("the position is in the catalog")
    }

    /// Returns the snapshot.
    pub fn snapshot(&self) -> &Arc<HostSnapshot> {
        &self.snapshot
    }

    /// Returns the tool if `snapshot` is that of this reference.
    pub(super) fn in_snapshot<'a>(&self, snapshot: &'a Arc<HostSnapshot>) -> Option<&'a ExposedTool> {
        snapshot.catalog.tools().get(self.position).filter(|_| Arc::ptr_eq(snapshot, &self.snapshot))
    }
}

impl fmt::Debug for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool();
        let mut debug = f.debug_struct("ToolRef");
        debug.field("name", &tool.name).field("generation", &self.snapshot.generation).finish()
    }
}
