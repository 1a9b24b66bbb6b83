//! The stdio transport: one client, one message per line, in either era.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcp_model::{Era, RpcError, code};
use mcp_transport::CallerId;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::gateway::{Gateway, GatewayInner};
use crate::limits::byte_budget::MIN_COUNTED_BYTES;
use crate::methods::{self, initialize};
use crate::notifications::subscribe::SubscriptionRequest;
use crate::notifications::watch::{Change, ChangeWatcher, session_notification};
use crate::protocol::frame::{self, Incoming, Notification, Request};
use crate::protocol::meta::Meta;
use crate::protocol::response;
use crate::session::caller::{Caller, ClientFeatures};
use crate::session::known_lists::KnownLists;
use crate::session::outbound_queue::{MessageReceiver, MessageSender, message_channel};
use crate::session::resource_subscriptions::ResourceSubscriptions;
use crate::session::running_requests::RunningRequests;
use crate::session::state::Session;

/// Serves the client on `input` and `output` until the input ends or the output fails. Then its requests are
/// cancelled and its leases end. Dropping the future does the same.
pub async fn serve_stdio(
    gateway: &Gateway,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let gateway = gateway.inner();
    let (sender, messages) = message_channel(&gateway.options.bounds);
    let client_gone = CancellationToken::new();
    let mut writer = JoinSet::new();
    writer.spawn(write(messages, output, gateway.options.bounds.send_timeout, client_gone.clone()));
    let client = StdioClient {
        gateway: Arc::clone(gateway),
        scope: Arc::new(gateway.options.scope.clone()),
        sender,
        running: Arc::default(),
        session: Mutex::default(),
        dialog: Arc::new(gateway.host.dialog(mcp_host::DialogId::new(crate::access::secret_id::secret_id()))),
        owner: CallerId::unique(),
        principal: Principal::of_pipe(),
        permits: Arc::new(Semaphore::new(gateway.options.bounds.requests_per_client.max(1) * 2)),
    };
    let client = Arc::new(client);
    let mut tasks = JoinSet::new();
    tokio::select! {
        () = read(&client, input, &mut tasks) => {}
        () = client_gone.cancelled() => {}
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
        tracing::warn!("the client does not read its last responses");
    }
    writer.shutdown().await;
}

/// The client on stdio.
struct StdioClient {
    gateway: Arc<GatewayInner>,
    scope: Arc<Scope>,
    sender: MessageSender,
    running: Arc<RunningRequests>,
    /// Set by `initialize`, in the legacy era.
    session: Mutex<Option<Arc<Session>>>,
    /// The connection is one dialog, in either era.
    dialog: Arc<mcp_host::Dialog>,
    owner: CallerId,
    /// The identity of this connection.
    principal: Principal,
    /// Permits for requests whose responses are not written yet.
    permits: Arc<Semaphore>,
}

/// Writes messages. A client that reads nothing for `patience` counts as disconnected, because nothing else would
/// show that it is.
async fn write(
    mut messages: MessageReceiver,
    mut output: impl AsyncWrite + Unpin,
    patience: Duration,
    client_gone: CancellationToken,
) {
    while let Some(message) = messages.next().await {
        let mut lines = Vec::with_capacity(message.len() + 1);
        lines.extend_from_slice(&message);
        lines.push(b'\n');
        // Batches small messages into one write.
        while lines.len() < 64 * 1024
            && let Some(message) = messages.try_next()
        {
            lines.extend_from_slice(&message);
            lines.push(b'\n');
        }
        let mut rest = &lines[..];
        while !rest.is_empty() {
            match timeout(patience, output.write(rest)).await {
                Ok(Ok(written @ 1..)) => rest = &rest[written..],
                Ok(Ok(0) | Err(_)) => return client_gone.cancel(),
                Err(_) => {
                    tracing::warn!("the client does not read");
                    return client_gone.cancel();
                }
            }
        }
        if !matches!(timeout(patience, output.flush()).await, Ok(Ok(()))) {
            return client_gone.cancel();
        }
    }
}

