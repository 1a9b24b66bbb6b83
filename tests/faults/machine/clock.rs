//! A wall clock that jumps: timers use the monotonic clock, and stored data does not rely on the order of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use mcp_host_model::{Limits, RawJson, Secret};
use mcp_host_oauth::{Grant, RegisteredClient, TokenStore};
use mcp_host_runtime::{
    DesiredServers, FileTokenStore, Host, HostEventKind, HostOptions, NotificationStreamItem, ToolCall,
};
use mcp_tests::faults::{BACK, FORWARD, LATEST, RUNNING, Transport};
use serde_json::Value;

use super::check;
use crate::host::resolved_server;
use crate::peer::Faulty;

const YEAR: i64 = 365 * 24 * 60 * 60;

/// A clock with this offset in seconds.
fn clock(off: &Arc<AtomicI64>) -> Arc<dyn Fn() -> SystemTime + Send + Sync> {
    let off = Arc::clone(off);
    Arc::new(move || {
        let seconds = off.load(Ordering::SeqCst);
        let by = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { SystemTime::now() - by } else { SystemTime::now() + by }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_117_clock_jump_ends_no_session() {
    let faulty = Faulty::start();
    let off = Arc::new(AtomicI64::new(0));
    let host = Host::start({
        let mut res = HostOptions::default();
        res.telemetry.wall_clock = clock(&off);
        res
    });
    let servers = vec![resolved_server(
        "there",
        faulty.endpoint(Transport::Stdio, "clock", "start=well"),
        Limits::default(),
    )];
    host.apply(DesiredServers::new(servers)).await;
    host.wait_until_ready().await;
    for (fault, seconds) in [(FORWARD, 10 * YEAR), (BACK, -10 * YEAR)] {
        let mut events = host.events();
        off.store(seconds, Ordering::SeqCst);
        // Any event makes the host read its clocks.
        host.set_views(Vec::new()).await;
        for _ in 0..3 {
            let result = host.call(ToolCall::new("there__other", RawJson::empty_object())).await;
            assert!(result.success, "{result:?}");
        }
        let lost = std::iter::from_fn(|| events.try_next()).any(|it| match it {
            NotificationStreamItem::Notification(event) => {
                matches!(event.kind, HostEventKind::ConnectionLost(_))
            }
            NotificationStreamItem::Lagged(_) => panic!("events were dropped"),
        });
        assert!(!lost);
        check(fault, RUNNING, "it responds and is not restarted");
    }
    host.shutdown().await;
}

#[test]
fn hd_117_last_stored_login_is_used() {
    let resource = "https://a.example/mcp";
    let grant = |issuer: &str| {
        Grant::new(
            resource.parse().unwrap(),
            issuer.to_owned(),
            RegisteredClient::new("c"),
            Secret::from("t"),
        )
    };
    // The clock had this offset when the first login was stored.
    for (fault, years) in [(FORWARD, -10), (BACK, 10)] {
        let place = tempfile::tempdir().unwrap();
        let logins = FileTokenStore::new(place.path());
        logins.save(&grant("one")).unwrap();
        let file = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
        let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let off = i128::from(YEAR * years) * 1_000_000_000;
        kept["saved"] = u64::try_from(i128::from(kept["saved"].as_u64().unwrap()) + off).unwrap().into();
        std::fs::write(&file, kept.to_string()).unwrap();
        logins.save(&grant("two")).unwrap();
        let latest = logins.latest(&resource.parse().unwrap()).unwrap();
        assert_eq!(latest, Some(grant("two")), "{fault}");
        check(fault, LATEST, "the one that was stored last");
    }
}
