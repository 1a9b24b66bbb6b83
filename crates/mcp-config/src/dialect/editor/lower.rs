//! Lowers the fields of an entry to the model's `ServerSpec`.

use std::sync::Arc;

use mcp_host_model::{
    ClientGrant, ConfigValue, ServerId, ServerSpec, Sharing, SseFallback, TransportKind, TransportSpec,
    UnsetVariablePolicy, UrlSpec,
};

use crate::de::{Location, NullableField, OrderedMap, ReadContext};
use crate::diagnostic::{Applicability, Code, FixIntent, quoted};
use crate::dialect::call_rules;
use crate::dialect::editor::approvals;
use crate::dialect::editor::client_credentials;
use crate::dialect::editor::conventions::{EntryForm, Program, ShellVariables, UrlSupport, VariableSyntax};
use crate::dialect::editor::entry_fields::{EntryFields, EntryUrl, StdioFields};
use crate::dialect::editor::fields::{self, DeclaredInputs, ValueReader};
use crate::dialect::editor::keys::{self, EntryField, EntryKey};
use crate::dialect::editor::name_lists::NameLists;
use crate::dialect::editor::transport::{
    DeclaredTransport, TransportChoice, choose_transport, choose_url, read_declared_transport,
};
use crate::dialect::editor::wire::{Environment, Headers};
use crate::dialect::lowering;
use crate::dialect::lowering::{SharingKey, collect_metadata};
use crate::syntax::template::ReferenceRule;
use crate::syntax::{Node, to_json};

/// The file that an entry belongs to: its program, its inputs and its name lists.
pub(super) struct FileContext<'a> {
    pub(super) context: &'a ReadContext,
    /// The program that the path of the file belongs to.
    pub(super) path_program: Option<&'static Program>,
    /// The program of the entry. It may differ from `path_program`, because it also depends on the key of the servers
    /// and on the content of the file.
    pub(super) program: &'static Program,
    /// The folder of the project that the entry belongs to, if the file states it.
    pub(super) project: Option<&'a str>,
    pub(super) inputs: &'a DeclaredInputs,
    pub(super) lists: &'a NameLists<'a>,
}

impl FileContext<'_> {
    /// Whether the path shows that this program reads the file.
    pub(super) fn is_read_by(&self, program: &Program) -> bool {
        program.has_file_of(self.path_program)
    }
}

/// The result of lowering an entry.
#[derive(Default)]
pub(super) struct LoweredEntry {
    /// The transport; `None` if none could be selected.
    pub(super) kind: Option<TransportKind>,
    /// The program of the file provides the server itself, so there is nothing to start.
    pub(super) is_built_in: bool,
    /// `None` if the name or the transport is unusable, or if there is nothing to start. May be `Some` although errors
    /// were reported.
    pub(super) spec: Option<ServerSpec>,
}

