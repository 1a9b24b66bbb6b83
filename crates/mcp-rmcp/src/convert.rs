//! Conversions between rmcp's types and ours.

use mcp_host_model::{Content, RawJson, RpcError, Tool, ToolResult};
use rmcp::model;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Why a value cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be converted: {reason}")]
pub struct ConvertError {
    /// The value: `the tool`.
    what: &'static str,
    /// The reason, without text of the value.
    reason: String,
}

/// Converts a value by its JSON. `what` names it in the error.
fn through_json<T: DeserializeOwned>(what: &'static str, value: &impl Serialize) -> Result<T, ConvertError> {
    let json =
        serde_json::to_string(value).map_err(|error| ConvertError { what, reason: error.to_string() })?;
    serde_json::from_str(&json).map_err(|error| ConvertError { what, reason: error.to_string() })
}

/// Converts a tool to rmcp. Members that rmcp does not know are lost.
pub fn tool_to_rmcp(tool: &Tool) -> Result<model::Tool, ConvertError> {
    through_json("the tool", &tool.raw)
}

/// Converts a tool from rmcp. Fails when its name is empty, which rmcp allows.
pub fn tool_from_rmcp(tool: &model::Tool) -> Result<Tool, ConvertError> {
    const WHAT: &str = "the tool";
    let page = RawJson::from_value(&json!({ "tools": [tool] }));
    let page = page.map_err(|error| ConvertError { what: WHAT, reason: error.to_string() })?;
    let page = mcp_host_model::read_tools(&page);
    let mut page = page.map_err(|error| ConvertError { what: WHAT, reason: error.to_string() })?;
    let reason = || page.rejected.first().map_or_else(String::new, |it| it.reason.clone());
    page.items.pop().ok_or_else(|| ConvertError { what: WHAT, reason: reason() })
}

/// Converts a content block from rmcp. Blocks of an unknown kind are kept as JSON.
pub fn content_from_rmcp(content: &model::ContentBlock) -> Result<Content, ConvertError> {
    let wrapped: ToolResult = through_json("the content", &json!({ "content": [content] }))?;
    let block = wrapped.content.into_iter().next();
    block.ok_or(ConvertError { what: "the content", reason: "it is empty".to_owned() })
}

/// Converts a content block to rmcp. Fails for a kind that rmcp does not know, and for invalid data.
pub fn content_to_rmcp(content: &Content) -> Result<model::ContentBlock, ConvertError> {
    let what = "the content";
    let json = match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { data, mime_type } => json!({ "type": "image", "data": data, "mimeType": mime_type }),
        Content::Audio { data, mime_type } => json!({ "type": "audio", "data": data, "mimeType": mime_type }),
        Content::Binary { data, mime_type, uri, text } => {
            let reason = || "a resource needs its URI".to_owned();
            let uri = uri.as_ref().ok_or_else(|| ConvertError { what, reason: reason() })?;
            let mut resource = json!({ "uri": uri });
            if let Some(mime_type) = mime_type {
                resource["mimeType"] = json!(mime_type);
            }
            match text {
                Some(text) => resource["text"] = json!(text),
                // A link has no data of its own.
                None if data.is_empty() => {
                    resource["type"] = json!("resource_link");
                    resource["name"] = json!(uri);
                    return through_json(what, &resource);
                }
                None => resource["blob"] = json!(data),
            }
            json!({ "type": "resource", "resource": resource })
        }
        other => return through_json(what, other),
    };
    through_json(what, &json)
}

/// Converts a tool result from rmcp.
pub fn result_from_rmcp(result: &model::CallToolResult) -> Result<ToolResult, ConvertError> {
    // An explicit null is a structured result; serde would read it as absent.
    let mut res: ToolResult = through_json("the result", result)?;
    res.structured = match &result.structured_content {
        Some(value) => RawJson::from_value(value).ok(),
        None => None,
    };
    Ok(res)
}