async fn read(client: &Arc<StdioClient>, input: impl AsyncRead + Unpin, tasks: &mut JoinSet<()>) {
    let max_bytes = client.gateway.options.bounds.message_bytes;
    let mut input = BufReader::new(input);
    loop {
        let line = match read_line(&mut input, max_bytes).await {
            Ok(Some(InputLine::Whole(line))) => line,
            Ok(Some(InputLine::TooLong)) => {
                let error =
                    RpcError::new(code::INVALID_REQUEST, format!("a message may have {max_bytes} bytes"));
                if client.sender.send_response(response::error(None, &error)).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(None) | Err(_) => return,
        };
        while tasks.try_join_next().is_some() {}
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = match line.len() {
            0..MIN_COUNTED_BYTES => line,
            // Reading stops until the budget has room.
            bytes => client.gateway.budget.acquire(bytes).await.attach(line),
        };
        if client.take(line, tasks).await.is_err() {
            return;
        }
    }
}

enum InputLine {
    Whole(Bytes),
    TooLong,
}

/// The next line. A line that is too long is skipped. `None` at the end of the input.
async fn read_line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    max_bytes: usize,
) -> std::io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let found = input.fill_buf().await?;
        if found.is_empty() {
            return Ok((!line.is_empty()).then(|| InputLine::Whole(line.into())));
        }
        let end = memchr::memchr(b'\n', found);
        let part = &found[..end.unwrap_or(found.len())];
        if is_too_long || line.len() + part.len() > max_bytes {
            is_too_long = true;
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(found.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if is_too_long { InputLine::TooLong } else { InputLine::Whole(line.into()) }));
        }
    }
}

impl StdioClient {
    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Handles a line. Fails if the client has disconnected.
    async fn take(
        self: &Arc<StdioClient>,
        line: Bytes,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), crate::session::outbound_queue::SendError> {
        let has_batches =
            self.session().is_some_and(|it| it.version == mcp_model::ProtocolVersion::V2025_03_26);
        let messages = if has_batches { frame::read_many(&line) } else { Ok(vec![frame::read(&line)]) };
        let messages = match messages {
            Ok(messages) => messages,
            Err(it) => return self.sender.send_response(response::error(it.id.as_ref(), &it.error)).await,
        };
        for message in messages {
            match message {
                Ok(Incoming::Request(request)) => self.request(request, tasks).await?,
                Ok(Incoming::Notification(it)) => self.handle_notification(&it),
                Ok(Incoming::Response(it)) => {
                    if let Some(session) = self.session() {
                        session.server_requests.resolve(&it.id, it.outcome);
                    }
                }
                Err(it) => self.sender.send_response(response::error(it.id.as_ref(), &it.error)).await?,
            }
        }
        Ok(())
    }

    fn handle_notification(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled"
            && let Some(id) = methods::cancelled_id(&notification.params)
        {
            self.running.cancel(id);
        }
    }

    async fn request(
        self: &Arc<StdioClient>,
        request: Request,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), crate::session::outbound_queue::SendError> {
        if request.method == "initialize" && !request.meta.is_modern() {
            self.gateway.wait_for_startup().await;
            let response = self.initialize(&request, tasks);
            return self.sender.send_response(response).await;
        }
        let caller = match self.caller(&request.meta) {
            Ok(caller) => caller,
            Err(error) => return self.sender.send_response(response::error(Some(&request.id), &error)).await,
        };
        let mut guard = match self.running.start(&request.id, self.gateway.options.bounds.requests_per_client)
        {
            Ok(guard) => guard,
            Err(error) => return self.sender.send_response(response::error(Some(&request.id), &error)).await,
        };
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        let client = Arc::clone(self);
        tasks.spawn(async move {
            let id = request.id.clone();
            let is_subscription = request.method == "subscriptions/listen";
            let result = tokio::select! {
                biased;
                () = guard.cancelled() => return,
                result = async {
                    match caller.era() {
                        Era::Modern if is_subscription => client.listen(&caller, &request).await,
                        Era::Modern => client.gateway.handle_stateless(caller, Arc::new(request)).await,
                        Era::Legacy => client.gateway.handle_boxed(&caller, &request).await,
                    }
                } => result,
            };
            let response = match result {
                Ok(result) => client.gateway.budget.track(response::result(&id, &result)),
                Err(error) => response::error(Some(&id), &error),
            };
            drop(guard);
            // The client may be gone.
            let _ = client.sender.send_response(response).await;
            // Held until the response is queued, so a client that does not read sends no more requests.
            drop(permit);
        });
        Ok(())
    }

