//! One client on standard input and output: a line is a message, in either era, and the end of input is his end.

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
use crate::gateway::{Gateway, Inner};
use crate::limits::byte_budget::SMALL;
use crate::methods::{self, initialize};
use crate::notifications::resource_subscriptions::Subscribed;
use crate::notifications::subscribe::Wanted;
use crate::notifications::watch::{News, Watching, told};
use crate::protocol::frame::{self, Incoming, Notification, Request};
use crate::protocol::meta::Meta;
use crate::protocol::response;
use crate::session::caller::{Able, Caller};
use crate::session::known_lists::Told;
use crate::session::outbound_queue::{Inlet, Outlet, outlet};
use crate::session::running_requests::Running;
use crate::session::state::Session;

/// Serves the client on `input` and `output` until the input ends, or the output is gone. Then its requests are taken
/// back and what it has leased is given back. Dropping the future does the same.
pub async fn serve_stdio(
    gateway: &Gateway,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let gateway = gateway.inner();
    let (out, inlet) = outlet(&gateway.options.bounds);
    let gone = CancellationToken::new();
    let mut writing = JoinSet::new();
    writing.spawn(write(inlet, output, gateway.options.bounds.send, gone.clone()));
    let client = Client {
        gateway: Arc::clone(gateway),
        scope: Arc::new(gateway.options.scope.clone()),
        out,
        running: Arc::default(),
        session: Mutex::default(),
        dialog: Arc::new(gateway.host.dialog(mcp_host::DialogId::new(crate::access::secret_id::secret_id()))),
        owner: CallerId::unique(),
        principal: Principal::of_pipe(),
        places: Arc::new(Semaphore::new(gateway.options.bounds.requests_of_one.max(1) * 2)),
    };
    let client = Arc::new(client);
    let mut tasks = JoinSet::new();
    tokio::select! {
        () = read(&client, input, &mut tasks) => {}
        () = gone.cancelled() => {}
    }
    client.running.take_all_back();
    if let Some(session) = client.session() {
        session.end();
    }
    tasks.shutdown().await;
    gateway.parked.drop_of(&client.principal);
    drop(client);
    // What was answered is written before the end.
    let written = async { while writing.join_next().await.is_some() {} };
    if timeout(gateway.options.bounds.send, written).await.is_err() {
        tracing::warn!("the client does not read its last answers");
    }
    writing.shutdown().await;
}

/// The client on the pipe.
struct Client {
    gateway: Arc<Inner>,
    scope: Arc<Scope>,
    out: Outlet,
    running: Arc<Running>,
    /// Since `initialize`, in the era that has it.
    session: Mutex<Option<Arc<Session>>>,
    /// The pipe is one dialog, in either era.
    dialog: Arc<mcp_host::Dialog>,
    owner: CallerId,
    /// Whoever is on this pipe, and nobody on another one.
    principal: Principal,
    /// Places for requests whose answers were not taken yet.
    places: Arc<Semaphore>,
}

/// Writes what comes out of the inlet. Who takes nothing for as long as `patience` is gone: he is not waited for, for then
/// the end of his input would never be seen.
async fn write(
    mut inlet: Inlet,
    mut output: impl AsyncWrite + Unpin,
    patience: Duration,
    gone: CancellationToken,
) {
    while let Some(message) = inlet.next().await {
        let mut lines = Vec::with_capacity(message.len() + 1);
        lines.extend_from_slice(&message);
        lines.push(b'\n');
        // Many small messages go together.
        while lines.len() < 64 * 1024
            && let Some(message) = inlet.take()
        {
            lines.extend_from_slice(&message);
            lines.push(b'\n');
        }
        let mut rest = &lines[..];
        while !rest.is_empty() {
            match timeout(patience, output.write(rest)).await {
                Ok(Ok(written @ 1..)) => rest = &rest[written..],
                Ok(Ok(0) | Err(_)) => return gone.cancel(),
                Err(_) => {
                    tracing::warn!("the client does not read");
                    return gone.cancel();
                }
            }
        }
        if !matches!(timeout(patience, output.flush()).await, Ok(Ok(()))) {
            return gone.cancel();
        }
    }
}

