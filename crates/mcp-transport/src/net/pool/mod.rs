//! A pool of idle connections to one server.
//!
//! An HTTP/1.1 connection serves one request at a time and is driven by the task of that request. An HTTP/2
//! connection is shared by all requests; one task drives it, which is aborted when the pool is dropped. The
//! pool has at most as many connections as requests were in flight at once, and uses none that was idle for
//! [`MAX_IDLE`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::http1::RequestBody;
use super::inline_connection::Http1Connection;
use super::stream::NetStream;

/// Maximum time that a connection is idle before it is closed. The servers of Node and uvicorn close a connection after
/// 5 s: writing to it at that moment would lose a request that may have run.
const MAX_IDLE: Duration = Duration::from_secs(4);

/// The idle connections to one server. Dropping the pool closes them.
#[derive(Default)]
pub(super) struct Pool(Mutex<PoolState>);

/// The idle connections, and the tasks of the pool.
#[derive(Default)]
struct PoolState {
    /// HTTP/1.1 connections with the start of their idle time, the most recent last.
    idle: Vec<(Instant, Box<Http1Connection>)>,
    /// The HTTP/2 connection with the time of its last use.
    shared: Option<(Instant, http2::SendRequest<RequestBody>)>,
    /// Whether a task that closes expired connections is running.
    is_sweeper_running: bool,
    /// The task of the HTTP/2 connection, and the task that closes expired connections.
    tasks: JoinSet<()>,
}

/// A connection for one request.
pub(super) enum PooledConnection {
    Http1(Box<Http1Connection>),
    Http2(http2::SendRequest<RequestBody>),
}

impl Pool {
    /// Takes an idle connection, if there is one.
    pub(super) fn take(&self) -> Option<PooledConnection> {
        let now = Instant::now();
        // Declared before the lock so that they are dropped after it: they may hold another task's waker.
        let mut expired = Vec::new();
        let mut state = self.0.lock();
        while let Some((since, connection)) = state.idle.pop() {
            if now < since + MAX_IDLE {
                return Some(PooledConnection::Http1(connection));
            }
            expired.push(connection);
        }
        let (last_used, sender) = state.shared.as_mut()?;
        if now < *last_used + MAX_IDLE && !sender.is_closed() {
            *last_used = now;
            return Some(PooledConnection::Http2(sender.clone()));
        }
        state.shared = None;
        None
    }

    /// Starts HTTP/2 on a stream and shares the connection with later requests.
    pub(super) async fn share(&self, stream: NetStream) -> hyper::Result<PooledConnection> {
        let builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        let mut state = self.0.lock();
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(async {
            if let Err(error) = connection.await {
                tracing::debug!("an HTTP/2 connection failed: {error}");
            }
        });
        state.shared = Some((Instant::now(), sender.clone()));
        Ok(PooledConnection::Http2(sender))
    }

    /// Keeps a connection whose last response was read to its end, unless it is closed.
    pub(super) fn put(self: &Arc<Self>, mut connection: Box<Http1Connection>) {
        if !connection.is_reusable() {
            return;
        }
        let mut state = self.0.lock();
        state.idle.push((Instant::now(), connection));
        // Without a runtime, the pool is about to be dropped.
        if !state.is_sweeper_running && Handle::try_current().is_ok() {
            state.is_sweeper_running = true;
            while state.tasks.try_join_next().is_some() {}
            state.tasks.spawn(close_expired_connections(Arc::downgrade(self)));
        }
    }

    /// Closes expired HTTP/1.1 connections. Returns since when the oldest of the others is idle.
    fn close_expired(&self, now: Instant) -> Option<Instant> {
        let mut state = self.0.lock();
        let count = state.idle.partition_point(|(since, _)| *since + MAX_IDLE <= now);
        let expired: Vec<_> = state.idle.drain(..count).collect();
        let oldest = state.idle.first().map(|(since, _)| *since);
        state.is_sweeper_running = oldest.is_some();
        drop(state);
        expired.into_iter().for_each(|(_, connection)| connection.close());
        oldest
    }
}

/// Closes expired connections until there are none.
async fn close_expired_connections(pool: Weak<Pool>) {
    loop {
        let Some(oldest) = pool.upgrade().and_then(|pool| pool.close_expired(Instant::now())) else { return };
        sleep_until(oldest + MAX_IDLE).await;
    }
}

#[cfg(test)]
mod tests;
