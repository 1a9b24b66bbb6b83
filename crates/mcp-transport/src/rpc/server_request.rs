//! Typed server requests and their results.
//!
//! Each request keeps its original bytes, so that a handler that forwards it loses nothing.

use mcp_host_model::{RawJson, RpcError, code};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A `sampling/createMessage` request (SK-18).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// Model names or parts of names, best first. Advisory.
    pub hints: Vec<String>,
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Sequences that end the output.
    pub stop_sequences: Vec<String>,
    /// The conversation so far: a JSON array of messages.
    pub messages: RawJson,
    /// The complete parameters.
    pub raw: RawJson,
}

/// The result of sampling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SamplingResult {
    /// The role: `assistant`.
    pub role: String,
    /// A content block or an array of them.
    pub content: RawJson,
    /// The model that was used.
    pub model: String,
    /// The reason for stopping, for example `endTurn`.
    #[serde(rename = "stopReason", skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

impl SamplingResult {
    /// A result of the role `assistant`. `content` is a content block or an array of them.
    pub fn new(content: RawJson, model: impl Into<String>) -> SamplingResult {
        SamplingResult { role: "assistant".to_owned(), content, model: model.into(), stop_reason: None }
    }

    /// A complete text that `model` generated.
    pub fn text(model: impl Into<String>, text: &str) -> SamplingResult {
        let block = serde_json::json!({"type": "text", "text": text});
        SamplingResult {
            role: "assistant".to_owned(),
            content: RawJson::from_value(&block).expect("its keys are strings"),
            model: model.into(),
            stop_reason: Some("endTurn".to_owned()),
        }
    }
}

/// An `elicitation/create` request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitRequest {
    /// The text for the user, from the server.
    pub message: String,
    /// The form or page.
    pub params: ElicitParams,
    /// The complete parameters.
    pub raw: RawJson,
}

/// The parameters of an elicitation, by mode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Form mode.
    Form {
        /// JSON Schema of the result: an object of primitive values.
        schema: RawJson,
    },
    /// URL mode.
    Url {
        /// The URL of the page. It must be shown in full before it is opened.
        url: String,
        /// The server's id of the elicitation.
        id: Option<String>,
    },
}

/// The mode of an elicitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitMode {
    /// A form, for data that the host may see.
    Form,
    /// A web page of the server, for data that the host must not see.
    Url,
}

/// The answer to an elicitation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitResult {
    /// Accepted. Contains the values of a form, an object that the handler has checked against the schema; `None` for
    /// a page.
    Accept(Option<RawJson>),
    /// Declined.
    Decline,
    /// Dismissed without a decision.
    Cancel,
}

/// A directory that a server may work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// A display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// A root without a display name.
    pub fn new(uri: impl Into<String>) -> Root {
        Root { uri: uri.into(), name: None }
    }
}

impl SamplingRequest {
    /// Parses the parameters.
    pub(crate) fn read(raw: RawJson) -> Result<SamplingRequest, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SamplingParamsJson<'a> {
            #[serde(borrow)]
            messages: &'a RawValue,
            model_preferences: Option<Preferences>,
            max_tokens: Option<f64>,
            temperature: Option<f64>,
            system_prompt: Option<String>,
            stop_sequences: Option<Vec<String>>,
        }
        #[derive(Deserialize)]
        struct Preferences {
            #[serde(default)]
            hints: Option<Vec<Hint>>,
        }
        #[derive(Deserialize)]
        struct Hint {
            name: Option<String>,
        }
        let json: SamplingParamsJson<'_> = raw.read().map_err(|it| invalid_params(&it))?;
        let hints = json.model_preferences.and_then(|it| it.hints).unwrap_or_default();
        Ok(SamplingRequest {
            hints: hints.into_iter().filter_map(|it| it.name).collect(),
            max_tokens: json.max_tokens.map(|it| it as u64),
            temperature: json.temperature,
            system_prompt: json.system_prompt,
            stop_sequences: json.stop_sequences.unwrap_or_default(),
            messages: RawJson::copy_of(json.messages),
            raw: raw.clone(),
        })
    }
}