/// Lowers an entry and reports every mistake. `name` is its key if the servers are a mapping, else `None`.
pub(super) fn lower(
    name: Option<&str>,
    entry: EntryFields,
    node: &Node,
    at: &Location,
    file: &FileContext<'_>,
) -> LoweredEntry {
    let FileContext { context, program, project, inputs, lists: _, path_program: _ } = *file;
    let EntryFields {
        name: name_field,
        description,
        transports,
        stdio,
        urls,
        headers,
        header_variables,
        token_variable,
        durations,
        sharing,
        calls,
        disabled: _,
        enabled: _,
        tools,
        is_provided,
    } = entry;
    let values = ValueReader { context, inputs, rule: reference_rule(program), program };
    let id = match name {
        Some(name) => context.parse_id(name, &at.at_key(), ID_HELP),
        None => parse_name_field(&name_field, at, context),
    };
    if name.is_some() {
        // Programs whose servers are a list write variables and headers as lists too.
        warn_about_lists(&stdio, &headers, context);
    }
    if report_nested_fields(node, at, context) {
        return LoweredEntry::default();
    }
    if program.entry_form != EntryForm::Goose {
        report_goose_keys(node, at, program, context);
    }
    if program.entry_form == EntryForm::Codex && file.is_read_by(program) {
        report_keys_that_codex_ignores(node, at, program, context);
    }
    let url = choose_url(urls, context);
    let declared = read_declared_transport(transports, context);
    let limits = fields::lower_limits(&durations, program, context);
    let exposure = fields::lower_exposure(tools, program);
    let calls = call_rules::lower(calls.into_value(), context);

    let has_command = stdio.command.is_given();
    let is_undeclared = declared == DeclaredTransport::Undeclared && !has_command && !url.slot.is_given();
    if declared == DeclaredTransport::BuiltIn || (is_undeclared && is_provided) {
        return LoweredEntry { is_built_in: true, ..LoweredEntry::default() };
    }
    let Some(choice) = choose_transport(declared, has_command, &url, at, &values) else {
        return LoweredEntry::default();
    };
    let without_effect = keys_without_effect(choice, node, &stdio, &url, &headers);
    lowering::warn_without_effect(choice.kind().as_str(), &without_effect, context);
    if let (TransportChoice::Url(..), UrlSupport::Unsupported(own_way)) = (&choice, program.url_support)
        && file.is_read_by(program)
    {
        let message = format!("{} only starts programs; only mcp-host connects to this URL", program.name);
        context.warning(Code::NoEffect, &url.slot.at.at_key(), message, own_way);
    }
    report_keys_in_environment(node, at, context);
    let mut origin = context.origin(at, node.span.clone());
    origin.url_key = url.key;
    let transport = match choice {
        TransportChoice::Stdio => stdio.lower(at, &values).map(TransportSpec::Stdio),
        TransportChoice::Url(kind, sse_fallback) => {
            let sharing = &sharing;
            let fields = UrlFields { url, sse_fallback, headers, header_variables, token_variable, sharing };
            fields.lower(kind, node, at, &values)
        }
    };
    let kind = Some(choice.kind());
    let (Some(id), Some(transport)) = (id, transport) else {
        return LoweredEntry { kind, ..LoweredEntry::default() };
    };
    origin.inputs = Arc::clone(&inputs.defaults);
    origin.project = project.map(str::to_owned);
    origin.start_limit = Some(program.start_limit);
    origin.stated_sharing = sharing.into_value().map(Sharing::from);
    origin.unset_variables = unset_variable_policy(program, node);
    let mut spec = ServerSpec::new(id, origin, transport);
    spec.description = description.into_value();
    spec.sharing = spec.origin.stated_sharing.unwrap_or(Sharing::Auto);
    let is_lowered = |name: &str| keys::find(name).is_some_and(EntryKey::is_lowered);
    spec.metadata =
        collect_metadata([(lowering::EXTRA_METADATA, lowering::collect_unknown_members(node, is_lowered))]);
    (spec.limits, spec.exposure) = (limits, exposure);
    (spec.calls.stated, spec.calls.of_program) = (calls, approvals::read(node, program.approval_keys));
    LoweredEntry { kind, is_built_in: false, spec: Some(spec) }
}

/// The references that the program replaces.
fn reference_rule(program: &Program) -> ReferenceRule {
    match (program.variables, program.shell_variables) {
        (VariableSyntax::Braces, _) => ReferenceRule::Braces,
        (_, ShellVariables::ReplacedEverywhere) => ReferenceRule::EditorAndOptionalShell,
        (_, ShellVariables::Replaced) => ReferenceRule::EditorAndShell,
        (_, ShellVariables::Literal) => ReferenceRule::Editor,
    }
}

/// What an unset variable means in an entry of the program.
fn unset_variable_policy(program: &Program, entry: &Node) -> UnsetVariablePolicy {
    match program.variables {
        // A program without variables passes `${NAME}` on. Without `${` in its texts, an entry can only refer to
        // variables by Codex's keys such as `env_vars`, and those must be set.
        VariableSyntax::Unsupported if to_json(entry).is_some_and(|json| json.contains("${")) => {
            UnsetVariablePolicy::Keep
        }
        VariableSyntax::Braces => UnsetVariablePolicy::Empty,
        VariableSyntax::Plain
        | VariableSyntax::EnvPrefix
        | VariableSyntax::EnvPrefixAndInputs
        | VariableSyntax::Secrets
        | VariableSyntax::Unsupported => UnsetVariablePolicy::Reject,
    }
}

/// Warns about variables and headers that are lists.
fn warn_about_lists(stdio: &StdioFields, headers: &NullableField<Headers>, context: &ReadContext) {
    let is_list = |slot: &&NullableField<Environment>| matches!(slot.value(), Some(Environment::List(_)));
    let environments = [&stdio.env, &stdio.environment].into_iter().filter(is_list).map(|slot| &slot.at);
    let header_list = matches!(headers.value(), Some(Headers::List(_))).then_some(&headers.at);
    environments.chain(header_list).for_each(|at| fields::warn_about_list(at, context));
}

