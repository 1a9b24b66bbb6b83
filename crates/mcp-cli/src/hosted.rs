//! A host around a command: servers start before it and stop after it, whatever happens in between.
//!
//! From the first signal on everything is on its way to the end: the servers are stopped politely, within the host's
//! grace. A second one waits for nothing; then the runtime's drop ends the children.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host::{
    Approval, DesiredServers, FileTokenStore, Host, HostOptions, LoginOptions, Logins, Supervision,
};
use mcp_model::LogLevel;
use mcp_transport::{ClientInfo, RegisteredClient, UserAgent};
use tokio::time::timeout;

use crate::exit::Exit;
use crate::signals::Signals;

/// How long servers are given to end by themselves.
const GRACE: Duration = Duration::from_secs(3);
/// How long their end is waited for in all; what is left then is ended with the runtime.
const AT_MOST: Duration = Duration::from_secs(15);

/// Starts the servers, does `work`, and stops them.
///
/// A command that wants one answer, and soon, takes [`Supervision::Off`]: what cannot be reached now is an answer.
pub(crate) async fn with(
    wanted: DesiredServers,
    (supervision, approval): (Supervision, Option<Approval>),
    signals: &mut Signals,
    work: impl AsyncFnOnce(&Host) -> Exit,
) -> Exit {
    let options = HostOptions { approval, ..options(supervision) };
    around(Host::start(options), wanted, signals, work).await
}

/// The same around a host that is there already.
pub(crate) async fn around(
    host: Host,
    wanted: DesiredServers,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&Host) -> Exit,
) -> Exit {
    let exit = tokio::select! {
        biased;
        signal = signals.next() => Exit::Signal(signal),
        exit = async {
            host.apply(wanted).await;
            work(&host).await
        } => exit,
    };
    stop(&host, exit, signals).await
}

/// Stops the servers of a host, and gives the end.
pub(crate) async fn stop(host: &Host, mut exit: Exit, signals: &mut Signals) -> Exit {
    let stopping = timeout(AT_MOST, host.shutdown());
    tokio::pin!(stopping);
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match exit {
                Exit::Signal(_) => return exit,
                Exit::Done | Exit::Wrong | Exit::Usage | Exit::Unreachable | Exit::Demo(_) => {
                    exit = Exit::Signal(signal);
                }
            },
            _ = &mut stopping => return exit,
        }
    }
}

/// How a host of this program is.
pub(crate) fn options(supervision: Supervision) -> HostOptions {
    let client = ClientInfo { name: "mcp-host".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    HostOptions {
        client,
        receipts: receipts(&|name| env::var_os(name)),
        own_executable: env::current_exe().ok(),
        grace: GRACE,
        supervision,
        // Whoever asks what is going on wants to know it from the servers, too.
        log_level: tracing::enabled!(tracing::Level::INFO).then_some(LogLevel::Debug),
        logins: logins(Asked::Nobody, None),
        ..HostOptions::default()
    }
}

/// Who is asked to agree where a server wants a login.
pub(crate) enum Asked {
    /// Nobody: what `login` has brought is used.
    Nobody,
    /// The user who waits for it.
    User(Arc<dyn UserAgent>),
}

/// The logins that are kept, and how to get more. `None` where there is no place to keep them.
pub(crate) fn logins(asked: Asked, client: Option<RegisteredClient>) -> Option<Logins> {
    let user = match asked {
        Asked::Nobody => None,
        Asked::User(user) => Some(user),
    };
    Some(Logins::new(LoginOptions {
        store: Arc::new(tokens()?),
        user,
        client_name: "mcp-host".to_owned(),
        client_metadata: None,
        client,
        hint: Arc::new(|server| format!("run `mcp-host login {server}`")),
    }))
}

/// Where logins are kept.
pub(crate) fn tokens() -> Option<FileTokenStore> {
    Some(FileTokenStore::new(state("logins", &|name| env::var_os(name))?))
}

/// Where process groups are written down, so that the next start finds what a sudden death leaves behind.
fn receipts(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    state("receipts", variable)
}

/// A place in this program's state folder.
pub(crate) fn state(name: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("mcp-host").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(state: Option<&str>, home: Option<&str>, want: Option<&str>) {
        let variable = |name: &str| match name {
            "XDG_STATE_HOME" => state.map(OsString::from),
            "HOME" => home.map(OsString::from),
            other => panic!("{other} is none of its business"),
        };
        assert_eq!(receipts(&variable), want.map(PathBuf::from));
    }

    #[test]
    fn receipts_lie_where_state_lies() {
        check(Some("/s"), Some("/h"), Some("/s/mcp-host/receipts"));
        check(None, Some("/h"), Some("/h/.local/state/mcp-host/receipts"));
        check(Some("s"), Some("/h"), Some("/h/.local/state/mcp-host/receipts"));
        check(None, Some("h"), None);
        check(None, None, None);
    }
}
