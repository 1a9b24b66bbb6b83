//! Lowers a server of a `.minds/mcp.yaml` to the model's `ServerSpec`.
//!
//! The serde struct is destructured without `..`, so a new field fails to compile until it is handled.

use mcp_host_model::{
    ConfigValue, EnvInheritance, Secret, ServerSpec, Severity, Sharing, StdioSpec, TransportSpec, UrlSpec,
};

use crate::de::{
    Expected, Field, FieldState, Location, OptionalField, ReadContext, ValueError, dominds_path,
};
use crate::diagnostic::{Applicability, CheckError, Code, FixIntent};
use crate::dialect::call_rules;
use crate::dialect::checks::UrlRule;
use crate::dialect::dominds::exposure::{self, ExposureFields};
use crate::dialect::dominds::wire::{DomindsServer, DomindsTransport, DomindsValue, DomindsVariable};
use crate::dialect::lowering::collect_metadata;
use crate::dialect::program_text::{check_argument_line, check_command};
use crate::dialect::{checks, lowering, sandbox};
use crate::syntax::template::{ReferenceRule, has_holodeck_reference, parse_value};

/// Lowers a server and reports every mistake. `None` if a required part is invalid.
pub(super) fn lower(
    name: &str,
    server: DomindsServer,
    at: &Location,
    context: &ReadContext,
) -> Option<ServerSpec> {
    let DomindsServer {
        enabled: _,
        truely_stateless,
        sharing,
        calls,
        transport,
        command,
        args,
        cwd,
        env,
        sandbox,
        url,
        headers,
        session_id,
        tools,
        prompts,
        resources,
        transform,
        manual: _,
    } = server;
    let id = context.parse_id(name, &at.at_key(), "give the server a short id");
    if let FieldState::Absent = transport.state {
        let error = ValueError::WrongType {
            expected: Expected::OneOf(&["stdio", "streamable_http"]),
            found: "nothing",
        };
        let message = error.message(context.rules.wording, &transport.at.pointer(context));
        let help = "add `transport: stdio` or `transport: streamable_http`";
        context.error(Code::MissingKey, &transport.at, message, help);
    }
    let lowered = exposure::lower(ExposureFields { tools, prompts, resources, transform }, context);
    let transport_spec = match transport.value() {
        Some(DomindsTransport::Stdio) => {
            let foreign = [url.given_at(), headers.given_at(), session_id.given_at()];
            lowering::warn_without_effect("stdio", &foreign, context);
            let has_args = args.value().is_some_and(|it| !it.is_empty());
            let args =
                args.into_value().unwrap_or_default().into_iter().filter_map(|it| lower_arg(it, context));
            let args: Vec<_> = args.collect();
            let env_at = env.at;
            let env = lowering::lower_environment(env.into_value(), &env_at, context, |it, at| {
                lower_value(it, at, checks::check_env_value, context)
            });
            let cwd = read_non_empty(&cwd, context).map(|it| it.trim().to_owned());
            let mut spec = StdioSpec::new(lower_command(&command, has_args, context)?);
            (spec.args, spec.env, spec.cwd) = (args, env, cwd);
            spec.sandbox = sandbox::lower(sandbox, None, context);
            spec.inherit = EnvInheritance::All;
            Some(TransportSpec::Stdio(spec))
        }
        Some(DomindsTransport::StreamableHttp) => {
            let foreign =
                [command.given_at(), args.given_at(), cwd.given_at(), env.given_at(), sandbox.given_at()];
            lowering::warn_without_effect("streamable_http", &foreign, context);
            let headers = lowering::lower_headers(headers.into_value(), context, |it, at| {
                lower_value(it, at, checks::check_header_value, context)
            });
            let session_id = lower_session_id(session_id, context);
            let mut spec = UrlSpec::new(lower_url(&url, context)?);
            (spec.headers, spec.session_id) = (headers, session_id);
            Some(TransportSpec::Http(spec))
        }
        None => None,
    };
    let stateless = truely_stateless.into_value().unwrap_or(false);
    let default = if stateless { Sharing::Shared } else { Sharing::PerOwner };
    let mut spec = ServerSpec::new(id?, context.origin(at, at.span(context)), transport_spec?);
    spec.exposure = lowered.exposure;
    spec.calls.stated = call_rules::lower(calls.into_value(), context);
    spec.origin.stated_sharing = sharing.into_value().map(Sharing::from);
    spec.sharing = spec.origin.stated_sharing.unwrap_or(default);
    spec.metadata = collect_metadata([("resources", lowered.resources.map(Ok))]);
    Some(spec)
}

