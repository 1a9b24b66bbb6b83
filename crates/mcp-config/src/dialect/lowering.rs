//! Functions that lower serde structs to the model, shared by all dialects.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use mcp_host_model::{ConfigValue, RawJson, Sharing, TemplatePart, TransportKind, TransportSpec, UrlSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Location, NullableField, OrderedMap, ReadContext};
use crate::diagnostic::{Applicability, Code, FixIntent, RawDiagnostic, quoted};
use crate::dialect::checks::{self, HeaderOwner, UrlRule};
use crate::profile::rules::UrlPolicy;
use crate::syntax::template::{ReferenceRule, UnexpandedReference};
use crate::syntax::{Node, template, to_json};

/// The default timeout of connecting over server-sent events (SK-24).
pub(crate) const SSE_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The environment variable that passes `config` to a child process (HDX-08).
pub(crate) const CONFIG_VARIABLE: &str = "MCP_CONFIG";

/// Which clients of a gateway share a running instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum SharingKey {
    Auto,
    Shared,
    PerClient,
}

impl From<SharingKey> for Sharing {
    fn from(key: SharingKey) -> Sharing {
        match key {
            SharingKey::Auto => Sharing::Auto,
            SharingKey::Shared => Sharing::Shared,
            SharingKey::PerClient => Sharing::PerOwner,
        }
    }
}

/// Metadata key of a spec: the unknown members of its entry, which the writer of the same dialect writes back.
pub(crate) const EXTRA_METADATA: &str = "extra";

/// The metadata of a spec, from keys and JSON values. Omits a value that is missing or invalid.
pub(crate) fn collect_metadata<const N: usize>(
    entries: [(&str, Option<Result<RawJson, serde_json::Error>>); N],
) -> BTreeMap<String, RawJson> {
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.ok()?))).collect()
}

/// Lowers a positive number of seconds; reports any other number. `None` if the field is not given or invalid.
pub(crate) fn lower_seconds(slot: &NullableField<f64>, context: &ReadContext) -> Option<Duration> {
    let value = *slot.value()?;
    let Some(duration) = checks::duration_from_secs(value) else {
        let message = format!(
            "'{}' must be a finite number greater than zero",
            crate::syntax::last_key(&slot.at.pointer(context))
        );
        context.error(Code::OutOfRange, &slot.at, message, "write seconds, such as 30");
        return None;
    };
    warn_if_milliseconds(value, &slot.at, context);
    Some(duration)
}

/// Warns if a number of seconds looks like milliseconds.
pub(crate) fn warn_if_milliseconds(value: f64, at: &Location, context: &ReadContext) {
    if !checks::looks_like_milliseconds(value) {
        return;
    }
    let key = crate::syntax::last_key(&at.pointer(context));
    let message = format!("'{key}' is in seconds; {value} of them are {}", humanize(value));
    let help = format!("if milliseconds were meant, write `{key}: {}`", value / 1000.0);
    let diagnostic = context.new_diagnostic(Code::SuspiciousUnit, at, message);
    let is_whole = value % 1000.0 == 0.0;
    let fix =
        is_whole.then(|| FixIntent::ReplaceScalar((value / 1000.0).to_string(), Applicability::Suggested));
    context.report(diagnostic.warning().help(help).fix(fix));
}

/// A duration in whole minutes, hours or days, for a message.
fn humanize(seconds: f64) -> String {
    let (value, unit) = match seconds {
        it if it >= 2.0 * 86_400.0 => (it / 86_400.0, "days"),
        it if it >= 2.0 * 3600.0 => (it / 3600.0, "hours"),
        it => (it / 60.0, "minutes"),
    };
    format!("{value:.0} {unit}")
}

/// The rule for the URL of a transport.
pub(crate) fn url_rule(kind: TransportKind, policy: UrlPolicy) -> UrlRule {
    match (kind, policy) {
        (TransportKind::WebSocket, _) => UrlRule::WebSocket,
        (TransportKind::Stdio | TransportKind::Sse | TransportKind::Http | _, UrlPolicy::Guarded) => {
            UrlRule::HttpsOrLoopback
        }
        (TransportKind::Stdio | TransportKind::Sse | TransportKind::Http | _, UrlPolicy::Any) => {
            UrlRule::Http
        }
    }
}

