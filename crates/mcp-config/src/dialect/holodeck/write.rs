//! Writes HoloDeck's items of `tools`.

use std::time::Duration;

use mcp_host_model::{
    Dialect, Discovery, EnvInherit, NameClass, NamePolicy, Passthrough, RawJson, ServerSpec, Sharing,
    StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use crate::dialect::checks;
use crate::dialect::lowering::url_rule;
use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values::{reference_text, rewrite_text};
use crate::dialect::write::{common, values};
use crate::profile::policy::{NameRule, Policy};
use crate::syntax::output::OutputValue;
use crate::syntax::template::{ReferenceRule, has_holodeck_reference};

/// Keys of an item that the reader keeps in the metadata.
const METADATA_KEYS: [&str; 4] = ["server", "registry_name", "is_retrieval", "defer_loading"];

pub(crate) fn write_server(
    server: &ServerSpec,
    policy: &Policy,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    let ServerSpec {
        id,
        description,
        origin,
        transport,
        limits,
        discovery,
        exposure,
        sharing,
        config,
        metadata,
        ..
    } = server;
    let kind = transport.kind();
    let name = name(id.as_str(), policy, report)?;
    let mut res = vec![("name".to_owned(), OutputValue::text(&name))];
    let mut add = |key: &str, value: OutputValue| res.push((key.to_owned(), value));
    let needed = |key: &str| policy.required.contains(&key);
    match description {
        Some(text) => match rewrite_text(text, origin.dialect(), policy.variables) {
            Ok(text) => add("description", OutputValue::Text(text)),
            Err(why) => report.omitted("description", why),
        },
        None if needed("description") => {
            let why = format!("{} requires a description", report.title());
            report.replaced("description", why, "wrote the server's name");
            add("description", OutputValue::text(&name));
        }
        None => {}
    }
    add("type", OutputValue::text("mcp"));
    let package = metadata.get("server").and_then(RawJson::to_text);
    match package {
        Some(text) if !policy.unsupported_keys.contains(&"server") => add("server", OutputValue::text(text)),
        // Reported below.
        Some(_) => {}
        None if needed("server") => {
            let why = format!("{} requires the name of a package or service", report.title());
            let (text, words) = match package_of(transport) {
                Some(package) => (package, "wrote the package of the arguments"),
                None => (name.clone(), "wrote the server's name"),
            };
            report.replaced("metadata.server", why, words);
            add("server", OutputValue::text(text));
        }
        None => {}
    }
    if kind != TransportKind::Stdio {
        add("transport", OutputValue::text(kind.as_str()));
    }
    match transport {
        TransportSpec::Stdio(spec) => res.extend(stdio(spec, origin.dialect(), policy, report)?),
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            res.extend(url(spec, kind, policy, report)?);
        }
    }
    let mut add = |key: &str, value: OutputValue| res.push((key.to_owned(), value));
    if matches!(kind, TransportKind::Sse | TransportKind::Http) {
        if limits.connect != common::default_connect(kind) {
            add("timeout", seconds(limits.connect));
        }
        if limits.sse_read != mcp_host_model::Limits::default().sse_read {
            add("sse_read_timeout", seconds(limits.sse_read));
        }
    }
    if let Some(config) = config
        && let Some(data) = passthrough(config, policy, report)
    {
        add("config", data);
    }
    let Discovery { tools, prompts, .. } = discovery;
    if !tools {
        add("load_tools", OutputValue::scalar(false));
    }
    if !prompts {
        add("load_prompts", OutputValue::scalar(false));
    }
    if limits.request != mcp_host_model::Limits::default().request {
        add("request_timeout", whole_seconds(limits.request, report));
    }
    for key in METADATA_KEYS.iter().skip(1).filter(|it| !policy.unsupported_keys.contains(*it)) {
        if let Some(value) = metadata.get(*key).and_then(OutputValue::from_json) {
            add(key, value);
        }
    }
    let written = METADATA_KEYS.into_iter().filter(|it| !policy.unsupported_keys.contains(it));
    common::report_metadata(metadata, &written.collect::<Vec<_>>(), report);
    common::report_inputs(origin, report);
    common::report_limits(limits, kind, &["limits.request", "limits.connect", "limits.sse_read"], report);
    common::report_exposure(exposure, Some(NamePolicy::Qualify { class: NameClass::Strict }), report);
    // HoloDeck refuses the key, so it is written only where it was.
    if origin.dialect() == Dialect::HoloDeck {
        common::write_sharing(*sharing, Sharing::Auto, origin, &mut res, report);
    } else {
        common::report_sharing(*sharing, Sharing::Auto, report);
    }
    Some((name, OutputValue::Map(res)))
}

fn name(id: &str, policy: &Policy, report: &mut WriteReport<'_>) -> Option<String> {
    if has_holodeck_reference(id) || id.contains("${") {
        return report.server_omitted("id", "a name must not contain `${`");
    }
    match policy.names {
        NameRule::Any => Some(id.to_owned()),
        NameRule::Word => {
            let res: String =
                id.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect();
            if res != id {
                let why = "a name has only ASCII letters, digits and `_`";
                report.replaced("id", why, format!("wrote the name {res}"));
            }
            Some(res)
        }
    }
}

