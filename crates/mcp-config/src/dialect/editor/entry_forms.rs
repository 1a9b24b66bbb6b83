//! Writes an entry in the form of a program that has keys of its own and refuses or ignores all others.

use mcp_host_model::{StartLimit, TemplatePart, TransportKind};

use crate::dialect::editor::conventions::{EntryForm, Program, UrlTransport};
use crate::dialect::editor::keys::{self, EntryField, EntryKey};
use crate::dialect::write::common;
use crate::dialect::write::report::WriteReport;
use crate::syntax::output::{OutputMembers, OutputValue};
use crate::syntax::template::{ReferenceRule, split_references};

/// The rules of an [`EntryForm`] beyond the table of keys.
struct FormRules {
    /// Common keys that have another path in this form, each with this path.
    moved_keys: &'static [(&'static str, &'static str)],
    /// The value of `type` for a program to start. If it is empty, no `type` is written.
    stdio_type: &'static str,
    /// The value of `type` for Streamable HTTP. If it is empty, no `type` is written.
    http_type: &'static str,
    /// The value of `type` for server-sent events, if the program connects over them.
    sse_type: Option<&'static str>,
    /// Why the other transports are unsupported, as it is written after the name of the program.
    unsupported_reason: &'static str,
}

const CODEX: FormRules = FormRules {
    moved_keys: &[],
    stdio_type: "",
    http_type: "",
    sse_type: None,
    unsupported_reason: "connects over stdio and Streamable HTTP only",
};

const OPENCODE: FormRules = FormRules {
    moved_keys: &[("args", "command"), ("env", "environment"), ("requestTimeout", "timeout")],
    stdio_type: "local",
    http_type: "remote",
    sse_type: Some("remote"),
    unsupported_reason: "does not connect over WebSocket",
};

const GOOSE: FormRules = FormRules {
    moved_keys: &[("requestTimeout", "timeout"), ("includeTools", "available_tools")],
    stdio_type: "stdio",
    http_type: "streamable_http",
    sse_type: None,
    unsupported_reason: "connects over stdio and Streamable HTTP only",
};

const CONTINUE: FormRules = FormRules {
    moved_keys: &[("headers", "requestOptions/headers")],
    stdio_type: "",
    http_type: "streamable-http",
    sse_type: Some("sse"),
    unsupported_reason: "does not connect over WebSocket",
};

/// The rules of a form; `None` for the common form.
fn form_rules(form: EntryForm) -> Option<&'static FormRules> {
    match form {
        EntryForm::Common => None,
        EntryForm::Opencode => Some(&OPENCODE),
        EntryForm::Codex => Some(&CODEX),
        EntryForm::Goose => Some(&GOOSE),
        EntryForm::Continue => Some(&CONTINUE),
    }
}

/// The path of a common key in a form: a key, or two keys with a `/`. `None` if the form does not have it.
fn key_path(form: EntryForm, key: &EntryKey) -> Option<&'static str> {
    if let Some((_, path)) = form_rules(form)?.moved_keys.iter().find(|it| it.0 == key.name) {
        return Some(path);
    }
    if key.forms.contains(&form) {
        return Some(key.name);
    }
    let mut same = keys::of_field(key.field).filter(|it| it.field != EntryField::Kept);
    same.find(|it| it.forms.contains(&form)).map(|it| it.name)
}

impl Program {
    /// The path of a field of the common form in an entry of this program, if it is another one than in the common
    /// form.
    pub(crate) fn path_of(&self, field: &str) -> Option<&'static str> {
        let key = keys::find(field).filter(|it| it.is_primary())?;
        key_path(self.entry_form, key).filter(|it| *it != field)
    }

    /// Rewrites an entry of the common form for this program: its keys and its variables. Returns the entry, and the
    /// ids of the inputs that the program prompts for. `None` if the program does not support the transport, which is
    /// reported.
    pub(crate) fn adapt_entry(
        &self,
        name: &str,
        entry: OutputValue,
        report: &mut WriteReport<'_>,
    ) -> Option<(OutputValue, Vec<String>)> {
        let OutputValue::Map(mut members) = entry else { return Some((entry, Vec::new())) };
        join_start_limit(self, &mut members);
        let mut members = rewrite_entry(self, name, members, report)?;
        declare_http(self.url_transport, &mut members);
        let ids = self.rewrite_references(members.iter_mut().map(|(key, value)| (&**key, value)), report);
        Some((OutputValue::Map(members), ids))
    }
}

