//! Lowers an entry to the model's `ServerSpec`.
//!
//! The serde struct is destructured without `..`, so a new field fails to compile until it is handled.

use std::sync::Arc;

use mcp_host_model::{
    ClientGrant, ConfigValue, EnvInherit, ServerId, ServerSpec, Sharing, StdioSpec, TransportKind,
    TransportSpec, UnsetVariables, UrlSpec,
};

use crate::de::{Location, NullableField, ReadContext};
use crate::diagnostic::{Applicability, Code, FixIntent};
use crate::dialect::editor::client_credentials;
use crate::dialect::editor::command::CommandFields;
use crate::dialect::editor::fields::{DeclaredInputs, Durations, ToolLists, ValueReader};
use crate::dialect::editor::name_lists::NameLists;
use crate::dialect::editor::program::{EntryForm, Program, ShellVariables, VariableSyntax};
use crate::dialect::editor::transport::{
    DeclaredTransport, TransportChoice, choose_transport, declared_transport, entry_url,
};
use crate::dialect::editor::wire::{EditorServer, Environment, Headers, LOWERED_KEYS};
use crate::dialect::editor::{LoweredEntry, fields};
use crate::dialect::lowering::{SharingKey, metadata};
use crate::dialect::{checks, lowering};
use crate::syntax::template::ReferenceRule;
use crate::syntax::{Node, to_json};

/// The parameters of lowering an entry.
pub(super) struct EditorOptions<'a> {
    pub(super) context: &'a ReadContext,
    pub(super) program: &'static Program,
    pub(super) inputs: &'a DeclaredInputs,
    pub(super) lists: &'a NameLists<'a>,
}

