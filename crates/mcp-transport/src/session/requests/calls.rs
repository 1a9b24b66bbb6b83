//! Tool calls, and requests of any method.

use mcp_host_model::{Era, Method, MethodName, RawJson, RpcError, ToolResult, code};
use tokio::time::Instant;

use crate::error::CallError;
use crate::session::options::CallOptions;
use crate::session::requests::request::{OutboundRequest, RequestParams, ServerRequestPermission};
use crate::session::requests::request_params;
use crate::session::requests::response::{CallResponse, ParsedResponse, ResultForm};
use crate::session::state::Session;

impl Session {
    /// Calls a tool. `arguments` is a JSON object.
    ///
    /// The timeout is that of `options`, otherwise the session's `limits.request`. Set [`CallOptions::retry`] if the
    /// call may be sent again after its response was lost. If the server makes a task of the call, the
    /// session waits for its result, for up to [`DEFAULT_TASK_TIMEOUT`](crate::DEFAULT_TASK_TIMEOUT) from then on; see
    /// [`Session::start_tool_call`] for another limit.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<ToolResult>, CallError> {
        let options = options.with_handled_input();
        let response = self.call(name, arguments, &options).await?;
        let Some(task) = self.created_task(&response, &options)? else { return response.into_response() };
        let options = CallOptions { timeout: None, ..options };
        // Boxed: it is rare, and would enlarge the future of every call.
        Box::pin(self.follow_task(&task, &options)).await?.try_map(|it| it.read())
    }

    /// Calls a tool and returns its result byte for byte. If the server makes a task of the call, the result describes
    /// the task.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        self.call(name, arguments, &options).await?.into_response()
    }

    /// Calls a tool, and provides input if a handler can.
    pub(super) async fn call<T: ResultForm + Send>(
        &self,
        name: &str,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<ParsedResponse<T>, CallError> {
        if !arguments.is_object() {
            return Err(CallError::InvalidParams("a tool's arguments are a JSON object".to_owned()));
        }
        let mut extra_params = request_params::extra_params(&options.context)?;
        if let Some(task) = &options.task
            && self.era() == Era::Legacy
            && self.supports_tasks()
        {
            request_params::add_task_request(&mut extra_params, task);
        }
        let request = OutboundRequest::for_caller(
            Method::CallTool,
            RequestParams::Named { name, arguments },
            options,
            &extra_params,
        );
        match self.request_with_input(&request).await {
            Err(CallError::Rpc(error)) if error.code == code::HEADER_MISMATCH => {
                // Boxed: it is rare, and it would double the size of every call's future.
                Box::pin(self.retry_with_headers(&request, error)).await
            }
            response => response,
        }
    }

    /// Lists the tools again after the server rejected a call because of its headers, and repeats the call if the new
    /// list declares other headers. The rejected call did not run.
    async fn retry_with_headers<T: ResultForm + Send>(
        &self,
        request: &OutboundRequest<'_>,
        error: RpcError,
    ) -> Result<ParsedResponse<T>, CallError> {
        let old_headers = self.negotiated().tool_headers.clone();
        self.cache.tools.clear();
        self.list_tools().await?;
        let are_unchanged = self.negotiated().tool_headers == old_headers;
        if are_unchanged { Err(CallError::Rpc(error)) } else { self.request_with_input(request).await }
    }

    /// Sends a request of any method and returns its result byte for byte. `params` is a JSON object and is sent as it
    /// is. `name` is the tool, prompt or URI that it names, which Streamable HTTP repeats in a header. A trace in
    /// `_meta` of `params` takes precedence over that of the options.
    pub async fn request_raw(
        &self,
        method: impl Into<MethodName>,
        name: Option<&str>,
        params: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let method = method.into();
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || "/_-.$".contains(char);
        if method.as_str().is_empty() || !method.as_str().chars().all(is_allowed) {
            return Err(CallError::InvalidParams("this is not a method name".to_owned()));
        }
        let (params, meta) = request_params::split_meta(params).map_err(CallError::InvalidParams)?;
        let started_at = Instant::now();
        let params = RequestParams::Members { text: &params, name };
        // A server must not send requests because of a ping.
        let server_requests = if method == Method::Ping {
            ServerRequestPermission::Denied
        } else {
            ServerRequestPermission::Granted
        };
        let request = OutboundRequest {
            method,
            params,
            extra_params: "",
            meta: &meta,
            server_requests,
            options: &options,
            started_at,
        };
        self.request(&request).await?.into_response(self.dial.as_ref())
    }
}
