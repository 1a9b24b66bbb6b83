//! Writes an entry in Codex's form, which refuses any other key.

use crate::dialect::write::WriteReport;
use crate::syntax::output::OutputValue;

/// The keys of the common form, and Codex's names of them.
const KEYS: [(&str, &str); 10] = [
    ("command", "command"),
    ("args", "args"),
    ("env", "env"),
    ("cwd", "cwd"),
    ("url", "url"),
    ("enabled", "enabled"),
    ("headers", "http_headers"),
    ("startup_timeout_sec", "startup_timeout_sec"),
    ("includeTools", "enabled_tools"),
    ("excludeTools", "disabled_tools"),
];

/// Rewrites an entry of the common form. `None` if Codex cannot connect to the server.
pub(super) fn entry(data: OutputValue, report: &mut WriteReport<'_>) -> Option<OutputValue> {
    let OutputValue::Map(members) = data else { return Some(data) };
    let mut res = Vec::new();
    for (key, value) in members {
        match KEYS.iter().find(|it| it.0 == key) {
            Some((_, name)) => res.push(((*name).to_owned(), value)),
            None if key == "type" && value == OutputValue::text("http") => {}
            None if key == "type" => {
                return report
                    .server_omitted("transport", "Codex connects over stdio and Streamable HTTP only");
            }
            None => report.omitted(key, "Codex has no such key"),
        }
    }
    Some(OutputValue::Map(res))
}
