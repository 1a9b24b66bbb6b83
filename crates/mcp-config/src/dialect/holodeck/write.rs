//! Writes the MCP items of `tools` in HoloDeck's `agent.yaml`.

use std::time::Duration;

use mcp_host_model::{
    Dialect, EnvInheritance, Limits, NameClass, NamePolicy, Passthrough, RawJson, ServerSpec, Sharing,
    StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use crate::dialect::call_rules;
use crate::dialect::checks;
use crate::dialect::lowering::url_rule;
use crate::dialect::sandbox;
use crate::dialect::write::common;
use crate::dialect::write::entry_writer::EntryWriter;
use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values::value_text;
use crate::profile::rules::{NameRule, ProfileRules};
use crate::syntax::output::OutputValue;
use crate::syntax::template::{ReferenceRule, has_holodeck_reference};

/// Keys of an item that the reader keeps in the metadata.
const METADATA_KEYS: [&str; 4] = ["server", "registry_name", "is_retrieval", "defer_loading"];

/// Returns a server's name and its item. `None`, with a report, if the profile cannot express the server.
pub(crate) fn write_server(
    server: &ServerSpec,
    rules: &ProfileRules,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    let ServerSpec { origin, transport, limits, config, metadata, .. } = server;
    let kind = transport.kind();
    let name = write_name(server.id.as_str(), rules, report)?;
    let mut entry = EntryWriter::new(server, rules.reference_rule, report);
    entry.add_text("name", &name);
    if server.description.is_none() && rules.required_keys.contains(&"description") {
        let why = format!("{} requires a description", entry.report.title());
        entry.report.add_replaced("description", why, "wrote the server's name");
        entry.add_text("description", &name);
    }
    entry.add_model_text("description", "description", server.description.as_ref());
    entry.add_text("type", "mcp");
    write_server_key(server, &name, rules, &mut entry);
    if kind != TransportKind::Stdio {
        entry.add_text("transport", kind.as_str());
    }
    match transport {
        TransportSpec::Stdio(spec) => write_stdio(spec, origin.dialect(), rules, &mut entry)?,
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            write_url(spec, kind, rules, &mut entry)?;
        }
    }
    let defaults = Limits::default();
    if matches!(kind, TransportKind::Sse | TransportKind::Http) {
        if limits.connect != common::default_connect_timeout(kind) {
            entry.add("timeout", seconds(limits.connect));
        }
        if limits.sse_read != defaults.sse_read {
            entry.add("sse_read_timeout", seconds(limits.sse_read));
        }
    }
    if let Some(config) = config
        && let Some(data) = write_config(config, rules, entry.report)
    {
        entry.add("config", data);
    }
    if !server.discovery.tools {
        entry.add("load_tools", OutputValue::scalar(false));
    }
    if !server.discovery.prompts {
        entry.add("load_prompts", OutputValue::scalar(false));
    }
    if limits.request != defaults.request {
        let value = whole_seconds(limits.request, entry.report);
        entry.add("request_timeout", value);
    }
    for key in METADATA_KEYS.iter().skip(1).filter(|it| !rules.unsupported_keys.contains(*it)) {
        if let Some(value) = metadata.get(*key).and_then(OutputValue::from_json) {
            entry.add(key, value);
        }
    }
    let EntryWriter { members: mut res, report, .. } = entry;
    let written = METADATA_KEYS.into_iter().filter(|it| !rules.unsupported_keys.contains(it));
    common::report_metadata(metadata, &written.collect::<Vec<_>>(), report);
    common::report_inputs(origin, report);
    common::report_limits(limits, kind, &["limits.request", "limits.connect", "limits.sse_read"], report);
    common::report_exposure(&server.exposure, Some(NamePolicy::Qualify { class: NameClass::Strict }), report);
    // HoloDeck refuses the key, so it is written only where it was.
    if origin.dialect() == Dialect::HoloDeck {
        common::write_sharing(server.sharing, Sharing::Auto, origin, &mut res, report);
        res.extend(call_rules::member(&server.calls.stated));
    } else {
        report.add_unsupported_if(!server.calls.stated.is_empty(), "calls", "rules for calls");
        common::report_sharing(server.sharing, Sharing::Auto, report);
    }
    Some((name, OutputValue::Map(res)))
}

/// Adds the key `server`: the text that the reader kept, or another one if the profile requires the key.
fn write_server_key(server: &ServerSpec, name: &str, rules: &ProfileRules, entry: &mut EntryWriter<'_, '_>) {
    match server.metadata.get("server").and_then(RawJson::to_text) {
        Some(text) if !rules.unsupported_keys.contains(&"server") => entry.add_text("server", text),
        // Reported with the other metadata.
        Some(_) => {}
        None if rules.required_keys.contains(&"server") => {
            let why = format!("{} requires the name of a package or service", entry.report.title());
            let (text, words) = match package_of(&server.transport) {
                Some(package) => (package, "wrote the package of the arguments"),
                None => (name.to_owned(), "wrote the server's name"),
            };
            entry.report.add_replaced("metadata.server", why, words);
            entry.add_text("server", text);
        }
        None => {}
    }
}

/// The name of an item. Replaces characters that the profile does not allow, and reports this.
fn write_name(id: &str, rules: &ProfileRules, report: &mut WriteReport<'_>) -> Option<String> {
    if has_holodeck_reference(id) || id.contains("${") {
        return report.omit_server("id", "a name must not contain `${`");
    }
    match rules.name_rule {
        NameRule::Any => Some(id.to_owned()),
        NameRule::Word => {
            let res: String =
                id.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect();
            if res != id {
                let why = "a name has only ASCII letters, digits and `_`";
                report.add_replaced("id", why, format!("wrote the name {res}"));
            }
            Some(res)
        }
    }
}

