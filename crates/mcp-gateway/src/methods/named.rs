//! What a call of a tool and the filling in of a prompt have in common: a name, and arguments that are an object.

use std::borrow::Cow;

use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Asked;

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Asked<'_> {
    /// What is asked for, and with which arguments: none are an empty object.
    pub(super) fn named(&self) -> Result<(Cow<'_, str>, RawJson), RpcError> {
        let Params { name, arguments } = self.read()?;
        let whole = self.params.clone().into_bytes();
        let arguments = arguments.map_or_else(RawJson::empty_object, |it| RawJson::within(&whole, it));
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        Ok((name, arguments))
    }
}
