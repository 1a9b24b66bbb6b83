//! Writes the `mcpServers` of an ACP session.

use mcp_host_model::{
    ConfigValue, Dialect, EnvInheritance, NameClass, NamePolicy, Profile, ServerSpec, Sharing, StdioSpec,
    TransportKind, TransportSpec, UrlSpec,
};

use crate::dialect::checks::{self, UrlRule};
use crate::dialect::lowering::EXTRA_METADATA;
use crate::dialect::write::common;
use crate::dialect::write::entry_writer::EntryWriter;
use crate::dialect::write::report::{Reason, WriteReport};
use crate::dialect::write::values::{self, rewrite_text, value_text};
use crate::syntax::output::{OutputMembers, OutputValue};
use crate::syntax::template::ReferenceRule;

/// ACP expands no variables.
const VARIABLE_RULE: ReferenceRule = ReferenceRule::Literal;

const META: &str = "_meta";

/// Returns a server's name and its `mcpServers` entry. `None`, with a report, if ACP cannot express the server.
pub(crate) fn write_server(
    server: &ServerSpec,
    report: &mut WriteReport<'_>,
) -> Option<(String, OutputValue)> {
    let ServerSpec { id, origin, transport, metadata, .. } = server;
    let kind = transport.kind();
    let is_version_1 = report.profile == Profile::AcpV1;
    let mut entry = EntryWriter::new(server, VARIABLE_RULE, report);
    match kind {
        TransportKind::Stdio if is_version_1 => {}
        TransportKind::Stdio | TransportKind::Http => entry.add_text("type", kind.as_str()),
        TransportKind::Sse if is_version_1 => entry.add_text("type", "sse"),
        TransportKind::Sse | TransportKind::WebSocket | _ => {
            let why = format!("{} has no {} transport", entry.report.title(), kind.as_str());
            return entry.report.omit_server("transport", why);
        }
    }
    entry.add_text("name", id.as_str());
    match transport {
        TransportSpec::Stdio(spec) => write_stdio(spec, server, &mut entry)?,
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            write_url(spec, server, &mut entry)?;
        }
    }
    if let Some(meta) = metadata.get(META).and_then(OutputValue::from_json) {
        entry.add(META, meta);
    }
    let EntryWriter { members: mut res, report, .. } = entry;
    if origin.dialect() == Dialect::Acp {
        common::push_extra(&mut res, metadata);
    }
    report.add_unsupported_if(server.description.is_some(), "description", "a description");
    common::report_discovery(server.discovery, report);
    common::report_exposure(&server.exposure, Some(NamePolicy::Qualify { class: NameClass::Strict }), report);
    // The sharing of an ACP server is in its `_meta`, which was written above.
    if origin.dialect() != Dialect::Acp {
        common::report_sharing(server.sharing, Sharing::PerOwner, report);
    }
    common::report_limits(&server.limits, kind, &[], report);
    let written: &[&str] = if origin.dialect() == Dialect::Acp { &[META, EXTRA_METADATA] } else { &[META] };
    common::report_metadata(metadata, written, report);
    common::report_inputs(origin, report);
    if origin.dialect() != Dialect::Acp {
        report.add_unsupported_if(!server.calls.stated.is_empty(), "calls", "rules for calls");
    }
    // Only other dialects state it: ACP has it in `_meta`.
    report.add_unsupported_if(origin.stated_sharing.is_some(), "metadata.sharing", "`sharing`");
    Some((id.to_string(), OutputValue::Map(res)))
}

/// Adds the fields of a child process. `None`, with a report, if it cannot be written.
fn write_stdio(spec: &StdioSpec, server: &ServerSpec, entry: &mut EntryWriter<'_, '_>) -> Option<()> {
    let origin = server.origin.dialect();
    let command = resolve_program(&spec.command, origin, entry.report)?;
    entry.add_text("command", command);
    let args = entry.argument_list(&spec.args)?;
    entry.add("args", args);
    // A list may contain a name twice; its reader uses the last value.
    let mut env = values::writable_list("env", &spec.env, entry.report, literal);
    common::write_config(server.config.as_ref(), Some(&mut env), entry.report);
    entry.add("env", pairs(env));
    common::report_inherit(spec.inherit, EnvInheritance::All, entry.report);
    entry.report.add_unsupported_if(spec.sandbox.is_some(), "sandbox", "a sandbox");
    entry.report.add_unsupported_if(spec.env_file.is_some(), "env_file", "an env file");
    match spec.cwd.as_ref().map(|it| rewrite_text(it, origin, VARIABLE_RULE)) {
        Some(Ok(cwd)) if checks::is_absolute(&cwd) => entry.add_text("cwd", cwd),
        Some(Ok(_)) => entry.report.add_omitted("cwd", "only an absolute path is allowed there"),
        Some(Err(why)) => entry.report.add_omitted("cwd", why),
        None => {}
    }
    entry.report.add_unsupported_if(spec.encoding != "utf-8", "encoding", "an encoding");
    Some(())
}

/// Adds the fields of a server with a URL. `None`, with a report, if it cannot be written.
fn write_url(spec: &UrlSpec, server: &ServerSpec, entry: &mut EntryWriter<'_, '_>) -> Option<()> {
    entry.report.add_unsupported_if(spec.client_credentials.is_some(), "auth", "client credentials");
    common::report_sse_fallback(spec.sse_fallback, entry.report);
    common::write_config(server.config.as_ref(), None, entry.report);
    let text = entry.required_text("url", &spec.url)?;
    if checks::parse_url(&text, UrlRule::Http).is_err() {
        return entry.report.omit_server("url", "it is not an http or https URL");
    }
    entry.add_text("url", text);
    // A list may contain a name twice; all values are sent.
    let headers = values::writable_list("headers", &spec.headers, entry.report, literal);
    entry.add("headers", pairs(headers));
    entry.report.add_unsupported_if(spec.session_id.is_some(), "session_id", "a session id");
    common::report_open_session(spec, server.transport.kind(), entry.report);
    Some(())
}

fn literal(value: &ConfigValue) -> Result<OutputValue, Reason> {
    value_text(value, VARIABLE_RULE).map(OutputValue::Text)
}

/// Returns the program's absolute path. A relative path or a name is looked up on this machine. Reports failure.
fn resolve_program(command: &str, origin: Dialect, report: &mut WriteReport<'_>) -> Option<String> {
    let command = report.required_text("command", rewrite_text(command, origin, VARIABLE_RULE))?;
    if checks::is_absolute(&command) {
        return Some(command);
    }
    let why = format!("{} requires the absolute path of a program", report.title());
    let found = (report.find_program)(&command).filter(|it| checks::is_absolute(it));
    if found.is_none() {
        return report.omit_server("command", why + ", and it was not found");
    }
    report.add_replaced("command", why, "wrote the path on this machine");
    found
}

/// Names and values as a list of pairs.
fn pairs(entries: OutputMembers) -> OutputValue {
    let pair = |(name, value)| {
        OutputValue::Map(vec![("name".to_owned(), OutputValue::Text(name)), ("value".to_owned(), value)])
    };
    OutputValue::List(entries.into_iter().map(pair).collect())
}
