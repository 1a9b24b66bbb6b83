//! An HTTP/1.1 client connection that is driven by the task that waits for its response.
//!
//! hyper parses and frames the messages. No task is spawned for a connection: the task that awaits a response also
//! reads and writes the socket. Dropping a request therefore closes the socket at once, and a call needs no task
//! switch to reach its socket.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWrite as _;
use tokio::task::coop::unconstrained;

use super::http1::{Request, RequestBody, connection_builder};
use super::stream::NetStream;

/// An HTTP/1.1 connection. It has at most one request at a time.
pub(super) struct Http1Connection {
    sender: http1::SendRequest<RequestBody>,
    /// hyper's connection. `None` after it was dropped because the connection had ended, which resolves a pending
    /// response or body.
    driver: Option<http1::Connection<TokioIo<NetStream>, RequestBody>>,
    /// Whether the driver has completed. It must not be polled again.
    is_finished: bool,
    /// Wakes the task that waits for the connection.
    deferred: Arc<DeferredWaker>,
    /// `deferred` as a waker, with which the driver is polled.
    waker: Waker,
}

/// Defers the wake-ups that the driver causes while a task polls it. hyper wakes the driver for each request and each
/// chunk of a body, but the task that sends the request and reads the body polls the driver itself.
#[derive(Default)]
struct DeferredWaker {
    /// The task that waits for the connection.
    task: AtomicWaker,
    /// Whether the driver was woken since the task began to poll.
    is_woken: AtomicBool,
}

impl DeferredWaker {
    /// Called when a task begins to poll.
    fn begin_poll(&self) {
        self.task.take();
        self.is_woken.store(false, Ordering::Relaxed);
    }

    /// Called when the task waits. A wake-up since it began to poll, or a later one, wakes it.
    fn end_poll(&self, waker: &Waker) {
        self.task.register(waker);
        if self.is_woken.load(Ordering::Acquire) {
            self.task.wake();
        }
    }
}

impl Wake for DeferredWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Http1Connection {
    /// Prepares a connection over a stream. Sends nothing.
    pub(super) async fn new(stream: NetStream) -> hyper::Result<Http1Connection> {
        let (sender, driver) = connection_builder().handshake(TokioIo::new(stream)).await?;
        let deferred = Arc::<DeferredWaker>::default();
        let waker = Waker::from(Arc::clone(&deferred));
        Ok(Http1Connection { sender, driver: Some(driver), is_finished: false, deferred, waker })
    }

    /// Sends a request and waits for the head of its response. The error contains the request if nothing of it was
    /// written. Not cancel-safe: after dropping this future, the connection must not be used again.
    pub(super) fn send(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<http::Response<Incoming>, Box<TrySendError<Request>>>> {
        // Not an async function, and boxed: the request and hyper's future are large, and each level of futures above
        // would hold and move them.
        let mut response = Box::pin(self.sender.try_send_request(request));
        async move {
            let mut is_first = true;
            poll_fn(|cx| {
                self.poll_driven(cx, |connection| {
                    if std::mem::take(&mut is_first) {
                        // The first poll detects that the server closed the idle connection, before anything is
                        // written. It must not be delayed by Tokio's coop budget: later, hyper could no longer tell
                        // that nothing was written.
                        let driven = poll_fn(|_| {
                            connection.drive();
                            Poll::Ready(())
                        });
                        let _ = pin!(unconstrained(driven)).poll(&mut Context::from_waker(Waker::noop()));
                    } else {
                        connection.drive();
                    }
                    let mut context = Context::from_waker(&connection.waker);
                    let mut polled = response.as_mut().poll(&mut context);
                    // Dropping the driver resolves the response.
                    if polled.is_pending() && connection.is_finished && connection.driver.take().is_some() {
                        polled = response.as_mut().poll(&mut context);
                    }
                    polled.map_err(Box::new)
                })
            })
            .await
        }
    }

    /// Polls for the next data frame of a response's body. Returns `None` at its end.
    pub(super) fn poll_data(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Bytes>>> {
        let mut is_driven = false;
        self.poll_driven(cx, |connection| {
            loop {
                match Pin::new(&mut *body).poll_frame(&mut Context::from_waker(&connection.waker)) {
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Some(Ok(frame))) => {
                        // Trailers are ignored.
                        if let Ok(data) = frame.into_data() {
                            return Poll::Ready(Some(Ok(data)));
                        }
                    }
                    Poll::Pending if !is_driven => {
                        connection.drive();
                        is_driven = true;
                    }
                    // Dropping the driver ends the body.
                    Poll::Pending if connection.is_finished && connection.driver.take().is_some() => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
    }

    /// Whether another request may be sent. To be called after the last response was read to its end.
    pub(super) fn is_reusable(&mut self) -> bool {
        if !self.sender.is_ready() {
            // The last chunk of a chunked body may still be unread. Part of the request may still be unsent,
            // because a server may respond early.
            self.drive();
        }
        !self.is_finished && self.sender.is_ready()
    }

    /// Closes the stream in an orderly way, as far as that is possible without waiting.
    pub(super) fn close(self) {
        if let Some(driver) = self.driver {
            let mut stream = driver.into_parts().io.into_inner();
            let _ = Pin::new(&mut stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Calls `poll`, which polls the driver, and makes sure that the task is woken if the result is pending.
    fn poll_driven<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Http1Connection) -> Poll<T>,
    ) -> Poll<T> {
        self.deferred.begin_poll();
        let polled = poll(self);
        if polled.is_pending() {
            self.deferred.end_poll(cx.waker());
        }
        polled
    }

    /// Reads and writes as much as the stream allows.
    fn drive(&mut self) {
        if !self.is_finished
            && let Some(driver) = &mut self.driver
        {
            // The error is ignored here, because the affected request or body returns it too.
            self.is_finished = driver.poll_without_shutdown(&mut Context::from_waker(&self.waker)).is_ready();
        }
    }
}