/// Reports items of a list that have the same name.
pub(crate) struct UniqueNames<'a> {
    /// The plural that messages call the items by, such as `servers of this file`.
    items: &'static str,
    help: &'static str,
    /// The first location of each name.
    first: HashMap<&'a str, Location>,
}

impl<'a> UniqueNames<'a> {
    pub(crate) fn new(items: &'static str, help: &'static str) -> UniqueNames<'a> {
        UniqueNames { items, help, first: HashMap::new() }
    }

    /// Adds a name. Reports one that was added before.
    pub(crate) fn add(&mut self, name: &'a str, at: Location, context: &ReadContext) {
        let first = *self.first.entry(name).or_insert(at);
        if first != at {
            let shown = quoted(name);
            let message = format!("two {} are named '{shown}'", self.items);
            let diagnostic = context.new_diagnostic(Code::DuplicateName, &at, message);
            let label = format!("'{shown}' is first used here");
            context.report(diagnostic.label(first.span(context), label).help(self.help));
        }
    }
}

/// Warns about a header that the transport sets, and reports one that the connection sets as an error. `at` is the
/// location of the name.
pub(crate) fn report_owned_header(name: &str, at: &Location, context: &ReadContext) {
    let diagnostic = |code, message: String| context.new_diagnostic(code, at, message);
    match checks::header_owner(name) {
        HeaderOwner::User => {}
        HeaderOwner::Transport => {
            let message = format!("the header '{name}' is set by the transport; this value is ignored");
            context.report(diagnostic(Code::NoEffect, message).warning().help("remove it"));
        }
        HeaderOwner::Connection => {
            let message = format!("the header '{name}' cannot be configured: the connection sets it");
            context.report(diagnostic(Code::InvalidHeader, message).help("remove it"));
        }
    }
}

/// A transport with a URL. Any kind other than SSE and WebSocket is Streamable HTTP.
pub(crate) fn url_transport(kind: TransportKind, spec: UrlSpec) -> TransportSpec {
    match kind {
        TransportKind::Sse => TransportSpec::Sse(spec),
        TransportKind::WebSocket => TransportSpec::WebSocket(spec),
        TransportKind::Stdio | TransportKind::Http | _ => TransportSpec::Http(spec),
    }
}

/// Warns about fields that have no effect with a transport. A field that is not given has no location.
pub(crate) fn warn_without_effect(transport: &str, fields: &[Option<&Location>], context: &ReadContext) {
    for at in fields.iter().flatten() {
        context.remove_diagnostics(at);
        let pointer = at.pointer(context);
        let message =
            format!("'{}' has no effect with {transport} transport", crate::syntax::last_key(&pointer));
        let diagnostic = context.new_diagnostic(Code::NoEffect, &at.at_key(), message);
        let diagnostic = diagnostic.warning().help("remove it, or choose the transport it belongs to");
        context.report(diagnostic.fix(FixIntent::RemoveMember(pointer, Applicability::Suggested)));
    }
}

/// Warns about a text that looks like a reference but that the rule does not replace.
pub(crate) fn warn_literal_reference(text: &str, at: &Location, rule: ReferenceRule, context: &ReadContext) {
    if text.contains("${") {
        warn_literal_parts(&template::split_references(text, rule), at, rule, context);
    }
}

