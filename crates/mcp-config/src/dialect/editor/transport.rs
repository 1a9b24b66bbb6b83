//! Selects the transport of an entry: from its declaration, its command or its URL (DIA-03, DIA-04, DIA-08).

use mcp_host_model::internal::is_loopback;
use mcp_host_model::{ConfigValue, SseFallback, TransportKind};

use crate::de::{FieldState, Location, NullableField, ReadContext};
use crate::diagnostic::{Code, quoted};
use crate::dialect::editor::conventions::{Program, UrlTransport};
use crate::dialect::editor::entry_fields::EntryUrl;
use crate::dialect::editor::fields::ValueReader;
use crate::dialect::editor::wire::TransportField;
use crate::dialect::{checks, lowering};
use crate::syntax::template;

/// The transport that an entry declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredTransport {
    /// No key declares a transport.
    Undeclared,
    Kind(TransportKind),
    /// opencode's `remote`: any transport with a URL.
    AnyUrl,
    /// Goose's types of extensions that it provides itself.
    BuiltIn,
    /// A value that could not be read and has been reported.
    Invalid,
}

/// The accepted spellings of each transport.
pub(super) const TRANSPORT_NAMES: &[(&str, DeclaredTransport)] = &[
    ("stdio", DeclaredTransport::Kind(TransportKind::Stdio)),
    ("local", DeclaredTransport::Kind(TransportKind::Stdio)),
    ("http", DeclaredTransport::Kind(TransportKind::Http)),
    ("streamable-http", DeclaredTransport::Kind(TransportKind::Http)),
    ("streamable_http", DeclaredTransport::Kind(TransportKind::Http)),
    ("streamableHttp", DeclaredTransport::Kind(TransportKind::Http)),
    ("streamableHTTP", DeclaredTransport::Kind(TransportKind::Http)),
    ("sse", DeclaredTransport::Kind(TransportKind::Sse)),
    ("ws", DeclaredTransport::Kind(TransportKind::WebSocket)),
    ("websocket", DeclaredTransport::Kind(TransportKind::WebSocket)),
    ("remote", DeclaredTransport::AnyUrl),
    ("builtin", DeclaredTransport::BuiltIn),
    ("platform", DeclaredTransport::BuiltIn),
    ("frontend", DeclaredTransport::BuiltIn),
    ("inline_python", DeclaredTransport::BuiltIn),
];

/// Reads `type`, `transport` and `transportType`, which mean the same. Different values are an error.
pub(super) fn read_declared_transport(
    slots: Vec<NullableField<TransportField>>,
    context: &ReadContext,
) -> DeclaredTransport {
    let mut res: Option<(DeclaredTransport, Location)> = None;
    for slot in slots {
        if let FieldState::Invalid = slot.state {
            return DeclaredTransport::Invalid;
        }
        let Some(kind) = slot.value() else { continue };
        let (word, at) = match kind {
            TransportField::Name(word) => (word.as_str(), slot.at),
            TransportField::Mapping(mapping) => match mapping.kind.value() {
                Some(word) => (word.as_str(), mapping.kind.at),
                None => return DeclaredTransport::Invalid,
            },
        };
        let Some(found) = TRANSPORT_NAMES.iter().find(|it| it.0 == word) else {
            report_unknown_transport(word, &at, context);
            return DeclaredTransport::Invalid;
        };
        match &res {
            Some((before, first)) if *before != found.1 => {
                let diagnostic =
                    context.new_diagnostic(Code::Exclusive, &at, "the entry names two different transports");
                context.report(
                    diagnostic.label(first.span(context), "the other is here").help("remove one of the two"),
                );
                return DeclaredTransport::Invalid;
            }
            Some(_) => {}
            None => res = Some((found.1, at)),
        }
    }
    res.map_or(DeclaredTransport::Undeclared, |it| it.0)
}

fn report_unknown_transport(word: &str, at: &Location, context: &ReadContext) {
    let message = format!("there is no transport '{}'", quoted(word));
    let near = context.did_you_mean(word, TRANSPORT_NAMES.iter().map(|it| it.0));
    let help = near.unwrap_or_else(|| "write one of `stdio`, `http`, `sse`, `ws`".to_owned());
    context.error(Code::UnknownWord, at, message, help);
}

/// The selected transport of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportChoice {
    Stdio,
    Url(TransportKind, SseFallback),
}

impl TransportChoice {
    pub(super) fn kind(self) -> TransportKind {
        match self {
            TransportChoice::Stdio => TransportKind::Stdio,
            TransportChoice::Url(kind, _) => kind,
        }
    }
}

