//! HoloDeck's items of `tools`.

use std::time::Duration;

use mcp_model::{
    Dialect, Discovery, EnvInherit, NameClass, NamePolicy, Passthrough, RawJson, ServerSpec, Sharing,
    StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use super::values::{self, own, spelt};
use super::{Data, Report, common};
use crate::dialect::checks;
use crate::dialect::lowering::url_rule;
use crate::dialect::policy::{NameRule, Policy, VariableRule};
use crate::resolve::template::has_variable;

/// Keys of an item that only the reader keeps.
const OWN: [&str; 4] = ["server", "registry_name", "is_retrieval", "defer_loading"];

pub(super) fn entry(server: &ServerSpec, policy: &Policy, report: &mut Report<'_>) -> Option<(String, Data)> {
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
    } = server;
    let kind = transport.kind();
    let name = name(id.as_str(), policy, report)?;
    let mut res = vec![("name".to_owned(), Data::text(&name))];
    let mut add = |key: &str, value: Data| res.push((key.to_owned(), value));
    let needed = |key: &str| policy.required.contains(&key);
    match description {
        Some(text) => match own(text, origin.dialect, policy.variables) {
            Ok(text) => add("description", Data::Text(text)),
            Err(why) => report.lost("description", why),
        },
        None if needed("description") => {
            let why = format!("{} wants a description", report.title());
            report.instead("description", why, "wrote the server's name");
            add("description", Data::text(&name));
        }
        None => {}
    }
    add("type", Data::text("mcp"));
    let package = metadata.get("server").and_then(RawJson::to_text);
    match package {
        Some(text) if !policy.withheld.contains(&"server") => add("server", Data::text(text)),
        // Reported below.
        Some(_) => {}
        None if needed("server") => {
            let why = format!("{} wants the name of a package or service", report.title());
            let (text, words) = match package_of(transport) {
                Some(package) => (package, "wrote the package among the arguments"),
                None => (name.clone(), "wrote the server's name"),
            };
            report.instead("metadata.server", why, words);
            add("server", Data::text(text));
        }
        None => {}
    }
    if kind != TransportKind::Stdio {
        add("transport", Data::text(kind.as_str()));
    }
    match transport {
        TransportSpec::Stdio(spec) => res.extend(stdio(spec, origin.dialect, policy, report)?),
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            res.extend(url(spec, kind, policy, report)?);
        }
    }
    let mut add = |key: &str, value: Data| res.push((key.to_owned(), value));
    if matches!(kind, TransportKind::Sse | TransportKind::Http) {
        if limits.connect != common::usual_connect(kind) {
            add("timeout", seconds(limits.connect));
        }
        if limits.sse_read != mcp_model::Limits::default().sse_read {
            add("sse_read_timeout", seconds(limits.sse_read));
        }
    }
    if let Some(config) = config
        && let Some(data) = passthrough(config, policy, report)
    {
        add("config", data);
    }
    let Discovery { tools, prompts } = discovery;
    if !tools {
        add("load_tools", Data::word(false));
    }
    if !prompts {
        add("load_prompts", Data::word(false));
    }
    if limits.request != mcp_model::Limits::default().request {
        add("request_timeout", whole_seconds(limits.request, report));
    }
    for key in OWN.iter().skip(1).filter(|it| !policy.withheld.contains(*it)) {
        if let Some(value) = metadata.get(*key).and_then(Data::json) {
            add(key, value);
        }
    }
    let said: Vec<&str> = OWN.into_iter().filter(|it| !policy.withheld.contains(it)).collect();
    common::metadata(metadata, &said, report);
    common::limits(limits, kind, &["limits.request", "limits.connect", "limits.sse_read"], report);
    common::exposure(exposure, Some(NamePolicy::Qualify { class: NameClass::Strict }), report);
    common::sharing(*sharing, Sharing::Shared, report);
    Some((name, Data::Map(res)))
}

fn name(id: &str, policy: &Policy, report: &mut Report<'_>) -> Option<String> {
    if has_variable(id) || id.contains("${") {
        return report.left_out("id", "a name must not hold `${`");
    }
    match policy.names {
        NameRule::Any => Some(id.to_owned()),
        NameRule::Word => {
            let res: String =
                id.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect();
            if res != id {
                let why = "a name is made of ASCII letters, digits and `_`";
                report.instead("id", why, format!("wrote the name {res}"));
            }
            Some(res)
        }
    }
}

