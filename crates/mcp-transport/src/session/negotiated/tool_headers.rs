//! Tool arguments that are sent as headers too (`x-mcp-header`, 2026-07-28). A tool with an invalid mark is rejected,
//! because it cannot be called as its server expects.

use std::collections::HashMap;

use mcp_host_model::{HeaderArgument, InvalidHeaderMark, RawJson, Tool};
use serde_json::Value;

use crate::transport::HeaderParam;

/// The arguments that calls of a server's tools repeat in headers. Tools without such arguments are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolHeaders(HashMap<Box<str>, Vec<HeaderArgument>>);

impl ToolHeaders {
    /// Adds the arguments of a tool. Fails if it has an invalid mark.
    pub(crate) fn add_tool(&mut self, tool: &Tool) -> Result<(), InvalidHeaderMark> {
        let repeated = HeaderArgument::all_in(&tool.input_schema)?;
        if !repeated.is_empty() {
            self.0.insert(tool.name.clone(), repeated);
        }
        Ok(())
    }

    /// Whether no tool has such arguments.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers of one call. Fails when an argument cannot be a header.
    pub(crate) fn for_call(&self, tool: &str, arguments: &RawJson) -> Result<Vec<HeaderParam>, String> {
        let Some(repeated) = self.0.get(tool) else { return Ok(Vec::new()) };
        let arguments: Value = arguments.read().map_err(|error| error.to_string())?;
        let param = |repeated: &HeaderArgument| {
            let value = repeated.text(&arguments)?.into();
            Some(HeaderParam { name: repeated.mark().into(), value })
        };
        Ok(repeated.iter().filter_map(param).collect())
    }
}