/// Selects the transport by the declaration and the given fields (DIA-04, DIA-08).
pub(super) fn choose_transport(
    declared: DeclaredTransport,
    has_command: bool,
    url: &EntryUrl,
    at: &Location,
    values: &ValueReader<'_>,
) -> Option<TransportChoice> {
    let ValueReader { context, program, .. } = *values;
    let has_url = url.slot.is_given();
    match declared {
        DeclaredTransport::Invalid | DeclaredTransport::BuiltIn => None,
        DeclaredTransport::Kind(TransportKind::Stdio) => Some(TransportChoice::Stdio),
        DeclaredTransport::Kind(kind @ TransportKind::Http)
            if program.url_transport == UrlTransport::HttpThenSse =>
        {
            Some(TransportChoice::Url(kind, SseFallback::Allowed))
        }
        DeclaredTransport::Kind(
            kind @ (TransportKind::Http | TransportKind::Sse | TransportKind::WebSocket | _),
        ) => Some(TransportChoice::Url(kind, SseFallback::Never)),
        DeclaredTransport::AnyUrl => Some(url.default_transport(program)),
        DeclaredTransport::Undeclared if has_command && has_url => {
            let message = format!("'command' and '{}' are both given; only one is allowed", url.key);
            let url_at = &url.slot.at;
            let help = "remove one of the two, or add `type`";
            context.error(Code::ForeignField, &url_at.at_key(), message, help);
            None
        }
        DeclaredTransport::Undeclared if has_command => Some(TransportChoice::Stdio),
        DeclaredTransport::Undeclared if has_url => Some(url.default_transport(program)),
        DeclaredTransport::Undeclared => {
            let message = "a server needs a 'command' to start, or a 'url' to connect to";
            let command = at.missing("command", context);
            context.error(Code::MissingCommand, &command, message, "add one of the two");
            None
        }
    }
}

/// Chooses the URL of an entry from its keys (DIA-03). Some files repeat a URL under several keys, for several
/// programs; different URLs are reported. If none is given, the first key is chosen.
pub(super) fn choose_url(urls: Vec<EntryUrl>, context: &ReadContext) -> EntryUrl {
    let choose = |first: EntryUrl, url: EntryUrl| {
        if !first.slot.is_given() {
            return url;
        }
        if url.slot.is_given() && url.slot.value() != first.slot.value() {
            let message = format!("'{}' and '{}' have different values", url.key, first.key);
            context.report(context.exclusive_keys_diagnostic(&url.slot.at, &first.slot.at, message));
        }
        first
    };
    // In this order a message about different URLs names the common key second.
    urls.into_iter().rev().reduce(choose).expect("a field has a key")
}

impl EntryUrl {
    /// The transport of a URL for which the entry declares none.
    fn default_transport(&self, program: &Program) -> TransportChoice {
        let text = self.slot.value().map_or("", String::as_str);
        if ["ws://", "wss://"].iter().any(|it| text.starts_with(it)) {
            return TransportChoice::Url(TransportKind::WebSocket, SseFallback::Never);
        }
        match (self.key, program.url_transport) {
            ("httpUrl", _) => TransportChoice::Url(TransportKind::Http, SseFallback::Never),
            ("url", UrlTransport::SseUnlessDeclared | UrlTransport::SseUnlessHttpUrl) => {
                TransportChoice::Url(TransportKind::Sse, SseFallback::Never)
            }
            (
                _,
                UrlTransport::SseUnlessDeclared
                | UrlTransport::SseUnlessHttpUrl
                | UrlTransport::HttpThenSse
                | UrlTransport::HttpUnlessDeclared,
            ) => TransportChoice::Url(TransportKind::Http, SseFallback::Allowed),
        }
    }

    /// Lowers the URL. `None` if it is missing or invalid, which is reported.
    pub(super) fn lower(&self, kind: TransportKind, values: &ValueReader<'_>) -> Option<ConfigValue> {
        let EntryUrl { key, slot } = self;
        let context = values.context;
        let text = slot.value_or_report(|| {
            let message = format!("'url' is required for {} transport", kind.as_str());
            context.error(Code::MissingUrl, &slot.at, message, "add `url`, or remove the transport");
        })?;
        let value = values.value_with_shell_check(text.clone(), &slot.at, |_| Ok(()));
        if template::has_reference(text, values.rule) {
            return Some(value);
        }
        match checks::parse_url(text, lowering::url_rule(kind, context.rules.url_policy)) {
            Ok(parsed) => {
                if parsed.scheme() == "ws" && !is_loopback(&parsed) {
                    let message =
                        format!("'{key}' is not encrypted: others on the network can read the traffic");
                    context.warning(Code::PlainWebSocket, &slot.at, message, "write a wss:// URL");
                }
                Some(value)
            }
            Err(error) => {
                let message = error.message.replacen("'url'", &format!("'{key}'"), 1);
                context.error(error.code, &slot.at, message, error.help);
                None
            }
        }
    }
}
