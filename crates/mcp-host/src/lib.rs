//! An MCP host: runs the servers of configuration files and publishes one catalog of their tools.
//!
//! [`load()`] reads a file and resolves its servers. A [`Host`] starts them concurrently, reads their lists, publishes
//! snapshots with one catalog ([`HostSnapshot`]), and calls their tools. A failed server never hides the others: it
//! becomes a status and a problem.
//!
//! Failed servers are restarted ([`Supervision`]). A server that is not shared is leased to a [`Dialog`],
//! which gets its own instance with its first call and releases it when it is dropped. A turn of an agent
//! pins a generation ([`Host::pin`]), so that the model can call what it was shown.
//!
//! [`Host::follow`] follows configuration files and applies every change:
//!
//! ```no_run
//! use mcp_host_runtime::{FollowEvent, FollowRequest, Host, HostOptions, LoadRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let host = Host::start(HostOptions::default());
//! // The project's file precedes the user's; neither has to exist, because the name shows the dialect.
//! let files = vec![LoadRequest::new(".minds/mcp.yaml"), LoadRequest::new("/home/me/.minds/mcp.yaml")];
//! let mut updates = host.follow(FollowRequest::new(files)).await;
//! host.wait_until_ready().await;
//! while let Some(event) = updates.next().await {
//!     match event {
//!         FollowEvent::Reloaded(reload) => println!("restarted: {:?}", reload.plan.changed),
//!         FollowEvent::Refused(file) => println!("{}", file.error),
//!         other => println!("{other:?}"),
//!     }
//!     # break;
//! }
//! updates.stop().await;
//! host.shutdown().await;
//! # }
//! ```
//!
//! The feature `watch` (default) adds file notifications of the operating system. Without it, changes are
//! found by polling every two seconds. [`Host::apply`] needs neither.
//!
//! Internally one task owns the desired state: a pure state machine with an asynchronous shell. Starts, lists and
//! disconnects are events; each batch of events publishes one immutable [`HostSnapshot`].
//!
//! ```no_run
//! use mcp_host_runtime::{Host, HostOptions, LoadRequest, ToolCall, load};
//! use mcp_host_model::RawJson;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A refused file must not be applied: it has no servers and would stop all.
//! let desired = load(&LoadRequest::new("agent.yaml"))?.into_desired()?;
//! let host = Host::start(HostOptions::default());
//! host.apply(desired).await;
//! host.wait_until_ready().await;
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
//! # State and events
//!
//! The current state, problems included, is in [`HostSnapshot`]; [`Host::subscribe`] waits for the next
//! generation. Events of servers are a stream of [`HostEvent`]s:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # let host = mcp_host_runtime::Host::start(mcp_host_runtime::HostOptions::default());
//! use mcp_host_runtime::NotificationStreamItem;
//!
//! let mut events = host.events();
//! let mut generations = host.subscribe();
//! loop {
//!     tokio::select! {
//!         event = events.next() => match event {
//!             Some(NotificationStreamItem::Notification(event)) => println!("{}: {:?}", event.server, event.kind),
//!             // A slow reader loses the oldest events. The current state is in the snapshot.
//!             Some(NotificationStreamItem::Lagged(missed)) => println!("{missed} events were missed"),
//!             None => break,
//!         },
//!         Ok(()) = generations.changed() => {
//!             for active in &generations.borrow_and_update().problems {
//!                 println!("{}: {}", active.problem.severity, active.problem.message);
//!             }
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! Connections, list requests and calls are `tracing` spans (`connect`, `list` and `call`, with `server`, `tool`,
//! `outcome`, `duration` in seconds and `bytes`); [`metrics`] lists the metrics. Neither contains arguments, results or
//! secrets. The feature `otel` exports both to an OpenTelemetry collector.
//!
//! Ids such as `DM-101` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.
//!
//! # An agent
//!
//! A complete agent with a scripted model, a reload during a call, and leases of two dialogs
//! (`cargo run -p mcp-host-runtime --example agent`):
//!
#![doc = concat!("```no_run\n", include_str!("../examples/agent.rs"), "```")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod calls;
mod config;
mod error;
mod fs;
mod host;
mod notifications;
mod state;
mod supervisor;
mod telemetry;

/// Parsers for the properties of the fuzz targets in mcp-testkit. Not part of the public API.
#[cfg(feature = "oauth")]
#[doc(hidden)]
pub mod internal {
    pub use crate::state::token_store::{parse as parse_token_file, text as token_file_text};
}

pub use calls::admin::AdminTools;
pub use calls::dialog::Dialog;
pub use calls::pin::PinnedGeneration;
pub use calls::policy::pending_questions::{PendingQuestion, PendingQuestions};
pub use calls::policy::question::{
    AnswerFuture, AnswerScope, AnswerVerdict, ApprovalPrompt, CallAnswer, CallQuestion, NoAnswer,
};
pub use calls::policy::rule_policy::{CallRuleOptions, RuleDecision, RulePolicy};
pub use calls::policy::{CallDecision, CallPolicy, CallRefusal, CallRuling, PolicyCall, RulingOutcome};
pub use calls::provider_failure::ProviderFailureReport;
pub use calls::raw_result::{RawResult, RequestFailure};
pub use calls::request_options::RequestOptions;
pub use calls::spill::policy::{SpillLifetime, SpillPolicy};
pub use calls::tool_call::{CalledTool, TaskHandling, ToolCall};
pub use calls::tool_ref::ToolRef;
pub use config::approval::{Approval, ServerDefinitions, program_record};
pub use config::desired::{DesiredServers, FailedServer};
pub use config::load::{
    FileError, LoadError, LoadRequest, LoadedConfig, LoadedLock, LockFileError, SaveError, Utf16,
    create_like, create_private, load, lock_path, read_lock, replace_private, save,
};
pub use config::watch::{
    FilePresence, FileProfile, FileWatch, FollowEvent, FollowHandle, FollowLock, FollowRequest, RefusedFile,
    Reload, ReloadTrigger, ReloadedFile, ShadowedServer, WatchMode,
};
pub use error::HostError;
pub use fs::folder_ownership::{FolderOwner, UnsafeFolder};
pub use host::Host;
pub use host::options::{
    CatalogOptions, ConnectionOptions, HostOptions, ProcessOptions, ServerRequestOptions, TelemetryOptions,
};
/// For logins and their store.
#[cfg(feature = "oauth")]
#[doc(no_inline)]
pub use mcp_host_model::Url;
pub use mcp_host_registry::{
    ActiveProblem, NetworkFailure, Projection, Provider, ProviderFailure, RetryDecision,
};
/// For [`InstanceStderr`].
#[doc(no_inline)]
pub use mcp_host_transport::StderrLines;
pub use notifications::stream::{NotificationStream, NotificationStreamItem, ServerNotification};
pub use notifications::subscriptions::Subscription;
pub use state::approved_servers::{ApprovedServer, ApprovedServers, PendingServer};
pub use state::call_answers::{CallAnswers, CallSubject, StoredAnswer};
pub use state::dialog_id::DialogId;
pub use state::event::{HostEvent, HostEventKind, ReleaseReason};
#[cfg(all(feature = "keyring", feature = "oauth"))]
pub use state::keyring_token_store::KeyringTokenStore;
#[cfg(feature = "oauth")]
pub use state::logins::{LoginHelp, LoginOptions, Logins};
pub use state::packages::{PackageError, PackageRegistry, UnpinnedPackage};
pub use state::published::{HostSnapshot, InstanceSnapshot, InstanceStderr, ServerState, ServerStatus};
pub use state::secrets::command::SecretCommand;
pub use state::secrets::store::{KeyringUse, SecretPlace, SecretStore};
pub use state::secrets::{MAX_SECRET_BYTES, SecretError, SecretSources};
pub use state::state_folder::{StateFolderError, state_path};
#[cfg(feature = "oauth")]
pub use state::token_store::FileTokenStore;
pub use supervisor::clock_jump::WallClock;
pub use supervisor::connector::Dialer;
pub use supervisor::connector::connect_help;
pub use supervisor::dialog::{LeaseSnapshot, Reminder, ReminderText};
pub use supervisor::lease_policy::{LeasePolicy, RequestingServers};
pub use supervisor::list_reads::OPTIONAL_LIST_LIMIT;
pub use supervisor::machine::{ProbePolicy, RestartPolicy, Supervision};
pub use supervisor::recording::recording_dialer;
#[cfg(feature = "otel")]
pub use telemetry::otel;
pub use telemetry::{TraceSource, metrics};
/// For [`Host::subscribe`].
#[doc(no_inline)]
pub use tokio;

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
