//! Requests that set up a session, before the rules of their version apply.
//!
//! Parameters may contain secrets and are never printed.

use mcp_host_model::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::request_error::SessionRequestError;
use crate::version::SessionMethod;

/// A method with its parameters.
#[derive(Clone, derive_more::Debug, PartialEq, Eq)]
#[debug("SessionRequest({}, ***)", method.as_str())]
#[non_exhaustive]
pub struct SessionRequest {
    /// The method.
    pub method: SessionMethod,
    /// The `params`, unchecked.
    pub params: RawJson,
}

#[derive(Deserialize)]
struct RequestJson<'a> {
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl SessionRequest {
    /// A request with these `params`.
    pub fn new(method: SessionMethod, params: RawJson) -> SessionRequest {
        SessionRequest { method, params }
    }

    /// Reads a complete JSON-RPC request. Fails if it is not a request, or not one that carries servers.
    pub fn read(request: &RawJson) -> Result<SessionRequest, SessionRequestError> {
        let RequestJson { method, params } = request.read().map_err(|_| SessionRequestError::NotARequest)?;
        let method = method.ok_or(SessionRequestError::NotARequest)?;
        let name: String =
            serde_json::from_str(method.get()).map_err(|_| SessionRequestError::NotARequest)?;
        let method =
            SessionMethod::parse(&name).ok_or(SessionRequestError::MethodNotFound { method: name })?;
        let params = params.map_or_else(RawJson::empty_object, RawJson::copy_of);
        Ok(SessionRequest { method, params })
    }

    /// Returns the request without its id, so that pointers start at the request.
    pub(crate) fn to_json_text(&self) -> String {
        format!(r#"{{"method":"{}","params":{}}}"#, self.method.as_str(), self.params.as_str())
    }
}

/// Returns the `id` for the response to `request`: `null` if it has none that can be read.
pub fn response_id(request: &RawJson) -> RawJson {
    #[derive(Deserialize)]
    struct WithId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let id = request.read::<WithId<'_>>().ok().and_then(|request| request.id);
    let id = id.filter(|id| !id.get().starts_with(['{', '[', 't', 'f']));
    id.map_or_else(|| RawJson::parse("null".into()).expect("null is JSON"), RawJson::copy_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let request = RawJson::parse(text.as_bytes().to_vec().into()).unwrap();
        let got = match SessionRequest::read(&request) {
            Ok(request) => format!("{request:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(format!("{} {got}", response_id(&request).as_str()), want, "{text}");
    }

    #[test]
    fn acpx_10_requests_are_identified_by_method() {
        check(
            r#"{"id":1,"method":"session/new","params":{"a":"SECRET"}}"#,
            "1 SessionRequest(session/new, ***)",
        );
        check(r#"{"id":"x","method":"session\/load"}"#, r#""x" SessionRequest(session/load, ***)"#);
        check(
            r#"{"id":[1],"method":"session/prompt"}"#,
            "null the method `session/prompt` does not set up a session",
        );
        check(r#"{"cwd":"/"}"#, "null this is not a request: it has no `method`");
        check(r#"{"id":2,"method":3}"#, "2 this is not a request: it has no `method`");
        check("[]", "null this is not a request: it has no `method`");
    }
}