/// The text of a field that must not be blank; reports a blank one.
fn read_non_empty<'a>(slot: &'a OptionalField<String>, context: &ReadContext) -> Option<&'a str> {
    let text = slot.value()?;
    if text.trim().is_empty() {
        let message = format!(
            "Invalid mcp.yaml: {} must be a non-empty string",
            dominds_path(&slot.at.pointer(context))
        );
        context.error(Code::EmptyValue, &slot.at, message, "give it a value, or remove the key");
        return None;
    }
    Some(text)
}

/// Lowers the command of a stdio server. Reports a missing or empty one (DM-008).
fn lower_command(command: &OptionalField<String>, has_args: bool, context: &ReadContext) -> Option<String> {
    if !command.is_given() {
        report_missing(Code::MissingCommand, command, "add the program to start", context);
        return None;
    }
    let text = read_non_empty(command, context)?;
    check_command(text, &command.at, has_args, Severity::Warning, context);
    Some(text.to_owned())
}

/// Lowers the URL of a server. Reports a missing or invalid one (DM-012).
fn lower_url(url: &OptionalField<String>, context: &ReadContext) -> Option<ConfigValue> {
    if !url.is_given() {
        report_missing(Code::MissingUrl, url, "add the URL of the server", context);
        return None;
    }
    let text = read_non_empty(url, context)?;
    if let Err(error) = checks::parse_url(text, UrlRule::Http) {
        let path = dominds_path(&url.at.pointer(context));
        let message = error.message.replacen("'url'", &path, 1);
        context.error(error.code, &url.at, format!("Invalid mcp.yaml: {message}"), error.help);
        return None;
    }
    hint_literal_variable(text, &url.at, "Dominds replaces no variables in a URL", context);
    Some(ConfigValue::literal(text))
}

/// Reports a required text that is missing.
fn report_missing(code: Code, slot: &OptionalField<String>, help: &str, context: &ReadContext) {
    let message =
        format!("Invalid mcp.yaml: {} must be a non-empty string", dominds_path(&slot.at.pointer(context)));
    context.error(code, &slot.at, message, help);
}

/// Lowers an argument of the program.
fn lower_arg(slot: Field<String>, context: &ReadContext) -> Option<ConfigValue> {
    let text = slot.value()?;
    context.report_check(&slot.at, checks::check_argument(text));
    check_argument_line(text, &slot.at, context);
    // A shell may replace the variable in a longer text.
    if !text.contains(char::is_whitespace) {
        hint_literal_variable(text, &slot.at, "Dominds replaces no variables in arguments", context);
    }
    slot.into_value().map(ConfigValue::literal)
}

/// Lowers the session id. A blank one is ignored, with a warning.
fn lower_session_id(slot: OptionalField<String>, context: &ReadContext) -> Option<ConfigValue> {
    let text = slot.value()?;
    if text.trim().is_empty() {
        let message = if text.is_empty() {
            "an empty 'sessionId' is ignored"
        } else {
            "a blank 'sessionId' is ignored"
        };
        let at = &slot.at;
        let diagnostic = context.new_diagnostic(Code::EmptySession, at, message);
        let fix = FixIntent::RemoveMember(at.pointer(context), Applicability::Certain);
        context.report(diagnostic.warning().help("remove the key").fix(fix));
        return None;
    }
    context.report_check(&slot.at, checks::check_header_value(text));
    slot.into_value().map(ConfigValue::literal)
}

/// Reports, as an information, that `${NAME}` is literal text (DM-010).
fn hint_literal_variable(text: &str, at: &Location, help: &str, context: &ReadContext) {
    if has_holodeck_reference(text) {
        let message = "`${…}` is literal text here: it is not replaced";
        let diagnostic = context.new_diagnostic(Code::UnknownReference, at, message);
        context.report(diagnostic.severity(Severity::Info).help(help));
    }
}

/// Lowers a value of `env` or `headers`: literal text, in which only `${secret:NAME}` has a meaning, or a variable of
/// the host (DM-010, DM-011).
fn lower_value(
    value: DomindsValue,
    at: &Location,
    check: fn(&str) -> Result<(), CheckError>,
    context: &ReadContext,
) -> ConfigValue {
    match value {
        DomindsValue::Text(text) => {
            context.report_check(at, check(&text));
            let value = parse_value(&*text, ReferenceRule::Secrets);
            if let ConfigValue::Literal(_) = value {
                hint_literal_variable(&text, at, "for a variable, write `{env: NAME}`", context);
            }
            value
        }
        DomindsValue::Variable(DomindsVariable { env, prefix }) => {
            if env.value().is_some_and(String::is_empty) {
                let path = dominds_path(&at.pointer(context));
                let message = format!("Invalid mcp.yaml: {path} must be a string or {{ env: 'NAME' }}");
                context.error(Code::EmptyValue, &env.at, message, "name a variable of the environment");
            }
            ConfigValue::HostEnv {
                name: env.into_value().unwrap_or_default(),
                prefix: Secret::new(prefix.into_value().unwrap_or_default()),
            }
        }
    }
}
