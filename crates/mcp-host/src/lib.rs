//! Configuration files in, a live catalog of MCP tools out.
//!
//! [`load()`] reads a file and resolves its servers. A [`Host`] starts them beside each other, lists what they offer,
//! publishes one catalog under names that can be trusted ([`HostSnapshot`]), keeps it current, and makes calls that end.
//! One bad server never hides the others: it becomes a status and a problem, and the rest stand.
//!
//! A server that fails is started again ([`Supervision`]). One that is not shared belongs to a [`Dialog`], which gets an
//! instance with its first call and gives it back when it is dropped. A turn of an agent keeps its generation
//! ([`Host::pin`]), so that its model can call what it was shown.
//!
//! A host that is to go on with whatever its user saves follows the files ([`Host::follow`]) instead of loading them:
//!
//! ```no_run
//! use mcp_host::{FollowEvent, FollowRequest, Host, HostOptions, LoadRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let host = Host::start(HostOptions::default());
//! // The project's file counts before the user's own; neither has to be there yet.
//! let files = vec![LoadRequest::new(".minds/mcp.yaml"), LoadRequest::new("/home/me/.minds/mcp.yaml")];
//! let mut following = host.follow(FollowRequest::new(files)).await;
//! host.ready().await;
//! while let Some(event) = following.next().await {
//!     match event {
//!         FollowEvent::Reloaded(reload) => println!("started anew: {:?}", reload.plan.changed),
//!         FollowEvent::Refused(file) => println!("{}", file.error),
//!         other => println!("{other:?}"),
//!     }
//!     # break;
//! }
//! following.stop().await;
//! host.shutdown().await;
//! # }
//! ```
//!
//! The feature `watch`, on by default, brings in the system's way of telling of changed files. Without it nothing else
//! is missing, but changes are noticed by looking every two seconds; who only calls [`Host::apply`] needs neither.
//!
//! Inside, one task owns the desired state. It is a pure state machine with a thin shell: starts, lists and ends come
//! to it as events, each batch of them makes one new [`HostSnapshot`], and whoever holds an older one holds all of it.
//!
//! ```no_run
//! use mcp_host::{Host, HostOptions, LoadRequest, ToolCall, load};
//! use mcp_model::RawJson;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // What is refused is never applied: it wants nothing, and would stop whatever runs.
//! let desired = load(&LoadRequest::new("agent.yaml"))?.into_desired()?;
//! let host = Host::start(HostOptions::default());
//! host.apply(desired).await;
//! host.ready().await;
//! for tool in host.snapshot().catalog.tools() {
//!     println!("{} of {}", tool.name, tool.server);
//! }
//! let result = host.call(ToolCall::new("files__list", RawJson::empty_object())).await;
//! println!("{}", result.text());
//! host.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What it tells
//!
//! Everything that holds now is in [`HostSnapshot`], problems included; [`Host::subscribe`] wakes whoever waits for the
//! next generation. What happens to servers comes as a stream of [`HostEvent`]s:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # let host = mcp_host::Host::start(mcp_host::HostOptions::default());
//! use tokio::sync::broadcast::error::RecvError;
//!
//! let mut events = host.events();
//! let mut generations = host.subscribe();
//! loop {
//!     tokio::select! {
//!         event = events.recv() => match event {
//!             Ok(event) => println!("{}: {:?}", event.server, event.kind),
//!             // Who is slow misses the oldest, and is told how many. What holds is in the next generation.
//!             Err(RecvError::Lagged(missed)) => println!("{missed} events were missed"),
//!             Err(RecvError::Closed) => break,
//!         },
//!         Ok(()) = generations.changed() => {
//!             for it in &generations.borrow_and_update().problems {
//!                 println!("{}: {}", it.problem.severity, it.problem.message);
//!             }
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! Connections, lists and calls are `tracing` spans (`connect`, `list` and `call`, with `server`, `tool`, `outcome`,
//! `duration` in seconds and `bytes`), and [`metrics`] lists what is counted. Neither holds arguments, results or
//! secrets. The feature `otel` sends both to an OpenTelemetry collector.
//!
//! # An agent
//!
//! A whole agent but for its model, which follows a script (`cargo run -p mcp-host --example agent`):
//!
#![doc = concat!("```no_run\n", include_str!("../examples/agent.rs"), "```")]
#![forbid(unsafe_code)]

mod calls;
mod config;
mod event;
mod failure;
#[cfg(test)]
mod fixture;
mod fs;
#[cfg(all(feature = "oauth", any(test, fuzzing)))]
#[doc(hidden)]
pub mod fuzzing;
mod host;
pub mod metrics;
mod notifications;
#[cfg(feature = "otel")]
pub mod otel;
mod state;
mod supervisor;
mod telemetry;

pub use calls::admin::AdminTools;
pub use calls::pin::PinnedGeneration;
pub use calls::provider_refusal::ProviderFailureReport;
pub use calls::spill::SpillPolicy;
pub use calls::{RawResult, RequestError, RequestOptions, ToolCall};
pub use config::approval::{Approval, ServerDefinitions};
pub use config::desired::{DesiredServers, FailedServer};
pub use config::load::{
    FileError, LoadError, LoadRequest, LoadedConfig, LockFileError, SaveError, Utf16, create, create_new,
    load, lock_path, read_lock, replace, save,
};
pub use config::watch::{
    FilePresence, FollowEvent, FollowHandle, FollowLock, FollowRequest, RefusedFile, Reload, ReloadedFile,
    ShadowedServer, WatchMode,
};
pub use event::{HostEvent, HostEventKind, ReleaseReason};
pub use failure::HostError;
pub use host::{Host, HostOptions, TraceSource};
pub use mcp_registry::{ActiveProblem, NetworkFailure, Projection, Provider, ProviderFailure, RetryDecision};
pub use notifications::stream::{NotificationStream, NotificationStreamItem, ServerNotification};
pub use notifications::subscriptions::Subscription;
#[cfg(feature = "oauth")]
pub use state::logins::{LoginHint, LoginOptions, Logins};
pub use state::published::{HostSnapshot, ServerState, ServerStatus};
pub use state::server_info_cache::ServerDetails;
#[cfg(feature = "oauth")]
pub use state::token_store::FileTokenStore;
pub use supervisor::clock_jump::WallClock;
pub use supervisor::connector::{ConnectFailure, Dialer, OnConnectFailure};
pub use supervisor::dialog::{Dialog, DialogId, LeasePolicy, LeaseReceipt, Reminder, ReminderText};
pub use supervisor::machine::{ProbePolicy, RestartPolicy, Supervision};
pub use telemetry::recording::recording_dialer;
