//! `prompts/get`.

use mcp_model::{RawJson, RpcError, code};

use super::Asked;
use crate::lists::definitions::Target;

impl Asked<'_> {
    /// Fills a prompt in.
    pub(super) async fn get_prompt(&self) -> Result<RawJson, RpcError> {
        let (asked, arguments) = self.named()?;
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
