//! Prompts of a `prompts/list` result, and results of `prompts/get`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::raw::RawJson;
use crate::lists::page::{ItemDefinition, ListItem, Page, read_list};
use crate::result::content::Content;

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The server's name for it.
    pub name: Box<str>,
    /// The description, a JSON string.
    pub description: Option<RawJson>,
    /// The complete definition, arguments included.
    pub raw: RawJson,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// Whether the server states that the argument is required (SK-20).
    pub required: bool,
}

impl Prompt {
    /// Returns the decoded description, empty if there is none.
    pub fn description_text(&self) -> Cow<'_, str> {
        self.description.as_ref().and_then(RawJson::to_text).unwrap_or_default()
    }

    /// Returns the arguments, in the server's order. An invalid one is omitted.
    pub fn arguments(&self) -> Vec<PromptArgument> {
        #[derive(Deserialize)]
        struct ArgumentsJson<'a> {
            #[serde(borrow, default)]
            arguments: Option<Vec<&'a RawValue>>,
        }
        #[derive(Deserialize)]
        struct ArgumentJson {
            name: String,
            description: Option<String>,
            required: Option<bool>,
        }
        let wire =
            self.raw.read::<ArgumentsJson<'_>>().ok().and_then(|wire| wire.arguments).unwrap_or_default();
        let mut arguments = Vec::new();
        for argument in wire {
            if let Ok(ArgumentJson { name, description, required }) = serde_json::from_str(argument.get()) {
                arguments.push(PromptArgument { name, description, required: required == Some(true) });
            }
        }
        arguments
    }
}

/// The result of `prompts/get`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptResult {
    /// The description.
    pub description: Option<String>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage>,
    /// The complete result.
    pub raw: RawJson,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The role, `user` or `assistant`, as the server wrote it.
    pub role: String,
    /// The content. A block of an unknown form is kept unchanged.
    pub content: Content,
}

/// Reads the result of `prompts/list`. Fails if it is not a list. The result is at the start of `result`, which need
/// not be validated; what follows it is ignored.
pub fn read_prompts<B: AsRef<[u8]> + ?Sized>(result: &B) -> Result<Page<Prompt>, serde_json::Error> {
    read_list::<PromptJson<'_>>(result.as_ref(), "prompts")
}

/// Reads the result of `prompts/get`. Fails if it has no messages, or an invalid one.
pub fn read_prompt_result(result: &RawJson) -> Result<PromptResult, serde_json::Error> {
    #[derive(Deserialize)]
    struct PromptResultJson<'a> {
        description: Option<String>,
        #[serde(borrow)]
        messages: Vec<MessageJson<'a>>,
    }
    #[derive(Deserialize)]
    struct MessageJson<'a> {
        role: String,
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let wire: PromptResultJson<'_> = result.read()?;
    let message = |MessageJson { role, content }| PromptMessage { role, content: Content::read(content) };
    Ok(PromptResult {
        description: wire.description,
        messages: wire.messages.into_iter().map(message).collect(),
        raw: result.clone(),
    })
}

#[derive(Deserialize)]
struct PromptJson<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
}

impl<'a> ListItem<'a> for PromptJson<'a> {
    type Output = Prompt;
    const LABEL: &'static str = "a prompt";

    fn read(self, definition: ItemDefinition<'a>) -> Result<Prompt, String> {
        if self.name.is_empty() {
            return Err("its name is empty".to_owned());
        }
        Ok(Prompt {
            name: self.name.as_ref().into(),
            description: definition.string_slice(self.description),
            raw: definition.raw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[track_caller]
    fn check_arguments(definition: &str, want: &str) {
        let page = read_prompts(&json(&format!("{{\"prompts\":[{definition}]}}"))).unwrap();
        let arguments = page.items[0].arguments();
        let words = arguments.iter().map(|it| format!("{}{}", it.name, if it.required { "!" } else { "" }));
        assert_eq!(words.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn sk_20_arguments_are_optional_unless_stated() {
        check_arguments(r#"{"name":"p"}"#, "");
        check_arguments(
            r#"{"name":"p","arguments":[{"name":"a"},{"name":"b","required":true},{"name":"c","required":false}]}"#,
            "a b! c",
        );
        check_arguments(r#"{"name":"p","arguments":[7,{"name":"b","required":null},{}]}"#, "b");
        check_arguments(r#"{"name":"p","arguments":null}"#, "");
    }

    #[test]
    fn prompt_result_keeps_blocks_of_unknown_types() {
        let result = json(
            r#"{"description":"d","messages":[
                {"role":"user","content":{"type":"text","text":"hello"}},
                {"role":"assistant","content":{"type":"hologram","x":1}},
                {"role":"user","content":{"type":"resource","resource":{"uri":"a:b","text":"c"}}}]}"#,
        );
        let got = read_prompt_result(&result).unwrap();
        let words =
            got.messages.iter().map(|it| format!("{}: {}", it.role, it.content.text().unwrap_or("?")));
        assert_eq!(words.collect::<Vec<_>>(), ["user: hello", "assistant: ?", "user: c"]);
        assert_eq!((got.description.as_deref(), &got.raw), (Some("d"), &result));
        assert_eq!(read_prompt_result(&json(r#"{"messages":[]}"#)).unwrap().messages, []);
        assert!(read_prompt_result(&json("{}")).is_err());
        assert!(read_prompt_result(&json(r#"{"messages":[{"role":"user"}]}"#)).is_err());
    }
}
