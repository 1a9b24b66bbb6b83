//! Lowers the command or the URL of an item, and reports fields that exclude each other (HD-010 to HD-014, HD-021,
//! HD-060 to HD-068).

use mcp_host_model::internal::is_loopback;
use mcp_host_model::{ConfigValue, TransportKind};
use serde_json::json;

use crate::de::{FieldState, Location, NullableField, ReadContext};
use crate::diagnostic::{Applicability, CheckError, Code, FixIntent, quoted};
use crate::dialect::checks::UrlRule;
use crate::dialect::{checks, lowering};
use crate::profile::rules::ForeignRule;
use crate::syntax::template::{ReferenceRule, has_holodeck_reference, parse_value};

/// The number of arguments, `-y` and the package, that a command derived from `server` begins with.
pub(super) const IMPLIED_ARGS: usize = 2;

/// The fields that select the transport.
pub(super) struct TransportFields<'a> {
    pub(super) command: &'a NullableField<String>,
    pub(super) url: &'a NullableField<String>,
    /// `transport` is missing, so it is stdio.
    pub(super) is_implied: bool,
    /// The npm package of an item in the deprecated form.
    pub(super) legacy_package: Option<String>,
    pub(super) has_args: bool,
    pub(super) at: &'a Location,
    pub(super) context: &'a ReadContext,
}

/// A field of an item, which may have an effect with some transports only.
pub(super) struct ItemField<'a> {
    key: &'static str,
    is_given: bool,
    at: &'a Location,
}

impl<'a> ItemField<'a> {
    /// The field under this key.
    pub(super) fn new<T>(key: &'static str, slot: &'a NullableField<T>) -> ItemField<'a> {
        ItemField { key, is_given: slot.is_given(), at: &slot.at }
    }
}

/// The npm package of an item in the deprecated form: without transport and command, and with a scoped npm package as
/// `server`.
pub(super) fn legacy_package(
    command: &NullableField<String>,
    transport: &FieldState<crate::dialect::holodeck::wire::HoloDeckTransport>,
    server: Option<&String>,
    context: &ReadContext,
) -> Option<String> {
    let is_deprecated_form = matches!(transport, FieldState::Absent) && !command.is_given();
    server
        .filter(|it| {
            is_deprecated_form && is_npm_package(it) && !context.rules.unsupported_keys.contains(&"server")
        })
        .cloned()
}