async fn read(client: &Arc<Client>, input: impl AsyncRead + Unpin, tasks: &mut JoinSet<()>) {
    let most = client.gateway.options.bounds.message_bytes;
    let mut input = BufReader::new(input);
    loop {
        let line = match line(&mut input, most).await {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong)) => {
                let error = RpcError::new(code::INVALID_REQUEST, format!("a message may have {most} bytes"));
                if client.out.answer(response::error(None, &error)).await.is_err() {
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
            0..SMALL => line,
            // No more is read until there is room for it.
            many => client.gateway.budget.wait(many).await.keeps(line),
        };
        if client.take(line, tasks).await.is_err() {
            return;
        }
    }
}

enum Line {
    Whole(Bytes),
    TooLong,
}

/// The next line; one that is too long is skipped to its end. `None` when there is no more.
async fn line(input: &mut (impl AsyncBufReadExt + Unpin), most: usize) -> std::io::Result<Option<Line>> {
    let mut res = Vec::new();
    let mut is_too_long = false;
    loop {
        let found = input.fill_buf().await?;
        if found.is_empty() {
            return Ok((!res.is_empty()).then(|| Line::Whole(res.into())));
        }
        let end = memchr::memchr(b'\n', found);
        let part = &found[..end.unwrap_or(found.len())];
        match is_too_long || res.len() + part.len() > most {
            true => {
                is_too_long = true;
                res = Vec::new();
            }
            false => res.extend_from_slice(part),
        }
        let used = end.map_or(found.len(), |it| it + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if is_too_long { Line::TooLong } else { Line::Whole(res.into()) }));
        }
    }
}

impl Client {
    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a line in. Fails when the client is gone.
    async fn take(
        self: &Arc<Client>,
        line: Bytes,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), crate::session::outbound_queue::NotTaken> {
        let batches = self.session().is_some_and(|it| it.version == mcp_model::ProtocolVersion::V2025_03_26);
        let messages = match batches {
            true => frame::read_many(&line),
            false => Ok(vec![frame::read(&line)]),
        };
        let messages = match messages {
            Ok(messages) => messages,
            Err(it) => return self.out.answer(response::error(it.id.as_ref(), &it.error)).await,
        };
        for message in messages {
            match message {
                Ok(Incoming::Request(request)) => self.request(request, tasks).await?,
                Ok(Incoming::Notification(it)) => self.hear(&it),
                Ok(Incoming::Response(it)) => {
                    if let Some(session) = self.session() {
                        session.asked.answered(&it.id, it.outcome);
                    }
                }
                Err(it) => self.out.answer(response::error(it.id.as_ref(), &it.error)).await?,
            }
        }
        Ok(())
    }

    fn hear(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled"
            && let Some(id) = methods::cancelled(&notification.params)
        {
            self.running.take_back(id);
        }
    }

    async fn request(
        self: &Arc<Client>,
        request: Request,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), crate::session::outbound_queue::NotTaken> {
        if request.method == "initialize" && !request.meta.is_modern() {
            self.gateway.settle().await;
            let answer = self.initialize(&request, tasks);
            return self.out.answer(answer).await;
        }
        let caller = match self.caller(&request.meta) {
            Ok(caller) => caller,
            Err(error) => return self.out.answer(response::error(Some(&request.id), &error)).await,
        };
        let mut guard = match self.running.begin(&request.id, self.gateway.options.bounds.requests_of_one) {
            Ok(guard) => guard,
            Err(error) => return self.out.answer(response::error(Some(&request.id), &error)).await,
        };
        let place = Arc::clone(&self.places).acquire_owned().await.expect("it is never closed");
        let client = Arc::clone(self);
        tasks.spawn(async move {
            let id = request.id.clone();
            let listens = request.method == "subscriptions/listen";
            let answered = tokio::select! {
                biased;
                () = guard.taken_back() => return,
                answered = async {
                    match caller.era() {
                        Era::Modern if listens => client.listen(&caller, &request).await,
                        Era::Modern => client.gateway.stateless(caller, Arc::new(request)).await,
                        Era::Legacy => client.gateway.answer(&caller, &request).await,
                    }
                } => answered,
            };
            let answer = match answered {
                Ok(result) => client.gateway.budget.counted(response::result(&id, &result)),
                Err(error) => response::error(Some(&id), &error),
            };
            drop(guard);
            // A client that is gone needs no answer.
            let _ = client.out.answer(answer).await;
            // Until then it has its place: of who does not read no more is taken in.
            drop(place);
        });
        Ok(())
    }