/// Like [`warn_literal_reference`], for a text that was split by the rule.
pub(crate) fn warn_literal_parts(
    parts: &[TemplatePart],
    at: &Location,
    rule: ReferenceRule,
    context: &ReadContext,
) {
    let unclosed = parts.iter().find_map(|part| match part {
        TemplatePart::Text(text) if rule == ReferenceRule::Braces => {
            template::find_unclosed_braces(text.expose())
        }
        _ => None,
    });
    let (message, help) = match template::find_unexpanded_reference(parts).or(unclosed) {
        None => return,
        Some(UnexpandedReference::Unknown(word)) => (
            format!("`${{{}…}}` is unknown and is not replaced", quoted(word)),
            match rule {
                ReferenceRule::Literal
                | ReferenceRule::Secrets
                | ReferenceRule::Expand
                | ReferenceRule::ExpandWithFolder => {
                    "only `${NAME}` is replaced here; write that, or the value itself".to_owned()
                }
                ReferenceRule::Editor
                | ReferenceRule::EditorAndShell
                | ReferenceRule::EditorAndOptionalShell => {
                    "write the value itself, or a variable of the environment: `${NAME}`".to_owned()
                }
                ReferenceRule::Braces => {
                    "write the value itself, or a variable of the environment: `{env:NAME}`".to_owned()
                }
            },
        ),
        Some(UnexpandedReference::Unclosed(name)) => (
            format!("`${{{}` has no closing `}}` and is not replaced", quoted(name)),
            format!("write `${{{}}}`", quoted(name)),
        ),
        Some(UnexpandedReference::UnclosedBraces(name)) => (
            format!("`{{{}` has no closing `}}` and is not replaced", quoted(name)),
            format!("write `{{{}}}`", quoted(name)),
        ),
        Some(UnexpandedReference::Spaced(name)) => (
            format!("`${{ {} }}` has spaces between the braces and is not replaced", quoted(name)),
            format!("write `${{{}}}`", quoted(name)),
        ),
    };
    context.warning(Code::UnknownReference, at, message, help);
}

/// The members of an entry whose keys are not known, as one JSON object; `None` if there are none.
pub(crate) fn collect_unknown_members(
    node: &Node,
    is_known: impl Fn(&str) -> bool,
) -> Option<Result<RawJson, serde_json::Error>> {
    let members = node.members().unwrap_or_default().iter().filter(|it| !is_known(&it.key.text));
    let mut res = String::new();
    for member in members {
        let (Ok(key), Some(value)) = (serde_json::to_string(&*member.key.text), to_json(&member.value))
        else {
            continue;
        };
        let separator = if res.is_empty() { '{' } else { ',' };
        res.push_str(&format!("{separator}{key}:{value}"));
    }
    (!res.is_empty()).then(|| RawJson::parse((res + "}").into()))
}

/// Lowers environment variables and checks their names; `lower` converts and checks a value. `at` is the location of
/// the mapping.
pub(crate) fn lower_environment<T>(
    entries: Option<OrderedMap<T>>,
    at: &Location,
    context: &ReadContext,
    mut lower: impl FnMut(T, &Location) -> ConfigValue,
) -> Vec<(String, ConfigValue)> {
    let mut res = Vec::new();
    for (name, slot) in entries.map(|it| it.0).unwrap_or_default() {
        if let Err(error) = checks::check_env_name(&name) {
            // The name may contain a value (`KEY=value`), so the pointer stops at the parent.
            let span = slot.at.key_span(context);
            let diagnostic = RawDiagnostic::new(error.code, error.message, at.pointer(context), span);
            context.report(diagnostic.help(error.help));
        }
        let at = slot.at;
        if let Some(value) = slot.into_value() {
            res.push((name, lower(value, &at)));
        }
    }
    res
}

/// Lowers headers and checks their names; `lower` converts and checks a value.
pub(crate) fn lower_headers<T>(
    entries: Option<OrderedMap<T>>,
    context: &ReadContext,
    mut lower: impl FnMut(T, &Location) -> ConfigValue,
) -> Vec<(String, ConfigValue)> {
    let mut res = Vec::new();
    for (name, slot) in entries.map(|it| it.0).unwrap_or_default() {
        context.report_check(&slot.at.at_key(), checks::check_header_name(&name));
        let at = slot.at;
        if let Some(value) = slot.into_value() {
            res.push((name, lower(value, &at)));
        }
    }
    res
}