    /// The caller of a request, by its era.
    fn caller(&self, meta: &Meta) -> Result<Caller, RpcError> {
        if meta.is_modern() {
            let (version, capabilities) = meta.required()?;
            return Ok(Caller {
                version,
                scope: Arc::clone(&self.scope),
                dialog: Some(Arc::clone(&self.dialog)),
                features: ClientFeatures::of(capabilities),
                sender: self.sender.clone(),
                session: None,
                owner: self.owner,
                principal: self.principal.clone(),
            });
        }
        match self.session() {
            Some(session) => Ok(Caller::of_session(&session, self.sender.clone())),
            None => {
                let message = "send `initialize` first, or `_meta` with the version of the protocol";
                Err(RpcError::new(code::SERVER_ERROR, message))
            }
        }
    }

    fn initialize(self: &Arc<StdioClient>, request: &Request, tasks: &mut JoinSet<()>) -> Bytes {
        if self.session().is_some() {
            let error = RpcError::new(code::INVALID_REQUEST, "this session is initialized already");
            return response::error(Some(&request.id), &error);
        }
        let handshake = match initialize::read_handshake(request.params.raw()) {
            Ok(handshake) => handshake,
            Err(error) => return response::error(Some(&request.id), &error),
        };
        let result = initialize::initialize_result(&self.gateway, &handshake, &self.scope);
        let (dialog, scope) = (Arc::clone(&self.dialog), Arc::clone(&self.scope));
        let session = self.gateway.start_stdio_session(self.principal.clone(), dialog, scope, handshake);
        session.open_stream(self.sender.clone());
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
        let mut watcher = ChangeWatcher::new(&self.gateway, &self.scope);
        let sender = self.sender.clone();
        tasks.spawn(async move {
            loop {
                let notifications = match watcher.next(&session.known_lists).await {
                    Change::Lists(changed) => {
                        changed.iter().map(|it| response::notification(it.method(), "{}")).collect()
                    }
                    Change::Server(event) => {
                        let Session { subscriptions, dialog, .. } = &*session;
                        let notification =
                            session_notification(&event, subscriptions, dialog.id(), session.log_level());
                        Vec::from_iter(
                            notification.map(|(method, params)| response::notification(&method, &params)),
                        )
                    }
                };
                for message in notifications {
                    if sender.send_response(message).await.is_err() {
                        return;
                    }
                }
            }
        });
        response::result(&request.id, result.as_bytes())
    }

    /// Sends change notifications until the request is cancelled.
    async fn listen(&self, caller: &Caller, request: &Request) -> Result<Bytes, RpcError> {
        let mut subscription = SubscriptionRequest::read(request)?;
        let accepted = self.gateway.subscribe_all(caller, request, &subscription.resource_uris).await;
        let subscribed = ResourceSubscriptions::of(accepted);
        subscription.resource_uris = subscribed.uris();
        let known_lists = Mutex::new(KnownLists::of(&self.gateway.listing(&caller.scope)));
        let mut watcher = ChangeWatcher::new(&self.gateway, &caller.scope);
        let client_gone = |_| RpcError::new(code::INTERNAL_ERROR, "the client has no open stream");
        self.sender.send_response(subscription.acknowledgement()).await.map_err(client_gone)?;
        loop {
            let messages: Vec<Bytes> = match watcher.next(&known_lists).await {
                Change::Lists(changed) => changed
                    .into_iter()
                    .filter(|it| subscription.includes(*it))
                    .map(|it| subscription.list_changed(it))
                    .collect(),
                Change::Server(event) => subscribed
                    .updated(&event)
                    .map(|it| subscription.resource_updated(it))
                    .into_iter()
                    .collect(),
            };
            for message in messages {
                self.sender.send_response(message).await.map_err(client_gone)?;
            }
        }
    }
}