/// Rewrites the keys of an entry of the common form. `None` if the program does not support the transport, which is
/// reported.
fn rewrite_entry(
    program: &Program,
    name: &str,
    mut members: OutputMembers,
    report: &mut WriteReport<'_>,
) -> Option<OutputMembers> {
    let form = program.entry_form;
    let Some(FormRules { moved_keys: _, stdio_type, http_type, sse_type, unsupported_reason }) =
        form_rules(form)
    else {
        return Some(members);
    };
    let mut take = |key: &str| {
        let index = members.iter().position(|it| it.0 == key)?;
        Some(members.remove(index).1)
    };
    let kind = take("type");
    let mut res = Vec::new();
    let mut command = take("command");
    let word = match kind {
        _ if command.is_some() => Some(*stdio_type),
        Some(kind) if kind == OutputValue::text(TransportKind::Sse.as_str()) => *sse_type,
        Some(kind) if kind == OutputValue::text(TransportKind::WebSocket.as_str()) => None,
        Some(_) | None => Some(*http_type),
    };
    let Some(word) = word else {
        return report.omit_server("transport", format!("{} {unsupported_reason}", program.name));
    };
    if !word.is_empty() {
        res.push(("type".to_owned(), OutputValue::text(word)));
    }
    let request_timeout = match form {
        EntryForm::Codex => take("requestTimeout").and_then(codex_request_timeout),
        EntryForm::Common | EntryForm::Opencode | EntryForm::Goose | EntryForm::Continue => None,
    };
    for key in keys::KEYS.iter().filter(|it| it.is_primary()) {
        let Some(path) = key_path(form, key) else { continue };
        let value = if key.field == EntryField::Command { command.take() } else { take(key.name) };
        let Some(value) = value else { continue };
        let (key, value) = match path.split_once('/') {
            Some((outer, inner)) => (outer, OutputValue::Map(vec![(inner.to_owned(), value)])),
            None => (path, value),
        };
        match (res.iter_mut().find(|it| it.0 == key), value) {
            // opencode: the program and its arguments are one list.
            (Some((_, OutputValue::List(there))), OutputValue::List(items)) => there.extend(items),
            (Some(_), _) => {}
            (None, value) if form == EntryForm::Opencode && key == "command" => {
                res.push((key.to_owned(), OutputValue::List(vec![value])));
            }
            (None, value) => res.push((key.to_owned(), value)),
        }
    }
    res.extend(request_timeout);
    for (key, _) in members {
        report.add_omitted(key, format!("{} has no such key", program.name));
    }
    match form {
        EntryForm::Goose => Some(rewrite_for_goose(name, res)),
        EntryForm::Codex => Some(rewrite_for_codex(res)),
        EntryForm::Common | EntryForm::Opencode | EntryForm::Continue => Some(res),
    }
}

/// Joins the timeouts of a start and of a request for a program that has one key for both (RPT-110).
fn join_start_limit(program: &Program, members: &mut OutputMembers) {
    let milliseconds = |key: &str, unit: f64| match members.iter().find(|it| it.0 == key) {
        Some((_, OutputValue::Scalar(text))) => text.parse::<f64>().ok().map(|it| it * unit),
        Some(_) | None => None,
    };
    let other = match program.start_limit {
        StartLimit::Key("timeout") => "requestTimeout",
        StartLimit::Key("connectionTimeout") => "connectionTimeout",
        StartLimit::Key(_) | StartLimit::Variable(_) => return,
    };
    let start = keys::primary_name(EntryField::StartSeconds);
    let Some(limit) = milliseconds(start, 1000.0).filter(|it| milliseconds(other, 1.0) == Some(*it)) else {
        return;
    };
    let is_common = program.entry_form == EntryForm::Common;
    // Smaller numbers may be seconds.
    if is_common && limit <= 3600.0 {
        return;
    }
    members.retain(|it| it.0 != start);
    // Such a program has `timeout` in place of `requestTimeout`.
    for (key, _) in members.iter_mut().filter(|it| is_common && it.0 == "requestTimeout") {
        "timeout".clone_into(key);
    }
}

/// The member of Codex for a timeout of requests in milliseconds.
fn codex_request_timeout(milliseconds: OutputValue) -> Option<(String, OutputValue)> {
    let OutputValue::Scalar(text) = milliseconds else { return None };
    let seconds = text.parse::<f64>().ok()? / 1000.0;
    Some((keys::primary_name(EntryField::RequestSeconds).to_owned(), OutputValue::scalar(seconds)))
}

/// Declares Streamable HTTP for a program that would connect to a bare `url` over server-sent events.
fn declare_http(default: UrlTransport, members: &mut OutputMembers) {
    let kind = members.iter().position(|it| it.0 == "type");
    let http = OutputValue::text(TransportKind::Http.as_str());
    let is_http = kind.is_none_or(|it| members[it].1 == http);
    let Some(url) = members.iter().position(|it| it.0 == "url").filter(|_| is_http) else { return };
    match default {
        UrlTransport::SseUnlessDeclared if kind.is_none() => {
            members.insert(url, ("type".to_owned(), OutputValue::text("streamable-http")));
        }
        UrlTransport::SseUnlessHttpUrl => {
            "httpUrl".clone_into(&mut members[url].0);
            members.retain(|it| it.0 != "type");
        }
        UrlTransport::SseUnlessDeclared | UrlTransport::HttpUnlessDeclared | UrlTransport::HttpThenSse => {}
    }
}