/// Adds the fields of a child process. `None` if it cannot be written, which is reported.
fn write_stdio(
    spec: &StdioSpec,
    origin: Dialect,
    rules: &ProfileRules,
    entry: &mut EntryWriter<'_, '_>,
) -> Option<()> {
    let command = &spec.command;
    if let Some(commands) = rules.allowed_commands
        && !commands.contains(&command.as_str())
    {
        let why = format!("only {} are allowed there", commands.join(", "));
        return entry.report.omit_server("command", why);
    }
    entry.add_text("command", command);
    let args = entry.argument_list(&spec.args)?;
    entry.add_non_empty("args", args);
    let env = entry.value_map("env", &spec.env);
    entry.add_non_empty("env", OutputValue::Map(env));
    let key = if rules.unsupported_keys.contains(&"envFile") { "env_file" } else { "envFile" };
    entry.add_value(key, "env_file", spec.env_file.as_ref());
    common::report_inherit(spec.inherit, EnvInheritance::Safe, entry.report);
    match &spec.sandbox {
        // HoloDeck refuses the key, so it is written only where it was.
        Some(value) if origin == Dialect::HoloDeck => entry.add("sandbox", sandbox::written(value)),
        sandbox => entry.report.add_unsupported_if(sandbox.is_some(), "sandbox", "a sandbox"),
    }
    entry.report.add_unsupported_if(spec.cwd.is_some(), "cwd", "a working directory");
    entry.add_model_text("encoding", "encoding", Some(&spec.encoding).filter(|it| *it != "utf-8"));
    Some(())
}

/// Adds the fields of a server with a URL. `None` if it cannot be written, which is reported.
fn write_url(
    spec: &UrlSpec,
    kind: TransportKind,
    rules: &ProfileRules,
    entry: &mut EntryWriter<'_, '_>,
) -> Option<()> {
    entry.report.add_unsupported_if(spec.client_credentials.is_some(), "auth", "client credentials");
    common::report_sse_fallback(spec.sse_fallback, entry.report);
    let text = entry.required_text("url", &spec.url)?;
    if !has_holodeck_reference(&text) && checks::parse_url(&text, url_rule(kind, rules.url_policy)).is_err() {
        let why = "only https is allowed there, and http for this machine";
        return entry.report.omit_server("url", why);
    }
    entry.add_text("url", text);
    match kind {
        TransportKind::Sse | TransportKind::Http => {
            let headers = entry.value_map("headers", &spec.headers);
            entry.add_non_empty("headers", OutputValue::Map(headers));
        }
        TransportKind::WebSocket if !spec.headers.is_empty() => {
            entry.report.add_omitted("headers", "a websocket has no headers there")
        }
        TransportKind::WebSocket | TransportKind::Stdio | _ => {}
    }
    entry.report.add_unsupported_if(spec.session_id.is_some(), "session_id", "a session id");
    if kind == TransportKind::Http && !spec.terminate_on_close {
        entry.add("terminate_on_close", OutputValue::scalar(false));
    }
    Some(())
}

fn has_no_reference(text: &str, rules: &ProfileRules) -> bool {
    rules.reference_rule == ReferenceRule::Literal || !has_holodeck_reference(text)
}

/// Writes the `config` of an item. If the reader replaces variables it may be a template; otherwise it must not contain
/// text that looks like a reference.
fn write_config(
    config: &Passthrough,
    rules: &ProfileRules,
    report: &mut WriteReport<'_>,
) -> Option<OutputValue> {
    let json = match config {
        Passthrough::Literal(json) if has_no_reference(json.as_str(), rules) => json,
        Passthrough::Literal(_) => {
            report.add_omitted("config", "a text in it contains `${…}`, which would be replaced there");
            return None;
        }
        Passthrough::Template(json) => json,
    };
    let res = OutputValue::from_json(json).filter(|it| matches!(it, OutputValue::Map(_)));
    if res.is_none() {
        report.add_omitted("config", "it is not a mapping, or nested too deeply");
    }
    res
}

/// The package that a runner starts, if it is the first argument.
fn package_of(transport: &TransportSpec) -> Option<String> {
    let TransportSpec::Stdio(StdioSpec { command, args, .. }) = transport else { return None };
    if !["npx", "uvx"].contains(&command.as_str()) {
        return None;
    }
    let mut texts = args.iter().map_while(|it| value_text(it, ReferenceRule::Literal).ok());
    let first = texts.find(|it| !["-y", "--yes"].contains(&it.as_str()))?;
    let is_package_byte = |it: u8| it.is_ascii_alphanumeric() || b"@/._-".contains(&it);
    (first.bytes().all(is_package_byte) && !first.starts_with('-') && !first.is_empty()).then_some(first)
}

fn seconds(duration: Duration) -> OutputValue {
    OutputValue::scalar(duration.as_secs_f64())
}

fn whole_seconds(duration: Duration, report: &mut WriteReport<'_>) -> OutputValue {
    if duration.subsec_nanos() == 0 {
        return OutputValue::scalar(duration.as_secs());
    }
    let rounded = duration.as_secs() + 1;
    let done = format!("wrote {rounded}");
    report.add_replaced("limits.request", "only whole seconds are supported there", done);
    OutputValue::scalar(rounded)
}
