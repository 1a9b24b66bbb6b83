//! Protocol versions in the error of a server that refuses a version.

use mcp_host_model::{Era, ProtocolVersion, RpcError};
use serde::Deserialize;
use serde_json::Value;

/// Maximum number of values in the data of an error that are searched for versions.
const MAX_VALUES: usize = 64;

/// The versions that an error says the server supports, as the server wrote them (`data.supported`).
pub(super) fn supported_versions(error: &RpcError) -> Vec<String> {
    #[derive(Deserialize)]
    struct ErrorData {
        supported: Vec<String>,
    }
    let data = error.data.as_ref().and_then(|data| data.read::<ErrorData>().ok());
    data.map(|data| data.supported).unwrap_or_default()
}

/// The newest legacy version that the error names, apart from the refused one. Servers name versions under several keys
/// of the data, or in the message.
pub(super) fn offered_legacy_version(error: &RpcError, refused: ProtocolVersion) -> Option<ProtocolVersion> {
    let mut named: Vec<ProtocolVersion> = Vec::new();
    if let Some(data) = error.data.as_ref().and_then(|data| data.read::<Value>().ok()) {
        let mut pending = vec![&data];
        let mut seen = 0;
        while let Some(value) = pending.pop().filter(|_| seen < MAX_VALUES) {
            seen += 1;
            match value {
                Value::String(text) => named.extend(text.parse::<ProtocolVersion>().ok()),
                Value::Array(items) => pending.extend(items.iter().take(MAX_VALUES)),
                Value::Object(members) => pending.extend(members.values().take(MAX_VALUES)),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }
    named.extend(versions_in(&error.message));
    // The versions are in the order of their dates.
    let is_offered = |version: &ProtocolVersion| version.era() == Era::Legacy && *version != refused;
    ProtocolVersion::ALL.iter().rev().copied().find(|version| named.contains(version) && is_offered(version))
}

/// The versions whose dates a text contains.
fn versions_in(text: &str) -> impl Iterator<Item = ProtocolVersion> {
    ProtocolVersion::ALL.iter().copied().filter(|version| text.contains(version.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::{RawJson, code};

    #[track_caller]
    fn check(message: &str, data: &str, want: Option<&str>) {
        let mut error = RpcError::new(code::INVALID_PARAMS, message);
        error.data = Some(RawJson::parse(data.to_owned().into()).unwrap());
        let got = offered_legacy_version(&error, ProtocolVersion::LATEST_LEGACY);
        assert_eq!(got.map(ProtocolVersion::as_str), want, "{message} {data}");
    }

    // RPT-061
    #[test]
    fn version_is_found_in_data_and_message() {
        let supported = r#"{"supported":["2024-11-05","2025-06-18"],"requested":"2025-11-25"}"#;
        check("Unsupported protocol version", supported, Some("2025-06-18"));
        check("no", r#"{"expected":"2025-03-26"}"#, Some("2025-03-26"));
        check("only 2025-03-26 is supported, not 2025-11-25", "null", Some("2025-03-26"));
        check("Unsupported protocol version: 2025-11-25", "{}", None);
        check("no", r#"{"supported":["2026-07-28","1999-01-01",7]}"#, None);
    }

    #[test]
    fn search_is_bounded() {
        let deep = format!("{}\"2025-03-26\"{}", "[".repeat(100), "]".repeat(100));
        check("no", &deep, None);
        let wide = format!("[{}\"2025-03-26\"]", "1,".repeat(10_000));
        check("no", &wide, None);
    }
}
