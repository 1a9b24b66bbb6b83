//! `serve`: serves all configured servers as one MCP server, until the client disconnects or a signal arrives.
//!
//! Over stdio, standard output carries only the protocol. Everything else is written to standard error.

mod audit;
mod authorization;
mod events;
mod hang_up;
mod metrics;
mod process_metrics;
mod questions;
mod resources;
mod shared;
mod status;
mod tokens;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_gateway::{
    AuditLog, Bounds, Gateway, GatewayOptions, GatewayResource, HttpOptions, HttpServer, NameStyle,
    ServeError, TaskKey, TlsFiles, Tokens, TrustedProxies, serve_stdio,
};
use mcp_host_model::ServerId;
use mcp_host_registry::ViewFilter;
use mcp_host_runtime::{
    AdminTools, FollowHandle, FollowRequest, Host, PendingQuestions, RulePolicy, SpillPolicy, Supervision,
};
use mcp_host_transport::Eras;
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::config::call_rules::read_rules;
use crate::config::context::Context;
use crate::config::follow::{FollowedConfig, follow};
use crate::config::locate::locate_config;
use crate::config::views::Views;
use crate::control::server::{ControlServer, ControlledHost};
use crate::host;
use crate::host::call_prompt::NoPrompt;
use crate::output::console::Verbosity;
use crate::output::error_chain;
use crate::output::failure::Failure;
use crate::output::log::{self, LogLevelName, OPERATOR};
use crate::output::otlp;
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signal::Signal;
use crate::runtime::signals::{Signals, run_until_signal, serve_until_signal};
use crate::shared_host::identity::HostIdentity;
use events::{log_file_events, log_server_events, log_stop};
use hang_up::handle_hang_ups;
use metrics::MetricsRecorder;
use questions::LoggedQuestions;
use shared::SharedHost;
use status::StatusSource;
use tokens::{TokenSource, ViewLimits, publish_views};

/// How long the shutdown may take after running requests have ended or were cancelled.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(1);

/// How long the end of the command waits for the rest of the audit log.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        let exit = match error {
            ServeError::TokensRequired(_) | ServeError::PublicUrl(_) => Exit::Usage,
            _ => Exit::Failure,
        };
        Failure::with_exit(exit, error_chain(&error)).help(error.help())
    }
}

/// Serves until the client disconnects or a signal arrives. With an `identity`, this process is the shared host.
pub(crate) async fn run(
    context: &Context,
    args: ServeArgs,
    identity: Option<HostIdentity>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let default_level = match context.console.verbosity {
        Verbosity::Verbose => LogLevelName::Debug,
        Verbosity::Normal => LogLevelName::Info,
        Verbosity::Quiet => LogLevelName::Error,
    };
    log::start_serving(args.log_level, default_level, args.log_format, context.console.err_colour)
        .map_err(Failure::usage)?;
    let hang_up = signals.take_hang_up();
    let shared = match identity.map(|identity| SharedHost::open(&identity, &args)).transpose()? {
        Some(None) => return Ok(Exit::Success),
        other => other.flatten(),
    };
    let preparing = async {
        let audit = audit::open_audit_log(&args).await?;
        let prepared = prepare(&args, audit.clone(), shared).await?;
        let config = FollowedConfig::find(context, args.file.as_deref()).await?;
        Ok::<_, Failure>((audit, prepared, config))
    };
    let (audit, mut prepared, config) = run_until_signal(signals, preparing).await??;
    let FollowedConfig { request, approval } = config;
    if let Some(name) = &args.view {
        prepared.options.scope.views.extend(read_view(&request, name).await?);
    }
    let mut rules = run_until_signal(signals, read_rules(&args.rules)).await??;
    let control = open_control_socket();
    let questions = PendingQuestions::new();
    rules.prompt = Some(match &control {
        Some(_) => Arc::new(LoggedQuestions(questions.clone())),
        None => Arc::new(NoPrompt("the gateway has no control socket to ask through")),
    });
    let mut options = host::gateway_options(Supervision::default());
    options.catalog.approval = approval;
    options.catalog.tool_budget.max_tools = args.max_tools;
    options.catalog.tool_budget.max_tokens = args.max_tool_tokens;
    options.list_items = args.max_list_items;
    options.catalog.admin_tools = if args.admin { AdminTools::Enabled } else { AdminTools::Disabled };
    options.spill = args.spill.as_deref().map(SpillPolicy::in_directory);
    options.connections.eras = args.era.unwrap_or(Eras::Both);
    if let Some(drain) = args.drain {
        options.processes.drain = Duration::from_secs(drain);
    }
    options.calls = Arc::new(RulePolicy::new(rules));
    let shutdown_limit = prepared.options.bounds.shutdown_grace + SHUTDOWN_MARGIN;
    let host = Arc::new(Host::start(options));
    let (kind, shared) = match &prepared.endpoint {
        ServeEndpoint::Stdio => ("stdio", None),
        ServeEndpoint::Shared(shared) => ("shared", Some(shared)),
        ServeEndpoint::Http { .. } => ("http", None),
    };
    let status = StatusSource::new(kind, shared, &request);
    let subject = status.controlled_host(&host, questions);
    let (stop_sender, stop_receiver) = oneshot::channel();
    let serving = async {
        let follow_handle = follow(context, &host, request).await;
        tokio::select! {
            () = handle_hang_ups(hang_up, follow_handle.reload_trigger(), audit.as_ref()) => Ok(()),
            served = serve(&host, follow_handle, prepared, stop_receiver) => served,
            never = serve_control_socket(control.as_ref(), &subject) => match never {},
        }
    };
    // After a signal, running requests finish and the clients are notified.
    let exit = match serve_until_signal(signals, stop_sender, shutdown_limit, serving).await {
        Ok(Ok(())) => Exit::Success,
        Ok(Err(failure)) => context.print_failure(failure).await,
        Err(signal) => Exit::Signal(signal),
    };
    let exit = host::stop(&host, exit, signals).await;
    if let Some(audit) = audit {
        run_blocking(move || audit.flush(FLUSH_TIMEOUT)).await;
    }
    Ok(exit)
}

