//! `prompts/get`.

use mcp_host_model::{RpcError, ServerId, code};

use crate::lists::definitions::{CatalogList, CatalogTarget};
use crate::methods::context::{MAX_NAME_CHARS, RequestContext, to_printable};
use crate::protocol::result_body::CheckedResult;

impl RequestContext<'_> {
    /// Gets a prompt, filled in with the arguments.
    pub(super) async fn get_prompt(&self) -> Result<CheckedResult, RpcError> {
        let (requested_name, arguments) = self.name_and_arguments()?;
        let CatalogTarget { server, name } = self.find_prompt(&requested_name)?;
        self.admit_server(&server)?;
        let options = self.request_options(Some(server), &requested_name, &["name", "arguments"])?;
        let result = self.gateway.host.get_prompt_raw(&name, &arguments, options).await;
        self.check_result(result.map_err(|error| self.call_error(error))?, &requested_name)
    }

    /// Finds the prompt with this name.
    pub(super) fn find_prompt(&self, name: &str) -> Result<CatalogTarget, RpcError> {
        self.listing().find(CatalogList::Prompts, name).cloned().ok_or_else(|| {
            let may_own =
                |server: &ServerId| self.client.scope.may_show(server, |view| view.prompts.contains(name));
            if let Some(error) = self.gateway.host.unavailable_prompt(name, may_own) {
                return self.call_error(error.into());
            }
            let message = format!("Prompt '{}' not found", to_printable(name, MAX_NAME_CHARS));
            RpcError::new(code::INVALID_PARAMS, message)
        })
    }
}
