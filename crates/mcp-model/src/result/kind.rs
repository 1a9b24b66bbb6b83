//! The kind of a result, and whether every client reads it. Both are determined in the pass that checks its JSON.

use bytes::Bytes;
use bytestring::ByteString;

use crate::json::base64_text::is_base64_text;
use crate::json::cursor::{JsonCursor, JsonSlice};
use crate::json::raw::RawJson;
use crate::protocol::era::Era;

/// The kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a gateway forwards each in its own way")]
pub enum ResultKind {
    /// The result of a finished request.
    #[default]
    Complete,
    /// The result of a tool that failed (`isError`).
    ToolError,
    /// The server needs input before it returns a result.
    InputRequired,
    /// A task: the server continues the tool call after this response.
    Task,
    /// `resultType` is repeated.
    Ambiguous,
}

/// The member `resultType` of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a gateway forwards each in its own way")]
pub enum ResultTypeMember {
    /// The result has none.
    #[default]
    Missing,
    /// It states the kind of the result, or an unknown type.
    Present,
    /// It has no meaning: a server of the legacy era sent another value than `complete`.
    Ignored,
}

/// The kind of a result, and its `resultType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResultInfo {
    /// The kind.
    pub kind: ResultKind,
    /// The member `resultType`.
    pub result_type: ResultTypeMember,
    /// Whether it is the result of a tool that strict clients of every version since 2025-06-18 read: each member has
    /// the form that the protocol requires. False if that is not known.
    pub is_strict_tool_result: bool,
}

impl ResultInfo {
    /// Creates the info of a result of this kind without `resultType`.
    pub fn of_kind(kind: ResultKind) -> ResultInfo {
        ResultInfo { kind, ..ResultInfo::default() }
    }
}

/// The members of a result that determine its kind.
#[derive(Default)]
pub(crate) struct KindMembers<'a> {
    result_type: Option<JsonSlice<'a>>,
    has_repeated_type: bool,
    is_error: bool,
    /// Whether there is the task of 2025-11-25.
    has_task: bool,
    has_content: bool,
    /// Whether a member of the result of a tool has another form than strict clients accept.
    has_odd_member: bool,
}

impl<'a> KindMembers<'a> {
    /// Reads the value of a member of the result.
    fn read(&mut self, name: &str, cursor: &mut JsonCursor<'a>) -> Result<(), serde_json::Error> {
        if name == "content" && cursor.peek_byte() == Some(b'[') {
            self.has_content = true;
            return cursor.read_array(|cursor| {
                self.has_odd_member |= !read_strict_block(cursor)?;
                Ok(())
            });
        }
        let value = cursor.skip_value()?;
        match name {
            "resultType" => {
                self.has_repeated_type |= self.result_type.is_some();
                self.result_type.get_or_insert(value);
            }
            "isError" => {
                self.is_error = value.as_str() == "true";
                self.has_odd_member |= !matches!(value.as_str(), "true" | "false");
            }
            "task" => self.has_task = has_task_id(value.as_str()),
            "content" => self.has_odd_member = true,
            "structuredContent" | "_meta" => self.has_odd_member |= !value.as_str().starts_with('{'),
            _ => {}
        }
        Ok(())
    }

    /// Returns the info of a result of a server of this era.
    fn info(&self, era: Era) -> ResultInfo {
        let result_type = self.result_type.and_then(JsonSlice::to_text);
        let is_stated = self.result_type.is_some();
        let kind = match result_type.as_deref() {
            Some("task") if !self.has_repeated_type => ResultKind::Task,
            _ if self.has_repeated_type && era == Era::Modern => ResultKind::Ambiguous,
            Some("input_required") if era == Era::Modern => ResultKind::InputRequired,
            // 2025-11-25 has no `resultType`.
            None if !is_stated && self.has_task => ResultKind::Task,
            _ if self.is_error => ResultKind::ToolError,
            _ => ResultKind::Complete,
        };
        let is_ignored = self.has_repeated_type || result_type.as_deref() != Some("complete");
        let result_type = match (is_stated, era) {
            (false, _) => ResultTypeMember::Missing,
            (true, Era::Legacy) if is_ignored => ResultTypeMember::Ignored,
            (true, Era::Legacy | Era::Modern) => ResultTypeMember::Present,
        };
        let is_strict_tool_result = self.has_content && !self.has_odd_member;
        ResultInfo { kind, result_type, is_strict_tool_result }
    }
}

/// Reads a content block. Returns whether it is a text, an image or a sound that strict clients accept. Blocks with
/// other members of the protocol are left to a closer check.
fn read_strict_block(cursor: &mut JsonCursor<'_>) -> Result<bool, serde_json::Error> {
    if cursor.peek_byte() != Some(b'{') {
        return cursor.skip_value().map(|_| false);
    }
    let (mut kind, mut has_text, mut has_data, mut has_media_type) = ("", false, false, false);
    let mut is_strict = true;
    cursor.read_object(|name, cursor| {
        let value = cursor.skip_value()?.as_str();
        let string = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        match &*name {
            "type" => kind = string.filter(|_| kind.is_empty()).unwrap_or_default(),
            "text" => has_text = string.is_some(),
            "data" => has_data = string.is_some_and(|data| is_base64_text(data.as_bytes())),
            "mimeType" => has_media_type = string.is_some(),
            "_meta" => is_strict &= value.starts_with('{'),
            "annotations" => is_strict = false,
            _ => {}
        }
        Ok(())
    })?;
    Ok(is_strict
        && match kind {
            "text" => has_text,
            "image" | "audio" => has_data && has_media_type,
            _ => false,
        })
}

