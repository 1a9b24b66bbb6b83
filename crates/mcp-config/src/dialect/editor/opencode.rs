//! Writes an entry in opencode's form, which refuses any other key.

use mcp_model::TransportKind;

use crate::dialect::write::WriteReport;
use crate::syntax::output::OutputValue;

/// The keys that opencode has for both kinds of servers.
const COMMON_KEYS: [&str; 4] = ["enabled", "timeout", "oauth", "headers"];

/// Rewrites an entry of the common form. `None` if opencode cannot connect to the server.
pub(super) fn entry(data: OutputValue, report: &mut WriteReport<'_>) -> Option<OutputValue> {
    let OutputValue::Map(members) = data else { return Some(data) };
    let websocket = OutputValue::text(TransportKind::WebSocket.as_str());
    if members.iter().any(|(key, value)| key == "type" && *value == websocket) {
        return report.server_omitted("transport", "opencode does not connect over WebSocket");
    }
    let is_local = members.iter().any(|it| it.0 == "command");
    let kind = if is_local { "local" } else { "remote" };
    let mut res = vec![("type".to_owned(), OutputValue::text(kind))];
    let mut program = Vec::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("type", _) => {}
            ("command", OutputValue::List(items)) | ("args", OutputValue::List(items)) => {
                program.extend(items)
            }
            ("command", value) => program.insert(0, value),
            ("env", value) => res.push(("environment".to_owned(), value)),
            ("requestTimeout", value) => res.push(("timeout".to_owned(), value)),
            ("url", value) => res.push((key, value)),
            (known, value) if COMMON_KEYS.contains(&known) => res.push((key, value)),
            (other, _) => report.omitted(other, "opencode has no such key"),
        }
    }
    if is_local {
        res.insert(1, ("command".to_owned(), OutputValue::List(program)));
    }
    Some(OutputValue::Map(res))
}
