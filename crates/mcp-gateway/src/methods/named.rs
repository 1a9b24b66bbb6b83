//! The parameters that `tools/call` and `prompts/get` share.

use std::borrow::Cow;

use mcp_model::{RawJson, RpcError, code};

use super::RequestContext;

impl RequestContext<'_> {
    /// The name and the arguments, which default to an empty object.
    pub(super) fn name_and_arguments(&self) -> Result<(Cow<'_, str>, RawJson), RpcError> {
        let name = self.text("name")?;
        let given = self.request.params.get("arguments").filter(|it| it.as_str() != "null");
        let arguments = given.cloned().unwrap_or_else(RawJson::empty_object);
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        Ok((name, arguments))
    }
}
