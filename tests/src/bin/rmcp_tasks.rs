//! A server with tasks (2026-07-28) on rmcp's `TaskManager`, over standard input and output.
//!
//! Each tool is a task if the client declares tasks: `sum` ends by itself, `ask` needs input, `fail` fails,
//! and `hold` runs until it is cancelled. Other clients receive the sum at once; the other tools refuse them.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CreateTaskResult, GetTaskParams, GetTaskResult, JsonObject, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

#[derive(Default)]
struct TaskServer {
    tasks: TaskManager,
}

impl ServerHandler for TaskServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = |properties: Value| object(json!({"type": "object", "properties": properties}));
        let numbers = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
        let tool = |name, properties| Tool::new(name, "Runs as a task.", schema(properties));
        let tools = vec![
            tool("sum", numbers),
            tool("ask", json!({})),
            tool("fail", json!({})),
            tool("hold", json!({})),
        ];
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(Value::as_i64).unwrap_or_default();
        let (name, sum) = (request.name.into_owned(), number("a") + number("b"));
        if !context.client_capabilities().is_some_and(|it| it.supports_tasks()) {
            return match name.as_str() {
                "sum" => Ok(CallToolResponse::Complete(text(sum))),
                _ => Err(ErrorData::invalid_params("it runs as a task only", None)),
            };
        }
        let options = TaskOptions::new().with_poll_interval_ms(20);
        let task = self.tasks.spawn(options, move |task| Box::pin(run(task, name, sum)));
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

async fn run(task: TaskContext, tool: String, sum: i64) -> Result<CallToolResult, TaskExit> {
    match tool.as_str() {
        "ask" => {
            let request = json!({"method": "elicitation/create", "params": {
                "mode": "form",
                "message": "Which number?",
                "requestedSchema": {"type": "object", "properties": {"number": {"type": "integer"}}},
            }});
            let request = serde_json::from_value(request).expect("it is an elicitation");
            let answer = task.request_input("number", request).await?;
            Ok(text(&answer["content"]["number"]))
        }
        "fail" => Err(TaskExit::Error(ErrorData::internal_error("the task has no luck", None))),
        "hold" => {
            task.cancelled().await;
            Err(TaskExit::Cancelled)
        }
        _ => {
            task.set_status_message("adding");
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(text(sum))
        }
    }
}

fn text(value: impl ToString) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(value.to_string())])
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let transport = rmcp::transport::stdio();
    let service = TaskServer::default().serve(transport).await.expect("the client opens a session");
    let _ = service.waiting().await;
}
