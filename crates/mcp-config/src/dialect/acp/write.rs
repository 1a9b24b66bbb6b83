//! Writes the `mcpServers` of an ACP session.

use mcp_host_model::{
    Dialect, EnvInherit, NameClass, NamePolicy, ServerSpec, Sharing, StdioSpec, TransportKind, TransportSpec,
    UrlSpec,
};

use crate::dialect::checks::{self, UrlRule};
use crate::dialect::write::common::EXTRA;
use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values::{reference_text, rewrite_text};
use crate::dialect::write::{common, values};
use crate::syntax::output::OutputValue;
use crate::syntax::template::ReferenceRule;

/// A version of ACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcpVersion {
    V1,
    V2,
}

/// ACP expands no variables.
const VARIABLE_RULE: ReferenceRule = ReferenceRule::Literal;
const META: &str = "_meta";

/// Returns a server's name and its `mcpServers` entry; `None`, which is reported, if ACP cannot express the server.
pub(crate) fn write_server(
    server: &ServerSpec,
    version: AcpVersion,
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
    let tag = match (kind, version) {
        (TransportKind::Stdio, AcpVersion::V1) => None,
        (TransportKind::Stdio, AcpVersion::V2) => Some("stdio"),
        (TransportKind::Http, _) => Some("http"),
        (TransportKind::Sse, AcpVersion::V1) => Some("sse"),
        (TransportKind::Sse, AcpVersion::V2) | (TransportKind::WebSocket | _, _) => {
            let why = format!("{} has no {} transport", report.title(), kind.as_str());
            return report.server_omitted("transport", why);
        }
    };
    res.extend(tag.map(|it| ("type".to_owned(), OutputValue::text(it))));
    res.push(("name".to_owned(), OutputValue::text(id.as_str())));
    match transport {
        TransportSpec::Stdio(spec) => {
            let StdioSpec { command, args, env, env_file, inherit, cwd, encoding, .. } = spec;
            res.push((
                "command".to_owned(),
                OutputValue::Text(resolve_program(command, origin.dialect(), report)?),
            ));
            res.push(("args".to_owned(), OutputValue::List(values::arguments(args, VARIABLE_RULE, report)?)));
            // A list may contain a name twice; its reader uses the last value.
            let mut env = values::entry_list("env", env, report, |it| {
                reference_text(it, VARIABLE_RULE).map(OutputValue::Text)
            });
            common::write_config(config.as_ref(), Some(&mut env), OutputValue::Text, report);
            res.push(("env".to_owned(), pairs(env)));
            common::report_inherit(*inherit, EnvInherit::All, report);
            report.unsupported_if(env_file.is_some(), "env_file", "an env file");
            match cwd.as_ref().map(|it| rewrite_text(it, origin.dialect(), VARIABLE_RULE)) {
                Some(Ok(cwd)) if checks::is_absolute(&cwd) => {
                    res.push(("cwd".to_owned(), OutputValue::Text(cwd)))
                }
                Some(Ok(_)) => report.omitted("cwd", "only an absolute path is allowed there"),
                Some(Err(why)) => report.omitted("cwd", why),
                None => {}
            }
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
            report.unsupported_if(client_credentials.is_some(), "auth", "client credentials");
            common::report_fallback(*sse_fallback, report);
            common::write_config(config.as_ref(), None, OutputValue::Text, report);
            let text = report.required("url", reference_text(url, VARIABLE_RULE))?;
            if checks::parse_url(&text, UrlRule::Http).is_err() {
                return report.server_omitted("url", "it is not an http or https URL");
            }
            res.push(("url".to_owned(), OutputValue::text(text)));
            // A list may contain a name twice; all values are sent.
            let headers = values::entry_list("headers", headers, report, |it| {
                reference_text(it, VARIABLE_RULE).map(OutputValue::Text)
            });
            res.push(("headers".to_owned(), pairs(headers)));
            report.unsupported_if(session_id.is_some(), "session_id", "a session id");
            report.unsupported_if(
                kind == TransportKind::Http && !terminate_on_close,
                "terminate_on_close",
                "keeping a session open",
            );
        }
    }
    if let Some(meta) = metadata.get(META).and_then(OutputValue::from_json) {
        res.push((META.to_owned(), meta));
    }
    if origin.dialect() == Dialect::Acp {
        common::push_extra(&mut res, metadata);
    }
    report.unsupported_if(description.is_some(), "description", "a description");
    common::report_discovery(*discovery, report);
    common::report_exposure(exposure, Some(NamePolicy::Qualify { class: NameClass::Strict }), report);
    // The sharing of an ACP server is in its `_meta`, which was written above.
    if origin.dialect() != Dialect::Acp {
        common::report_sharing(*sharing, Sharing::PerOwner, report);
    }
    common::report_limits(limits, kind, &[], report);
    let written: &[&str] = if origin.dialect() == Dialect::Acp { &[META, EXTRA] } else { &[META] };
    common::report_metadata(metadata, written, report);
    common::report_inputs(origin, report);
    report.unsupported_if(origin.stated_sharing.is_some(), "metadata.sharing", "`sharing`");
    Some((id.to_string(), OutputValue::Map(res)))
}

/// Returns the program's absolute path. A relative path or a name is looked up on this machine. Reports failure.
fn resolve_program(command: &str, origin: Dialect, report: &mut WriteReport<'_>) -> Option<String> {
    let command = match rewrite_text(command, origin, VARIABLE_RULE) {
        Ok(text) if checks::is_absolute(&text) => return Some(text),
        Ok(text) => text,
        Err(why) => return report.server_omitted("command", why),
    };
    let why = format!("{} requires the absolute path of a program", report.title());
    let found = (report.program)(&command).filter(|it| checks::is_absolute(it));
    if found.is_none() {
        return report.server_omitted("command", why + ", and it was not found");
    }
    report.replaced("command", why, "wrote the path on this machine");
    found
}

/// Names and values as a list of pairs.
fn pairs(entries: Vec<(String, OutputValue)>) -> OutputValue {
    let pair = |(name, value)| {
        OutputValue::Map(vec![("name".to_owned(), OutputValue::Text(name)), ("value".to_owned(), value)])
    };
    OutputValue::List(entries.into_iter().map(pair).collect())
}
