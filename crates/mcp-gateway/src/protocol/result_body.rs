//! The result of a request, as it is written into the response.

use bytes::Bytes;
use mcp_host_model::{RawJson, ResultInfo, ResultKind, RpcError};

/// The result of a server, checked for a client.
#[derive(Debug)]
pub(crate) struct CheckedResult {
    pub(crate) object: RawJson,
    pub(crate) info: ResultInfo,
}

impl From<RawJson> for CheckedResult {
    /// A result of the gateway, which states no type.
    fn from(object: RawJson) -> CheckedResult {
        CheckedResult { object, info: ResultInfo::default() }
    }
}

/// A result: a JSON object, and a member that is written in front of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultBody {
    pub(crate) object: Bytes,
    /// A member that the object does not have; may be empty.
    first_member: &'static str,
    /// What it is.
    pub(crate) kind: ResultKind,
}

/// The outcome of a request.
pub(crate) type HandledResult = Result<ResultBody, RpcError>;

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
    /// An object without `resultType`, which is written with it.
    pub(crate) fn complete(object: RawJson) -> ResultBody {
        let first_member = if object.is_object() { r#""resultType":"complete""# } else { "" };
        ResultBody { first_member, ..ResultBody::from(object) }
    }

    /// The same result, of this kind.
    pub(crate) fn of_kind(self, kind: ResultKind) -> ResultBody {
        ResultBody { kind, ..self }
    }

    /// The size when it is written.
    pub(crate) fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// The parts of its text.
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
