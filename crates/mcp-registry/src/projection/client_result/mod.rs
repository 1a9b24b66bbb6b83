//! Results for clients: what a server returns, in a form that every client reads.
//!
//! Clients check a result as a whole, so one member of another form costs all of it. Optional members are dropped, and
//! content is kept in another form: a text becomes a block, and a block that the protocol does not have becomes a text.
//! What cannot be corrected is an error. A valid result keeps its bytes.

use mcp_host_model::internal::is_base64_text;
use mcp_host_model::{Era, Method, ProtocolVersion, RawJson, UNKNOWN_MEDIA_TYPE};

use crate::projection::member_form::MemberForm::{self, Any, Flag, Number, Object, Text};
use crate::projection::member_form::{
    ANNOTATIONS, ICONS, built_json, correct_members, elements, is_role, list_of, with_first_member,
};

/// The number of values that a completion may have.
const MAX_COMPLETION_VALUES: usize = 100;

const META: MemberForm = Object(&[]);

const RESOURCE_LINK: &[(&str, MemberForm)] = &[
    ("title", Text),
    ("description", Text),
    ("mimeType", Text),
    ("size", Number),
    ("icons", ICONS),
    ("annotations", ANNOTATIONS),
    ("_meta", META),
];

/// A result for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientResult {
    /// The result.
    pub result: RawJson,
    /// The members that the server sent in another form, such as `content[1].mimeType`. Members that are null, and
    /// content that is missing, do not count.
    pub corrected: Vec<String>,
}

/// A member of a result that is missing or has another form, and cannot be corrected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("returned a result without a valid `{member}`")]
#[non_exhaustive]
pub struct InvalidMember {
    /// The path of the member, such as `messages[0].role`.
    pub member: String,
}

/// Returns the result of a request for a client of this protocol version. `name` is the name or the URI in the request.
/// Fails if a member cannot be corrected.
pub fn result_for_clients(
    method: Method,
    name: &str,
    result: &RawJson,
    version: ProtocolVersion,
) -> Result<ClientResult, InvalidMember> {
    let mut corrector = ResultCorrector { version, corrected: Vec::new() };
    let result = match method {
        Method::CallTool | Method::GetTaskResult => corrector.correct_tool_result(result),
        Method::GetPrompt => corrector.correct_prompt_result(result)?,
        Method::ReadResource => corrector.correct_resource_result(result, name)?,
        Method::Complete => corrector.correct_completion_result(result),
        _ => result.clone(),
    };
    Ok(ClientResult { result, corrected: corrector.corrected })
}

/// Corrects one result, and records what was changed.
struct ResultCorrector {
    version: ProtocolVersion,
    /// The paths of the corrected members; see [`ClientResult::corrected`].
    corrected: Vec<String>,
}

impl ResultCorrector {
    /// Returns the value of an optional member in this form. Records the member at `path` if it is dropped.
    fn correct_optional(
        &mut self,
        form: MemberForm,
        value: &RawJson,
        path: impl FnOnce() -> String,
    ) -> Option<RawJson> {
        let corrected = form.correct(value);
        if corrected.is_none() && value.as_str() != "null" {
            self.corrected.push(path());
        }
        corrected
    }