/// The filter of a view of the configuration; `None` if it shows everything.
async fn read_view(request: &FollowRequest, name: &str) -> Result<Option<ViewFilter>, Failure> {
    let Some(path) = request.files.first().map(|file| file.path.clone()) else { return Ok(None) };
    let name = name.to_owned();
    Ok(run_blocking(move || Views::read(&path)?.find(&name)).await?)
}

/// Opens the control socket. Without it, calls that need an approval are refused.
fn open_control_socket() -> Option<ControlServer> {
    let opened = ControlServer::open();
    opened
        .inspect_err(|error| tracing::info!(%error, "there is no control socket for `mcp-host approvals`"))
        .ok()
}

/// Serves the control socket, if there is one. Never returns.
async fn serve_control_socket(control: Option<&ControlServer>, subject: &ControlledHost) -> Infallible {
    match control {
        Some(control) => control.serve(subject).await,
        None => std::future::pending().await,
    }
}

/// The checked arguments.
struct PreparedServe {
    options: GatewayOptions,
    endpoint: ServeEndpoint,
}

/// The endpoint at which clients connect.
enum ServeEndpoint {
    Stdio,
    Shared(SharedHost),
    Http {
        address: SocketAddr,
        options: Box<HttpOptions>,
        token_source: TokenSource,
        recorder: Option<MetricsRecorder>,
    },
}

/// Loads the key of this user's gateways for ids of tasks, or creates it. Without a state folder it is random.
async fn load_task_key() -> TaskKey {
    run_blocking(|| {
        let path = host::state_path("gateway-task-key", &|name| std::env::var_os(name));
        path.and_then(|path| {
            let key = TaskKey::load_or_create(&path);
            key.inspect_err(|error| {
                let path = path.display();
                tracing::warn!(target: OPERATOR, "ids of tasks are void after a restart: {path}: {error}");
            })
            .ok()
        })
        .unwrap_or_else(TaskKey::random)
    })
    .await
}

/// Checks the arguments, and reads the files that they name.
async fn prepare(
    args: &ServeArgs,
    audit: Option<AuditLog>,
    shared: Option<SharedHost>,
) -> Result<PreparedServe, Failure> {
    let server = args.only.as_deref().map(ServerId::parse).transpose();
    let server = server.map_err(|error| Failure::usage(error.to_string()))?;
    let names = if args.raw_names { NameStyle::Original } else { NameStyle::Exposed };
    if args.http.is_none() {
        otlp::install_recorder();
    }
    let endpoint = match (args.http, shared) {
        (None, None) => ServeEndpoint::Stdio,
        (None, Some(shared)) => ServeEndpoint::Shared(shared),
        (Some(address), _) => {
            let tls = args.tls_cert.clone().zip(args.tls_key.clone());
            let tls = tls.map(|(certificate, key)| TlsFiles::new(certificate, key));
            // A configuration that is not found is reported later.
            let configuration = locate_config(args.file.as_deref().unwrap_or(Path::new("")));
            let configuration = configuration.map(|config| config.path).unwrap_or_default();
            let token_source =
                TokenSource::new(args.token_file.clone(), args.token_env.as_deref(), configuration)?;
            let tokens = token_source.read_at_start().await?;
            let resource_server = authorization::build_resource_server(args).await?;
            // Installed before any server starts, so that gauges count every increment and decrement.
            let recorder = MetricsRecorder::install();
            let metrics = recorder.as_ref().map(MetricsRecorder::page);
            let mut options = HttpOptions::default();
            options.tokens = tokens;
            options.resource_server = resource_server;
            options.hosts = args.allow_host.clone();
            options.origins = args.allow_origin.clone();
            options.trusted_proxies = TrustedProxies::read(args.trusted_proxy.iter().map(String::as_str))
                .map_err(|error| Failure::usage(format!("--trusted-proxy: {error}")))?;
            options.tls = tls;
            options.metrics = metrics;
            ServeEndpoint::Http { address, options: Box::new(options), token_source, recorder }
        }
    };
    let mut options = GatewayOptions::default();
    options.bounds = Bounds::for_resources(&resources::read_resources().await);
    options.scope.server = server;
    options.scope.names = names;
    if args.admin {
        options.gateway_resources = GatewayResource::ALL.to_vec();
    }
    options.bounds.idle_timeout = Duration::from_secs(args.idle);
    if let Some(drain) = args.drain {
        options.bounds.shutdown_grace = Duration::from_secs(drain);
    }
    set_bounds(&mut options.bounds, args);
    options.rates.per_token = args.rate_per_token;
    options.rates.per_server = args.rate_per_server;
    options.audit = audit;
    Ok(PreparedServe { options, endpoint })
}