/// Converts a tool result to rmcp. Fails when one of its blocks fails.
pub fn result_to_rmcp(result: &ToolResult) -> Result<model::CallToolResult, ConvertError> {
    let content: Result<Vec<_>, _> = result.content.iter().map(content_to_rmcp).collect();
    let mut json = json!({ "content": content?, "isError": result.is_error });
    if let Some(structured) = &result.structured {
        let value = structured.read::<serde_json::Value>();
        json["structuredContent"] =
            value.map_err(|error| ConvertError { what: "the result", reason: error.to_string() })?;
    }
    through_json("the result", &json)
}

/// Converts an error from rmcp.
pub fn error_from_rmcp(error: &model::ErrorData) -> RpcError {
    let data = error.data.as_ref().and_then(|it| RawJson::from_value(it).ok());
    RpcError { code: i64::from(error.code.0), message: error.message.to_string(), data }
}

/// Converts an error to rmcp. A code outside of 32 bits becomes JSON-RPC's internal error.
pub fn error_to_rmcp(error: &RpcError) -> model::ErrorData {
    let code = i32::try_from(error.code).map_or(model::ErrorCode::INTERNAL_ERROR, model::ErrorCode);
    let data = error.data.as_ref().and_then(|it| it.read().ok());
    model::ErrorData::new(code, error.message.clone(), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_content(json: &str, expected: Option<&str>) {
        let content = serde_json::from_str::<Box<serde_json::value::RawValue>>(json).unwrap();
        let content = Content::read(&content);
        let converted = content_to_rmcp(&content);
        match expected {
            Some(expected) => {
                let converted = converted.unwrap();
                assert_eq!(
                    serde_json::to_value(&converted).unwrap(),
                    serde_json::from_str::<serde_json::Value>(expected).unwrap()
                );
                assert_eq!(content_from_rmcp(&converted).unwrap(), content);
            }
            None => assert!(converted.is_err(), "{converted:?}"),
        }
    }

    #[test]
    fn content_round_trips() {
        for same in [
            r#"{"type":"text","text":"a"}"#,
            r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
            r#"{"type":"resource","resource":{"uri":"a://b","mimeType":"text/plain","text":"hi"}}"#,
            r#"{"type":"resource","resource":{"uri":"a://b","blob":"AAE="}}"#,
        ] {
            check_content(same, Some(same));
        }
        check_content(
            r#"{"type":"resource_link","uri":"file:///x","name":"x"}"#,
            Some(r#"{"type":"resource_link","uri":"file:///x","name":"file:///x"}"#),
        );
        check_content(r#"{"type":"hologram"}"#, None);
    }

    #[test]
    fn tools_round_trip() {
        let json = r#"{"tools":[{"name":"a","description":"A.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
        let tool = mcp_host_model::read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().items.remove(0);
        let expected = tool_from_rmcp(&tool_to_rmcp(&tool).unwrap()).unwrap();
        assert_eq!(
            (expected.name, expected.hints, expected.description),
            (tool.name, tool.hints, tool.description)
        );
        let nameless: model::Tool = serde_json::from_str(r#"{"name":"","inputSchema":{}}"#).unwrap();
        assert!(tool_from_rmcp(&nameless).unwrap_err().to_string().contains("its name is empty"));
    }

    #[test]
    fn results_and_errors_round_trip() {
        let json = r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"x":[1]},"isError":true}"#;
        let content: ToolResult = serde_json::from_str(json).unwrap();
        assert_eq!(result_from_rmcp(&result_to_rmcp(&content).unwrap()).unwrap(), content);

        let error = RpcError { code: -7, message: "no".into(), data: Some(RawJson::empty_object()) };
        assert_eq!(error_from_rmcp(&error_to_rmcp(&error)), error);
        let huge = RpcError::new(i64::MAX, "x");
        assert_eq!(error_to_rmcp(&huge).code, model::ErrorCode::INTERNAL_ERROR);
    }
}
