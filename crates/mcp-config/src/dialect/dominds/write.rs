//! Writes the servers of Dominds' `.minds/mcp.yaml`.

use mcp_host_model::{
    Discovery, EnvInheritance, Exposure, ExposureFilter, ExposureRules, NamePolicy, NameTransform, RawJson,
    ServerSpec, Sharing, TransportSpec, UrlSpec,
};
use serde::Deserialize;

use crate::dialect::call_rules;
use crate::dialect::checks::{self, UrlRule};
use crate::dialect::sandbox;
use crate::dialect::write::common::{self, NamePolicies};
use crate::dialect::write::entry_writer::EntryWriter;
use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values;
use crate::dialect::write::values::dominds_value;
use crate::syntax::output::{OutputMembers, OutputValue};
use crate::syntax::template::ReferenceRule;

/// Returns a server's name and its entry. `None`, with a report, if Dominds cannot express the server.
pub(crate) fn write_server(
    server: &ServerSpec,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    let ServerSpec { origin, transport, exposure, sharing, config, metadata, .. } = server;
    // Dominds replaces references in `env` and `headers` only; `dominds_value` writes these values.
    let mut entry = EntryWriter::new(server, ReferenceRule::Literal, report);
    match transport {
        TransportSpec::Stdio(spec) => {
            let command = entry.command_text(&spec.command)?;
            entry.add_text("transport", "stdio");
            entry.add_text("command", command);
            let args = entry.argument_list(&spec.args)?;
            entry.add_non_empty("args", args);
            entry.add_model_text("cwd", "cwd", spec.cwd.as_ref());
            let mut env = values::writable_map("env", &spec.env, entry.report, dominds_value);
            common::write_config(config.as_ref(), Some(&mut env), entry.report);
            entry.add_non_empty("env", OutputValue::Map(env));
            entry.report.add_unsupported_if(spec.env_file.is_some(), "env_file", "an env file");
            entry.report.add_unsupported_if(spec.encoding != "utf-8", "encoding", "an encoding");
            common::report_inherit(spec.inherit, EnvInheritance::All, entry.report);
            if let Some(value) = &spec.sandbox {
                entry.add("sandbox", sandbox::written(value));
            }
        }
        TransportSpec::Http(spec) => {
            common::write_config(config.as_ref(), None, entry.report);
            write_http(spec, &mut entry)?;
        }
        TransportSpec::Sse(_) | TransportSpec::WebSocket(_) => {
            let why = format!("{} has no {} transport", entry.report.title(), transport.kind().as_str());
            return entry.report.omit_server("transport", why);
        }
    }
    if *sharing != Sharing::PerOwner {
        // Spelled so by Dominds.
        entry.add("truely-stateless", OutputValue::scalar(true));
    }
    let EntryWriter { members: mut res, report, .. } = entry;
    // Not reported if it is not stated: `truely-stateless` has already expressed it.
    res.extend(common::stated_sharing(origin));
    res.extend(call_rules::member(&server.calls.stated));
    report.add_unsupported_if(server.description.is_some(), "description", "a description");
    let hidden = hide_unlisted(server.discovery, exposure, report);
    res.extend(exposure_members(exposure, &hidden, metadata.get("resources")));
    let (tools, others) = (NamePolicy::Reject, NamePolicy::Slug);
    common::report_naming(exposure, NamePolicies { tools, prompts: others, resources: others }, report);
    common::report_limits(&server.limits, transport.kind(), &[], report);
    common::report_metadata(metadata, &["resources"], report);
    common::report_inputs(origin, report);
    Some((server.id.to_string(), OutputValue::Map(res)))
}

/// Writes a server over Streamable HTTP. `None`, with a report, if its URL cannot be written.
fn write_http(spec: &UrlSpec, entry: &mut EntryWriter<'_, '_>) -> Option<()> {
    entry.report.add_unsupported_if(spec.client_credentials.is_some(), "auth", "client credentials");
    common::report_sse_fallback(spec.sse_fallback, entry.report);
    let text = entry.required_text("url", &spec.url)?;
    if checks::parse_url(&text, UrlRule::Http).is_err() {
        return entry.report.omit_server("url", "it is not an http or https URL");
    }
    entry.add_text("transport", "streamable_http");
    entry.add_text("url", text);
    let headers = values::writable_map("headers", &spec.headers, entry.report, dominds_value);
    entry.add_non_empty("headers", OutputValue::Map(headers));
    entry.add_value("sessionId", "session_id", spec.session_id.as_ref());
    entry.report.add_unsupported_if(!spec.terminate_on_close, "terminate_on_close", "keeping a session open");
    Some(())
}

