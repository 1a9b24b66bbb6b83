//! Tasks: `tasks/get`, `tasks/result`, `tasks/update` and `tasks/cancel` of servers whose era is that of the client.
//!
//! A client receives a task only if it supports tasks in its era, which must be the era of the server.
//! Otherwise the host waits for the result of the task, and the client receives that. Clients hold [sealed
//! ids](crate::protocol::task_ids).

use mcp_host_model::{Era, Method, RawJson, RpcError, ServerId, TASKS_EXTENSION, code};
use mcp_host_runtime::{RawResult, RequestOptions, TaskHandling};
use serde_json::json;

use crate::methods::context::RequestContext;
use crate::methods::server_result::{REPEATED_MEMBER, check_input_requests, protocol_error};
use crate::protocol::json_splice;
use crate::protocol::result_body::CheckedResult;
use crate::protocol::task_ids::task_id;

impl RequestContext<'_> {
    /// Decides whether a task that the server creates is returned to the client, or followed by the host.
    pub(super) fn task_handling(&self, server: Option<&ServerId>) -> TaskHandling {
        let requests_task = match self.client.era() {
            Era::Legacy => self.request.params.get("task").is_some(),
            Era::Modern => self.client.features.supports_tasks,
        };
        let era = server.filter(|_| requests_task).and_then(|it| self.resolution().era(it));
        match era == Some(self.client.era()) {
            true => TaskHandling::Return,
            false => TaskHandling::Follow,
        }
    }

    /// Fails if a stateless client does not declare tasks.
    pub(super) fn require_tasks(&self) -> Result<(), RpcError> {
        if self.client.era() == Era::Modern && !self.client.features.supports_tasks {
            let required = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
            let error = RpcError::new(code::MISSING_CLIENT_CAPABILITY, "the client does not declare tasks");
            return Err(RpcError { data: RawJson::from_value(&required).ok(), ..error });
        }
        Ok(())
    }

    /// Handles a request about a task.
    pub(super) async fn handle_task_request(&self, method: Method) -> Result<CheckedResult, RpcError> {
        self.require_tasks()?;
        let sealed = self.required_text("taskId")?;
        let opened = self.gateway.task_id_sealer.open(&self.client.principal, &sealed);
        let opened = opened.filter(|(server, _)| {
            // A server that does not run has no era; the host reports it.
            !self.listing().hides_server(server)
                && self.resolution().era(server).is_none_or(|it| it == self.client.era())
        });
        let Some((server, id)) = opened else {
            return Err(RpcError::new(code::INVALID_PARAMS, "there is no such task"));
        };
        self.admit_server(&server)?;
        let input = self.request.params.get("inputResponses");
        let mut options = RequestOptions::default();
        options.server = Some(server.clone());
        options.dialog = self.client.dialog_id();
        options.context = self.base_context();
        let result = self.gateway.host.send_task_request_raw(method, &id, input, options).await;
        let RawResult { result, info, .. } = result.map_err(|it| self.call_error(it))?;
        let result = self.check_task(&server, result)?;
        Ok(CheckedResult { object: self.expose_uris(result, &server, ""), info })
    }

    /// Checks that the client supports the input requests of a task, and seals the task's id.
    pub(super) fn check_task(&self, server: &ServerId, result: RawJson) -> Result<RawJson, RpcError> {
        let failed = |what: &str| protocol_error(server, what);
        {
            let members = json_splice::members(&result);
            let mut requests =
                members.iter().filter(|(key, _)| key == "inputRequests").map(|(_, value)| value);
            let first = requests.next().filter(|it| it.as_str() != "null");
            if requests.next().is_some() {
                return Err(failed(REPEATED_MEMBER));
            }
            if let Some(requests) = first {
                let supported = self.client.features.supported_requests;
                check_input_requests(supported, requests).map_err(|reason| failed(&reason))?;
            }
        }
        let sealed = self.gateway.task_id_sealer.seal_ids_in(&self.client.principal, server, &result);
        let sealed = sealed.ok_or_else(|| failed("uses a task id that is too long"))?;
        if let (Some(session), Some(id)) = (&self.client.session, task_id(&result)) {
            session.known_tasks.add(server, &id);
        }
        Ok(sealed)
    }
}
