//! Lowers an entry to the model's `ServerSpec`.
//!
//! The serde structs are destructured without `..`, so a new field fails to compile until it is handled. Some messages
//! are those of existing agents (ACPX-01).

use std::borrow::Cow;

use mcp_host_model::{
    ConfigValue, EnvInheritance, RawJson, ServerId, ServerSpec, Severity, Sharing, StdioSpec, TransportKind,
    TransportSpec, UrlSpec,
};

use crate::de::{DeferredField, Field, FieldState, Location, NullableField, ReadContext};
use crate::diagnostic::{Code, quoted};
use crate::dialect::acp::pairs::{self, PairKind};
use crate::dialect::acp::rules::{Leniency, ProtocolRules, Requirement};
use crate::dialect::acp::wire::{AcpStdio, AcpTunnel, AcpUrl};
use crate::dialect::call_rules;
use crate::dialect::lowering::{SharingKey, collect_metadata};
use crate::dialect::program_text::check_command;
use crate::dialect::{checks, lowering};
use crate::syntax::{Node, to_json};

/// The session that an entry belongs to, and how its entries are read.
pub(super) struct SessionContext<'a> {
    pub(super) context: &'a ReadContext,
    pub(super) rules: &'static ProtocolRules,
    pub(super) leniency: Leniency,
    /// The working directory of the session.
    pub(super) cwd: Option<&'a str>,
}

/// Lowers a stdio entry and reports every mistake. `None` if a required part is invalid.
pub(super) fn lower_stdio(
    entry: AcpStdio,
    node: &Node,
    at: &Location,
    options: &SessionContext<'_>,
) -> Option<ServerSpec> {
    let AcpStdio { tag: _, name, command, args, env, cwd, url, headers } = entry;
    let context = options.context;
    let server = server_label(&name);
    let id = parse_id(&name, context);
    lowering::warn_without_effect("stdio", &[url.given_at(), headers.given_at()], context);
    report_missing_list("args", &args, &server, options);
    report_missing_list("env", &env, &server, options);
    let args = pairs::lower_args(args, context);
    let env = pairs::lower_pairs(env, PairKind::Environment, &server, context);
    let cwd = match cwd.value() {
        Some(text) if !checks::is_absolute(text) => {
            let message = format!("{server} cwd must be an absolute path");
            let help = "write the absolute path of a folder, or remove it";
            context.error(Code::RelativePath, &cwd.at, message, help);
            None
        }
        Some(text) => Some(text.clone()),
        None => options.cwd.map(str::to_owned),
    };
    let mut spec = StdioSpec::new(lower_command(&command, !args.is_empty(), &server, options)?);
    (spec.args, spec.env, spec.cwd) = (args, env, cwd);
    spec.inherit = EnvInheritance::All;
    Some(new_spec(id?, TransportSpec::Stdio(spec), STDIO_KEYS, node, at, options))
}

/// Lowers an http or sse entry, as [`lower_stdio`].
pub(super) fn lower_url(
    entry: AcpUrl,
    kind: TransportKind,
    node: &Node,
    at: &Location,
    options: &SessionContext<'_>,
) -> Option<ServerSpec> {
    let AcpUrl { tag: _, name, url, headers, command, args, env, cwd } = entry;
    let context = options.context;
    let server = server_label(&name);
    let id = parse_id(&name, context);
    let foreign = [command.given_at(), args.given_at(), env.given_at(), cwd.given_at()];
    lowering::warn_without_effect(kind.as_str(), &foreign, context);
    report_missing_list("headers", &headers, &server, options);
    let headers = pairs::lower_pairs(headers, PairKind::Headers, &server, context);
    let mut spec = UrlSpec::new(lower_url_text(&url, kind, &server, context)?);
    spec.headers = headers;
    Some(new_spec(id?, lowering::url_transport(kind, spec), URL_KEYS, node, at, options))
}

/// Checks an entry of type `acp`, which uses the ACP connection itself. Returns whether it is valid.
pub(super) fn check_acp_tunnel(entry: &AcpTunnel, context: &ReadContext) -> bool {
    let AcpTunnel { tag: _, name, server_id } = entry;
    let has_name = parse_id(name, context).is_some();
    let Some(id) = server_id.value() else { return false };
    if id.is_empty() {
        let message = format!("{} serverId cannot be empty", server_label(name));
        context.error(Code::EmptyValue, &server_id.at, message, "write the client's id of the server");
        return false;
    }
    has_name
}

/// Checks the name of an entry whose transport is an extension; its other members are unknown. Returns whether it is
/// valid.
pub(super) fn check_extension_name(node: &Node, at: &Location, context: &ReadContext) -> bool {
    let Some(member) = node.get("name") else {
        context.error(Code::MissingKey, &at.missing("name", context), "'name' is required", "add `name`");
        return false;
    };
    let at = at.member(member, context);
    let Some(text) = member.value.text() else {
        let message = format!("'name' must be text, not {}", member.value.kind());
        context.error(Code::WrongType, &at, message, "write one text");
        return false;
    };
    parse_name(text, &at, context).is_some()
}

/// The known keys of a stdio entry.
const STDIO_KEYS: &[&str] = &["type", "name", "command", "args", "env", "cwd", "url", "headers", "_meta"];
/// The known keys of an http or sse entry.
const URL_KEYS: &[&str] = &["type", "name", "url", "headers", "command", "args", "env", "cwd", "_meta"];

/// The member of `_meta` that says which clients share an instance.
const META_SHARING: &str = "mcp-host/sharing";

