//! The kind of a result, which is determined in the pass that checks its JSON.

use bytes::Bytes;
use bytestring::ByteString;

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
    /// The name of a member cannot be decoded.
    Unreadable,
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
}

impl ResultInfo {
    /// Creates the info of a result of this kind without `resultType`.
    pub fn of_kind(kind: ResultKind) -> ResultInfo {
        ResultInfo { kind, result_type: ResultTypeMember::Missing }
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
}

impl<'a> KindMembers<'a> {
    /// Adds a member of the result. Others than those of the kind are ignored.
    fn add(&mut self, name: &str, value: JsonSlice<'a>) {
        match name {
            "resultType" => {
                self.has_repeated_type |= self.result_type.is_some();
                self.result_type.get_or_insert(value);
            }
            "isError" => self.is_error = value.as_str() == "true",
            "task" => self.has_task = has_task_id(value.as_str()),
            _ => {}
        }
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
        ResultInfo { kind, result_type }
    }
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
    let result = RawJson::parse_prefix(bytes)?;
    if !result.is_object() {
        return Ok((result, ResultInfo::default()));
    }
    let read = read_object(&ByteString::from(result.as_str()), era);
    Ok(read.unwrap_or_else(|| (result, ResultInfo::of_kind(ResultKind::Unreadable))))
}

/// Reads the object at the start of `text` and its kind. Returns `None` if there is no object, or if the name of a
/// member cannot be decoded.
fn read_object(text: &ByteString, era: Era) -> Option<(RawJson, ResultInfo)> {
    let mut members = KindMembers::default();
    let object = JsonCursor::new(text).read_object(|name, cursor| {
        members.add(&name, cursor.skip_value()?);
        Ok(())
    });
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
            assert_eq!(info, ResultInfo { kind, result_type }, "{result}");
        }
    }

    #[test]
    fn kind_is_that_of_the_result_itself() {
        use ResultKind::{Ambiguous, Complete, InputRequired, Task, ToolError, Unreadable};
        use ResultTypeMember::{Ignored, Missing, Present};
        for (result, kind) in [
            ("{}", Complete),
            ("[1]", Complete),
            (r#"{"a":{"resultType":"input_required","isError":true}}"#, Complete),
            (r#"{"content":[],"isError":true}"#, ToolError),
            (r#"{"isError":true,"isError":false}"#, Complete),
            (r#"{"task":{"taskId":"a","status":"working"}}"#, Task),
            (r#"{"content":[],"task":{"title":"wash"}}"#, Complete),
            (r#"{"\ud800":1,"content":[]}"#, Unreadable),
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
}