/// Sets the limits that the arguments have.
fn set_bounds(bounds: &mut Bounds, args: &ServeArgs) {
    let ServeArgs {
        max_message_bytes,
        max_connections,
        max_sessions,
        max_streams,
        max_requests,
        max_held_bytes,
        ..
    } = *args;
    bounds.message_bytes = max_message_bytes.unwrap_or(bounds.message_bytes);
    bounds.held_bytes = max_held_bytes.unwrap_or(bounds.held_bytes);
    if let Some(connections) = max_connections {
        bounds.set_connections(connections);
    }
    bounds.streams = max_streams.unwrap_or(bounds.streams);
    if let Some(sessions) = max_sessions {
        bounds.set_sessions(sessions);
    }
    if let Some(requests) = max_requests {
        bounds.set_requests(requests);
    }
}

/// Serves until the client disconnects or `stop_receiver` completes, and logs events meanwhile.
async fn serve(
    host: &Arc<Host>,
    follow_handle: FollowHandle,
    prepared: PreparedServe,
    stop_receiver: oneshot::Receiver<Signal>,
) -> Result<(), Failure> {
    let PreparedServe { mut options, endpoint } = prepared;
    if let Some(server) = &options.scope.server {
        let published = host.snapshot();
        let names: Vec<String> = published.servers.iter().map(|status| status.id.to_string()).collect();
        if !names.iter().any(|name| name == server.as_str()) {
            return Err(Failure::new(host::unknown_server(server.as_str(), &names)));
        }
    }
    let mut limits = ViewLimits {
        only_server: options.scope.server.clone(),
        views: options.scope.views.clone(),
        scopes: None,
    };
    options.task_key = load_task_key().await;
    let gateway = Gateway::new(Arc::clone(host), options);
    let served = async {
        match endpoint {
            ServeEndpoint::Stdio => {
                publish_views(host, &Tokens::default(), &limits).await;
                tokio::select! {
                    () = serve_stdio(&gateway, tokio::io::stdin(), tokio::io::stdout()) => {
                        tracing::info!(target: OPERATOR, "stopping because the client has closed standard input");
                    }
                    signal = stop_receiver => log_stop(signal),
                }
                Ok(())
            }
            ServeEndpoint::Shared(shared) => {
                publish_views(host, &Tokens::default(), &limits).await;
                shared.serve(&gateway, stop_receiver).await;
                Ok(())
            }
            ServeEndpoint::Http { address, options, token_source, recorder } => {
                let upkeep = async {
                    match &recorder {
                        Some(recorder) => recorder.run_upkeep().await,
                        None => std::future::pending().await,
                    }
                };
                let tokens = options.tokens.clone();
                limits.scopes = options.resource_server.as_ref().map(|server| server.scopes.clone());
                let is_open = options.tokens.is_empty() && options.resource_server.is_none();
                let server = HttpServer::bind(address, gateway, *options).await?;
                tracing::info!(target: OPERATOR, "serving MCP at {}", server.url());
                if is_open {
                    tracing::warn!(
                        target: OPERATOR,
                        "without --token-file every user of this machine can call tools"
                    );
                }
                let updater = server.token_updater();
                publish_views(host, &tokens, &limits).await;
                tokio::select! {
                    () = server.serve(async { log_stop(stop_receiver.await) }) => {}
                    never = upkeep => match never {},
                    never = token_source.follow(tokens, updater, host, &limits) => match never {},
                }
                Ok(())
            }
        }
    };
    tokio::select! {
        served = served => served,
        never = log_file_events(follow_handle) => match never {},
        never = log_server_events(host) => match never {},
    }
}
