//! Everything that the client does on a connection: read all lists, and use each entry once.
//!
//! An error response is printed and does not stop the client, because some scenarios serve lists only. Other errors
//! stop it.

use mcp_host_model::{RawJson, Tool};
use mcp_host_transport::{CallError, CallOptions, Session};
use serde_json::{Map, Value, json};

use crate::{Assignment, form};

/// Reads the lists, and uses each tool, prompt and resource.
pub(crate) async fn walk(session: &Session, assignment: &Assignment) -> Result<(), String> {
    let offered = session.server().capabilities;
    let tools = session.list_tools().await.map_err(|it| it.to_string())?;
    for rejected in &tools.rejected {
        eprintln!("left out: {rejected:?}");
    }
    for (name, arguments) in planned_calls(&tools.items, assignment)? {
        let response = session.call_tool(&name, &raw(&arguments)?, CallOptions::default()).await;
        print_response(&format!("tool {name}"), response.map(|it| it.value.text().to_string()))?;
    }
    if offered.prompts {
        for prompt in session.list_prompts().await.map_err(|it| it.to_string())?.items {
            let arguments: Map<String, Value> =
                prompt.arguments().into_iter().map(|it| (it.name, json!("text"))).collect();
            let response =
                session.get_prompt(&prompt.name, &raw(&arguments.into())?, CallOptions::default()).await;
            print_response(&format!("prompt {}", prompt.name), response.map(|_| String::new()))?;
        }
    }
    if offered.resources {
        for resource in session.list_resources().await.map_err(|it| it.to_string())?.items {
            let response = session.read_resource(&resource.uri, CallOptions::default()).await;
            print_response(&format!("resource {}", resource.uri), response.map(|_| String::new()))?;
        }
    }
    Ok(())
}

/// The tools to call, with arguments from the context or from the schema.
fn planned_calls(tools: &[Tool], assignment: &Assignment) -> Result<Vec<(String, Value)>, String> {
    if let Some(given) = assignment.context["toolCalls"].as_array() {
        let call = |it: &Value| Some((it["name"].as_str()?.to_owned(), it["arguments"].clone()));
        return given.iter().map(|it| call(it).ok_or_else(|| format!("no call: {it}"))).collect();
    }
    let schema = |tool: &Tool| tool.input_schema.read::<Value>().map_err(|it| it.to_string());
    if assignment.scenario == "json-schema-2020-12-preservation" {
        // The server checks that the client has read its schema.
        let shown = tools.iter().find(|it| &*it.name == "json_schema_2020_12_tool").ok_or("no such tool")?;
        return Ok(vec![("json_schema_echo".to_owned(), json!({"schema": schema(shown)?}))]);
    }
    tools.iter().map(|it| Ok((it.name.to_string(), form::fill(&schema(it)?)))).collect()
}

/// Prints a response. Only an error without a response is an error.
fn print_response(what: &str, response: Result<String, CallError>) -> Result<(), String> {
    match response {
        Ok(text) => eprintln!("{what}: {text}"),
        Err(CallError::Rpc(error)) => eprintln!("{what}: the server responded with an error: {error}"),
        Err(error) => return Err(format!("{what}: {error}")),
    }
    Ok(())
}

/// The value as raw JSON.
fn raw(value: &Value) -> Result<RawJson, String> {
    RawJson::from_value(value).map_err(|it| it.to_string())
}