/// The given keys that have no effect with the chosen transport. Empty lists and mappings are accepted: the settings
/// forms of editors write them.
fn keys_without_effect<'a>(
    choice: TransportChoice,
    node: &Node,
    stdio: &'a StdioFields,
    url: &'a EntryUrl,
    headers: &'a NullableField<Headers>,
) -> Vec<Option<&'a Location>> {
    let with_content =
        |key: &str, at: Option<&'a Location>| at.filter(|_| !node.value(key).is_some_and(is_empty));
    match choice {
        TransportChoice::Stdio => {
            vec![with_content(url.key, url.slot.given_at()), with_content("headers", headers.given_at())]
        }
        TransportChoice::Url(..) => vec![
            with_content("command", stdio.command.given_at()),
            with_content("args", stdio.args.given_at()),
            with_content("env", stdio.env.given_at()),
            with_content("environment", stdio.environment.given_at()),
            with_content("envFile", stdio.env_file.given_at()),
            with_content("cwd", stdio.cwd.given_at()),
            with_content("sandbox", stdio.sandbox.given_at()),
        ],
    }
}

/// The fields of a server with a URL.
struct UrlFields<'a> {
    url: EntryUrl,
    sse_fallback: SseFallback,
    headers: NullableField<Headers>,
    header_variables: NullableField<OrderedMap<String>>,
    token_variable: NullableField<String>,
    sharing: &'a NullableField<SharingKey>,
}

impl UrlFields<'_> {
    /// Lowers the fields of an entry at `at`. `None` if the URL is missing or invalid, which is reported.
    fn lower(
        self,
        kind: TransportKind,
        node: &Node,
        at: &Location,
        values: &ValueReader<'_>,
    ) -> Option<TransportSpec> {
        let UrlFields { url, sse_fallback, headers, header_variables, token_variable, sharing } = self;
        let context = values.context;
        let mut all_headers = Vec::new();
        if kind == TransportKind::WebSocket {
            lowering::warn_without_effect(kind.as_str(), &[headers.given_at()], context);
        } else {
            all_headers = fields::lower_headers(headers, values);
        }
        all_headers.extend(fields::lower_header_variables(header_variables, &token_variable, context));
        let client_credentials = match kind {
            TransportKind::Http | TransportKind::Sse => client_credentials::read(node, at, values),
            TransportKind::Stdio | TransportKind::WebSocket | _ => None,
        };
        if client_credentials.as_ref().is_some_and(|it| it.grant == ClientGrant::TokenExchange) {
            report_shared_credentials(sharing, &all_headers, at, context);
        }
        let mut spec = UrlSpec::new(url.lower(kind, values)?);
        (spec.headers, spec.client_credentials) = (all_headers, client_credentials);
        spec.sse_fallback = sse_fallback;
        Some(lowering::url_transport(kind, spec))
    }
}

/// Reports keys of a server inside of its variables (RPT-107). A list or mapping there shows that the key belongs one
/// level up.
fn report_keys_in_environment(entry: &Node, at: &Location, context: &ReadContext) {
    let foreign_key = |name: &str| keys::foreign_key(name, EntryForm::Common);
    for name in keys::of_field(EntryField::Environment).map(|key| key.name) {
        let Some(environment) = entry.get(name) else { continue };
        let environment_at = at.member(environment, context);
        for member in environment.value.members().unwrap_or_default() {
            let key = &*member.key.text;
            let is_collection = member.value.members().is_some() || member.value.items().is_some();
            if !is_collection || !(keys::find(key).is_some() || foreign_key(key).is_some()) {
                continue;
            }
            let member_at = environment_at.member(member, context);
            context.remove_diagnostics(&member_at);
            let message = format!("'{}' is a key of the server, not one of its variables", quoted(key));
            let help = format!("move `{}` up, next to `{name}`", quoted(key));
            context.error(Code::UnknownKey, &member_at.at_key(), message, help);
        }
    }
}