    /// Corrects the result of a tool call.
    fn correct_tool_result(&mut self, result: &RawJson) -> RawJson {
        let mut has_content = false;
        // Structured content of another type, for clients whose version has objects only.
        let mut other_structured = None;
        let corrected = correct_members(result, |key, value| match key {
            "content" => {
                has_content = true;
                Some(self.correct_blocks(value))
            }
            "structuredContent" if self.version.era() == Era::Legacy && !value.is_object() => {
                other_structured = Some(value.clone()).filter(|value| value.as_str() != "null");
                None
            }
            "structuredContent" => Any.correct(value),
            "isError" => match value.as_str() {
                r#""true""# => Some(built_json("true".to_owned())),
                _ => self.correct_optional(Flag, value, || "isError".to_owned()),
            },
            "_meta" => self.correct_optional(META, value, || "_meta".to_owned()),
            _ => Some(value.clone()),
        });
        let with_content = match has_content {
            true => corrected,
            false => with_first_member(&corrected, r#""content":[]"#),
        };
        let Some(structured) = other_structured else { return with_content };
        self.corrected.push("structuredContent".to_owned());
        correct_members(&with_content, |key, value| match (key, value.as_str()) {
            ("content", "[]") => Some(list_of(&[text_block(structured.as_str())])),
            _ => Some(value.clone()),
        })
    }

    /// Corrects a list of content blocks.
    fn correct_blocks(&mut self, value: &RawJson) -> RawJson {
        let path = |index: usize| format!("content[{index}]");
        let Some(blocks) = elements(value) else {
            if value.as_str() != "null" {
                self.corrected.push("content".to_owned());
            }
            return list_of(self.correct_block(value, "content").as_slice());
        };
        let corrected: Vec<RawJson> = blocks
            .iter()
            .enumerate()
            .filter_map(|(index, block)| self.correct_block(block, &path(index)))
            .collect();
        if corrected == blocks { value.clone() } else { list_of(&corrected) }
    }

    /// Corrects a content block. Returns `None` for null. A block of an unknown type or without its content becomes a
    /// text with its JSON.
    fn correct_block(&mut self, block: &RawJson, path: &str) -> Option<RawJson> {
        match block.as_bytes()[0] {
            b'n' => return None,
            b'"' => {
                self.corrected.push(path.to_owned());
                return Some(built_json(format!(r#"{{"type":"text","text":{}}}"#, block.as_str())));
            }
            _ => {}
        }
        let kind = member(block, "type").and_then(|kind| kind.to_text().map(|kind| kind.into_owned()));
        let corrected = match kind.as_deref() {
            Some("text") => self.correct_text(block, path),
            Some("image") => self.correct_media(block, path),
            Some("audio") if self.version >= ProtocolVersion::V2025_03_26 => self.correct_media(block, path),
            Some("resource_link") if self.version >= ProtocolVersion::V2025_06_18 => {
                self.correct_resource_link(block, path)
            }
            Some("resource") => self.correct_embedded_resource(block, path),
            _ => None,
        };
        Some(corrected.unwrap_or_else(|| {
            self.corrected.push(path.to_owned());
            text_block(block.as_str())
        }))
    }

    /// Corrects the members of a block that all types have.
    fn correct_block_member(&mut self, key: &str, value: &RawJson, path: &str) -> Option<RawJson> {
        let form = match key {
            "annotations" => ANNOTATIONS,
            "_meta" => META,
            _ => return Some(value.clone()),
        };
        self.correct_optional(form, value, || format!("{path}.{key}"))
    }

    /// Corrects a text block. Returns `None` without a text.
    fn correct_text(&mut self, block: &RawJson, path: &str) -> Option<RawJson> {
        let text = member(block, "text").filter(|text| text.as_str() != "null")?;
        let is_text = text.as_bytes()[0] == b'"';
        if !is_text {
            self.corrected.push(format!("{path}.text"));
        }
        Some(correct_members(block, |key, value| match key {
            "text" if !is_text => Some(json_string(value.as_str())),
            _ => self.correct_block_member(key, value, path),
        }))
    }

    /// Corrects an image or a sound. Returns `None` without its data in Base64.
    fn correct_media(&mut self, block: &RawJson, path: &str) -> Option<RawJson> {
        member(block, "data").filter(is_base64)?;
        let media_type = member(block, "mimeType").filter(|it| it.as_bytes()[0] == b'"');
        let corrected = correct_members(block, |key, value| match key {
            "mimeType" if media_type.is_none() => None,
            _ => self.correct_block_member(key, value, path),
        });
        if media_type.is_some() {
            return Some(corrected);
        }
        self.corrected.push(format!("{path}.mimeType"));
        Some(with_first_member(&corrected, &format!(r#""mimeType":"{UNKNOWN_MEDIA_TYPE}""#)))
    }

    /// Corrects a resource link. Returns `None` without a URI.
    fn correct_resource_link(&mut self, block: &RawJson, path: &str) -> Option<RawJson> {
        let uri = member(block, "uri").filter(|uri| uri.as_bytes()[0] == b'"')?;
        let name = member(block, "name").filter(|name| name.as_bytes()[0] == b'"');
        let corrected = correct_members(block, |key, value| match key {
            "name" if name.is_none() => None,
            _ => match RESOURCE_LINK.iter().find(|(name, _)| *name == key) {
                Some((_, form)) => self.correct_optional(*form, value, || format!("{path}.{key}")),
                None => Some(value.clone()),
            },
        });
        if name.is_some() {
            return Some(corrected);
        }
        self.corrected.push(format!("{path}.name"));
        Some(with_first_member(&corrected, &format!(r#""name":{}"#, uri.as_str())))
    }

    /// Corrects an embedded resource. Returns `None` without a URI, or without a content.
    fn correct_embedded_resource(&mut self, block: &RawJson, path: &str) -> Option<RawJson> {
        let resource = member(block, "resource").filter(RawJson::is_object)?;
        member(&resource, "uri").filter(|uri| uri.as_bytes()[0] == b'"')?;
        let path_of_resource = format!("{path}.resource");
        let resource = self.correct_resource_content(&resource, &path_of_resource)?;
        Some(correct_members(block, |key, value| match key {
            "resource" => Some(resource.clone()),
            _ => self.correct_block_member(key, value, path),
        }))
    }

    /// Corrects the content of a resource. Returns `None` if it has neither a text nor data.
    fn correct_resource_content(&mut self, content: &RawJson, path: &str) -> Option<RawJson> {
        let text = member(content, "text").filter(|text| text.as_str() != "null");
        let is_text = text.as_ref().is_some_and(|text| text.as_bytes()[0] == b'"');
        let has_blob = member(content, "blob").is_some_and(|blob| is_base64(&blob));
        if text.is_none() && !has_blob {
            return None;
        }
        Some(correct_members(content, |key, value| match key {
            "text" if text.is_none() => None,
            "text" if !is_text => {
                self.corrected.push(format!("{path}.text"));
                Some(json_string(value.as_str()))
            }
            "blob" if !has_blob => None,
            "mimeType" => self.correct_optional(Text, value, || format!("{path}.mimeType")),
            "_meta" => self.correct_optional(META, value, || format!("{path}._meta")),
            _ => Some(value.clone()),
        }))
    }

    /// Corrects the result of `prompts/get`.
    fn correct_prompt_result(&mut self, result: &RawJson) -> Result<RawJson, InvalidMember> {
        let messages = self.correct_messages(member(result, "messages").as_ref())?;
        let mut has_messages = false;
        let corrected = correct_members(result, |key, value| match key {
            "messages" => {
                has_messages = true;
                Some(messages.clone())
            }
            "description" => self.correct_optional(Text, value, || key.to_owned()),
            "_meta" => self.correct_optional(META, value, || key.to_owned()),
            _ => Some(value.clone()),
        });
        Ok(match has_messages {
            true => corrected,
            false => with_first_member(&corrected, r#""messages":[]"#),
        })
    }

    /// Corrects the messages of a prompt. A message with several blocks becomes several messages.
    fn correct_messages(&mut self, value: Option<&RawJson>) -> Result<RawJson, InvalidMember> {
        let Some(value) = value.filter(|value| value.as_str() != "null") else { return Ok(list_of(&[])) };
        let list = elements(value);
        if list.is_none() {
            self.corrected.push("messages".to_owned());
        }
        let messages = list.unwrap_or_else(|| vec![value.clone()]);
        let mut corrected = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let path = format!("messages[{index}]");
            if message.as_bytes()[0] == b'"' {
                let block = self.correct_block(message, &path).expect("a text is a block");
                corrected.push(built_json(format!(r#"{{"role":"user","content":{}}}"#, block.as_str())));
                continue;
            }
            let invalid = |member: &str| InvalidMember { member: format!("{path}.{member}") };
            let role = member(message, "role").and_then(|role| role.to_text().map(|role| role.into_owned()));
            role.filter(|role| is_role(role)).ok_or_else(|| invalid("role"))?;
            let content = member(message, "content").filter(|content| content.as_str() != "null");
            let content = content.ok_or_else(|| invalid("content"))?;
            let content_path = format!("{path}.content");
            let blocks = elements(&content);
            if blocks.is_some() {
                self.corrected.push(content_path.clone());
            }
            for block in blocks.unwrap_or_else(|| vec![content]) {
                let Some(block) = self.correct_block(&block, &content_path) else { continue };
                corrected.push(correct_members(message, |key, value| match key {
                    "content" => Some(block.clone()),
                    _ => Any.correct(value),
                }));
            }
        }
        Ok(if corrected == messages { value.clone() } else { list_of(&corrected) })
    }

    /// Corrects the result of `resources/read` for the resource at `uri`.
    fn correct_resource_result(&mut self, result: &RawJson, uri: &str) -> Result<RawJson, InvalidMember> {
        let contents = self.correct_contents(member(result, "contents").as_ref(), uri)?;
        let mut has_contents = false;
        let corrected = correct_members(result, |key, value| match key {
            "contents" => {
                has_contents = true;
                Some(contents.clone())
            }
            "_meta" => self.correct_optional(META, value, || key.to_owned()),
            _ => Some(value.clone()),
        });
        Ok(match has_contents {
            true => corrected,
            false => with_first_member(&corrected, r#""contents":[]"#),
        })
    }

    /// Corrects the contents of a resource.
    fn correct_contents(&mut self, value: Option<&RawJson>, uri: &str) -> Result<RawJson, InvalidMember> {
        let Some(value) = value.filter(|value| value.as_str() != "null") else { return Ok(list_of(&[])) };
        let list = elements(value);
        if list.is_none() {
            self.corrected.push("contents".to_owned());
        }
        let contents = list.unwrap_or_else(|| vec![value.clone()]);
        let mut corrected = Vec::new();
        for (index, content) in contents.iter().enumerate() {
            let path = format!("contents[{index}]");
            let content = match content.as_bytes()[0] {
                b'n' => continue,
                b'"' => {
                    self.corrected.push(path.clone());
                    built_json(format!(r#"{{"text":{}}}"#, content.as_str()))
                }
                _ => content.clone(),
            };
            let invalid = || InvalidMember { member: format!("{path}.text") };
            let content = self.correct_resource_content(&content, &path).ok_or_else(invalid)?;
            corrected.push(match member(&content, "uri") {
                Some(uri) if uri.as_bytes()[0] == b'"' => content,
                _ => {
                    self.corrected.push(format!("{path}.uri"));
                    let others =
                        correct_members(&content, |key, value| (key != "uri").then(|| value.clone()));
                    with_first_member(&others, &format!(r#""uri":{}"#, json_string(uri).as_str()))
                }
            });
        }
        Ok(if corrected == contents { value.clone() } else { list_of(&corrected) })
    }

    /// Corrects the result of `completion/complete`.
    fn correct_completion_result(&mut self, result: &RawJson) -> RawJson {
        let mut has_completion = false;
        let corrected = correct_members(result, |key, value| match key {
            "completion" => {
                has_completion = true;
                Some(self.correct_completion(value))
            }
            "_meta" => self.correct_optional(META, value, || key.to_owned()),
            _ => Some(value.clone()),
        });
        match has_completion {
            true => corrected,
            false => with_first_member(&corrected, r#""completion":{"values":[]}"#),
        }
    }

    fn correct_completion(&mut self, value: &RawJson) -> RawJson {
        if !value.is_object() {
            if value.as_str() != "null" {
                self.corrected.push("completion".to_owned());
            }
            let values = self.correct_completion_values(value);
            return built_json(format!(r#"{{"values":{}}}"#, values.as_str()));
        }
        let mut has_values = false;
        let corrected = correct_members(value, |key, value| match key {
            "values" => {
                has_values = true;
                Some(self.correct_completion_values(value))
            }
            "total" => self.correct_optional(Number, value, || "completion.total".to_owned()),
            "hasMore" => self.correct_optional(Flag, value, || "completion.hasMore".to_owned()),
            _ => Some(value.clone()),
        });
        match has_values {
            true => corrected,
            false => with_first_member(&corrected, r#""values":[]"#),
        }
    }

    fn correct_completion_values(&mut self, value: &RawJson) -> RawJson {
        let Some(values) = elements(value) else { return list_of(&[]) };
        let is_text = |value: &&RawJson| value.as_bytes()[0] == b'"';
        let texts: Vec<RawJson> =
            values.iter().filter(is_text).take(MAX_COMPLETION_VALUES).cloned().collect();
        if texts == values {
            return value.clone();
        }
        self.corrected.push("completion.values".to_owned());
        list_of(&texts)
    }
}

/// The member of an object; the last one if the name is repeated, as most readers do.
fn member(object: &RawJson, name: &str) -> Option<RawJson> {
    object.members()?.into_iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Returns whether a value is a string in Base64.
fn is_base64(value: &RawJson) -> bool {
    let text = value.to_text();
    text.is_some_and(|text| {
        is_base64_text(text.as_bytes())
            || is_base64_text(text.split_ascii_whitespace().collect::<String>().as_bytes())
    })
}

fn json_string(text: &str) -> RawJson {
    RawJson::from_value(&text).expect("a string is JSON")
}

/// A block with this text.
fn text_block(text: &str) -> RawJson {
    built_json(format!(r#"{{"type":"text","text":{}}}"#, json_string(text).as_str()))
}

#[cfg(test)]
mod tests;
