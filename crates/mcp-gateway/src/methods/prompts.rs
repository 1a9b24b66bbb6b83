//! `prompts/get`.

use mcp_host_model::{RpcError, code};

use crate::lists::definitions::{CatalogList, Target};
use crate::methods::context::{RequestContext, printable};
use crate::protocol::result_body::CheckedResult;

impl RequestContext<'_> {
    /// Renders a prompt.
    pub(super) async fn get_prompt(&self) -> Result<CheckedResult, RpcError> {
        let (requested_name, arguments) = self.name_and_arguments()?;
        let Target { server, name } = self.prompt(&requested_name)?;
        self.admit_server(&server)?;
        let options = self.request_options(Some(server), &requested_name, &["name", "arguments"])?;
        let result = self.gateway.host.get_prompt_raw(&name, &arguments, options).await;
        self.check_result(result.map_err(|error| self.call_error(error))?, &requested_name)
    }

    /// The prompt with this name.
    pub(super) fn prompt(&self, name: &str) -> Result<Target, RpcError> {
        self.listing().find(CatalogList::Prompts, name).cloned().ok_or_else(|| {
            let message = format!("Prompt '{}' not found", printable(name, 128));
            RpcError::new(code::INVALID_PARAMS, message)
        })
    }
}
