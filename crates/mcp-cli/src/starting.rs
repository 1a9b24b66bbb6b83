//! The wait for servers to start, and what is shown meanwhile.

use std::time::Duration;

use mcp_host::{Host, HostSnapshot, ServerState};

use crate::output::progress::Progress;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanting<'a> {
    /// Every server.
    All,
    /// The tool of this exposed name; when nobody has it, every server.
    Tool(&'a str),
}

/// How long a start may take before it is explained.
const PATIENCE: Duration = Duration::from_secs(4);

/// How a start goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Usual,
    /// Somebody may wonder what is going on.
    Slow,
}

/// Waits until what is wanted is there, or no server is being started any more.
pub(crate) async fn started(host: &Host, progress: &Progress, wanting: Wanting<'_>) {
    let mut changes = host.subscribe();
    let ready = host.ready();
    let _ongoing = progress.until_dropped();
    tokio::pin!(ready);
    let mut shown = None;
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(patience);
    let mut pace = Pace::Usual;
    loop {
        let published = host.snapshot();
        if is_there(&published, wanting) {
            break;
        }
        let now = waiting(&published, pace);
        if now != shown {
            if let Some(text) = &now {
                progress.say(text);
            }
            shown = now;
        }
        tokio::select! {
            biased;
            () = &mut ready => break,
            () = &mut patience, if pace == Pace::Usual => pace = Pace::Slow,
            changed = changes.changed() => if changed.is_err() { break },
        }
    }
}

/// Is the wanted tool there, and can no server that still starts take its name? Those before its own in the
/// configuration could.
fn is_there(published: &HostSnapshot, wanting: Wanting<'_>) -> bool {
    let Wanting::Tool(name) = wanting else { return false };
    let Some(tool) = published.catalog.tool(name) else { return false };
    let before = published.servers.iter().take_while(|it| it.id != tool.server.as_str());
    before.into_iter().all(|it| it.state != ServerState::Starting)
}

/// Who is waited for: `starting 2 of 5 servers: a, b`.
fn waiting(published: &HostSnapshot, pace: Pace) -> Option<String> {
    let servers = &published.servers;
    let names: Vec<&str> =
        servers.iter().filter(|it| it.state == ServerState::Starting).map(|it| it.id.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let words = format!("starting {} of {} servers: {}", names.len(), servers.len(), names.join(", "));
    Some(match pace {
        Pace::Usual => words,
        Pace::Slow => words + " (a first start by npx, uvx or docker downloads the package)",
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_registry::Catalog;

    use super::*;
    use crate::fixture::published;

    #[track_caller]
    fn check(states: &[(&str, ServerState)], want: Option<&str>) {
        assert_eq!(waiting(&published(states), Pace::Usual).as_deref(), want);
        let slow = waiting(&published(states), Pace::Slow);
        let because = " (a first start by npx, uvx or docker downloads the package)";
        assert_eq!(slow, want.map(|it| format!("{it}{because}")));
    }

    #[test]
    fn a_tool_is_there_when_no_server_before_its_own_can_take_its_name() {
        use ServerState::{Ready, Starting};
        use mcp_model::{Exposure, NamePolicy, RawJson, ServerId, read_tools};
        use mcp_registry::{Builtins, ServerEntry, ServerLists};

        let json = r#"{"tools":[{"name":"t","inputSchema":{}}]}"#;
        let tools = read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().into_shared();
        let entry = ServerEntry {
            id: ServerId::parse("b").unwrap(),
            exposure: Exposure::all(NamePolicy::Reject),
            lists: Arc::new(ServerLists { tools, ..ServerLists::default() }),
        };
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        let published = |[a, b, c]: [ServerState; 3]| HostSnapshot {
            catalog: Arc::clone(&catalog),
            ..published(&[("a", a), ("b", b), ("c", c)])
        };
        assert!(is_there(&published([Ready, Ready, Starting]), Wanting::Tool("t")));
        assert!(!is_there(&published([Starting, Ready, Ready]), Wanting::Tool("t")));
        assert!(!is_there(&published([Ready, Ready, Starting]), Wanting::Tool("u")));
        assert!(!is_there(&published([Ready, Ready, Starting]), Wanting::All));
    }

    #[test]
    fn only_those_that_start_are_waited_for() {
        use ServerState::{Failed, Ready, Starting};
        check(&[("a", Starting), ("b", Ready), ("c", Starting)], Some("starting 2 of 3 servers: a, c"));
        check(&[("a", Failed), ("b", Ready)], None);
        check(&[], None);
    }
}
