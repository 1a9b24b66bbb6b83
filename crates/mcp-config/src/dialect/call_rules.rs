//! Rules for calls in the entries of all dialects: the key `calls`.

use mcp_host_model::CallRule;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, Location, ReadContext};
use crate::diagnostic::Code;
use crate::syntax::Node;
use crate::syntax::output::OutputValue;

/// The key.
pub(crate) const CALLS: &str = "calls";

/// The maximum number of rules of an entry.
const MAX_RULES: usize = 1000;

const HELP: &str = "write `allow`, `ask` or `deny`, then any of `tools=a,b*`, `hints=reads,writes,destructive` and \
    `users=…`, such as `ask hints=destructive`";

/// One rule, such as `deny tools=delete_*`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct CallRuleText(
    #[schemars(regex(
        pattern = r"^\s*(allow|ask|deny)(\s+(tools|users)=\S+|\s+hints=(reads|writes|destructive)(,(reads|writes|destructive))*)*\s*$"
    ))]
    String,
);

/// Lowers the rules of an entry. One that is invalid is an error, because a rule that is left out could allow a call.
pub(crate) fn lower(list: Option<Vec<Field<CallRuleText>>>, context: &ReadContext) -> Vec<CallRule> {
    let list = list.unwrap_or_default();
    if let Some(excess) = list.get(MAX_RULES) {
        let message = format!("an entry has at most {MAX_RULES} rules for calls");
        context.error(Code::OutOfRange, &excess.at, message, "use patterns");
    }
    let rules = list.into_iter().take(MAX_RULES).filter_map(|slot| {
        let at = slot.at;
        parse(&slot.into_value()?.0, &at, context)
    });
    rules.collect()
}

/// Lowers rules that are the items of a list. Anything else is an error.
pub(crate) fn lower_node(node: &Node, at: &Location, context: &ReadContext) -> Vec<CallRule> {
    let texts: Option<Vec<&str>> =
        node.items().map(|it| it.iter().map(Node::text).collect()).unwrap_or_default();
    match texts {
        Some(texts) if texts.len() <= MAX_RULES => {
            texts.into_iter().filter_map(|it| parse(it, at, context)).collect()
        }
        Some(_) | None => {
            let message = format!("the rules for calls are a list of at most {MAX_RULES} texts");
            context.error(Code::WrongType, at, message, HELP);
            Vec::new()
        }
    }
}

fn parse(text: &str, at: &Location, context: &ReadContext) -> Option<CallRule> {
    match text.parse::<CallRule>() {
        Ok(rule) if rule.servers.is_empty() => Some(rule),
        Ok(_) => {
            let message = "the rules of an entry are for its own server, so they name no servers";
            context.error(Code::UnknownWord, at, message, "remove `servers=`");
            None
        }
        Err(error) => {
            context.error(Code::UnknownWord, at, format!("a rule for calls is invalid: {error}"), HELP);
            None
        }
    }
}

/// The member `calls`, if there are rules.
pub(crate) fn member(rules: &[CallRule]) -> Option<(String, OutputValue)> {
    let texts = || rules.iter().map(|it| OutputValue::text(it.to_string())).collect();
    (!rules.is_empty()).then(|| (CALLS.to_owned(), OutputValue::List(texts())))
}