/// Moves variables of the form `NAME: ${NAME}` from `env` to a list of names under `key` of `out`.
fn move_variables(key: &str, env: &mut OutputMembers, out: &mut OutputMembers) {
    let is_passed_through =
        |(name, value): &mut (String, OutputValue)| *value == OutputValue::text(format!("${{{name}}}"));
    let names = env.extract_if(.., is_passed_through).map(|it| OutputValue::Text(it.0)).collect();
    common::push_non_empty(out, key, OutputValue::List(names));
}

/// Splits a text into texts and references. Any other value has none.
fn value_parts(value: &OutputValue) -> Vec<TemplatePart> {
    match value {
        OutputValue::Text(text) => split_references(text, ReferenceRule::Editor),
        OutputValue::Scalar(_) | OutputValue::List(_) | OutputValue::Map(_) => Vec::new(),
    }
}

/// Moves variables to the keys that Codex has for their names, because it replaces no references.
fn rewrite_for_codex(members: OutputMembers) -> OutputMembers {
    let (mut res, mut variables) = (Vec::new(), Vec::new());
    for (key, mut value) in members {
        match (&*key, &mut value) {
            ("env", OutputValue::Map(env)) => move_variables("env_vars", env, &mut variables),
            ("http_headers", OutputValue::Map(headers)) => {
                let mut named = Vec::new();
                headers.retain(|(name, value)| match &value_parts(value)[..] {
                    [TemplatePart::Variable(variable)] => {
                        named.push((name.clone(), OutputValue::text(variable)));
                        false
                    }
                    [TemplatePart::Text(text), TemplatePart::Variable(variable)]
                        if text.expose() == "Bearer " && name.eq_ignore_ascii_case("authorization") =>
                    {
                        variables.push(("bearer_token_env_var".to_owned(), OutputValue::text(variable)));
                        false
                    }
                    _ => true,
                });
                common::push_non_empty(&mut variables, "env_http_headers", OutputValue::Map(named));
            }
            (_, _) => {}
        }
        if value != OutputValue::Map(Vec::new()) {
            res.push((key, value));
        }
    }
    res.append(&mut variables);
    res
}

/// Adds the keys that Goose requires. It takes the variables of `env_keys` from its own store or the environment, and
/// replaces them in headers. The keys that describe the entry come first.
fn rewrite_for_goose(name: &str, members: OutputMembers) -> OutputMembers {
    let is_stdio = members.iter().any(|it| it.0 == "cmd");
    let mut res: OutputMembers = vec![("enabled".to_owned(), OutputValue::scalar(true))];
    let (mut rest, mut variables) = (Vec::new(), Vec::new());
    for (key, mut value) in members {
        match (&*key, &mut value) {
            ("envs", OutputValue::Map(envs)) => move_variables("env_keys", envs, &mut variables),
            ("headers", OutputValue::Map(headers)) => {
                let names = headers.iter().flat_map(|it| value_parts(&it.1)).filter_map(|it| match it {
                    TemplatePart::Variable(name) | TemplatePart::OptionalVariable(name) => {
                        Some(OutputValue::text(name))
                    }
                    TemplatePart::Text(_)
                    | TemplatePart::VariableOr { .. }
                    | TemplatePart::Input(_)
                    | TemplatePart::File(_)
                    | TemplatePart::Secret(_) => None,
                });
                let names = OutputValue::List(names.collect());
                common::push_non_empty(&mut variables, "env_keys", names);
            }
            // Goose has whole seconds.
            ("timeout", OutputValue::Scalar(milliseconds)) => {
                let seconds = milliseconds.parse().map_or(0.0, |it: f64| (it / 1000.0).ceil());
                *milliseconds = seconds.to_string();
            }
            (_, _) => {}
        }
        let target = if matches!(&*key, "type" | "description") { &mut res } else { &mut rest };
        if value != OutputValue::Map(Vec::new()) {
            target.push((key, value));
        }
    }
    let required = [
        ("name", OutputValue::text(name)),
        ("description", OutputValue::text("")),
        ("args", OutputValue::List(Vec::new())),
    ];
    for (key, value) in required {
        let is_there = res.iter().chain(&rest).any(|it| it.0 == key);
        if !is_there && (is_stdio || key != "args") {
            let place = if key == "args" { &mut rest } else { &mut res };
            place.push((key.to_owned(), value));
        }
    }
    res.append(&mut rest);
    res.append(&mut variables);
    res
}