impl ElicitRequest {
    /// Parses the parameters.
    pub(crate) fn read(raw: RawJson) -> Result<ElicitRequest, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ElicitParamsJson<'a> {
            mode: Option<String>,
            message: String,
            #[serde(borrow)]
            requested_schema: Option<&'a RawValue>,
            url: Option<String>,
            elicitation_id: Option<String>,
        }
        let json: ElicitParamsJson<'_> = raw.read().map_err(|it| invalid_params(&it))?;
        let params = match (json.mode.as_deref(), json.requested_schema, json.url) {
            (None | Some("form"), Some(schema), _) => ElicitParams::Form { schema: RawJson::copy_of(schema) },
            (Some("url"), _, Some(url)) => ElicitParams::Url { url, id: json.elicitation_id },
            (mode, _, _) => {
                let mode = mode.unwrap_or("form");
                return Err(invalid_params(&format!("these are not parameters of the mode `{mode}`")));
            }
        };
        Ok(ElicitRequest { message: json.message, params, raw: raw.clone() })
    }

    /// The mode of the request.
    pub fn mode(&self) -> ElicitMode {
        match self.params {
            ElicitParams::Form { .. } => ElicitMode::Form,
            ElicitParams::Url { .. } => ElicitMode::Url,
        }
    }
}

impl ElicitResult {
    /// The result for the server.
    pub(crate) fn to_json(&self) -> RawJson {
        #[derive(Serialize)]
        struct ElicitResultJson<'a> {
            action: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            content: Option<&'a RawJson>,
        }
        let (action, content) = match self {
            ElicitResult::Accept(content) => ("accept", content.as_ref()),
            ElicitResult::Decline => ("decline", None),
            ElicitResult::Cancel => ("cancel", None),
        };
        RawJson::from_value(&ElicitResultJson { action, content }).expect("its keys are strings")
    }
}

fn invalid_params(what: &dyn std::fmt::Display) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("the parameters cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn sk_18_hints_and_limits_are_read() {
        let params = json(
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":100,"temperature":0.5,
                "modelPreferences":{"hints":[{"name":"claude"},{},{"name":"gpt"}]},"systemPrompt":"be brief",
                "stopSequences":["."]}"#,
        );
        let got = SamplingRequest::read(params.clone()).unwrap();
        assert_eq!(
            (got.hints.join(" ").as_str(), got.max_tokens, got.temperature),
            ("claude gpt", Some(100), Some(0.5))
        );
        assert_eq!(
            (got.system_prompt.as_deref(), &*got.stop_sequences),
            (Some("be brief"), &[".".to_owned()][..])
        );
        assert!(got.messages.as_str().starts_with(r#"[{"role":"user""#));
        assert_eq!(got.raw, params);
        assert!(SamplingRequest::read(json(r#"{"messages":[]}"#)).is_ok());
        assert_eq!(SamplingRequest::read(json("{}")).unwrap_err().code, code::INVALID_PARAMS);
    }

    #[test]
    fn elicitation_is_a_form_or_a_page() {
        let read = |text: &str| ElicitRequest::read(json(text)).map(|it| it.params).map_err(|it| it.message);
        let schema = json(r#"{"type":"object"}"#);
        let form = Ok(ElicitParams::Form { schema });
        assert_eq!(read(r#"{"message":"m","requestedSchema":{"type":"object"}}"#), form);
        assert_eq!(read(r#"{"mode":"form","message":"m","requestedSchema":{"type":"object"}}"#), form);
        let url = ElicitParams::Url { url: "https://a.example".to_owned(), id: Some("7".to_owned()) };
        assert_eq!(
            read(r#"{"mode":"url","message":"m","url":"https://a.example","elicitationId":"7"}"#),
            Ok(url)
        );
        let mismatch =
            Err("the parameters cannot be read: these are not parameters of the mode `url`".to_owned());
        assert_eq!(read(r#"{"mode":"url","message":"m"}"#), mismatch);
        assert!(read(r#"{"requestedSchema":{}}"#).is_err());
    }

    #[test]
    fn results_have_the_expected_json() {
        let accept = ElicitResult::Accept(Some(json(r#"{"a":1}"#)));
        assert_eq!(accept.to_json().as_str(), r#"{"action":"accept","content":{"a":1}}"#);
        assert_eq!(ElicitResult::Accept(None).to_json().as_str(), r#"{"action":"accept"}"#);
        assert_eq!(ElicitResult::Decline.to_json().as_str(), r#"{"action":"decline"}"#);
        assert_eq!(ElicitResult::Cancel.to_json().as_str(), r#"{"action":"cancel"}"#);
        let sampling_result = RawJson::from_value(&SamplingResult::text("m", "hi")).unwrap();
        let want = r#"{"role":"assistant","content":{"text":"hi","type":"text"},"model":"m","stopReason":"endTurn"}"#;
        // The key order of a serde_json map depends on its features.
        assert_eq!(
            sampling_result.read::<serde_json::Value>().unwrap(),
            serde_json::from_str::<serde_json::Value>(want).unwrap()
        );
    }
}
