//! What an agent has declared, and whether a list of servers keeps to it.
//!
//! Nothing is guessed: what is not declared as `true` is not declared.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_model::{RawJson, TransportKind};
use serde_json::value::RawValue;

use crate::{InvalidParams, Refusal};

/// The transports that an agent has declared beside stdio, which every agent has (ACP-001).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// `mcpCapabilities.http` (ACP-002).
    pub http: bool,
    /// `mcpCapabilities.sse` (ACP-003).
    pub sse: bool,
}

/// One server that a session asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested<'a> {
    /// Its name.
    pub server_name: &'a str,
    /// The transport it is to be reached by.
    pub transport: TransportKind,
}

impl Capabilities {
    /// Reads the `mcpCapabilities` object of protocol version 1. Whatever is not `true` is `false`: a missing key, a
    /// value of another type, a value that is no object at all.
    pub fn read(declared: &RawJson) -> Capabilities {
        let members: BTreeMap<Cow<'_, str>, &RawValue> = declared.read().unwrap_or_default();
        let flag = |key: &str| members.get(key).is_some_and(|it| it.get() == "true");
        Capabilities { http: flag("http"), sse: flag("sse") }
    }

    /// Is a server with this transport allowed?
    pub fn allows(&self, transport: TransportKind) -> bool {
        match transport {
            TransportKind::Stdio => true,
            TransportKind::Http => self.http,
            TransportKind::Sse => self.sse,
            // ACP has none, so no agent can declare it.
            TransportKind::WebSocket => false,
        }
    }

    /// The transports that are allowed, stdio first.
    pub fn supported(&self) -> Vec<TransportKind> {
        let all = [TransportKind::Stdio, TransportKind::Http, TransportKind::Sse, TransportKind::WebSocket];
        all.into_iter().filter(|it| self.allows(*it)).collect()
    }

    /// Checks every server that a session asks for (ACP-015, ACP-016). The refusal names all that are not allowed, in
    /// the order of the list.
    pub fn check(&self, requested: &[Requested<'_>]) -> Result<(), InvalidParams> {
        let refusals = requested
            .iter()
            .filter(|it| !self.allows(it.transport))
            .map(|it| Refusal { server_name: it.server_name.to_owned(), transport: it.transport });
        match InvalidParams::new(refusals.collect(), self.supported()) {
            Some(invalid) => Err(invalid),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_read(declared: &str, want: &str) {
        let Capabilities { http, sse } =
            Capabilities::read(&RawJson::parse(declared.as_bytes().to_vec().into()).unwrap());
        let words = [(http, "http"), (sse, "sse")].into_iter().filter(|it| it.0).map(|it| it.1);
        assert_eq!(words.collect::<Vec<_>>().join(" "), want, "{declared}");
    }

    #[test]
    fn acp_002_acp_003_only_true_declares() {
        check_read("{}", "");
        check_read(r#"{"http":true}"#, "http");
        check_read(r#"{"sse":true,"http":false}"#, "sse");
        check_read(r#"{"http":true,"sse":true,"acp":true,"_meta":{"sse":false}}"#, "http sse");
        check_read(r#"{"http":"true","sse":1}"#, "");
        check_read(r#"{"http":null,"sse":{"http":true}}"#, "");
        check_read(r#"{"HTTP":true}"#, "");
        for no_object in ["null", "true", "[true]", "\"http\"", "1"] {
            check_read(no_object, "");
        }
    }

    /// `declared` and `requested` are words; a row says which servers are refused.
    #[track_caller]
    fn check(declared: &str, requested: &str, refused: &str) {
        let capabilities = Capabilities { http: declared.contains("http"), sse: declared.contains("sse") };
        let requested: Vec<Requested<'_>> = requested
            .split_whitespace()
            .map(|it| Requested {
                server_name: it,
                transport: match it {
                    "stdio" => TransportKind::Stdio,
                    "http" => TransportKind::Http,
                    "sse" => TransportKind::Sse,
                    "websocket" => TransportKind::WebSocket,
                    _ => panic!("unknown transport {it}"),
                },
            })
            .collect();
        let got = match capabilities.check(&requested) {
            Ok(()) => String::new(),
            Err(it) => it.refusals().iter().map(|it| it.server_name.as_str()).collect::<Vec<_>>().join(" "),
        };
        assert_eq!(got, refused);
    }

    #[test]
    fn acp_015_acp_016_acp_031_each_capability_meets_each_transport() {
        check("", "", "");
        check("", "stdio", "");
        check("", "http", "http");
        check("", "sse", "sse");
        check("", "websocket", "websocket");
        check("http", "stdio", "");
        check("http", "http", "");
        check("http", "sse", "sse");
        check("http", "websocket", "websocket");
        check("sse", "stdio", "");
        check("sse", "http", "http");
        check("sse", "sse", "");
        check("sse", "websocket", "websocket");
        check("http sse", "stdio", "");
        check("http sse", "http", "");
        check("http sse", "sse", "");
        check("http sse", "websocket", "websocket");
    }

    #[test]
    fn acp_048_in_a_mixed_list_all_that_is_refused_is_named_in_order() {
        check("", "stdio sse http stdio", "sse http");
        check("http", "sse http websocket stdio", "sse websocket");
        check("http sse", "sse http stdio", "");
    }
}