/// Returns whether a value is an object with a `taskId`.
fn has_task_id(json: &str) -> bool {
    let mut has_id = false;
    let read = JsonCursor::new(json).read_object(|name, cursor| {
        has_id |= name == "taskId";
        cursor.skip_value().map(drop)
    });
    read.is_ok() && has_id
}

/// Reads the result at the start of `bytes`, which a server of this era sent, and its kind. Ignores what follows. Fails
/// as [`RawJson::parse`] does.
pub fn read_result(bytes: Bytes, era: Era) -> Result<(RawJson, ResultInfo), serde_json::Error> {
    let whole = ByteString::try_from(bytes.clone());
    if let Some(read) = whole.ok().and_then(|text| read_object(&text, era)) {
        return Ok(read);
    }
    // No object, or bytes that are not UTF-8 follow it.
    let result = RawJson::parse_prefix(bytes)?;
    let read = read_object(&ByteString::from(result.as_str()), era);
    Ok(read.unwrap_or_else(|| (result, ResultInfo::default())))
}

/// Reads the object at the start of `text` and its kind. Returns `None` if there is no object.
fn read_object(text: &ByteString, era: Era) -> Option<(RawJson, ResultInfo)> {
    let mut members = KindMembers::default();
    let object = JsonCursor::new(text).read_object(|name, cursor| members.read(&name, cursor));
    Some((RawJson::from_slice(text, object.ok()?), members.info(era)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, legacy: (ResultKind, ResultTypeMember), modern: (ResultKind, ResultTypeMember)) {
        for (era, (kind, result_type)) in [(Era::Legacy, legacy), (Era::Modern, modern)] {
            let (read, info) = read_result(format!("{result},\"id\":1}}").into(), era).unwrap();
            assert_eq!(read.as_str(), result);
            assert_eq!((info.kind, info.result_type), (kind, result_type), "{result}");
        }
    }

    #[test]
    fn kind_is_that_of_the_result_itself() {
        use ResultKind::{Ambiguous, Complete, InputRequired, Task, ToolError};
        use ResultTypeMember::{Ignored, Missing, Present};
        for (result, kind) in [
            ("{}", Complete),
            ("[1]", Complete),
            (r#"{"a":{"resultType":"input_required","isError":true}}"#, Complete),
            (r#"{"content":[],"isError":true}"#, ToolError),
            (r#"{"isError":true,"isError":false}"#, Complete),
            (r#"{"task":{"taskId":"a","status":"working"}}"#, Task),
            (r#"{"content":[],"task":{"title":"wash"}}"#, Complete),
            (r#"{"\ud800":1,"content":[]}"#, Complete),
        ] {
            check(result, (kind, Missing), (kind, Missing));
        }
        let complete = (Complete, Present);
        check(r#"{"resultType":"complete","task":{"taskId":"a"}}"#, complete, complete);
        check(r#"{"resultType":"complete","isError":true}"#, (ToolError, Present), (ToolError, Present));
        check(r#"{"result\u0054ype":"input_required"}"#, (Complete, Ignored), (InputRequired, Present));
        check(r#"{"resultType":"task","taskId":"a"}"#, (Task, Ignored), (Task, Present));
        check(r#"{"resultType":"other"}"#, (Complete, Ignored), complete);
        check(r#"{"resultType":1}"#, (Complete, Ignored), complete);
        check(r#"{"resultType":"task","resultType":"task"}"#, (Complete, Ignored), (Ambiguous, Present));
    }

    // RPT-037
    #[test]
    fn results_of_tools_that_strict_clients_read_are_recognized() {
        #[track_caller]
        fn check(result: &str, want: bool) {
            let (read, info) = read_result(format!("{result},\"id\":1}}").into(), Era::Legacy).unwrap();
            assert_eq!((read.as_str(), info.is_strict_tool_result), (result, want));
        }
        let with_block = |block: &str| format!(r#"{{"content":[{{"type":"text","text":"a"}},{block}]}}"#);
        for result in [
            r#"{"content":[]}"#,
            r#"{ "content" : [ ] , "isError":true,"structuredContent":{"a":null},"_meta":{},"x":null}"#,
            &with_block(r#"{"text":"a\n\"","type":"text","_meta":{},"x":null}"#),
            &with_block(r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#),
            &with_block(r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#),
        ] {
            check(result, true);
        }
        for result in [
            "{}",
            r#"{"content":null}"#,
            r#"{"content":"a"}"#,
            r#"{"content":{"type":"text","text":"a"}}"#,
            r#"{"content":[],"isError":null}"#,
            r#"{"content":[],"isError":"true"}"#,
            r#"{"content":[],"structuredContent":[]}"#,
            r#"{"content":[],"_meta":null}"#,
            &with_block("null"),
            &with_block(r#""a""#),
            &with_block(r#"{"text":"a"}"#),
            &with_block(r#"{"type":"text"}"#),
            &with_block(r#"{"type":"text","text":null}"#),
            &with_block(r#"{"type":"text","text":"a","_meta":null}"#),
            &with_block(r#"{"type":"text","type":"text","text":"a"}"#),
            &with_block(r#"{"type":"text","text":"a","annotations":null}"#),
            &with_block(r#"{"type":"image","data":"aGk="}"#),
            &with_block(r#"{"type":"image","data":"%","mimeType":"image/png"}"#),
            &with_block(r#"{"type":"hologram"}"#),
            &with_block(r#"{"type":"resource_link","uri":"a:b","name":"a"}"#),
        ] {
            check(result, false);
        }
    }
}