/// Warns about keys that only Goose reads, in files of other programs (DIA-13). Such a key may also be a misspelt
/// common key.
fn report_goose_keys(node: &Node, at: &Location, program: &Program, context: &ReadContext) {
    for key in keys::KEYS.iter().filter(|it| it.forms == [EntryForm::Goose]) {
        let Some(common) = keys::name_in(key.field, program.entry_form) else { continue };
        let is_of_transport =
            matches!(key.field, EntryField::Command | EntryField::Environment | EntryField::Url);
        let Some(member) = node.get(key.name).filter(|_| is_of_transport) else { continue };
        // An entry with both keys is reported as one with the same field twice.
        if node.get(common).is_some() {
            continue;
        }
        let at = at.member(member, context).at_key();
        let message = format!("'{}' is a key of Goose; other programs read '{common}'", key.name);
        let diagnostic = context.new_diagnostic(Code::UnknownKey, &at, message).warning();
        let fix = FixIntent::RenameKey(common.to_owned(), Applicability::Suggested);
        context.report(diagnostic.help(format!("did you mean `{common}`?")).fix(fix));
    }
}

/// Warns about keys that Codex ignores, although it has a key of its own for the same.
fn report_keys_that_codex_ignores(node: &Node, at: &Location, program: &Program, context: &ReadContext) {
    for member in node.members().unwrap_or_default() {
        let member_at = at.member(member, context);
        let Some(key) = keys::find(&member.key.text) else {
            if keys::is_token(&member.key.text) {
                let name = quoted(&member.key.text);
                let message = format!("{} has no key '{name}', and the token is not sent", program.name);
                let own = keys::primary_name(EntryField::TokenVariable);
                let help =
                    format!("write `{own} = \"NAME\"`, with the name of a variable that has the token");
                context.remove_diagnostics(&member_at);
                context.warning(Code::UnknownKey, &member_at.at_key(), message, help);
            }
            continue;
        };
        // Codex has one timeout of a request, in seconds.
        let own_field = match key.field {
            EntryField::Timeout | EntryField::RequestMilliseconds => EntryField::RequestSeconds,
            field => field,
        };
        let own = keys::name_in(own_field, program.entry_form);
        let Some(own) = own.filter(|it| !key.forms.contains(&program.entry_form) && node.get(it).is_none())
        else {
            continue;
        };
        let message = format!("{} ignores '{}'; only mcp-host reads it", program.name, key.name);
        context.warning(Code::UnknownKey, &member_at.at_key(), message, format!("write `{own}`"));
    }
}

/// Reports `sharing: shared` and an `Authorization` header on a server with token exchange: all its users would have
/// the same token.
fn report_shared_credentials(
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

/// Reports fields such as `url` that are inside of `transport` instead of next to it. Returns whether there are any.
fn report_nested_fields(entry: &Node, at: &Location, context: &ReadContext) -> bool {
    let Some(transport) = entry.get("transport") else { return false };
    let at = at.member(transport, context);
    let is_of_transport = |key: &EntryKey| {
        let field = key.field;
        matches!(field, EntryField::Url | EntryField::Headers | EntryField::Command | EntryField::Arguments)
            || matches!(field, EntryField::Environment | EntryField::Directory)
    };
    let mut res = false;
    for member in transport.value.members().unwrap_or_default() {
        let name = &member.key.text;
        if !keys::find(name).is_some_and(|it| it.is_common() && is_of_transport(it)) {
            continue;
        }
        res = true;
        let at = at.member(member, context);
        // The reader has reported the key as an unknown one of `transport`; the next error replaces that.
        context.remove_diagnostics(&at);
        let message = format!("'{name}' must not be inside of 'transport'");
        let help = format!("move `{name}` up, next to `transport`");
        context.error(Code::UnknownKey, &at.at_key(), message, help);
    }
    res
}

fn is_empty(node: &Node) -> bool {
    node.members().is_some_and(<[_]>::is_empty) || node.items().is_some_and(<[_]>::is_empty)
}

const ID_HELP: &str = "give the server a short name";

/// Parses the `name` of a server in a list; reports a missing one.
fn parse_name_field(name: &NullableField<String>, at: &Location, context: &ReadContext) -> Option<ServerId> {
    if !name.is_given() {
        let help = "add `name`: servers in a list have no keys";
        context.error(Code::MissingKey, &at.missing("name", context), "'name' is required", help);
        return None;
    }
    context.parse_id(name.value()?, &name.at.at_key(), ID_HELP)
}
