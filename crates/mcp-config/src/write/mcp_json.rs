//! The `mcpServers` of editors.
//!
//! What is written is what most of them read: no `type` for a program, `http` or `sse` for a URL, `${NAME}` for
//! variables. Times have the keys that say their unit, for `timeout` is seconds to one editor and milliseconds to another.

use mcp_model::{
    Dialect, EnvInherit, Exposure, Filter, Limits, NameClass, NamePolicy, Rules, ServerSpec, Sharing,
    SseFallback, StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use super::common::EXTRA;
use super::values::{self, own, spelt};
use super::{Data, Report, common};
use crate::dialect::checks;
use crate::dialect::lowering::{URL_KEY, url_rule};
use crate::dialect::policy::{UrlPolicy, VariableRule};
use crate::resolve::template::refers;

const RULE: VariableRule = VariableRule::Editor;

pub(super) fn entry(server: &ServerSpec, report: &mut Report<'_>) -> Option<(String, Data)> {
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
    let mut res = Vec::new();
    match transport {
        TransportSpec::Stdio(spec) => {
            let StdioSpec { command, args, env, env_file, inherit, cwd, encoding } = spec;
            match own(command, origin.dialect, RULE) {
                Ok(text) => res.push(("command".to_owned(), Data::Text(text))),
                Err(why) => return report.left_out("command", why),
            }
            common::unless_empty(&mut res, "args", Data::List(values::arguments(args, RULE, report)?));
            let mut env = values::entries("env", env, report, |it| spelt(it, RULE).map(Data::Text));
            common::config(config.as_ref(), Some(&mut env), Data::Text, report);
            common::unless_empty(&mut res, "env", Data::Map(env));
            match env_file.as_ref().map(|it| spelt(it, RULE)) {
                Some(Ok(text)) => res.push(("envFile".to_owned(), Data::text(text))),
                Some(Err(why)) => report.lost("env_file", why),
                None => {}
            }
            match cwd.as_ref().map(|it| own(it, origin.dialect, RULE)) {
                Some(Ok(text)) => res.push(("cwd".to_owned(), Data::Text(text))),
                Some(Err(why)) => report.lost("cwd", why),
                None => {}
            }
            common::inherit(*inherit, EnvInherit::All, report);
            if encoding != "utf-8" {
                report.unsaid("encoding", "an encoding");
            }
        }
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            let UrlSpec { url, headers, session_id, terminate_on_close, sse_fallback } = spec;
            common::config(config.as_ref(), None, Data::Text, report);
            let text = match spelt(url, RULE) {
                Ok(text) => text,
                Err(why) => return report.left_out("url", why),
            };
            if !refers(&text, RULE) && checks::parse_url(&text, url_rule(kind, UrlPolicy::Any)).is_err() {
                return report.left_out("url", "it is no URL of its transport");
            }
            // Without a word both ways are tried.
            if kind != TransportKind::Http || *sse_fallback == SseFallback::Never {
                res.push(("type".to_owned(), Data::text(kind.as_str())));
            }
            res.push(("url".to_owned(), Data::text(text)));
            let headers = values::entries("headers", headers, report, |it| spelt(it, RULE).map(Data::Text));
            common::unless_empty(&mut res, "headers", Data::Map(headers));
            if session_id.is_some() {
                report.unsaid("session_id", "a session to join");
            }
            if kind == TransportKind::Http && !terminate_on_close {
                report.unsaid("terminate_on_close", "a session that is left open");
            }
        }
    }
    match description.as_ref().map(|it| own(it, origin.dialect, RULE)) {
        Some(Ok(text)) => res.push(("description".to_owned(), Data::Text(text))),
        Some(Err(why)) => report.lost("description", why),
        None => {}
    }
    times(&mut res, limits);
    shown(&mut res, exposure, report);
    common::discovery(*discovery, report);
    common::naming(exposure, [NamePolicy::Qualify { class: NameClass::Strict }; 3], report);
    common::sharing(*sharing, Sharing::Shared, report);
    common::limits(limits, kind, &["limits.request", "limits.connect", "limits.startup"], report);
    let mut said = vec![URL_KEY];
    if origin.dialect == Dialect::McpJson {
        common::extra(&mut res, metadata);
        said.push(EXTRA);
    }
    common::metadata(metadata, &said, report);
    Some((id.to_string(), Data::Map(res)))
}

/// Limits that are not the usual ones, by keys that tell their unit.
fn times(members: &mut Vec<(String, Data)>, limits: &Limits) {
    let usual = Limits::default();
    let times = [
        ("requestTimeout", limits.request, usual.request, 1000.0),
        ("connectionTimeout", limits.connect, usual.connect, 1000.0),
        ("startup_timeout_sec", limits.startup, usual.startup, 1.0),
    ];
    for (key, time, _, unit) in times.into_iter().filter(|it| it.1 != it.2) {
        members.push((key.to_owned(), Data::word(time.as_secs_f64() * unit)));
    }
}

/// Which tools are shown. A whitelist that brings back what a blacklist took has no words there.
fn shown(members: &mut Vec<(String, Data)>, exposure: &Exposure, report: &mut Report<'_>) {
    for (list, rules) in common::lists(exposure) {
        let Rules { filter: Filter { whitelist, blacklist }, transforms, naming: _, limit: _ } = rules;
        let patterns = |it: &[String]| Data::List(it.iter().map(Data::text).collect());
        match (list, &whitelist[..], &blacklist[..]) {
            (_, [], []) => {}
            ("tools", [], excluded) => members.push(("excludeTools".to_owned(), patterns(excluded))),
            ("tools", included, []) => members.push(("includeTools".to_owned(), patterns(included))),
            (_, _, _) => report.unsaid(format!("{list}.filter"), "what of a server is shown"),
        }
        if !transforms.is_empty() {
            report.unsaid(format!("{list}.transforms"), "other names");
        }
    }
}
