//! Lowers an item to the model's `ServerSpec`.
//!
//! The serde struct is destructured without `..`, so a new field fails to compile until it is handled.

use mcp_host_model::{
    Limits, RawJson, ServerSpec, Sharing, StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use crate::de::{FieldState, Location, NullableField, OptionalField, ReadContext};
use crate::dialect::call_rules;
use crate::dialect::holodeck::transport::{ItemField, TransportFields};
use crate::dialect::holodeck::wire::{HoloDeckTransport, ToolItem};
use crate::dialect::holodeck::{fields, transport};
use crate::dialect::lowering::collect_metadata;
use crate::dialect::{checks, lowering, sandbox};
use crate::syntax::template::parse_value;
use crate::syntax::{KeyKind, Node};

/// Lowers an item and reports every mistake. `None` if a required part is invalid.
pub(super) fn lower(item: ToolItem, node: &Node, at: &Location, context: &ReadContext) -> Option<ServerSpec> {
    let ToolItem {
        name,
        description,
        tag: _,
        server,
        transport,
        command,
        args,
        env,
        env_file,
        env_file_alias,
        encoding,
        url,
        headers,
        timeout,
        sse_read_timeout,
        terminate_on_close,
        config,
        load_tools,
        load_prompts,
        request_timeout,
        registry_name,
        is_retrieval,
        defer_loading,
        sharing,
        sandbox,
        calls,
    } = item;
    let variables = context.rules.reference_rule;
    let given = [("server", server.is_given()), ("description", description.is_given())];
    fields::report_missing_keys(&given, at, context);
    let id = fields::parse_id(&name, context);
    fields::check_server_key(&server, context);

    let kind = match &transport.state {
        FieldState::Absent => Some(TransportKind::Stdio),
        FieldState::Value(transport) => Some(HoloDeckTransport::kind(*transport)),
        FieldState::Null | FieldState::Invalid => None,
    };
    let env_file = fields::merge_env_file_keys(env_file, env_file_alias, context);
    let transport_fields = TransportFields {
        command: &command,
        url: &url,
        is_implied: matches!(transport.state, FieldState::Absent),
        legacy_package: transport::legacy_package(&command, &transport.state, server.value(), context),
        has_args: !matches!(args.state, FieldState::Absent),
        at,
        context,
    };
    if let Some(kind) = kind {
        let item_fields = [
            ItemField::new("args", &args),
            ItemField::new("env", &env),
            ItemField::new("envFile", &env_file),
            ItemField::new("encoding", &encoding),
            ItemField::new("headers", &headers),
            ItemField::new("timeout", &timeout),
            ItemField::new("sse_read_timeout", &sse_read_timeout),
            ItemField::new("terminate_on_close", &terminate_on_close),
        ];
        transport_fields.warn_without_effect(kind, &item_fields);
        transport_fields.check_exclusive(kind);
        transport_fields.check_unused_url(kind);
    } else {
        transport_fields.check_unused_command();
    }

    let timeouts = Timeouts { request: &request_timeout, connect: &timeout, sse_read: &sse_read_timeout };
    let limits = timeouts.lower(kind, context);
    let args = fields::lower_args(args, context);
    let env = fields::lower_environment(env, context);
    let headers = lowering::lower_headers(headers.into_value(), context, |text: String, at| {
        fields::check_literal(&text, at, checks::check_header_value, context);
        parse_value(text, variables)
    });
    let encoding = fields::lower_encoding(&encoding, context);
    report_config_keys(node, &config.at, context);
    let config = config.into_value().and_then(|it| fields::lower_config(it, variables));
    let metadata = collect_metadata([
        ("server", server.value().map(RawJson::from_value)),
        ("registry_name", registry_name.value().map(RawJson::from_value)),
        ("is_retrieval", is_retrieval.value().map(RawJson::from_value)),
        ("defer_loading", defer_loading.value().map(RawJson::from_value)),
    ]);
    let implied_args = if transport_fields.legacy_package.is_some() { transport::IMPLIED_ARGS } else { 0 };

    let transport = match kind? {
        TransportKind::Stdio => {
            let (command, args) = transport_fields.lower_command(args)?;
            let mut spec = StdioSpec::new(command);
            (spec.args, spec.env, spec.encoding) = (args, env, encoding);
            spec.env_file = env_file.into_value().map(|it| parse_value(it, variables));
            spec.sandbox = sandbox::lower(sandbox, None, context);
            TransportSpec::Stdio(spec)
        }
        kind @ (TransportKind::Sse | TransportKind::WebSocket | TransportKind::Http | _) => {
            lowering::warn_without_effect(kind.as_str(), &[sandbox.given_at()], context);
            let mut spec = UrlSpec::new(transport_fields.lower_url(kind)?);
            spec.terminate_on_close = terminate_on_close.into_value().unwrap_or(true);
            if kind != TransportKind::WebSocket {
                spec.headers = headers;
            }
            lowering::url_transport(kind, spec)
        }
    };
    let mut spec = ServerSpec::new(id?, context.origin(at, node.span.clone()), transport);
    spec.description = description.into_value();
    spec.discovery.tools = load_tools.into_value().unwrap_or(true);
    spec.discovery.prompts = load_prompts.into_value().unwrap_or(true);
    spec.origin.implied_args = implied_args;
    spec.origin.stated_sharing = sharing.into_value().map(Sharing::from);
    spec.sharing = spec.origin.stated_sharing.unwrap_or(Sharing::Auto);
    spec.calls.stated = call_rules::lower(calls.into_value(), context);
    (spec.limits, spec.config, spec.metadata) = (limits, config, metadata);
    Some(spec)
}

/// The timeouts of an item.
struct Timeouts<'a> {
    request: &'a OptionalField<i64>,
    connect: &'a NullableField<f64>,
    sse_read: &'a NullableField<f64>,
}

impl Timeouts<'_> {
    fn lower(&self, kind: Option<TransportKind>, context: &ReadContext) -> Limits {
        let mut limits = Limits::default();
        limits.request = fields::lower_request_timeout(self.request, context);
        limits.connect = lowering::lower_seconds(self.connect, context).unwrap_or(match kind {
            Some(TransportKind::Sse) => lowering::SSE_CONNECT_TIMEOUT,
            Some(TransportKind::Stdio | TransportKind::WebSocket | TransportKind::Http | _) | None => {
                limits.connect
            }
        });
        limits.sse_read = lowering::lower_seconds(self.sse_read, context).unwrap_or(limits.sse_read);
        limits
    }
}

/// Reports keys of `config` that are no text: its reader keeps it as JSON, in which every key is text (HD-028).
fn report_config_keys(item: &Node, config_at: &Location, context: &ReadContext) {
    for member in item.value("config").and_then(Node::members).unwrap_or_default() {
        if member.key.kind == KeyKind::Scalar {
            context.report_bad_key(config_at, &member.key);
        }
    }
}
