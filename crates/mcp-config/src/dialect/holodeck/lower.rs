//! Lowers an item to the model's `ServerSpec`.
//!
//! The serde struct is destructured without `..`, so a new field fails to compile until it is handled.

use mcp_host_model::{
    Limits, RawJson, ServerSpec, Sharing, StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use crate::de::{FieldState, Location, ReadContext};
use crate::dialect::holodeck::transport::{ItemField, TransportFields};
use crate::dialect::holodeck::wire::{HoloDeckTransport, ToolItem};
use crate::dialect::holodeck::{fields, transport};
use crate::dialect::lowering::metadata;
use crate::dialect::{checks, lowering};
use crate::syntax::template::parse_value;
use crate::syntax::{KeyKind, Node};

/// Lowers one item. Returns `None` if a required part is invalid; every mistake is reported.
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
    } = item;
    let variables = context.policy.variables;
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
    let reach = TransportFields {
        command: &command,
        url: &url,
        implied: matches!(transport.state, FieldState::Absent),
        legacy: transport::legacy_package(&command, &transport.state, server.value(), context),
        has_args: !matches!(args.state, FieldState::Absent),
        at,
        context,
    };
    if let Some(kind) = kind {
        let item_fields = [
            ItemField::of("args", &args),
            ItemField::of("env", &env),
            ItemField::of("envFile", &env_file),
            ItemField::of("encoding", &encoding),
            ItemField::of("headers", &headers),
            ItemField::of("timeout", &timeout),
            ItemField::of("sse_read_timeout", &sse_read_timeout),
            ItemField::of("terminate_on_close", &terminate_on_close),
        ];
        reach.warn_without_effect(kind, &item_fields);
        reach.check_exclusive(kind);
        reach.check_unused_url(kind);
    } else {
        reach.check_unused_command();
    }

    let mut limits = Limits::default();
    limits.request = fields::request_timeout(&request_timeout, context);
    limits.connect = lowering::duration(&timeout, context).unwrap_or(match kind {
        Some(TransportKind::Sse) => lowering::SSE_CONNECT,
        Some(TransportKind::Stdio | TransportKind::WebSocket | TransportKind::Http | _) | None => {
            Limits::default().connect
        }
    });
    limits.sse_read = lowering::duration(&sse_read_timeout, context).unwrap_or(Limits::default().sse_read);
    let args = fields::arguments(args, context);
    let env = fields::environment(env, context);
    let headers = lowering::headers(headers.take(), context, |text: String, at| {
        fields::check_literal(&text, at, checks::check_header_value, context);
        parse_value(text, variables)
    });
    let encoding = fields::encoding_label(&encoding, context);
    for member in node.value("config").and_then(Node::members).unwrap_or_default() {
        // The reader of `config` keeps it as JSON, in which every key is text (HD-028).
        if member.key.kind == KeyKind::Scalar {
            context.bad_key(&config.at, &member.key);
        }
    }
    let config = config.take().and_then(|it| fields::server_config(it, variables));
    let metadata = metadata([
        ("server", server.value().map(RawJson::from_value)),
        ("registry_name", registry_name.value().map(RawJson::from_value)),
        ("is_retrieval", is_retrieval.value().map(RawJson::from_value)),
        ("defer_loading", defer_loading.value().map(RawJson::from_value)),
    ]);
    let implied_args = if reach.legacy.is_some() { transport::IMPLIED_ARGS } else { 0 };

    let transport = match kind? {
        TransportKind::Stdio => {
            let (command, args) = reach.stdio(args)?;
            let mut spec = StdioSpec::new(command);
            (spec.args, spec.env, spec.encoding) = (args, env, encoding);
            spec.env_file = env_file.take().map(|it| parse_value(it, variables));
            TransportSpec::Stdio(spec)
        }
        kind @ (TransportKind::Sse | TransportKind::WebSocket | TransportKind::Http | _) => {
            let mut spec = UrlSpec::new(reach.url_value(kind)?);
            spec.terminate_on_close = terminate_on_close.take().unwrap_or(true);
            if kind != TransportKind::WebSocket {
                spec.headers = headers;
            }
            lowering::url_transport(kind, spec)
        }
    };
    let mut spec = ServerSpec::new(id?, context.origin(at, node.span.clone()), transport);
    spec.description = description.take();
    spec.discovery.tools = load_tools.take().unwrap_or(true);
    spec.discovery.prompts = load_prompts.take().unwrap_or(true);
    spec.origin.implied_args = implied_args;
    spec.origin.stated_sharing = sharing.take().map(Sharing::from);
    spec.sharing = spec.origin.stated_sharing.unwrap_or(Sharing::Auto);
    (spec.limits, spec.config, spec.metadata) = (limits, config, metadata);
    Some(spec)
}
