//! The stdio transport: one client, one message per line, with or without `initialize`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_host_model::{Era, Method, ProtocolVersion, RawJson, RpcError, code};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::gateway::{Gateway, GatewayInner};
use crate::limits::byte_budget::{Account, MIN_COUNTED_BYTES};
use crate::methods::context::RequestContext;
use crate::methods::dispatch::cancelled_id;
use crate::methods::initialize;
use crate::methods::subscriptions::SubscriptionStream;
use crate::metrics::counters::CountedRequest;
use crate::notifications::watch::ChangeWatcher;
use crate::protocol::frame::{self, ClientMessage, ClientNotification, ClientRequest};
use crate::protocol::message_writer;
use crate::protocol::meta::RequestMeta;
use crate::protocol::oversized::{RequestIdScanner, message_size_error};
use crate::protocol::result_body::HandlerResult;
use crate::session::client_dialog::ClientDialog;
use crate::session::client_session::ClientSession;
use crate::session::outbound_queue::{MessageReceiver, MessageSender, SendError, message_channel};
use crate::session::request_client::{RequestClient, RequestSource};
use crate::session::running_requests::RunningRequests;

/// Size up to which messages are combined into one write, in bytes.
const WRITE_BATCH_BYTES: usize = 64 * 1024;

/// Serves the client on `input` and `output` until the input ends or the output fails. Then its requests are
/// cancelled and its leases end. Dropping the future does the same.
pub fn serve_stdio(
    gateway: &Gateway,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    serve_boxed(Arc::clone(gateway.inner()), Box::new(input), Box::new(output))
}

type Input = Box<dyn AsyncRead + Unpin + Send>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Not generic, so that this crate compiles the server, and not each of its users.
fn serve_boxed(gateway: Arc<GatewayInner>, input: Input, output: Output) -> BoxFuture<'static, ()> {
    Box::pin(serve(gateway, input, output))
}

/// Reads and handles messages until the input ends or the client disconnects.
async fn serve(gateway: Arc<GatewayInner>, input: Input, output: Output) {
    let (sender, messages) = message_channel(&gateway.options.bounds);
    let disconnected = CancellationToken::new();
    let mut writer = JoinSet::new();
    writer.spawn(write_messages(messages, output, gateway.options.bounds.send_timeout, disconnected.clone()));
    let client = StdioClient {
        gateway: Arc::clone(&gateway),
        scope: Arc::new(gateway.options.scope.clone()),
        sender,
        running: Arc::default(),
        session: Mutex::default(),
        dialog: OnceLock::new(),
        principal: Principal::new_stdio(),
        permits: Arc::new(Semaphore::new(gateway.options.bounds.requests_per_client.max(1) * 2)),
    };
    let client = Arc::new(client);
    let mut tasks = JoinSet::new();
    tokio::select! {
        () = read_messages(&client, input, &mut tasks) => {}
        () = disconnected.cancelled() => {}
    }
    client.running.cancel_all();
    if let Some(session) = client.session() {
        session.end();
    }
    tasks.shutdown().await;
    gateway.pending_inputs.drop_client(&client.principal);
    drop(client);
    // Pending responses are written before the end.
    let written = async { while writer.join_next().await.is_some() {} };
    if timeout(gateway.options.bounds.send_timeout, written).await.is_err() {
        tracing::warn!("the last responses are lost: the client on stdout does not read");
    }
    writer.shutdown().await;
}

/// The client on stdio.
struct StdioClient {
    gateway: Arc<GatewayInner>,
    scope: Arc<Scope>,
    sender: MessageSender,
    running: Arc<RunningRequests>,
    /// Set by `initialize`; a client of a stateless protocol revision does not send it.
    session: Mutex<Option<Arc<ClientSession>>>,
    /// The dialog of requests without a session, started by the first one.
    dialog: OnceLock<Arc<ClientDialog>>,
    /// The identity of this connection.
    principal: Principal,
    /// Permits for requests whose responses are not queued yet.
    permits: Arc<Semaphore>,
}