/// Lowers one entry and reports every mistake. `name` is its key, if the servers are a mapping.
pub(super) fn lower(
    name: Option<&str>,
    server: EditorServer,
    node: &Node,
    at: &Location,
    options: &EditorOptions<'_>,
) -> LoweredEntry {
    let EditorServer {
        name: own_name,
        description,
        kind,
        transport,
        transport_type,
        command,
        cmd,
        args,
        env,
        environment,
        envs,
        env_keys,
        env_file,
        cwd,
        url,
        server_url,
        http_url,
        uri,
        headers,
        http_headers,
        env_http_headers,
        bearer_token_env_var,
        request_options,
        timeout,
        request_timeout,
        connection_timeout,
        startup_timeout_sec,
        startup_timeout_ms,
        init_timeout,
        tool_timeout_sec,
        sharing,
        disabled: _,
        enabled: _,
        include_tools,
        enabled_tools,
        available_tools,
        tools,
        exclude_tools,
        disabled_tools,
        disabled_tools_alias,
        settings,
        source,
        auto_approve: _,
        always_allow: _,
        trust: _,
        tags: _,
        dev: _,
        oauth: _,
        auth: _,
        auth_provider_type: _,
        gallery: _,
        version: _,
        options: _,
        icon: _,
        restart_on_exit: _,
        max_restarts: _,
        restart_delay: _,
        required: _,
        sandbox: _,
    } = server;
    let EditorOptions { context, program, inputs, lists: _ } = *options;
    let rule = match (program.variables, program.shell_variables) {
        (VariableSyntax::Braces, _) => ReferenceRule::Opencode,
        (_, ShellVariables::Replaced) => ReferenceRule::EditorAndShell,
        (_, ShellVariables::Literal) => ReferenceRule::Editor,
    };
    let replaces_nothing =
        program.variables == VariableSyntax::Unsupported && to_json(node).is_some_and(|it| it.contains("${"));
    let values = ValueReader { context, inputs, rule, program };
    let id = match name {
        Some(name) => parse_id(name, at, context),
        None => parse_own_id(&own_name, at, context),
    };
    if name.is_some() {
        // In a list of servers, lists are usual.
        for (key, slot) in [("env", &env), ("environment", &environment)] {
            if let Some(Environment::List(_)) = slot.value() {
                fields::warn_about_list(key, &slot.at, context);
            }
        }
        if let Some(Headers::List(_)) = headers.value() {
            fields::warn_about_list("headers", &headers.at, context);
        }
    }
    if let Some(inner) = node.get("transport")
        && report_nested_fields(&inner.value, &transport.at, context)
    {
        return LoweredEntry { kind: None, nothing_to_start: false, spec: None };
    }
    if program.entry_form != EntryForm::Goose {
        let keys = [("cmd", "command", &cmd.at), ("envs", "env", &envs.at), ("uri", "url", &uri.at)];
        for (key, common, at) in keys.into_iter().filter(|it| node.get(it.0).is_some()) {
            report_goose_key(key, (common, node.get(common).is_some()), at, context);
        }
    }
    let command = fields::one_of(command, cmd, context);
    let env = fields::one_of(env, envs, context);
    let headers = fields::one_of(headers, http_headers, context);
    let nested_headers = request_options.take().map(|it| it.headers);
    let headers = match nested_headers {
        Some(nested) => fields::one_of(headers, nested, context),
        None => headers,
    };
    let url = entry_url([url, server_url, http_url, uri], context);
    let said = declared_transport([kind, transport, transport_type], context);
    let durations = Durations {
        timeout,
        request_timeout,
        connection_timeout,
        startup_timeout_sec,
        startup_milliseconds: fields::one_of(startup_timeout_ms, init_timeout, context),
        tool_timeout_sec,
    };
    let limits = fields::limits(&durations, context);
    let exposure = fields::exposure(ToolLists {
        included: [include_tools, enabled_tools],
        available: available_tools,
        tools,
        excluded: [exclude_tools, disabled_tools, disabled_tools_alias],
    });

    let bare = !command.is_given() && !url.slot.is_given();
    let nothing_to_start =
        bare && matches!(said, DeclaredTransport::Undeclared) && (settings.is_given() || source.is_given());
    let nothing_to_start = nothing_to_start || matches!(said, DeclaredTransport::BuiltIn);
    if nothing_to_start {
        return LoweredEntry { kind: None, nothing_to_start, spec: None };
    }
    let Some(transport_choice) = choose_transport(said, command.is_given(), &url, at, options) else {
        return LoweredEntry { kind: None, nothing_to_start: false, spec: None };
    };
    // An empty list is accepted: editors' forms write them.
    let has_content =
        |is_given: bool, key: &str| is_given && !node.get(key).is_some_and(|member| is_empty(&member.value));
    let foreign: &[(bool, &Location)] = match transport_choice {
        TransportChoice::Stdio => &[
            (has_content(url.slot.is_given(), url.key), &url.slot.at),
            (has_content(headers.is_given(), "headers"), &headers.at),
        ],
        TransportChoice::Url(..) => &[
            (has_content(command.is_given(), "command"), &command.at),
            (has_content(args.is_given(), "args"), &args.at),
            (has_content(env.is_given(), "env"), &env.at),
            (has_content(environment.is_given(), "environment"), &environment.at),
            (has_content(env_file.is_given(), "envFile"), &env_file.at),
            (has_content(cwd.is_given(), "cwd"), &cwd.at),
        ],
    };
    lowering::warn_without_effect(transport_choice.kind().as_str(), foreign, context);
    let url_key = url.key;
    let transport = match transport_choice {
        TransportChoice::Stdio => {
            let program = CommandFields { command, args, env, environment };
            let cwd = cwd.value().filter(|it| !it.is_empty()).map(|it| fields::editor_text(it, rule));
            if let Some(cwd) = &cwd {
                values.without_shell_syntax().check_references(cwd, at);
            }
            let env_file = env_file.value().filter(|it| !it.is_empty());
            let env_file = env_file
                .map(|it| values.without_shell_syntax().value(it.clone(), at, checks::check_argument));
            program.lower(&values).map(|(command, args, mut env)| {
                fields::add_required_variables(env_keys, &mut env, context);
                let mut spec = StdioSpec::new(command);
                (spec.args, spec.env, spec.env_file, spec.cwd) = (args, env, env_file, cwd);
                spec.inherit = EnvInherit::All;
                TransportSpec::Stdio(spec)
            })
        }
        TransportChoice::Url(kind, sse_fallback) => {
            let headers = match kind {
                TransportKind::WebSocket => {
                    let foreign = [(headers.is_given(), &headers.at)];
                    lowering::warn_without_effect(kind.as_str(), &foreign, context);
                    Vec::new()
                }
                TransportKind::Stdio | TransportKind::Sse | TransportKind::Http | _ => {
                    fields::headers(headers, &values)
                }
            };
            let mut headers = headers;
            headers.extend(fields::variable_headers(env_http_headers, &bearer_token_env_var, context));
            let client_credentials = match kind {
                TransportKind::Http | TransportKind::Sse => client_credentials::read(node, at, &values),
                TransportKind::Stdio | TransportKind::WebSocket | _ => None,
            };
            if client_credentials.as_ref().is_some_and(|it| it.grant == ClientGrant::TokenExchange) {
                report_shared_use(&sharing, &headers, at, context);
            }
            url.value(kind, &values).map(|url| {
                let mut spec = UrlSpec::new(url);
                spec.headers = headers;
                spec.client_credentials = client_credentials;
                spec.sse_fallback = sse_fallback;
                match kind {
                    TransportKind::Sse => TransportSpec::Sse(spec),
                    TransportKind::WebSocket => TransportSpec::WebSocket(spec),
                    TransportKind::Stdio | TransportKind::Http | _ => TransportSpec::Http(spec),
                }
            })
        }
    };
    let kind = Some(transport_choice.kind());
    let (Some(id), Some(transport)) = (id, transport) else {
        return LoweredEntry { kind, nothing_to_start: false, spec: None };
    };
    let metadata = metadata([("extra", lowering::unknown_members(node, LOWERED_KEYS))]);
    let mut origin = context.origin(at, node.span.clone());
    origin.url_key = url_key;
    origin.inputs = Arc::clone(&inputs.defaults);
    origin.stated_sharing = sharing.take().map(Sharing::from);
    if replaces_nothing {
        origin.unset_variables = UnsetVariables::Kept;
    }
    let mut spec = ServerSpec::new(id, origin, transport);
    spec.description = description.take();
    spec.sharing = spec.origin.stated_sharing.unwrap_or(Sharing::Auto);
    (spec.limits, spec.exposure, spec.metadata) = (limits, exposure, metadata);
    LoweredEntry { kind, nothing_to_start: false, spec: Some(spec) }
}

