//! The connections to one server that are kept for the next request.
//!
//! A connection of HTTP/1.1 carries one request at a time, and is moved on by whoever waits for the answer: no task of its
//! own stands between a request and its socket, and to drop the request closes it. One of HTTP/2 carries all, and has a
//! task, which ends with the pool. Bounds: as many of the former as requests were ever on their way at once, and each for
//! [`REST`] only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::connect::Line;
use super::wire::Wire;

/// How long a connection may rest before it is not used again. Node's and uvicorn's servers close one after 5 s: to
/// write into it just then would lose a request that may have run.
const REST: Duration = Duration::from_secs(4);

/// The connections that are kept. Dropping it closes them.
#[derive(Default)]
pub(super) struct Pool(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Since when each rests, the latest last.
    idle: Vec<(Instant, Box<Single>)>,
    /// When it was last taken.
    shared: Option<(Instant, Many)>,
    /// Somebody sees to it that none rests too long.
    swept: bool,
    tasks: JoinSet<()>,
}

/// A connection that carries one request at a time. Whoever has it polls it.
pub(super) type Single = Wire<Line>;

/// One that carries many.
pub(super) type Many = http2::SendRequest<Full<Bytes>>;

/// A connection that may be used.
pub(super) enum Lease {
    Single(Box<Single>),
    Shared(Many),
}

impl Pool {
    /// A connection that has rested, where there is one.
    pub(super) fn take(&self) -> Option<Lease> {
        let now = Instant::now();
        // Declared before the lock, and so dropped after it: they may hold a stranger's waker.
        let mut over = Vec::new();
        let mut kept = self.lock();
        while let Some((since, single)) = kept.idle.pop() {
            if now < since + REST {
                return Some(Lease::Single(single));
            }
            over.push(single);
        }
        let (used, many) = kept.shared.as_mut()?;
        if now < *used + REST && !many.is_closed() {
            *used = now;
            return Some(Lease::Shared(many.clone()));
        }
        kept.shared = None;
        None
    }

    /// Begins to speak HTTP/2 over a stream, and keeps the connection for others too.
    pub(super) async fn share(&self, line: Line) -> hyper::Result<Lease> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let (many, connection) = builder.timer(TokioTimer::new()).handshake(TokioIo::new(line)).await?;
        let mut kept = self.lock();
        while kept.tasks.try_join_next().is_some() {}
        kept.tasks.spawn(async {
            if let Err(error) = connection.await {
                tracing::debug!("a connection of HTTP/2 is over: {error}");
            }
        });
        kept.shared = Some((Instant::now(), many.clone()));
        Ok(Lease::Shared(many))
    }

    /// Keeps a connection whose request is through, unless it is over.
    pub(super) fn keep(self: &Arc<Self>, mut single: Box<Single>) {
        if !single.rests() {
            return;
        }
        let mut kept = self.lock();
        kept.idle.push((Instant::now(), single));
        // Without a runtime nothing is kept for long.
        if !kept.swept && Handle::try_current().is_ok() {
            kept.swept = true;
            while kept.tasks.try_join_next().is_some() {}
            kept.tasks.spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Every change under the lock is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that have rested long enough, until there are none.
async fn sweep(pool: Weak<Pool>) {
    loop {
        let Some(first) = pool.upgrade().and_then(|it| it.sweep(Instant::now())) else { return };
        sleep_until(first + REST).await;
    }
}

impl Pool {
    /// Closes what has rested long enough. Since when the longest of the others rests; `None` where there are none.
    fn sweep(&self, now: Instant) -> Option<Instant> {
        let mut kept = self.lock();
        let over = kept.idle.partition_point(|(since, _)| *since + REST <= now);
        let closed: Vec<_> = kept.idle.drain(..over).collect();
        let first = kept.idle.first().map(|(since, _)| *since);
        kept.swept = first.is_some();
        drop(kept);
        closed.into_iter().for_each(|(_, single)| single.close());
        first
    }
}

#[cfg(test)]
mod tests;