    /// Who asks, in the era of the request.
    fn caller(&self, meta: &Meta) -> Result<Caller, RpcError> {
        if meta.is_modern() {
            let (version, capabilities) = meta.demanded()?;
            return Ok(Caller {
                version,
                scope: Arc::clone(&self.scope),
                dialog: Some(Arc::clone(&self.dialog)),
                able: Able::of(capabilities),
                outlet: self.out.clone(),
                session: None,
                owner: self.owner,
                principal: self.principal.clone(),
            });
        }
        match self.session() {
            Some(session) => Ok(Caller::of_session(&session, self.out.clone())),
            None => {
                let message = "send `initialize` first, or `_meta` with the version of the protocol";
                Err(RpcError::new(code::SERVER_ERROR, message))
            }
        }
    }

    fn initialize(self: &Arc<Client>, request: &Request, tasks: &mut JoinSet<()>) -> Bytes {
        if self.session().is_some() {
            let error = RpcError::new(code::INVALID_REQUEST, "this session is initialized already");
            return response::error(Some(&request.id), &error);
        }
        let agreed = match initialize::agree(request.params.raw()) {
            Ok(agreed) => agreed,
            Err(error) => return response::error(Some(&request.id), &error),
        };
        let result = initialize::initialized(&self.gateway, &agreed, &self.scope);
        let (dialog, scope) = (Arc::clone(&self.dialog), Arc::clone(&self.scope));
        let session = self.gateway.session_of(self.principal.clone(), dialog, scope, agreed);
        session.listens(self.out.clone());
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
        let mut watching = Watching::new(&self.gateway, &self.scope);
        let out = self.out.clone();
        tasks.spawn(async move {
            loop {
                let told = match watching.next(&session.told).await {
                    News::Lists(changed) => {
                        changed.iter().map(|it| response::notification(it.method(), "{}")).collect()
                    }
                    News::Said(said) => {
                        let Session { subscriptions, dialog, .. } = &*session;
                        let told = told(&said, subscriptions, dialog.id(), session.log_level());
                        Vec::from_iter(told.map(|(method, params)| response::notification(&method, &params)))
                    }
                };
                for message in told {
                    if out.answer(message).await.is_err() {
                        return;
                    }
                }
            }
        });
        response::result(&request.id, result.as_bytes())
    }

    /// Tells what changes, until the request is taken back.
    async fn listen(&self, caller: &Caller, request: &Request) -> Result<Bytes, RpcError> {
        let mut wanted = Wanted::read(request)?;
        let agreed = self.gateway.subscribe_all(caller, request, &wanted.updates).await;
        let subscribed = Subscribed::of(agreed);
        wanted.updates = subscribed.uris();
        let told = Mutex::new(Told::of(&self.gateway.listing(&caller.scope)));
        let mut watching = Watching::new(&self.gateway, &caller.scope);
        let gone = |_| RpcError::new(code::INTERNAL_ERROR, "the client does not listen");
        self.out.answer(wanted.acknowledged()).await.map_err(gone)?;
        loop {
            let messages: Vec<Bytes> = match watching.next(&told).await {
                News::Lists(changed) => {
                    changed.into_iter().filter(|it| wanted.hears(*it)).map(|it| wanted.changed(it)).collect()
                }
                News::Said(said) => {
                    subscribed.updated(&said).map(|it| wanted.updated(it)).into_iter().collect()
                }
            };
            for message in messages {
                self.out.answer(message).await.map_err(gone)?;
            }
        }
    }
}