/// Warns of a key that is read here, but by no other program than Goose (DIA-13). It may also be a misspelt common key.
fn report_goose_key(
    key: &str,
    (common, has_common): (&'static str, bool),
    at: &Location,
    context: &ReadContext,
) {
    // Both keys are reported together.
    if has_common {
        return;
    }
    let message = format!("'{key}' is a key of Goose; other programs read '{common}'");
    let diagnostic = context.new_diagnostic(Code::UnknownKey, &at.at_key(), message).warning();
    let fix = FixIntent::RenameKey(common.to_owned(), Applicability::Suggested);
    context.report(diagnostic.help(format!("did you mean `{common}`?")).fix(fix));
}

/// Reports what would make all users of a server with token exchange one user.
fn report_shared_use(
    sharing: &NullableField<SharingKey>,
    headers: &[(String, ConfigValue)],
    at: &Location,
    context: &ReadContext,
) {
    if sharing.value() == Some(&SharingKey::Shared) {
        let message = "`token_exchange` cannot be used with `sharing: shared`";
        let help = "remove `sharing`: each client has a connection of its own, with its user's token";
        context.error(Code::Exclusive, &sharing.at, message, help);
    }
    if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        let message = "`token_exchange` cannot be used with an `Authorization` header";
        context.error(Code::Exclusive, at, message, "remove the header or `auth`");
    }
}

/// Reports the fields of the server that are inside of `transport`. Returns whether there are any.
fn report_nested_fields(transport: &Node, at: &Location, context: &ReadContext) -> bool {
    const FIELDS: [&str; 8] = ["url", "serverUrl", "httpUrl", "headers", "command", "args", "env", "cwd"];
    let nested = transport.members().unwrap_or_default().iter().filter(|it| FIELDS.contains(&&*it.key.text));
    let mut res = false;
    for member in nested {
        res = true;
        let at = at.member(member, context);
        // The key is unknown there, which would be reported as a misspelling.
        context.clear(&at);
        let key = &member.key.text;
        let message = format!("'{key}' must not be inside of 'transport'");
        let help = format!("move `{key}` up, next to `transport`");
        context.error(Code::UnknownKey, &at.at_key(), message, help);
    }
    res
}

fn is_empty(node: &Node) -> bool {
    node.members().is_some_and(<[_]>::is_empty) || node.items().is_some_and(<[_]>::is_empty)
}

fn parse_id(name: &str, at: &Location, context: &ReadContext) -> Option<ServerId> {
    match ServerId::parse(name) {
        Ok(id) => Some(id),
        Err(error) => {
            let help = "give the server a short name";
            context.error(Code::InvalidName, &at.at_key(), error.to_string(), help);
            None
        }
    }
}

fn parse_own_id(name: &NullableField<String>, at: &Location, context: &ReadContext) -> Option<ServerId> {
    if !name.is_given() {
        let help = "add `name`: servers in a list have no keys";
        context.error(Code::MissingKey, &at.missing("name", context), "'name' is required", help);
        return None;
    }
    parse_id(name.value()?, &name.at, context)
}
