//! Lowers and checks the lists of an entry: arguments, variables and headers.

use std::collections::HashMap;

use mcp_host_model::{ConfigValue, Severity};

use crate::de::{Field, Location, NullableField, ReadContext};
use crate::diagnostic::{CheckError, Code, quoted};
use crate::dialect::acp::wire::AcpPair;
use crate::dialect::{checks, lowering};

/// A list of pairs of a name and a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairKind {
    /// `env`.
    Environment,
    /// `headers`.
    Headers,
}

/// Lowers the arguments of the program.
pub(super) fn lower_args(args: NullableField<Vec<Field<String>>>, context: &ReadContext) -> Vec<ConfigValue> {
    let mut res = Vec::new();
    for slot in args.into_value().unwrap_or_default() {
        if let Some(text) = slot.value() {
            context.report_check(&slot.at, checks::check_argument(text));
        }
        res.extend(slot.into_value().map(ConfigValue::literal));
    }
    res
}

/// Lowers names and values in list order. `server` is the name of the server in messages (ACP-024, ACP-025).
pub(super) fn lower_pairs(
    list: NullableField<Vec<Field<AcpPair>>>,
    kind: PairKind,
    server: &str,
    context: &ReadContext,
) -> Vec<(String, ConfigValue)> {
    let mut res = Vec::new();
    let mut seen: HashMap<String, Location> = HashMap::new();
    for slot in list.into_value().unwrap_or_default() {
        let Some(AcpPair { name, value }) = slot.into_value() else { continue };
        let text = name.value().cloned().unwrap_or_default();
        if name.value().is_some() {
            check_name(&text, kind, &name.at, server, context);
            warn_if_repeated(&text, kind, &name.at, &mut seen, context);
        }
        if let Some(text) = value.value() {
            let check = match kind {
                PairKind::Environment => checks::check_env_value,
                PairKind::Headers => checks::check_header_value,
            };
            context.report_check(&value.at, check(text));
        }
        if let (Some(name), Some(value)) = (name.into_value(), value.into_value()) {
            res.push((name, ConfigValue::literal(value)));
        }
    }
    res
}

/// Reports an invalid name.
fn check_name(name: &str, kind: PairKind, at: &Location, server: &str, context: &ReadContext) {
    if name.is_empty() {
        // These words are part of the message of existing agents (ACPX-01).
        let what = match kind {
            PairKind::Environment => "environment variable",
            PairKind::Headers => "HTTP header",
        };
        let message = format!("{server} {what} name cannot be empty");
        context.error(Code::EmptyValue, at, message, "give it a name, or remove it");
        return;
    }
    let checked = match kind {
        PairKind::Environment => checks::check_env_name(name).map_err(|it| CheckError {
            help: "write the name as `name`, and what it is set to as `value`",
            ..it
        }),
        PairKind::Headers => checks::check_header_name(name),
    };
    if context.report_check(at, checked) && kind == PairKind::Headers {
        lowering::report_owned_header(name, at, context);
    }
}

/// Warns about a repeated name: the last value of a variable counts, and all values of a header are sent.
fn warn_if_repeated(
    name: &str,
    kind: PairKind,
    at: &Location,
    seen: &mut HashMap<String, Location>,
    context: &ReadContext,
) {
    let (key, what, outcome) = match kind {
        PairKind::Environment => (name.to_owned(), "variable", "the last one counts; remove the others"),
        PairKind::Headers => {
            (name.to_ascii_lowercase(), "header", "each of them is sent; remove one unless that is intended")
        }
    };
    if let Some(first) = seen.get(&key) {
        // A name that contains a value (`KEY=value`) is not quoted; it is already an error.
        let shown = if name.contains('=') { "this name".to_owned() } else { format!("'{}'", quoted(name)) };
        let diagnostic =
            context.new_diagnostic(Code::RepeatedName, at, format!("the {what} {shown} appears twice"));
        let diagnostic = diagnostic.label(first.span(context), "it is first used here").help(outcome);
        context.report(diagnostic.severity(Severity::Warning));
        return;
    }
    seen.insert(key, *at);
}