fn stdio(
    spec: &StdioSpec,
    origin: Dialect,
    policy: &Policy,
    report: &mut Report<'_>,
) -> Option<Vec<(String, Data)>> {
    let StdioSpec { command, args, env, env_file, inherit, cwd, encoding } = spec;
    let rule = policy.variables;
    if let Some(commands) = policy.commands
        && !commands.contains(&command.as_str())
    {
        return report.left_out("command", format!("only {} may be started there", commands.join(", ")));
    }
    let mut res = vec![("command".to_owned(), Data::text(command))];
    common::unless_empty(&mut res, "args", Data::List(values::arguments(args, rule, report)?));
    let env = values::entries("env", env, report, |it| spelt(it, rule).map(Data::Text));
    common::unless_empty(&mut res, "env", Data::Map(env));
    if let Some(file) = env_file {
        let key = if policy.withheld.contains(&"envFile") { "env_file" } else { "envFile" };
        match spelt(file, rule) {
            Ok(text) => res.push((key.to_owned(), Data::text(text))),
            Err(why) => report.lost("env_file", why),
        }
    }
    common::inherit(*inherit, EnvInherit::Safe, report);
    if cwd.is_some() {
        report.unsaid("cwd", "a working directory");
    }
    if encoding != "utf-8" {
        match own(encoding, origin, rule) {
            Ok(text) => res.push(("encoding".to_owned(), Data::Text(text))),
            Err(why) => report.lost("encoding", why),
        }
    }
    Some(res)
}

fn url(
    spec: &UrlSpec,
    kind: TransportKind,
    policy: &Policy,
    report: &mut Report<'_>,
) -> Option<Vec<(String, Data)>> {
    let UrlSpec { url, headers, session_id, terminate_on_close, sse_fallback } = spec;
    common::fallback(*sse_fallback, report);
    let rule = policy.variables;
    let text = match spelt(url, rule) {
        Ok(text) => text,
        Err(why) => return report.left_out("url", why),
    };
    if !has_variable(&text) && checks::parse_url(&text, url_rule(kind, policy.urls)).is_err() {
        return report.left_out("url", "only https is taken there, and http for this machine");
    }
    let mut res = vec![("url".to_owned(), Data::text(text))];
    match kind {
        TransportKind::Sse | TransportKind::Http => {
            let headers = values::entries("headers", headers, report, |it| spelt(it, rule).map(Data::Text));
            common::unless_empty(&mut res, "headers", Data::Map(headers));
        }
        TransportKind::WebSocket if !headers.is_empty() => {
            report.lost("headers", "a websocket sends none there")
        }
        TransportKind::WebSocket | TransportKind::Stdio => {}
    }
    if session_id.is_some() {
        report.unsaid("session_id", "a session to join");
    }
    if kind == TransportKind::Http && !terminate_on_close {
        res.push(("terminate_on_close".to_owned(), Data::word(false)));
    }
    Some(res)
}

fn takes(text: &str, policy: &Policy) -> bool {
    policy.variables == VariableRule::Literal || !has_variable(text)
}

/// What a reader resolves is a template there; what it does not must hold nothing that looks like one.
fn passthrough(config: &Passthrough, policy: &Policy, report: &mut Report<'_>) -> Option<Data> {
    let json = match config {
        Passthrough::Literal(json) if takes(json.as_str(), policy) => json,
        Passthrough::Literal(_) => {
            report.lost("config", "a text in it holds `${…}`, which would be replaced there");
            return None;
        }
        Passthrough::Template(json) => json,
    };
    let res = Data::json(json).filter(|it| matches!(it, Data::Map(_)));
    if res.is_none() {
        report.lost("config", "it is no mapping, or deeper than a file may be");
    }
    res
}

/// The package that a command is started with, where the arguments begin with it.
fn package_of(transport: &TransportSpec) -> Option<String> {
    let TransportSpec::Stdio(StdioSpec { command, args, .. }) = transport else { return None };
    if !["npx", "uvx"].contains(&command.as_str()) {
        return None;
    }
    let mut texts = args.iter().map_while(|it| spelt(it, VariableRule::Literal).ok());
    let first = texts.find(|it| !["-y", "--yes"].contains(&it.as_str()))?;
    let word = |it: u8| it.is_ascii_alphanumeric() || b"@/._-".contains(&it);
    (first.bytes().all(word) && !first.starts_with('-') && !first.is_empty()).then_some(first)
}

fn seconds(duration: Duration) -> Data {
    Data::word(duration.as_secs_f64())
}

fn whole_seconds(duration: Duration, report: &mut Report<'_>) -> Data {
    if duration.subsec_nanos() == 0 {
        return Data::word(duration.as_secs());
    }
    let rounded = duration.as_secs() + 1;
    report.instead("limits.request", "only whole seconds can be said there", format!("wrote {rounded}"));
    Data::word(rounded)
}