impl TransportFields<'_> {
    /// Warns about given fields of another transport (HD-037).
    pub(super) fn warn_without_effect(&self, kind: TransportKind, fields: &[ItemField<'_>]) {
        if self.context.rules.foreign_fields == ForeignRule::Accept {
            return;
        }
        let without_effect = fields.iter().filter(|it| it.is_given && !has_effect(it.key, kind));
        for ItemField { key, is_given: _, at } in without_effect {
            let message = format!("'{key}' has no effect with {} transport", kind.as_str());
            let diagnostic = self.context.new_diagnostic(Code::NoEffect, &at.at_key(), message);
            let fix = FixIntent::RemoveMember(at.pointer(self.context), Applicability::Suggested);
            let diagnostic = diagnostic.warning().help("remove it, or choose the transport it belongs to");
            self.context.report(diagnostic.fix(fix));
        }
    }

    /// Reports a command together with a URL, which exclude each other (HD-011). An item that has a URL but neither
    /// transport nor command is an exception: it is reported for its missing command.
    pub(super) fn check_exclusive(&self, kind: TransportKind) {
        let exclusive = self.context.rules.foreign_fields == ForeignRule::Exclusive;
        let forgotten = self.is_implied && self.legacy_package.is_none() && !self.command.is_given();
        let (key, slot) = match kind {
            TransportKind::Stdio => ("url", self.url),
            TransportKind::Sse | TransportKind::WebSocket | TransportKind::Http | _ => {
                ("command", self.command)
            }
        };
        if exclusive && slot.is_given() && !forgotten {
            let message = format!("'{key}' cannot be used with {} transport", kind.as_str());
            let at = &slot.at;
            let help = format!("remove `{key}`, or choose another `transport`");
            self.context.error(Code::ForeignField, &at.at_key(), message, help);
        }
        if !exclusive && kind != TransportKind::Stdio {
            self.check_unused_command();
        }
    }

    /// Reports a command that is not allowed, even if the transport does not run it (HD-014).
    pub(super) fn check_unused_command(&self) {
        if let Some(text) = self.command.value() {
            check_allowed_command(text, &self.command.at, self.context);
        }
    }

    /// Reports the scheme of a URL that the transport does not use: HoloDeck 0.7 checks every URL (HD-041, HD-042).
    pub(super) fn check_unused_url(&self, kind: TransportKind) {
        let is_unused =
            kind == TransportKind::Stdio && self.context.rules.foreign_fields == ForeignRule::Accept;
        let Some(text) = self.url.value().filter(|it| is_unused && !has_holodeck_reference(it)) else {
            return;
        };
        let rules = [UrlRule::HttpsOrLoopback, UrlRule::WebSocket];
        let is_wrong = |rule| checks::parse_url(text, rule).err().filter(|it| it.code == Code::UrlScheme);
        if let [Some(error), Some(_)] = rules.map(is_wrong) {
            self.context.report_check(&self.url.at, Err(error));
        }
    }

    /// Lowers the command of a stdio item. Returns it with all arguments: the given ones come after the implied ones of
    /// the deprecated form.
    pub(super) fn lower_command(&self, args: Vec<ConfigValue>) -> Option<(String, Vec<ConfigValue>)> {
        let TransportFields { command, url, is_implied, legacy_package, has_args: _, at, context } = self;
        if let Some(package) = legacy_package {
            let message = "an item without 'transport' and 'command' is deprecated";
            let help = format!("add `command: npx` and `args: [\"-y\", \"{}\"]`", quoted(package));
            let diagnostic = context.new_diagnostic(Code::Legacy, &at.at_key(), message);
            let fix = FixIntent::AddMembers {
                mapping: at.pointer(context),
                after: Some("server"),
                members: vec![("command", json!("npx")), ("args", json!(["-y", package]))],
                applicability: Applicability::Certain,
            };
            // Given arguments follow the implied ones, so a fix cannot add a second `args`.
            context.report(diagnostic.warning().help(help).fix((!self.has_args).then_some(fix)));
            let implied: [ConfigValue; IMPLIED_ARGS] =
                [ConfigValue::literal("-y"), ConfigValue::literal(package)];
            return Some(("npx".to_owned(), implied.into_iter().chain(args).collect()));
        }
        let text = command.value_or_report(|| {
            let forgotten = *is_implied && url.is_given();
            let help = if forgotten {
                "the item has a `url`: add `transport: http` (or sse, websocket)"
            } else {
                "add `command: npx` for an npm package, `command: uvx` for a Python package"
            };
            let message = "'command' is required for stdio transport";
            let missing = at.missing("command", context);
            let diagnostic = context.new_diagnostic(Code::MissingCommand, &missing, message);
            let transport = FixIntent::AddMembers {
                mapping: at.pointer(context),
                after: Some("url"),
                members: vec![("transport", json!("http"))],
                applicability: Applicability::Suggested,
            };
            context.report(diagnostic.help(help).fix(forgotten.then_some(transport)));
        })?;
        check_allowed_command(text, &command.at, context).then(|| (text.clone(), args))
    }

    /// Lowers the URL of an item with a transport other than stdio.
    pub(super) fn lower_url(&self, kind: TransportKind) -> Option<ConfigValue> {
        let TransportFields { command: _, url, is_implied: _, legacy_package: _, has_args: _, at, context } =
            self;
        let text = url.value_or_report(|| {
            let message = format!("'url' is required for {} transport", kind.as_str());
            let help = format!("add `url`, or remove `transport: {}`", kind.as_str());
            context.error(Code::MissingUrl, &at.missing("url", context), message, help);
        })?;
        lowering::warn_literal_reference(text, &url.at, context.rules.reference_rule, context);
        if context.rules.reference_rule == ReferenceRule::Literal || !has_holodeck_reference(text) {
            match checks::parse_url(text, lowering::url_rule(kind, context.rules.url_policy)) {
                Ok(parsed) if parsed.scheme() == "ws" && !is_loopback(&parsed) => {
                    let message = "'url' is not encrypted: others on the network can read the traffic";
                    let at = &url.at;
                    let diagnostic = context.new_diagnostic(Code::PlainWebSocket, at, message);
                    let diagnostic = diagnostic.warning().help("write a wss:// URL");
                    context.report(diagnostic.fix(FixIntent::ReplaceScheme("ws", "wss")));
                }
                Ok(_) => {}
                Err(CheckError { code, message, help }) => {
                    let at = &url.at;
                    let diagnostic = context.new_diagnostic(code, at, message);
                    let is_plain = code == Code::UrlScheme && kind != TransportKind::WebSocket;
                    let is_plain =
                        is_plain && text.get(..7).is_some_and(|it| it.eq_ignore_ascii_case("http://"));
                    let fix = is_plain.then_some(FixIntent::ReplaceScheme("http", "https"));
                    context.report(diagnostic.help(help).fix(fix));
                    return None;
                }
            }
        }
        Some(parse_value(text, context.rules.reference_rule))
    }
}

