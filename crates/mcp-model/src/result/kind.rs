//! The kind of a result, noted in the pass that checks its JSON.

use bytes::Bytes;
use bytestring::ByteString;

use crate::json::cursor::{JsonCursor, JsonSlice};
use crate::json::raw::RawJson;
use crate::protocol::era::Era;

/// What a result is.
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
    /// A task, which the server made of a tool call.
    Task,
    /// The member that describes it is repeated.
    Ambiguous,
    /// A name of a member cannot be decoded.
    Unreadable,
}

/// What the `resultType` of a result states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a gateway forwards each in its own way")]
pub enum ResultType {
    /// There is none.
    #[default]
    Missing,
    /// The type, as the kind has it, or an unknown one.
    Stated,
    /// A server of the legacy era states another type than `complete`, which means nothing.
    Void,
}

/// The kind of a result, and whether it states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResultInfo {
    /// The kind.
    pub kind: ResultKind,
    /// What its `resultType` states.
    pub result_type: ResultType,
}

impl ResultInfo {
    /// The info of a result of this kind, which states no type.
    pub fn of_kind(kind: ResultKind) -> ResultInfo {
        ResultInfo { kind, result_type: ResultType::Missing }
    }
}

/// The members that describe a result.
#[derive(Default)]
pub(crate) struct KindMembers<'a> {
    result_type: Option<JsonSlice<'a>>,
    has_repeated: bool,
    is_error: bool,
    /// Whether there is the task of 2025-11-25.
    has_task: bool,
}

impl<'a> KindMembers<'a> {
    /// Notes a member of the result.
    fn add(&mut self, name: &str, value: JsonSlice<'a>) {
        match name {
            "resultType" => {
                self.has_repeated |= self.result_type.is_some();
                self.result_type.get_or_insert(value);
            }
            "isError" => self.is_error = value.as_str() == "true",
            "task" => self.has_task = names_task(value.as_str()),
            _ => {}
        }
    }

    /// The info of a result of a server of this era.
    fn info(&self, era: Era) -> ResultInfo {
        let result_type = self.result_type.and_then(JsonSlice::to_text);
        let is_stated = self.result_type.is_some();
        let kind = match result_type.as_deref() {
            Some("task") if !self.has_repeated => ResultKind::Task,
            _ if self.has_repeated && era == Era::Modern => ResultKind::Ambiguous,
            Some("input_required") if era == Era::Modern => ResultKind::InputRequired,
            // A result may have a member of this name with another content.
            None if !is_stated && self.has_task => ResultKind::Task,
            _ if self.is_error => ResultKind::ToolError,
            _ => ResultKind::Complete,
        };
        let is_void = self.has_repeated || result_type.as_deref() != Some("complete");
        let result_type = match (is_stated, era) {
            (false, _) => ResultType::Missing,
            (true, Era::Legacy) if is_void => ResultType::Void,
            (true, Era::Legacy | Era::Modern) => ResultType::Stated,
        };
        ResultInfo { kind, result_type }
    }
}

/// Whether a value is an object with a `taskId`.
fn names_task(json: &str) -> bool {
    let mut has_id = false;
    let read = JsonCursor::new(json).read_object(|name, cursor| {
        has_id |= name == "taskId";
        cursor.skip_value().map(drop)
    });
    read.is_ok() && has_id
}

/// Reads the result at the start of `bytes`, which a server of this era sent, and ignores what follows. Fails as
/// [`RawJson::parse`] does.
pub fn read_result(bytes: Bytes, era: Era) -> Result<(RawJson, ResultInfo), serde_json::Error> {
    let whole = ByteString::try_from(bytes.clone());
    if let Some(read) = whole.ok().and_then(|text| read_members(&text, era)) {
        return Ok(read);
    }
    let result = RawJson::parse_prefix(bytes)?;
    if !result.is_object() {
        return Ok((result, ResultInfo::default()));
    }
    let read = read_members(&ByteString::from(result.as_str()), era);
    Ok(read.unwrap_or_else(|| (result, ResultInfo::of_kind(ResultKind::Unreadable))))
}

/// Reads the object at the start of `text`. `None` if there is none whose names can be decoded.
fn read_members(text: &ByteString, era: Era) -> Option<(RawJson, ResultInfo)> {
    let mut members = KindMembers::default();
    let object = JsonCursor::new(text).read_object(|name, cursor| {
        members.add(&name, cursor.skip_value()?);
        Ok(())
    });
    Some((RawJson::slice_at(text, text.as_ptr(), object.ok()?.as_str()), members.info(era)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, legacy: (ResultKind, ResultType), modern: (ResultKind, ResultType)) {
        for (era, (kind, result_type)) in [(Era::Legacy, legacy), (Era::Modern, modern)] {
            let (read, info) = read_result(format!("{result},\"id\":1}}").into(), era).unwrap();
            assert_eq!(read.as_str(), result);
            assert_eq!(info, ResultInfo { kind, result_type }, "{result}");
        }
    }

    #[test]
    fn kind_is_that_of_the_result_itself() {
        use ResultKind::{Ambiguous, Complete, InputRequired, Task, ToolError, Unreadable};
        use ResultType::{Missing, Stated, Void};
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
        let complete = (Complete, Stated);
        check(r#"{"resultType":"complete","task":{"taskId":"a"}}"#, complete, complete);
        check(r#"{"resultType":"complete","isError":true}"#, (ToolError, Stated), (ToolError, Stated));
        check(r#"{"result\u0054ype":"input_required"}"#, (Complete, Void), (InputRequired, Stated));
        check(r#"{"resultType":"task","taskId":"a"}"#, (Task, Void), (Task, Stated));
        check(r#"{"resultType":"other"}"#, (Complete, Void), complete);
        check(r#"{"resultType":1}"#, (Complete, Void), complete);
        check(r#"{"resultType":"task","resultType":"task"}"#, (Complete, Void), (Ambiguous, Stated));
    }
}
