//! The server requests that a client supports: sampling, elicitation, roots.

use mcp_host_model::{Method, MethodName, RawJson, RpcError, code};

use crate::protocol::json_splice;

/// The server requests that a client supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SupportedRequests {
    sampling: Option<SamplingSupport>,
    elicitation: Option<ElicitationModes>,
    roots: bool,
}

/// The extent of sampling support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SamplingSupport {
    Plain,
    WithTools,
}

/// The supported elicitation modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElicitationModes {
    Form,
    Url,
    Both,
}

impl SupportedRequests {
    /// Reads the supported requests from capabilities. Values that are not objects count as missing.
    pub(crate) fn of(capabilities: &RawJson) -> SupportedRequests {
        let declared =
            |object: &RawJson, name: &str| json_splice::member(object, name).filter(RawJson::is_object);
        let has = |object: &RawJson, name: &str| declared(object, name).is_some();
        let sampling = declared(capabilities, "sampling").map(|sampling| match has(&sampling, "tools") {
            true => SamplingSupport::WithTools,
            false => SamplingSupport::Plain,
        });
        let elicitation = declared(capabilities, "elicitation").map(|modes| {
            match (has(&modes, "form"), has(&modes, "url")) {
                (true, true) => ElicitationModes::Both,
                (false, true) => ElicitationModes::Url,
                // Clients of protocol versions without modes support the form mode.
                (true | false, false) => ElicitationModes::Form,
            }
        });
        SupportedRequests { sampling, elicitation, roots: has(capabilities, "roots") }
    }

    pub(crate) fn supports(self, method: &MethodName) -> bool {
        match method.as_known() {
            Some(Method::CreateMessage) => self.sampling.is_some(),
            Some(Method::Elicit) => self.elicitation.is_some(),
            Some(Method::ListRoots) => self.roots,
            _ => false,
        }
    }

    /// Checks that the client supports a request with these parameters.
    pub(crate) fn check_params(self, method: &MethodName, params: &RawJson) -> Result<(), RpcError> {
        let refused = |what: &str| Err(RpcError::new(code::INVALID_PARAMS, what));
        if !self.supports(method) {
            return refused("the client does not support this request");
        }
        let Some(members) = params.members() else {
            return refused("`params` must be a JSON object");
        };
        let all =
            |name: &'static str| members.iter().filter(move |(key, _)| key == name).map(|(_, value)| value);
        match method.as_known() {
            Some(Method::Elicit) => {
                // A repeated member is ambiguous.
                if all("mode").nth(1).is_some() {
                    return refused("`mode` is repeated");
                }
                let mode = match all("mode").next() {
                    None => Some("form".into()),
                    Some(mode) => mode.to_text(),
                };
                match (mode.as_deref(), self.elicitation) {
                    (Some("form"), Some(ElicitationModes::Form | ElicitationModes::Both))
                    | (Some("url"), Some(ElicitationModes::Url | ElicitationModes::Both)) => Ok(()),
                    _ => refused("the client does not support this elicitation mode"),
                }
            }
            Some(Method::CreateMessage) => {
                let mut tools = all("tools").chain(all("toolChoice"));
                if tools.next().is_some() && self.sampling != Some(SamplingSupport::WithTools) {
                    return refused("the client does not support sampling with tools");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(capabilities: &str, want: &[&str]) {
        let supported = SupportedRequests::of(&RawJson::parse(capabilities.to_owned().into()).unwrap());
        let methods = ["sampling/createMessage", "elicitation/create", "roots/list", "tasks/get"];
        let got: Vec<&str> =
            methods.into_iter().filter(|method| supported.supports(&(*method).into())).collect();
        assert_eq!(got, want, "{capabilities}");
    }

    #[test]
    fn only_declared_server_requests_are_supported() {
        check("{}", &[]);
        check(r#"{"sampling":{},"roots":{"listChanged":true}}"#, &["sampling/createMessage", "roots/list"]);
        check(r#"{"elicitation":{"form":{}}}"#, &["elicitation/create"]);
        check("[]", &[]);
        check(r#"{"sampling":null,"elicitation":true,"roots":[]}"#, &[]);
    }

    #[track_caller]
    fn check_request(capabilities: &str, method: &str, params: &str, want: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let got = SupportedRequests::of(&json(capabilities)).check_params(&method.into(), &json(params));
        assert_eq!(
            got.map_or_else(|error| error.message, |()| "fine".to_owned()),
            want,
            "{capabilities} {params}"
        );
    }

    #[test]
    fn only_declared_modes_are_accepted() {
        let (ask, sample) = ("elicitation/create", "sampling/createMessage");
        let no_mode = "the client does not support this elicitation mode";
        for (capabilities, form, url) in [
            (r#"{"elicitation":{}}"#, "fine", no_mode),
            (r#"{"elicitation":{"form":{}}}"#, "fine", no_mode),
            (r#"{"elicitation":{"url":{}}}"#, no_mode, "fine"),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, "fine", "fine"),
        ] {
            check_request(capabilities, ask, r#"{"message":"?"}"#, form);
            check_request(capabilities, ask, r#"{"mode":"form"}"#, form);
            check_request(capabilities, ask, r#"{"mode":"url","url":"https://a"}"#, url);
            check_request(capabilities, ask, r#"{"mode":"later"}"#, no_mode);
            check_request(capabilities, ask, r#"{"mode":7}"#, no_mode);
            check_request(capabilities, ask, r#"{"mode":"form","\u006dode":"url"}"#, "`mode` is repeated");
        }
        let plain = r#"{"sampling":{}}"#;
        let no_tools = "the client does not support sampling with tools";
        check_request(plain, sample, r#"{"messages":[]}"#, "fine");
        check_request(plain, sample, r#"{"tools":[]}"#, no_tools);
        check_request(plain, sample, r#"{"toolChoice":{}}"#, no_tools);
        check_request(plain, sample, "[1]", "`params` must be a JSON object");
        check_request(r#"{"sampling":{"tools":{}}}"#, sample, r#"{"tools":[]}"#, "fine");
        check_request(plain, "roots/list", "{}", "the client does not support this request");
        check_request(r#"{"roots":{}}"#, "roots/list", "{}", "fine");
    }
}
