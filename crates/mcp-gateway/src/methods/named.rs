//! What a call of a tool and the filling in of a prompt have in common: a name, and arguments that are an object.

use std::borrow::Cow;

use mcp_model::{RawJson, RpcError, code};

use super::Asked;

impl Asked<'_> {
    /// What is asked for, and with which arguments: none are an empty object.
    pub(super) fn named(&self) -> Result<(Cow<'_, str>, RawJson), RpcError> {
        let name = self.text("name")?;
        let given = self.request.params.get("arguments").filter(|it| it.as_str() != "null");
        let arguments = given.cloned().unwrap_or_else(RawJson::empty_object);
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        Ok((name, arguments))
    }
}
