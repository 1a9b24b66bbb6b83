//! The shared host: serves the shims that connect to its socket, and ends a while after the last one.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_host_gateway::{Gateway, serve_stdio};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

use super::events::log_stop;
use crate::args::ServeArgs;
use crate::control::system::{SharedListener, SharedStream, ShimStream};
use crate::output::failure::Failure;
use crate::output::log::OPERATOR;
use crate::runtime::run_blocking;
use crate::runtime::signal::Signal;
use crate::shared_host::greeting::{FAREWELL, HostGreeting, MAX_GREETING_BYTES, ShimGreeting};
use crate::shared_host::identity::HostIdentity;
use crate::shared_host::log_file::HostLog;
use crate::shared_host::start::{LISTENING, TAKEN};

/// The maximum number of shims. Further ones wait.
const MAX_SHIMS: usize = 256;

/// The maximum time for the greeting of a shim.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// How often the size of the log is checked.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The shared host of this process.
pub(super) struct SharedHost {
    listener: SharedListener,
    log: Option<HostLog>,
    idle: Duration,
    clients: SharedClients,
}

/// The clients of a shared host, by their number.
#[derive(Clone, Default)]
pub(super) struct SharedClients(Arc<Mutex<BTreeMap<u64, SharedClient>>>);

/// A client of a shared host.
pub(super) struct SharedClient {
    /// What its shim has sent.
    pub(super) greeting: ShimGreeting,
    /// When it connected.
    pub(super) since: SystemTime,
    /// The connection, for the farewell.
    stream: ShimStream,
}

impl SharedHost {
    /// The clients.
    pub(super) fn clients(&self) -> SharedClients {
        self.clients.clone()
    }

    /// The path of the log, if there is one.
    pub(super) fn log_path(&self) -> Option<String> {
        self.log.as_ref().map(|log| log.path().display().to_string())
    }

    /// Listens, and tells it on standard output. `None` if another process is the shared host.
    pub(super) fn open(identity: &HostIdentity, args: &ServeArgs) -> Result<Option<SharedHost>, Failure> {
        let failed =
            |error: io::Error| Failure::new(format!("the socket of the shared host failed: {error}"));
        let listener = SharedListener::bind(identity.as_str()).map_err(failed)?;
        let line = if listener.is_some() { LISTENING } else { TAKEN };
        // The process that has started this one may have ended.
        let _ = writeln!(io::stdout(), "{line}");
        let (log, idle) = (HostLog::new(identity), Duration::from_secs(args.shared_idle));
        Ok(listener.map(|listener| SharedHost { listener, log, idle, clients: SharedClients::default() }))
    }

    /// Serves until a signal arrives, or there was no client for a while.
    pub(super) async fn serve(self, gateway: &Gateway, mut stop_receiver: oneshot::Receiver<Signal>) {
        let SharedHost { listener, log, idle, clients } = self;
        let mut sessions = JoinSet::new();
        let mut log_checks = interval(LOG_INTERVAL);
        let mut idle_end = Instant::now() + idle;
        let mut number = 0;
        loop {
            tokio::select! {
                signal = &mut stop_receiver => {
                    log_stop(signal);
                    drop(listener);
                    sessions.shutdown().await;
                    clients.send_farewell();
                    return;
                }
                accepted = listener.accept(), if sessions.len() < MAX_SHIMS => match accepted {
                    Ok(stream) => {
                        number += 1;
                        sessions.spawn(serve_shim(gateway.clone(), stream, clients.clone(), number));
                    }
                    Err(error) => {
                        tracing::warn!(target: OPERATOR, "the shared host accepts no client: {error}");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = sessions.join_next() => idle_end = Instant::now() + idle,
                () = sleep_until(idle_end), if sessions.is_empty() => {
                    tracing::info!(target: OPERATOR, "stopping because there was no client for {idle:?}");
                    return;
                }
                _ = log_checks.tick() => if let Some(log) = log.clone() {
                    let limited = run_blocking(move || log.limit_size()).await;
                    if let Err(error) = limited {
                        tracing::warn!(target: OPERATOR, "the size of the log cannot be limited: {error}");
                    }
                }
            }
        }
    }
}

impl SharedClients {
    /// The clients.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, SharedClient>> {
        // A change under the lock is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the shims that the host was stopped, so that they start no other one.
    fn send_farewell(&self) {
        for client in self.lock().values_mut() {
            // The socket does not block: a client that does not read gets no farewell.
            let _ = client.stream.write_all(FAREWELL);
        }
    }
}

/// Serves the client of a shim until it disconnects.
async fn serve_shim(gateway: Gateway, stream: SharedStream, clients: SharedClients, number: u64) {
    let client = match timeout(GREETING_TIMEOUT, exchange_greetings(stream)).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => {
            tracing::info!(target: OPERATOR, "a client did not greet the shared host: {error}");
            return;
        }
        Err(_) => {
            tracing::info!(target: OPERATOR, "a client did not greet the shared host in time");
            return;
        }
    };
    let GreetedShim { stream, client } = client;
    let (process, folder) = (client.greeting.process, client.greeting.folder.display().to_string());
    tracing::info!(target: OPERATOR, "client {process} has connected from {folder}");
    clients.lock().insert(number, client);
    let (reader, writer) = tokio::io::split(stream);
    serve_stdio(&gateway, reader, writer).await;
    clients.lock().remove(&number);
    tracing::info!(target: OPERATOR, "client {process} has disconnected");
}

/// A shim whose greeting was read.
struct GreetedShim {
    stream: BufReader<SharedStream>,
    client: SharedClient,
}

async fn exchange_greetings(stream: SharedStream) -> io::Result<GreetedShim> {
    let stream = stream.into_std()?;
    let farewell = stream.try_clone()?;
    let mut stream = BufReader::new(SharedStream::from_std(stream)?);
    let mut line = Vec::new();
    (&mut stream).take(MAX_GREETING_BYTES).read_until(b'\n', &mut line).await?;
    let greeting: ShimGreeting = serde_json::from_slice(&line)?;
    let mut reply = serde_json::to_vec(&HostGreeting { process: std::process::id() })?;
    reply.push(b'\n');
    stream.write_all(&reply).await?;
    let client = SharedClient { greeting, since: SystemTime::now(), stream: farewell };
    Ok(GreetedShim { stream, client })
}