/// Returns which lists need a blacklist of `*`: those of tools or prompts that the spec turns off, because Dominds
/// always lists them. Reports this. A list with a filter of its own keeps it, and is only reported.
fn hide_unlisted(
    discovery: Discovery,
    exposure: &Exposure,
    report: &mut WriteReport<'_>,
) -> Vec<&'static str> {
    let Discovery { tools, prompts, .. } = discovery;
    let mut hidden = Vec::new();
    let lists = [("tools", tools, &exposure.tools), ("prompts", prompts, &exposure.prompts)];
    for (list, _, rules) in lists.into_iter().filter(|(_, is_listed, _)| !is_listed) {
        if rules.filter == ExposureFilter::default() {
            let why = format!("{} cannot express that something is not listed", report.title());
            let done = format!("hid them all with a blacklist of {list}");
            report.add_replaced(format!("discovery.{list}"), why, done);
            hidden.push(list);
        } else {
            report.add_unsupported(format!("discovery.{list}"), "that something is not listed");
        }
    }
    hidden
}

/// The members `tools`, `prompts`, `resources` and `transform` of a server. A blacklist hides the `hidden` lists.
fn exposure_members(
    exposure: &Exposure,
    hidden: &[&str],
    resource_metadata: Option<&RawJson>,
) -> OutputMembers {
    // Dominds applies the transforms of a server to its resources and skills, so those of the resources are written
    // there. A list's own transforms replace them, even if empty.
    let shared = &exposure.resources.transforms;
    let mut res = Vec::new();
    for (list, rules) in common::exposure_lists(exposure) {
        let ExposureRules {
            filter: ExposureFilter { whitelist, blacklist },
            transforms,
            naming: _,
            limit: _,
            ..
        } = rules;
        let mut members = Vec::new();
        common::push_non_empty(&mut members, "whitelist", pattern_list(whitelist));
        common::push_non_empty(&mut members, "blacklist", pattern_list(blacklist));
        if hidden.contains(&list) {
            members.push(("blacklist".to_owned(), OutputValue::List(vec![OutputValue::text("*")])));
        }
        if transforms != shared {
            members.push(("transform".to_owned(), transform_list(transforms)));
        }
        if let ("resources", Some(metadata)) = (list, resource_metadata) {
            members.extend(resource_settings(metadata));
        }
        common::push_non_empty(&mut res, list, OutputValue::Map(members));
    }
    common::push_non_empty(&mut res, "transform", transform_list(shared));
    res
}

fn pattern_list(patterns: &[String]) -> OutputValue {
    OutputValue::List(patterns.iter().map(OutputValue::text).collect())
}

fn transform_list(transforms: &[NameTransform]) -> OutputValue {
    let map = |key: &str, value: OutputValue| OutputValue::Map(vec![(key.to_owned(), value)]);
    let one = |it: &NameTransform| match it {
        NameTransform::Prefix { remove, add } if remove.is_empty() => map("prefix", OutputValue::text(add)),
        NameTransform::Prefix { remove, add } => {
            let members = vec![
                ("remove".to_owned(), OutputValue::text(remove)),
                ("add".to_owned(), OutputValue::text(add)),
            ];
            map("prefix", OutputValue::Map(members))
        }
        NameTransform::Suffix(text) => map("suffix", OutputValue::text(text)),
    };
    OutputValue::List(transforms.iter().map(one).collect())
}

/// The settings of `resources` that the reader keeps in the metadata.
fn resource_settings(json: &RawJson) -> OutputMembers {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        mime_types: Vec<String>,
        max_bytes: Option<i64>,
        skills: Option<Skills>,
    }
    #[derive(Deserialize)]
    struct Skills {
        enabled: bool,
        whitelist: Vec<String>,
        blacklist: Vec<String>,
    }
    let Ok(Settings { mime_types, max_bytes, skills }) = json.read() else { return Vec::new() };
    let mut res = Vec::new();
    common::push_non_empty(&mut res, "mimeTypes", pattern_list(&mime_types));
    if let Some(bytes) = max_bytes {
        res.push(("maxBytes".to_owned(), OutputValue::scalar(bytes)));
    }
    if let Some(Skills { enabled, whitelist, blacklist }) = skills {
        let mut members = vec![("enabled".to_owned(), OutputValue::scalar(enabled))];
        common::push_non_empty(&mut members, "whitelist", pattern_list(&whitelist));
        common::push_non_empty(&mut members, "blacklist", pattern_list(&blacklist));
        res.push(("skills".to_owned(), OutputValue::Map(members)));
    }
    res
}
