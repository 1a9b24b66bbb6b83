//! Waits for servers to start and shows progress meanwhile.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use mcp_host_runtime::{Host, HostSnapshot, ServerState};

use crate::output::progress::{ProgressDisplay, waiting_text};

/// The condition to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor<'a> {
    /// Every server.
    All,
    /// The tool with this exposed name; if no server has it, every server.
    Tool(&'a str),
}

/// The time after which the servers that are done are shown before the others.
pub(crate) const SHOW_AFTER: Duration = Duration::from_secs(2);
/// The time after which the progress text explains why a start may be slow.
const SLOW_START: Duration = Duration::from_secs(4);
/// The time after which a note names the awaited servers if there is no progress line.
pub(crate) const NOTE_AFTER: Duration = Duration::from_secs(20);

/// Waits until the condition holds or no server is starting any more.
pub(crate) async fn wait_for_servers(host: &Host, progress: &ProgressDisplay, condition: WaitFor<'_>) {
    wait_and_show(host, progress, condition, async |_| ControlFlow::Continue(())).await;
}

/// Waits like [`wait_for_servers`]. A wait of more than two seconds calls `show` with the state, then after
/// each change; the wait ends if `show` breaks it.
pub(crate) async fn wait_and_show(
    host: &Host,
    progress: &ProgressDisplay,
    condition: WaitFor<'_>,
    mut show: impl AsyncFnMut(&HostSnapshot) -> ControlFlow<()>,
) {
    let mut changes = host.subscribe();
    let ready = host.wait_until_ready();
    let _clear = progress.clear_on_drop();
    tokio::pin!(ready);
    let mut shown = None;
    let timers = [SHOW_AFTER, SLOW_START, NOTE_AFTER].map(tokio::time::sleep);
    let [show_after, slow_start, note_after] = timers;
    tokio::pin!(show_after, slow_start, note_after);
    let (mut is_showing, mut is_slow, mut is_noting) = (false, false, false);
    loop {
        let published = host.snapshot();
        if is_satisfied(&published, condition) {
            break;
        }
        if is_showing && show(&published).await.is_break() {
            break;
        }
        let text = progress_text(&published, is_slow);
        if let Some(text) = &text
            && shown.as_ref() != Some(&(text.clone(), is_noting))
        {
            progress.show(text);
            if is_noting {
                progress.note(&format!("still {text}"));
            }
        }
        shown = text.map(|text| (text, is_noting));
        tokio::select! {
            biased;
            () = &mut ready => break,
            () = &mut show_after, if !is_showing => is_showing = true,
            () = &mut slow_start, if !is_slow => is_slow = true,
            () = &mut note_after, if !is_noting => is_noting = true,
            changed = changes.changed() => if changed.is_err() { break },
        }
    }
}

/// Whether the tool exists and its name is final. A server that is still starting can take the name if it is configured
/// before the server of the tool.
fn is_satisfied(published: &HostSnapshot, condition: WaitFor<'_>) -> bool {
    let WaitFor::Tool(name) = condition else { return false };
    let Some(tool) = published.catalog.tool(name) else { return false };
    let before = published.servers.iter().take_while(|it| it.id != tool.server);
    before.into_iter().all(|it| it.state != ServerState::Starting)
}

/// The names of the servers that are starting.
pub(crate) fn starting_servers(published: &HostSnapshot) -> Vec<&str> {
    let starting = published.servers.iter().filter(|it| it.state == ServerState::Starting);
    starting.map(|it| it.id.as_str()).collect()
}

/// The progress text: `starting 2 of 5 servers: a, b`. `None` if no server is starting.
fn progress_text(published: &HostSnapshot, is_slow: bool) -> Option<String> {
    let names = starting_servers(published);
    if names.is_empty() {
        return None;
    }
    let starting = published.servers.iter().filter(|it| is_slow && it.state == ServerState::Starting);
    let launchers: BTreeSet<&str> = starting.filter_map(|it| it.launcher.as_deref()).collect();
    let reason = if launchers.is_empty() {
        String::new()
    } else {
        let launchers: Vec<&str> = launchers.into_iter().collect();
        format!(" (the first start with {} downloads the package)", launchers.join(" or "))
    };
    Some(waiting_text("starting", &names, published.servers.len()) + &reason)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host_registry::Catalog;

    use super::*;
    use crate::tests::published;

    #[track_caller]
    fn check(states: &[(&str, ServerState)], want: Option<&str>) {
        assert_eq!(progress_text(&published(states), false).as_deref(), want);
        assert_eq!(progress_text(&published(states), true).as_deref(), want);
    }

    /// RPT-115
    #[test]
    fn slow_start_is_explained_only_if_it_downloads_a_package() {
        let mut snapshot = published(&[("a", ServerState::Starting), ("b", ServerState::Ready)]);
        snapshot.servers[1].launcher = Some("uvx".to_owned());
        let usual = "starting 1 of 2 servers: a";
        assert_eq!(progress_text(&snapshot, true).as_deref(), Some(usual));
        snapshot.servers[0].launcher = Some("npx".to_owned());
        let want = format!("{usual} (the first start with npx downloads the package)");
        assert_eq!(progress_text(&snapshot, true), Some(want));
        assert_eq!(progress_text(&snapshot, false).as_deref(), Some(usual));
    }

    #[test]
    fn tool_is_available_once_earlier_servers_have_started() {
        use ServerState::{Ready, Starting};
        use mcp_host_model::{Exposure, NamePolicy, RawJson, ServerId, read_tools};
        use mcp_host_registry::{Builtins, CatalogServer, ServerLists};

        let json = r#"{"tools":[{"name":"t","inputSchema":{}}]}"#;
        let tools = read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().into_shared();
        let entry = CatalogServer::new(
            ServerId::parse("b").unwrap(),
            Exposure::all(NamePolicy::Reject),
            Arc::new(ServerLists::of_tools(tools)),
        );
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        let published = |[a, b, c]: [ServerState; 3]| {
            let mut snapshot = published(&[("a", a), ("b", b), ("c", c)]);
            snapshot.catalog = Arc::clone(&catalog);
            snapshot
        };
        assert!(is_satisfied(&published([Ready, Ready, Starting]), WaitFor::Tool("t")));
        assert!(!is_satisfied(&published([Starting, Ready, Ready]), WaitFor::Tool("t")));
        assert!(!is_satisfied(&published([Ready, Ready, Starting]), WaitFor::Tool("u")));
        assert!(!is_satisfied(&published([Ready, Ready, Starting]), WaitFor::All));
    }

    #[test]
    fn only_starting_servers_are_listed() {
        use ServerState::{Failed, Ready, Starting};
        check(&[("a", Starting), ("b", Ready), ("c", Starting)], Some("starting 2 of 3 servers: a, c"));
        check(&[("a", Starting)], Some("starting a"));
        check(&[("a", Failed), ("b", Ready)], None);
        check(&[], None);
    }
}
