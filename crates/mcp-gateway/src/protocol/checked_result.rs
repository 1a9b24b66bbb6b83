//! The result of a server with its kind, which is found once.

use mcp_host_model::RawJson;

use crate::protocol::json_splice;

/// What the `resultType` of a server's result says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// There is none. The result is complete.
    Unstated,
    /// The server needs input before it returns a result.
    InputRequired,
    /// The result is complete, or of another kind.
    Other,
}

impl ResultKind {
    /// Reads the kind of a result.
    pub(crate) fn of(result: &RawJson) -> ResultKind {
        match json_splice::member(result, "resultType") {
            None => ResultKind::Unstated,
            Some(kind) if kind.to_text().as_deref() == Some("input_required") => ResultKind::InputRequired,
            Some(_) => ResultKind::Other,
        }
    }
}

/// The result of a server, checked for a client.
#[derive(Debug)]
pub(crate) struct CheckedResult {
    pub(crate) object: RawJson,
    pub(crate) kind: ResultKind,
}

impl From<RawJson> for CheckedResult {
    fn from(object: RawJson) -> CheckedResult {
        CheckedResult { kind: ResultKind::of(&object), object }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_that_of_the_result_itself() {
        let kind = |text: &'static str| ResultKind::of(&RawJson::parse(text.into()).unwrap());
        assert_eq!(kind(r#"{"a":{"resultType":"input_required"}}"#), ResultKind::Unstated);
        assert_eq!(kind(r#"{"resultType":"input_required"}"#), ResultKind::InputRequired);
        assert_eq!(kind(r#"{"resultType":"task"}"#), ResultKind::Other);
    }
}
