//! `completion/complete`.

use std::collections::BTreeMap;

use mcp_host_model::{RpcError, code};
use mcp_host_transport::{CompletionArgument, CompletionReference};
use serde::Deserialize;

use crate::lists::definitions::{CatalogList, CatalogTarget};
use crate::methods::context::RequestContext;
use crate::protocol::result_body::CheckedResult;

#[derive(Deserialize)]
struct CompleteParams {
    #[serde(rename = "ref")]
    reference: ReferenceParam,
    argument: CompletedArgument,
    context: Option<CompletionContext>,
}

#[derive(Deserialize)]
struct ReferenceParam {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize)]
struct CompletedArgument {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct CompletionContext {
    arguments: Option<BTreeMap<String, String>>,
}

impl RequestContext<'_> {
    /// Completes an argument of a prompt or resource template.
    pub(super) async fn complete(&self) -> Result<CheckedResult, RpcError> {
        let CompleteParams { reference, argument, context } = self.request.params.read()?;
        let invalid = |what: &str| RpcError::new(code::INVALID_PARAMS, what);
        let (reference, server) = match (reference.kind.as_str(), reference.name, reference.uri) {
            ("ref/prompt", Some(name), _) => {
                let CatalogTarget { server, name } = self.find_prompt(&name)?;
                (CompletionReference::Prompt(name), server)
            }
            ("ref/resource", _, Some(uri)) => {
                let listing = self.listing();
                let template = listing.find(CatalogList::Templates, &uri);
                let target = template.or_else(|| listing.find(CatalogList::Resources, &uri)).cloned();
                let CatalogTarget { server, name } =
                    target.ok_or_else(|| invalid("`ref` names no resource template that is listed"))?;
                (CompletionReference::ResourceTemplate(name), server)
            }
            _ => {
                return Err(invalid(
                    "`ref` must be a `ref/prompt` with `name` or a `ref/resource` with `uri`",
                ));
            }
        };
        self.admit_server(&server)?;
        let CompletedArgument { name, value } = argument;
        let context = context.and_then(|context| context.arguments).unwrap_or_default();
        let mut argument = CompletionArgument::new(name, value);
        argument.context = context.into_iter().collect();
        let options = self.request_options(Some(server), "", &["ref", "argument", "context"])?;
        let result = self.gateway.host.complete_raw(&reference, &argument, options).await;
        self.check_result(result.map_err(|error| self.call_error(error))?, "")
    }
}