/// Writes queued messages to the output. A client that reads nothing for `send_timeout` counts as disconnected, because
/// stdout gives no other sign of a dead client.
async fn write_messages(
    mut messages: MessageReceiver,
    mut output: Output,
    send_timeout: Duration,
    disconnected: CancellationToken,
) {
    let _disconnected = disconnected.drop_guard();
    let mut lines = Vec::new();
    while let Some(message) = messages.next().await {
        lines.clear();
        lines.shrink_to(WRITE_BATCH_BYTES);
        let mut next = Some(message);
        while let Some(message) = next {
            lines.extend_from_slice(&message);
            lines.push(b'\n');
            next = if lines.len() < WRITE_BATCH_BYTES { messages.try_next() } else { None };
        }
        let mut rest = &lines[..];
        while !rest.is_empty() {
            match timeout(send_timeout, output.write(rest)).await {
                Ok(Ok(written @ 1..)) => rest = &rest[written..],
                Ok(Ok(0) | Err(_)) => return,
                Err(_) => {
                    tracing::warn!(
                        "disconnecting: the client on stdout has read nothing for {send_timeout:?}"
                    );
                    return;
                }
            }
        }
        if !matches!(timeout(send_timeout, output.flush()).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// Reads messages from the input and handles each, until the input ends.
async fn read_messages(client: &Arc<StdioClient>, input: Input, tasks: &mut JoinSet<()>) {
    let max_bytes = client.gateway.options.bounds.message_bytes;
    let mut input = BufReader::new(input);
    // An error of the input ends it.
    while let Ok(Some(line)) = read_line(&mut input, max_bytes).await {
        while tasks.try_join_next().is_some() {}
        let handled = match line {
            InputLine::TooLong(id) => client.send_error(id.as_ref(), &message_size_error(max_bytes)).await,
            InputLine::Whole(line) if line.trim_ascii().is_empty() => continue,
            InputLine::Whole(line) if line.len() < MIN_COUNTED_BYTES => client.handle_line(line, tasks).await,
            InputLine::Whole(line) => {
                // Reading stops until the budget has room.
                let line =
                    client.gateway.budget.acquire(&client.budget_account(), line.len()).await.attach(line);
                client.handle_line(line, tasks).await
            }
        };
        if handled.is_err() {
            return;
        }
    }
}

/// A line of the input.
enum InputLine {
    Whole(Bytes),
    /// The id of its request, if it has one.
    TooLong(Option<RawJson>),
}

/// Reads the next line. A line that is too long is skipped. `None` at the end of the input.
async fn read_line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    max_bytes: usize,
) -> std::io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    let mut oversized: Option<RequestIdScanner> = None;
    loop {
        let found = input.fill_buf().await?;
        if found.is_empty() {
            return Ok((!line.is_empty()).then(|| InputLine::Whole(line.into())));
        }
        let end = memchr::memchr(b'\n', found);
        let part = &found[..end.unwrap_or(found.len())];
        if let Some(scanner) = &mut oversized {
            scanner.scan(part);
        } else if line.len() + part.len() > max_bytes {
            let scanner = oversized.insert(RequestIdScanner::default());
            scanner.scan(&std::mem::take(&mut line));
            scanner.scan(part);
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(found.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(match oversized {
                Some(scanner) => InputLine::TooLong(scanner.finish()),
                None => InputLine::Whole(line.into()),
            }));
        }
    }
}

impl StdioClient {
    fn budget_account(&self) -> Account {
        Account::Client(self.principal.clone())
    }

    fn session(&self) -> Option<Arc<ClientSession>> {
        self.session.lock().clone()
    }

    /// Sends the response to a failed request.
    async fn send_error(&self, id: Option<&RawJson>, error: &RpcError) -> Result<(), SendError> {
        self.sender.send_response(message_writer::write_error(id, error)).await
    }

    /// Handles a line. Fails if the client has disconnected.
    async fn handle_line(self: &Arc<Self>, line: Bytes, tasks: &mut JoinSet<()>) -> Result<(), SendError> {
        let has_batches =
            self.session().is_some_and(|session| session.version == ProtocolVersion::V2025_03_26);
        let messages =
            if has_batches { frame::read_messages(&line) } else { Ok(vec![frame::read_message(&line)]) };
        for message in messages.unwrap_or_else(|unreadable| vec![Err(unreadable)]) {
            match message {
                Ok(ClientMessage::Request(request)) => self.handle_request(request, tasks).await?,
                Ok(ClientMessage::Notification(notification)) => self.handle_notification(&notification),
                Ok(ClientMessage::Response(response)) => {
                    if let Some(session) = self.session() {
                        session.channel.requests.resolve(&response.id, response.outcome);
                    }
                }
                Err(unreadable) => self.send_error(unreadable.id.as_ref(), &unreadable.error).await?,
            }
        }
        Ok(())
    }

    fn handle_notification(&self, notification: &ClientNotification) {
        if notification.method == Method::Cancelled
            && let Some(id) = cancelled_id(&notification.params)
        {
            self.running.cancel(id);
        } else if let Some(session) = self.session() {
            let client = RequestClient::from_session(&session, self.sender.clone());
            self.gateway.handle_notification(&client, notification);
        }
    }

    /// Handles a request: `initialize` at once, and any other in a task of its own. Fails if the client has
    /// disconnected.
    async fn handle_request(
        self: &Arc<Self>,
        request: ClientRequest,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), SendError> {
        let mut counted = self.gateway.counters.start_request(&request.method);
        if request.method == Method::Initialize && !request.meta().is_modern() {
            counted.begin();
            self.gateway.wait_for_startup().await;
            let result = self.initialize(&request, tasks);
            counted.end(&result);
            return self.sender.send_response(message_writer::write_outcome(&request.id, &result)).await;
        }
        let max_requests = self.gateway.options.bounds.requests_per_client;
        let started = self
            .new_request_client(request.meta())
            .and_then(|client| Ok((client, self.running.start(&request.id, max_requests)?)));
        let (client, mut guard) = match started {
            Ok(started) => started,
            Err(error) => return self.send_error(Some(&request.id), &error).await,
        };
        counted.begin();
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        let (stdio, gateway) = (Arc::clone(self), Arc::clone(&self.gateway));
        tasks.spawn(async move {
            let id = request.id.clone();
            let is_subscription = request.method == Method::Listen;
            let result = tokio::select! {
                biased;
                () = guard.cancelled() => return,
                result = async {
                    let result = match client.era() {
                        Era::Modern if is_subscription => {
                            return stdio.listen(&client, &request, counted).await;
                        }
                        Era::Modern => gateway.handle_stateless(client, request, None).await,
                        Era::Legacy => gateway.handle(RequestContext::new(&gateway, &client, &request)).await,
                    };
                    counted.end(&result);
                    result
                } => result,
            };
            let response = gateway.track_response(&stdio.budget_account(), &id, &result);
            drop(guard);
            // The client may have disconnected.
            let _ = stdio.sender.send_response(response).await;
            // Held until the response is queued, so a client that does not read sends no more requests.
            drop(permit);
        });
        Ok(())
    }

    /// The client of a request: from its `_meta`, or from the session.
    fn new_request_client(&self, meta: &RequestMeta) -> Result<RequestClient, RpcError> {
        if meta.is_modern() {
            let (version, capabilities) = meta.required_members()?;
            let features = self.gateway.features_cache.get(&capabilities);
            let dialog = Arc::clone(self.dialog.get_or_init(|| self.gateway.new_dialog(&features)));
            return Ok(RequestClient {
                version,
                scope: Arc::clone(&self.scope),
                caller_id: dialog.caller_id,
                dialog: Some(dialog),
                features,
                sender: self.sender.clone(),
                session: None,
                principal: self.principal.clone(),
                source: RequestSource::default(),
            });
        }
        match self.session() {
            Some(session) => Ok(RequestClient::from_session(&session, self.sender.clone())),
            None => {
                let message = "send `initialize` first, or the protocol version in `_meta` of each request";
                Err(RpcError::new(code::SERVER_ERROR, message))
            }
        }
    }

    /// Handles `initialize`: starts the session, and a task that sends its notifications.
    fn initialize(&self, request: &ClientRequest, tasks: &mut JoinSet<()>) -> HandlerResult {
        if self.session().is_some() {
            return Err(RpcError::new(code::INVALID_REQUEST, "this session is already initialized").into());
        }
        let handshake = initialize::read_handshake(request.params.raw())?;
        let result = initialize::initialize_result(&self.gateway, &handshake, &self.scope);
        let session = self.gateway.new_session(self.principal.clone(), Arc::clone(&self.scope), handshake);
        session.channel.open_stream(self.sender.clone());
        *self.session.lock() = Some(Arc::clone(&session));
        let mut watcher = ChangeWatcher::new(&self.gateway, &self.scope, session.features.audience);
        let sender = self.sender.clone();
        tasks.spawn(async move {
            loop {
                let change = watcher.next(&session.known_lists).await;
                for message in watcher.session_notifications(&session, &change) {
                    if sender.send_response(message).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(result.into())
    }

    /// Sends change notifications until the request is cancelled. The request is counted once the stream is open.
    async fn listen(
        &self,
        client: &RequestClient,
        request: &ClientRequest,
        counted: CountedRequest,
    ) -> HandlerResult {
        let stream = SubscriptionStream::open(&self.gateway, client, request).await;
        counted.end(&stream);
        let mut stream = stream?;
        while self.sender.send_response(stream.next().await).await.is_ok() {}
        Err(RpcError::new(code::INTERNAL_ERROR, "the client has disconnected").into())
    }
}
