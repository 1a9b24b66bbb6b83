//! The result of a request.

use bytes::Bytes;
use mcp_host_model::{RawJson, ResultInfo, ResultKind, RpcError};

/// A server's result that was checked and converted for a client.
#[derive(Debug)]
pub(crate) struct CheckedResult {
    pub(crate) object: RawJson,
    pub(crate) info: ResultInfo,
}

impl From<RawJson> for CheckedResult {
    /// A result of the gateway itself, which has no `resultType`.
    fn from(object: RawJson) -> CheckedResult {
        CheckedResult { object, info: ResultInfo::default() }
    }
}

/// A result as it is written into the response: a JSON object, and a member that is written before those of the object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultBody {
    pub(crate) object: Bytes,
    /// The JSON text of a member that the object does not have; empty for none.
    first_member: &'static str,
    /// The kind of the result.
    pub(crate) kind: ResultKind,
}

/// The outcome of a request: what the handler of its method returns.
pub(crate) type HandlerResult = Result<ResultBody, HandlerError>;

/// The error of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HandlerError {
    pub(crate) error: RpcError,
    /// The seconds after which a request over a rate limit can be tried again.
    pub(crate) retry_after: Option<u64>,
}

impl From<RpcError> for HandlerError {
    fn from(error: RpcError) -> HandlerError {
        HandlerError { error, retry_after: None }
    }
}

impl From<RawJson> for ResultBody {
    fn from(object: RawJson) -> ResultBody {
        ResultBody::from(object.into_bytes())
    }
}

impl From<Bytes> for ResultBody {
    fn from(object: Bytes) -> ResultBody {
        ResultBody { object, first_member: "", kind: ResultKind::Complete }
    }
}

impl ResultBody {
    /// A complete result. The object has no `resultType`; the written result has it.
    pub(crate) fn complete(object: RawJson) -> ResultBody {
        let first_member = if object.is_object() { r#""resultType":"complete""# } else { "" };
        ResultBody { first_member, ..ResultBody::from(object) }
    }

    /// Sets the kind.
    pub(crate) fn with_kind(self, kind: ResultKind) -> ResultBody {
        ResultBody { kind, ..self }
    }

    /// The size of the written result in bytes.
    pub(crate) fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// The parts of the written result, in their order.
    pub(crate) fn parts(&self) -> [&[u8]; 4] {
        if self.first_member.is_empty() {
            return [&self.object, b"", b"", b""];
        }
        let rest = &self.object[1..];
        let comma: &[u8] = if rest.trim_ascii_start() == b"}" { b"" } else { b"," };
        [b"{", self.first_member.as_bytes(), comma, rest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(object: &'static str, want: &str) {
        let body = ResultBody::complete(RawJson::parse(object.into()).unwrap());
        let text = body.parts().concat();
        assert_eq!((std::str::from_utf8(&text).unwrap(), body.len()), (want, want.len()));
    }

    #[test]
    fn member_is_written_in_front_of_the_others() {
        check("{}", r#"{"resultType":"complete"}"#);
        check(r#"{ "a":{"b":1}}"#, r#"{"resultType":"complete", "a":{"b":1}}"#);
        check("[1]", "[1]");
    }
}
