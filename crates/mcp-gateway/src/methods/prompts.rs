//! `prompts/get`.

use std::borrow::Cow;

use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Asked;
use crate::listing::Target;

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Asked<'_> {
    /// Fills a prompt in.
    pub(super) async fn get_prompt(&self) -> Result<RawJson, RpcError> {
        let Params { name, arguments } = self.read()?;
        let whole = self.params.clone().into_bytes();
        let arguments = arguments.map_or_else(RawJson::empty_object, |it| RawJson::within(&whole, it));
        if !arguments.is_object() {
            return Err(RpcError::new(code::INVALID_PARAMS, "`arguments` must be a JSON object"));
        }
        let asked = name;
        let Target { server, name } = self.prompt(&asked)?;
        let asking = self.asking(Some(server), &asked, &["name", "arguments"])?;
        let received = self.gateway.host.get_prompt_raw(&name, &arguments, asking).await;
        self.received(received.map_err(|it| self.refused(it))?, &asked)
    }

    /// The prompt that is meant.
    pub(super) fn prompt(&self, name: &str) -> Result<Target, RpcError> {
        self.listing().prompt(name).cloned().ok_or_else(|| {
            let short: String = name.chars().filter(|it| !it.is_control()).take(128).collect();
            RpcError::new(code::INVALID_PARAMS, format!("Prompt '{short}' not found"))
        })
    }
}