/// The member of `_meta` with the rules for calls.
const META_CALLS: &str = "mcp-host/calls";

/// A spec with the sharing, the rules for calls and the metadata of its entry.
fn new_spec(
    id: ServerId,
    transport: TransportSpec,
    known: &[&str],
    node: &Node,
    at: &Location,
    options: &SessionContext<'_>,
) -> ServerSpec {
    let meta = node.get("_meta").and_then(|it| to_json(&it.value)).map(|it| RawJson::parse(it.into()));
    let sharing = node.value("_meta").and_then(|it| it.text_of(META_SHARING));
    let sharing: Option<SharingKey> = sharing.and_then(|it| serde_json::from_value(it.into()).ok());
    let mut spec = ServerSpec::new(id, options.context.origin(at, node.span.clone()), transport);
    spec.sharing = sharing.map_or(Sharing::PerOwner, Sharing::from);
    if let Some(rules) = node.value("_meta").and_then(|it| it.value(META_CALLS)) {
        spec.calls.stated = call_rules::lower_node(rules, at, options.context);
    }
    spec.metadata = collect_metadata([
        ("_meta", meta),
        (lowering::EXTRA_METADATA, lowering::collect_unknown_members(node, |key| known.contains(&key))),
    ]);
    spec
}

/// The name of a server in messages.
fn server_label(name: &Field<String>) -> String {
    match name.value().filter(|it| !it.is_empty()) {
        Some(name) => format!("MCP server '{}'", quoted(name)),
        None => "MCP server".to_owned(),
    }
}

/// Parses the name, if it could be read.
fn parse_id(name: &Field<String>, context: &ReadContext) -> Option<ServerId> {
    parse_name(name.value()?, &name.at, context)
}

/// Parses the name of a server (ACP-040).
fn parse_name(text: &str, at: &Location, context: &ReadContext) -> Option<ServerId> {
    if text.is_empty() {
        context.error(Code::InvalidName, at, "MCP server name cannot be empty", "give the server a name");
        return None;
    }
    // codex-acp does the same (ACPX-14). A space is harmless and stays.
    let is_odd = |it: char| it.is_control() || (it.is_whitespace() && it != ' ');
    let mut safe = Cow::Borrowed(text);
    if text.contains(is_odd) {
        safe = Cow::Owned(text.replace(|it: char| it.is_control() || it.is_whitespace(), "_"));
        let message = "the server's name contains a control character or unusual whitespace";
        context.warning(Code::InvalidName, at, message, format!("it is read as `{}`", quoted(&safe)));
    }
    context.parse_id(&safe, at, "write a short name")
}

/// Reports a list that is missing but required. Version 1 requires `args`, `env` and `headers`, even if they are empty;
/// null is an empty list (ACPX-09).
fn report_missing_list<T>(key: &str, list: &NullableField<T>, server: &str, options: &SessionContext<'_>) {
    let is_absent = matches!(list.state, FieldState::Absent);
    if is_absent && options.rules.list_requirement == Requirement::Required {
        let message = format!("{server}: '{key}' is required");
        let diagnostic = options.context.new_diagnostic(Code::MissingKey, &list.at, message);
        let severity = options.leniency.missing_lists.severity();
        options.context.report(diagnostic.severity(severity).help(format!("add `\"{key}\": []`")));
    }
}

/// Lowers the command of a stdio entry. Reports a missing, empty or relative one (ACP-012, ACP-022).
fn lower_command(
    command: &DeferredField<String>,
    has_args: bool,
    server: &str,
    options: &SessionContext<'_>,
) -> Option<String> {
    let context = options.context;
    let text = command.value_or_report(|| {
        let message = format!("{server} has no command");
        let help = "add `command`, the path of the program";
        context.error(Code::MissingCommand, &command.at, message, help);
    })?;
    if text.is_empty() {
        let message = format!("{server} command cannot be empty");
        context.error(Code::EmptyValue, &command.at, message, "write the path of the program");
        return None;
    }
    if !context.report_check(&command.at, checks::check_argument(text)) {
        return None;
    }
    if !checks::is_absolute(text) {
        let message = format!("{server} command must be an absolute path");
        let at = &command.at;
        let diagnostic = context.new_diagnostic(Code::RelativePath, at, message);
        let severity = options.leniency.relative_commands.severity();
        let help = "write the absolute path, such as /usr/local/bin/npx; `which` prints it";
        context.report(diagnostic.severity(severity).help(help));
    }
    check_command(text, &command.at, has_args, Severity::Warning, context);
    Some(text.clone())
}

/// Lowers the URL of an http or sse entry. Reports a missing or invalid one (ACP-013, ACP-014, ACP-023).
fn lower_url_text(
    url: &DeferredField<String>,
    kind: TransportKind,
    server: &str,
    context: &ReadContext,
) -> Option<ConfigValue> {
    let text = url.value_or_report(|| {
        let help = format!("add `url`, which type {} requires", kind.as_str());
        context.error(Code::MissingUrl, &url.at, format!("{server} has no URL"), help);
    })?;
    if text.is_empty() {
        let message = format!("{server} URL cannot be empty");
        context.error(Code::EmptyValue, &url.at, message, "write the URL of the server");
        return None;
    }
    if let Err(error) = checks::check_http_url(text) {
        let message = match error.code {
            Code::UrlScheme => format!("{server} URL must start with http:// or https://"),
            _ => error.message.replacen("'url'", &format!("{server} URL"), 1),
        };
        context.error(error.code, &url.at, message, error.help);
        return None;
    }
    Some(ConfigValue::literal(text))
}
