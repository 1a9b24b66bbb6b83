//! Writes entries of editor files in the common form.
//!
//! The output is what most editors read: no `type` for a program, `http` or `sse` for a URL, `${NAME}` for variables.
//! Timeouts use keys with a fixed unit, because the unit of `timeout` differs between editors.

use mcp_host_model::{
    Dialect, EnvInheritance, Exposure, ExposureFilter, ExposureRules, Limits, NameClass, NamePolicy,
    ServerSpec, Sharing, SseFallback, TransportKind, TransportSpec,
};

use crate::dialect::call_rules;
use crate::dialect::checks;
use crate::dialect::lowering::{EXTRA_METADATA, url_rule};
use crate::dialect::sandbox;
use crate::dialect::write::common::{self, NamePolicies};
use crate::dialect::write::entry_writer::EntryWriter;
use crate::dialect::write::report::WriteReport;
use crate::profile::rules::UrlPolicy;
use crate::syntax::output::{OutputMembers, OutputValue};
use crate::syntax::template::{ReferenceRule, has_reference};

/// Entries are written with `${NAME}`; [`super::references`] rewrites them for a program.
const RULE: ReferenceRule = ReferenceRule::Editor;

/// Returns a server's name and its entry. `None` if the dialect cannot express the server, which is reported.
pub(crate) fn write_server(
    server: &ServerSpec,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    let ServerSpec { origin, transport, limits, exposure, config, metadata, .. } = server;
    let kind = transport.kind();
    let mut entry = EntryWriter::new(server, RULE, report);
    match transport {
        TransportSpec::Stdio(spec) => {
            let command = entry.command_text(&spec.command)?;
            entry.add_text("command", command);
            let args = entry.argument_list(&spec.args)?;
            entry.add_non_empty("args", args);
            let mut env = entry.value_map("env", &spec.env);
            common::write_config(config.as_ref(), Some(&mut env), entry.report);
            entry.add_non_empty("env", OutputValue::Map(env));
            entry.add_value("envFile", "env_file", spec.env_file.as_ref());
            entry.add_model_text("cwd", "cwd", spec.cwd.as_ref());
            common::report_inherit(spec.inherit, EnvInheritance::All, entry.report);
            entry.report.add_unsupported_if(spec.encoding != "utf-8", "encoding", "an encoding");
            if let Some(value) = &spec.sandbox {
                entry.add("sandbox", sandbox::written(value));
            }
        }
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            // Files of this dialect keep the key `auth` as it is.
            let loses_credentials = spec.client_credentials.is_some() && origin.dialect() != Dialect::McpJson;
            entry.report.add_unsupported_if(loses_credentials, "auth", "client credentials");
            common::write_config(config.as_ref(), None, entry.report);
            let text = entry.required_text("url", &spec.url)?;
            if !has_reference(&text, RULE)
                && checks::parse_url(&text, url_rule(kind, UrlPolicy::Any)).is_err()
            {
                return entry.report.omit_server("url", "it is not a valid URL for its transport");
            }
            // Without `type`, editors try Streamable HTTP and then server-sent events.
            if kind != TransportKind::Http || spec.sse_fallback == SseFallback::Never {
                entry.add_text("type", kind.as_str());
            }
            entry.add_text("url", text);
            let headers = entry.value_map("headers", &spec.headers);
            entry.add_non_empty("headers", OutputValue::Map(headers));
            entry.report.add_unsupported_if(spec.session_id.is_some(), "session_id", "a session id");
            common::report_open_session(spec, kind, entry.report);
        }
    }
    entry.add_model_text("description", "description", server.description.as_ref());
    let EntryWriter { members: mut res, report, .. } = entry;
    write_limits(&mut res, limits);
    write_tools(&mut res, exposure, report);
    common::report_discovery(server.discovery, report);
    let naming = NamePolicies::same(NamePolicy::Qualify { class: NameClass::Strict });
    common::report_naming(exposure, naming, report);
    common::write_sharing(server.sharing, Sharing::Auto, origin, &mut res, report);
    res.extend(call_rules::member(&server.calls.stated));
    common::report_limits(limits, kind, &["limits.request", "limits.connect", "limits.startup"], report);
    let mut written: &[&str] = &[];
    if origin.dialect() == Dialect::McpJson {
        common::push_extra(&mut res, metadata);
        written = &[EXTRA_METADATA];
    }
    common::report_metadata(metadata, written, report);
    common::report_inputs(origin, report);
    Some((server.id.to_string(), OutputValue::Map(res)))
}

/// Adds limits that differ from the defaults, under keys with a fixed unit.
fn write_limits(members: &mut OutputMembers, limits: &Limits) {
    let defaults = Limits::default();
    let timeouts = [
        ("requestTimeout", limits.request, defaults.request, 1000.0),
        ("connectionTimeout", limits.connect, defaults.connect, 1000.0),
        ("startup_timeout_sec", limits.startup, defaults.startup, 1.0),
    ];
    for (key, timeout, default, units_per_second) in timeouts {
        if timeout != default {
            members.push((key.to_owned(), OutputValue::scalar(timeout.as_secs_f64() * units_per_second)));
        }
    }
}

/// Writes the filter of tools. A whitelist together with a blacklist cannot be expressed.
fn write_tools(members: &mut OutputMembers, exposure: &Exposure, report: &mut WriteReport<'_>) {
    for (list, rules) in common::exposure_lists(exposure) {
        let ExposureRules {
            filter: ExposureFilter { whitelist, blacklist },
            transforms,
            naming: _,
            limit: _,
            ..
        } = rules;
        let patterns = |it: &[String]| OutputValue::List(it.iter().map(OutputValue::text).collect());
        match (list, &whitelist[..], &blacklist[..]) {
            (_, [], []) => {}
            ("tools", [], excluded) => members.push(("excludeTools".to_owned(), patterns(excluded))),
            ("tools", included, []) => members.push(("includeTools".to_owned(), patterns(included))),
            (_, _, _) => report.add_unsupported(format!("{list}.filter"), "this filter"),
        }
        if !transforms.is_empty() {
            report.add_unsupported(format!("{list}.transforms"), "changed names");
        }
    }
}