/// Returns whether the text is `@scope/name` or `@scope/name@version`.
fn is_npm_package(server: &str) -> bool {
    let is_word =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._~".contains(&it));
    let Some((scope, rest)) = server.strip_prefix('@').and_then(|it| it.split_once('/')) else {
        return false;
    };
    let (name, version) = rest.split_once('@').unwrap_or((rest, "latest"));
    is_word(scope) && is_word(name) && is_word(version)
}

/// Whether a field has an effect with a transport.
fn has_effect(key: &str, kind: TransportKind) -> bool {
    match kind {
        TransportKind::Stdio => ["args", "env", "envFile", "encoding"].contains(&key),
        TransportKind::Sse => ["headers", "timeout", "sse_read_timeout"].contains(&key),
        TransportKind::Http => {
            ["headers", "timeout", "sse_read_timeout", "terminate_on_close"].contains(&key)
        }
        TransportKind::WebSocket | _ => false,
    }
}

/// Reports a command that the profile does not allow (HD-013, HD-060). Returns whether it is allowed.
fn check_allowed_command(command: &str, at: &Location, context: &ReadContext) -> bool {
    let Some(commands) = context.rules.allowed_commands else { return true };
    if commands.contains(&command) {
        return true;
    }
    let message =
        format!("Invalid command '{}'. Supported commands: {}", quoted(command), commands.join(", "));
    let first = command.split_whitespace().next().unwrap_or_default();
    let bare = first.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let help = match commands.iter().find(|it| **it == bare) {
        Some(known) if first == command.trim() && first != command => {
            format!("write `command: {known}`, without the whitespace")
        }
        Some(known) if first != command => {
            format!("write `command: {known}`, and each argument as an item of `args`")
        }
        Some(known) => format!("write `command: {known}`, in lower case"),
        None if command == "node" => "the profile holodeck-0.7 allows `node`; otherwise use npx".to_owned(),
        None => "start the program through one of them".to_owned(),
    };
    // Suggest the command that differs only in case.
    let fix = commands.iter().find(|it| it.eq_ignore_ascii_case(command.trim()));
    let fix = fix.map(|it| FixIntent::ReplaceScalar((*it).to_owned(), Applicability::Certain));
    let diagnostic = context.new_diagnostic(Code::InvalidCommand, at, message);
    context.report(diagnostic.help(help).fix(fix));
    false
}