fn stdio(
    spec: &StdioSpec,
    origin: Dialect,
    policy: &Policy,
    report: &mut WriteReport<'_>,
) -> Option<Vec<(String, OutputValue)>> {
    let StdioSpec { command, args, env, env_file, inherit, cwd, encoding, .. } = spec;
    let rule = policy.variables;
    if let Some(commands) = policy.commands
        && !commands.contains(&command.as_str())
    {
        return report.server_omitted("command", format!("only {} are allowed there", commands.join(", ")));
    }
    let mut res = vec![("command".to_owned(), OutputValue::text(command))];
    common::push_non_empty(&mut res, "args", OutputValue::List(values::arguments(args, rule, report)?));
    let env = values::entry_map("env", env, report, |it| reference_text(it, rule).map(OutputValue::Text));
    common::push_non_empty(&mut res, "env", OutputValue::Map(env));
    if let Some(file) = env_file {
        let key = if policy.unsupported_keys.contains(&"envFile") { "env_file" } else { "envFile" };
        match reference_text(file, rule) {
            Ok(text) => res.push((key.to_owned(), OutputValue::text(text))),
            Err(why) => report.omitted("env_file", why),
        }
    }
    common::report_inherit(*inherit, EnvInherit::Safe, report);
    report.unsupported_if(cwd.is_some(), "cwd", "a working directory");
    if encoding != "utf-8" {
        match rewrite_text(encoding, origin, rule) {
            Ok(text) => res.push(("encoding".to_owned(), OutputValue::Text(text))),
            Err(why) => report.omitted("encoding", why),
        }
    }
    Some(res)
}

fn url(
    spec: &UrlSpec,
    kind: TransportKind,
    policy: &Policy,
    report: &mut WriteReport<'_>,
) -> Option<Vec<(String, OutputValue)>> {
    let UrlSpec { url, headers, session_id, client_credentials, terminate_on_close, sse_fallback, .. } = spec;
    report.unsupported_if(client_credentials.is_some(), "auth", "client credentials");
    common::report_fallback(*sse_fallback, report);
    let rule = policy.variables;
    let text = report.required("url", reference_text(url, rule))?;
    if !has_holodeck_reference(&text) && checks::parse_url(&text, url_rule(kind, policy.urls)).is_err() {
        return report.server_omitted("url", "only https is allowed there, and http for this machine");
    }
    let mut res = vec![("url".to_owned(), OutputValue::text(text))];
    match kind {
        TransportKind::Sse | TransportKind::Http => {
            let headers = values::entry_map("headers", headers, report, |it| {
                reference_text(it, rule).map(OutputValue::Text)
            });
            common::push_non_empty(&mut res, "headers", OutputValue::Map(headers));
        }
        TransportKind::WebSocket if !headers.is_empty() => {
            report.omitted("headers", "a websocket has no headers there")
        }
        TransportKind::WebSocket | TransportKind::Stdio | _ => {}
    }
    report.unsupported_if(session_id.is_some(), "session_id", "a session id");
    if kind == TransportKind::Http && !terminate_on_close {
        res.push(("terminate_on_close".to_owned(), OutputValue::scalar(false)));
    }
    Some(res)
}

fn has_no_reference(text: &str, policy: &Policy) -> bool {
    policy.variables == ReferenceRule::Literal || !has_holodeck_reference(text)
}

/// The `config` of an item. If the reader replaces variables it may be a template; otherwise it must not contain
/// text that looks like a reference.
fn passthrough(config: &Passthrough, policy: &Policy, report: &mut WriteReport<'_>) -> Option<OutputValue> {
    let json = match config {
        Passthrough::Literal(json) if has_no_reference(json.as_str(), policy) => json,
        Passthrough::Literal(_) => {
            report.omitted("config", "a text in it contains `${…}`, which would be replaced there");
            return None;
        }
        Passthrough::Template(json) => json,
    };
    let res = OutputValue::from_json(json).filter(|it| matches!(it, OutputValue::Map(_)));
    if res.is_none() {
        report.omitted("config", "it is not a mapping, or nested too deeply");
    }
    res
}

/// The package that a runner starts, if it is the first argument.
fn package_of(transport: &TransportSpec) -> Option<String> {
    let TransportSpec::Stdio(StdioSpec { command, args, .. }) = transport else { return None };
    if !["npx", "uvx"].contains(&command.as_str()) {
        return None;
    }
    let mut texts = args.iter().map_while(|it| reference_text(it, ReferenceRule::Literal).ok());
    let first = texts.find(|it| !["-y", "--yes"].contains(&it.as_str()))?;
    let word = |it: u8| it.is_ascii_alphanumeric() || b"@/._-".contains(&it);
    (first.bytes().all(word) && !first.starts_with('-') && !first.is_empty()).then_some(first)
}

fn seconds(duration: Duration) -> OutputValue {
    OutputValue::scalar(duration.as_secs_f64())
}

fn whole_seconds(duration: Duration, report: &mut WriteReport<'_>) -> OutputValue {
    if duration.subsec_nanos() == 0 {
        return OutputValue::scalar(duration.as_secs());
    }
    let rounded = duration.as_secs() + 1;
    report.replaced("limits.request", "only whole seconds are supported there", format!("wrote {rounded}"));
    OutputValue::scalar(rounded)
}
