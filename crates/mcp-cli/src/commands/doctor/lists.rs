//! What a server offers, list by list; and whether its tools can be used as they are.

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::Tool;
use mcp_registry::{ListKind, ServerLists};
use mcp_transport::{CallError, Listing, Session};
use tokio::time::{Instant, timeout_at};

use super::Outcome;
use super::examine::{Course, Said};
use crate::commands::schemas::unusable;
use crate::context::blocking;

/// A limit longer than this is none that anybody waits for, and might be more than the clock can count.
const LONGEST: Duration = Duration::from_secs(60 * 60 * 24);
/// What to do about what a server offers and cannot be used.
const MEND: &str = "only the server's authors can mend it: tell them, or take another version; what is sound can be used all the same";

/// The time that a start has, and when it is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    deadline: Instant,
    limit: Duration,
}

impl Allowed {
    /// A start that begins now.
    pub(super) fn from_now(limit: Duration) -> Allowed {
        let limit = limit.min(LONGEST);
        Allowed { deadline: Instant::now() + limit, limit }
    }
}

/// What came of reading one list.
struct Read<T> {
    said: Said,
    items: Vec<T>,
}

/// What was read of a server.
#[derive(Default)]
pub(super) struct Offered {
    pub(super) lists: ServerLists,
    /// Which of them were read.
    pub(super) read: Vec<ListKind>,
}

/// Reads the lists that a host would read, one after the other, within what is left of the start.
pub(super) async fn lists(
    course: &mut Course,
    server: &ResolvedServer,
    session: &Session,
    allowed: Allowed,
) -> Option<Offered> {
    let discovery = server.spec.discovery;
    let mut res = Offered::default();
    match discovery.tools {
        false => course.step("tools", Said::done("not asked for: `load_tools` is false"))?,
        true => {
            let Read { said, items } = listed("tool", allowed, session.list_tools()).await;
            res.lists.tools = items.iter().cloned().map(Arc::new).collect();
            res.read.push(ListKind::Tool);
            let said = match said.outcome {
                Outcome::Done => usable(said, items).await,
                Outcome::Doubtful | Outcome::Failed(_) => said,
            };
            course.step("tools", said)?;
        }
    }
    // A server whose prompts or resources cannot be listed has its tools all the same.
    let lenient = |said: Said| match said.outcome {
        Outcome::Failed(_) => Said { outcome: Outcome::Doubtful, ..said },
        Outcome::Done | Outcome::Doubtful => said,
    };
    match discovery.prompts {
        false => course.step("prompts", Said::done("not asked for: `load_prompts` is false"))?,
        true => {
            let Read { said, items } = listed("prompt", allowed, session.list_prompts()).await;
            res.lists.prompts = items.into_iter().map(Arc::new).collect();
            res.read.extend(is_read(&said).then_some(ListKind::Prompt));
            course.step("prompts", lenient(said))?;
        }
    }
    let Read { said, items } = listed("resource", allowed, session.list_resources()).await;
    // Templates have no step of their own: few servers have any.
    let templates = listed("template", allowed, session.list_resource_templates()).await;
    res.lists.resources = items.into_iter().map(Arc::new).collect();
    res.lists.templates = templates.items.into_iter().map(Arc::new).collect();
    res.read.extend((is_read(&said) && is_read(&templates.said)).then_some(ListKind::Resource));
    course.step("resources", lenient(said))?;
    Some(res)
}

/// Was the list read, whatever is wrong with what stands in it?
fn is_read(said: &Said) -> bool {
    match said.outcome {
        Outcome::Done | Outcome::Doubtful => true,
        Outcome::Failed(_) => false,
    }
}

async fn listed<T>(
    item: &str,
    allowed: Allowed,
    list: impl Future<Output = Result<Listing<T>, CallError>>,
) -> Read<T> {
    let none = |said| Read { said, items: Vec::new() };
    let Listing { items, rejected, .. } = match timeout_at(allowed.deadline, list).await {
        Ok(Ok(listing)) => listing,
        Ok(Err(error)) => {
            return none(Said::failed(format!("its {item}s cannot be listed: {error}"), error.help()));
        }
        Err(_) => {
            let limit = allowed.limit.as_secs_f64();
            let what = format!("its {item}s were not listed within the {limit} s that a start has");
            let help = "raise the start-up limit if the server is merely slow";
            return none(Said::failed(what, Some(help.to_owned())));
        }
    };
    let plural = match items.len() {
        1 => format!("1 {item}"),
        count => format!("{count} {item}s"),
    };
    let said = match rejected.first() {
        None => Said::done(plural),
        Some(first) => {
            let name = first.name.as_deref().map(|it| format!(" `{it}`")).unwrap_or_default();
            let more = match rejected.len() {
                1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            let what = format!("the {item}{name} is malformed: {}{more}; {plural} can be read", first.reason);
            Said::doubtful(what, MEND)
        }
    };
    Read { said, items }
}

/// The same, unless a tool has a schema that cannot be used.
async fn usable(said: Said, tools: Vec<Tool>) -> Said {
    let first = move || {
        let found = unusable(tools.iter()).next();
        found.map(|(at, reason)| (tools[at].name.to_string(), reason))
    };
    match blocking(first).await {
        None => said,
        Some((name, reason)) => Said::doubtful(
            format!("the schema of the tool `{name}` cannot be used: {reason}; {}", said.message),
            MEND,
        ),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_one_list_has_taken_the_next_has_no_more() {
        let allowed = Allowed::from_now(Duration::from_secs(10));
        let slow = || async {
            sleep(Duration::from_secs(6)).await;
            Ok(Listing::<Tool>::empty())
        };
        assert_eq!(listed("tool", allowed, slow()).await.said.message, "0 tools");
        let said = listed("prompt", allowed, slow()).await.said;
        assert_eq!(said.message, "its prompts were not listed within the 10 s that a start has");
        assert!(said.help.is_some_and(|it| it.contains("start-up limit")));
    }
}
