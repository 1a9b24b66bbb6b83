//! Skills: the extension `io.modelcontextprotocol/skills` (SEP-2640), in both eras.

use mcp_host_model::{Method, RawJson, Skill, read_skills};

use crate::error::CallError;
use crate::rpc::frame;
use crate::session::list_result::ListResult;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::lists::ListReader;
use crate::session::requests::request::{OutboundRequest, RequestParams};
use crate::session::requests::request_params;
use crate::session::requests::response::CallResponse;
use crate::session::state::Session;

impl Session {
    /// Lists all skills, within the limits of the other lists. The list is not cached. Fails with
    /// [`CallError::Unsupported`] if the server does not declare the extension. Dropping the future cancels
    /// the request.
    pub async fn list_skills(&self, options: CallOptions) -> Result<ListResult<Skill>, CallError> {
        self.require_skills()?;
        let options = CallOptions { retry: RetryPolicy::Once, ..options };
        let extra_params = request_params::extra_params(&options.context)?;
        let request =
            OutboundRequest::for_caller(Method::ListSkills, RequestParams::NONE, &options, &extra_params);
        let reader = ListReader { read_page: read_skills::<[u8]>, definition: |skill: &Skill| &skill.raw };
        self.fetch_pages(&request, &reader).await.map(|(list, _)| list)
    }

    /// Sends a request of the skills extension, `skills/list`, `skills/get` or `resources/directory/read`,
    /// and returns the result byte for byte. A cursor belongs to
    /// [`CallContext::extra_params`](crate::session::options::CallContext::extra_params). Fails with
    /// [`CallError::Unsupported`] if the server does not declare the extension.
    pub async fn skill_request_raw(
        &self,
        method: Method,
        uri: Option<&str>,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        self.require_skills()?;
        let text = uri.map(|uri| format!(r#""uri":{}"#, frame::json_string(uri))).unwrap_or_default();
        self.send_repeatable_request(method, RequestParams::members(&text), options).await
    }

    fn require_skills(&self) -> Result<(), CallError> {
        if self.negotiated().server.capabilities.skills {
            Ok(())
        } else {
            Err(CallError::Unsupported("the server has no skills".to_owned()))
        }
    }
}
