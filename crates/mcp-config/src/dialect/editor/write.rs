//! Writes the `mcpServers` of editors.
//!
//! The output is what most editors read: no `type` for a program, `http` or `sse` for a URL, `${NAME}` for variables.
//! Timeouts use keys with a fixed unit, because the unit of `timeout` differs between editors.

use mcp_host_model::{
    Dialect, EnvInherit, Exposure, Filter, Limits, NameClass, NamePolicy, Rules, ServerSpec, Sharing,
    SseFallback, StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use crate::dialect::checks;
use crate::dialect::lowering::url_rule;
use crate::dialect::write::common::EXTRA;
use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values::{reference_text, rewrite_text};
use crate::dialect::write::{common, values};
use crate::profile::policy::UrlPolicy;
use crate::syntax::output::OutputValue;
use crate::syntax::template::{ReferenceRule, has_reference};

const RULE: ReferenceRule = ReferenceRule::Editor;

pub(crate) fn write_server(
    server: &ServerSpec,
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
    let mut res = Vec::new();
    match transport {
        TransportSpec::Stdio(spec) => {
            let StdioSpec { command, args, env, env_file, inherit, cwd, encoding, .. } = spec;
            match rewrite_text(command, origin.dialect(), RULE) {
                Ok(text) => res.push(("command".to_owned(), OutputValue::Text(text))),
                Err(why) => return report.server_omitted("command", why),
            }
            common::push_non_empty(
                &mut res,
                "args",
                OutputValue::List(values::arguments(args, RULE, report)?),
            );
            let mut env =
                values::entry_map("env", env, report, |it| reference_text(it, RULE).map(OutputValue::Text));
            common::write_config(config.as_ref(), Some(&mut env), OutputValue::Text, report);
            common::push_non_empty(&mut res, "env", OutputValue::Map(env));
            res.extend(report.optional(
                "envFile",
                "env_file",
                env_file.as_ref().map(|it| reference_text(it, RULE)),
            ));
            res.extend(report.optional(
                "cwd",
                "cwd",
                cwd.as_ref().map(|it| rewrite_text(it, origin.dialect(), RULE)),
            ));
            common::report_inherit(*inherit, EnvInherit::All, report);
            report.unsupported_if(encoding != "utf-8", "encoding", "an encoding");
        }
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            let UrlSpec {
                url,
                headers,
                session_id,
                client_credentials,
                terminate_on_close,
                sse_fallback,
                ..
            } = spec;
            // Files of this dialect keep the key `auth` as it is.
            report.unsupported_if(
                client_credentials.is_some() && origin.dialect() != Dialect::McpJson,
                "auth",
                "client credentials",
            );
            common::write_config(config.as_ref(), None, OutputValue::Text, report);
            let text = report.required("url", reference_text(url, RULE))?;
            if !has_reference(&text, RULE)
                && checks::parse_url(&text, url_rule(kind, UrlPolicy::Any)).is_err()
            {
                return report.server_omitted("url", "it is not a valid URL for its transport");
            }
            // Without `type`, editors try Streamable HTTP and then server-sent events.
            if kind != TransportKind::Http || *sse_fallback == SseFallback::Never {
                res.push(("type".to_owned(), OutputValue::text(kind.as_str())));
            }
            res.push(("url".to_owned(), OutputValue::text(text)));
            let headers = values::entry_map("headers", headers, report, |it| {
                reference_text(it, RULE).map(OutputValue::Text)
            });
            common::push_non_empty(&mut res, "headers", OutputValue::Map(headers));
            report.unsupported_if(session_id.is_some(), "session_id", "a session id");
            report.unsupported_if(
                kind == TransportKind::Http && !terminate_on_close,
                "terminate_on_close",
                "keeping a session open",
            );
        }
    }
    res.extend(report.optional(
        "description",
        "description",
        description.as_ref().map(|it| rewrite_text(it, origin.dialect(), RULE)),
    ));
    write_limits(&mut res, limits);
    tool_filter(&mut res, exposure, report);
    common::report_discovery(*discovery, report);
    common::report_naming(exposure, [NamePolicy::Qualify { class: NameClass::Strict }; 3], report);
    common::write_sharing(*sharing, Sharing::Auto, origin, &mut res, report);
    common::report_limits(limits, kind, &["limits.request", "limits.connect", "limits.startup"], report);
    let mut written: &[&str] = &[];
    if origin.dialect() == Dialect::McpJson {
        common::push_extra(&mut res, metadata);
        written = &[EXTRA];
    }
    common::report_metadata(metadata, written, report);
    common::report_inputs(origin, report);
    Some((id.to_string(), OutputValue::Map(res)))
}

/// Limits that differ from the defaults, under keys with a fixed unit.
fn write_limits(members: &mut Vec<(String, OutputValue)>, limits: &Limits) {
    let usual = Limits::default();
    let times = [
        ("requestTimeout", limits.request, usual.request, 1000.0),
        ("connectionTimeout", limits.connect, usual.connect, 1000.0),
        ("startup_timeout_sec", limits.startup, usual.startup, 1.0),
    ];
    for (key, time, _, unit) in times.into_iter().filter(|it| it.1 != it.2) {
        members.push((key.to_owned(), OutputValue::scalar(time.as_secs_f64() * unit)));
    }
}

/// Writes the filter of tools. A whitelist together with a blacklist cannot be expressed.
fn tool_filter(members: &mut Vec<(String, OutputValue)>, exposure: &Exposure, report: &mut WriteReport<'_>) {
    for (list, rules) in common::lists(exposure) {
        let Rules { filter: Filter { whitelist, blacklist }, transforms, naming: _, limit: _, .. } = rules;
        let patterns = |it: &[String]| OutputValue::List(it.iter().map(OutputValue::text).collect());
        match (list, &whitelist[..], &blacklist[..]) {
            (_, [], []) => {}
            ("tools", [], excluded) => members.push(("excludeTools".to_owned(), patterns(excluded))),
            ("tools", included, []) => members.push(("includeTools".to_owned(), patterns(included))),
            (_, _, _) => report.unsupported(format!("{list}.filter"), "this filter"),
        }
        if !transforms.is_empty() {
            report.unsupported(format!("{list}.transforms"), "changed names");
        }
    }
}
