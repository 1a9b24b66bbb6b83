//! The wait for servers to start, and what is shown meanwhile.

use mcp_host::{Host, Published, ServerState};

use crate::output::progress::Progress;

/// Waits until no server is being started any more.
pub(crate) async fn started(host: &Host, progress: &Progress) {
    let mut changes = host.subscribe();
    let ready = host.ready();
    tokio::pin!(ready);
    let mut shown = None;
    loop {
        let now = waiting(&host.published());
        if now != shown {
            if let Some(text) = &now {
                progress.say(text);
            }
            shown = now;
        }
        tokio::select! {
            biased;
            () = &mut ready => break,
            changed = changes.changed() => if changed.is_err() { break },
        }
    }
    progress.clear();
}

/// Who is waited for: `starting 2 of 5 servers: a, b`.
fn waiting(published: &Published) -> Option<String> {
    let servers = &published.servers;
    let names: Vec<&str> =
        servers.iter().filter(|it| it.state == ServerState::Starting).map(|it| it.id.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!("starting {} of {} servers: {}", names.len(), servers.len(), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host::ServerStatus;
    use mcp_registry::Catalog;

    use super::*;

    #[track_caller]
    fn check(states: &[(&str, ServerState)], want: Option<&str>) {
        let status = |(id, state): &(&str, ServerState)| ServerStatus {
            id: (*id).into(),
            state: *state,
            era: None,
            failure: None,
        };
        let published = Published {
            generation: 1,
            catalog: Arc::new(Catalog::empty()),
            servers: states.iter().map(status).collect(),
            problems: Vec::new(),
        };
        assert_eq!(waiting(&published).as_deref(), want);
    }

    #[test]
    fn only_those_that_start_are_waited_for() {
        use ServerState::{Failed, Ready, Starting};
        check(&[("a", Starting), ("b", Ready), ("c", Starting)], Some("starting 2 of 3 servers: a, c"));
        check(&[("a", Failed), ("b", Ready)], None);
        check(&[], None);
    }
}
