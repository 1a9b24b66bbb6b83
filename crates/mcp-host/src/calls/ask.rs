//! What is asked of a server besides calls of its tools: prompts, resources, completions.
//!
//! It goes where a call would go: to what is shared, or to what the dialog has leased, of the generation that is looked
//! at. What a filter hides cannot be asked for; a URI that no list has can, of the server that is named, for servers
//! make some up as they go.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Completion, ErrorKind, PromptResult, RawJson, ReadResult, ServerId, TraceContext};
use mcp_registry::ExposedPrompt;
use mcp_transport::{
    CallError, CallOptions, CallResponse, Caller, CompletionArgument, CompletionReference, InputHandling,
    OnProgress, RetryPolicy, Session,
};
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use super::deadline::{Due, outer};
use super::find::shown;
use super::resource_lookup::{Found, Wish, look, prompt};
use super::result_format::{RawResult, RequestError, Trouble};
use super::{Desk, Nowhere, Seat, Sight, TRIES, enter};
use crate::failure::HostError;
use crate::supervisor::connector::{about, call_failure};
use crate::supervisor::dialog::DialogId;
use crate::supervisor::machine::Place;
use crate::telemetry::spans::Record;

/// How something is asked for; the default asks as anybody would.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// The server that is meant, where a name or a URI alone is not enough.
    pub server: Option<ServerId>,
    /// The dialog that asks. What is not shared is leased to it; asking without a dialog shares with others who do.
    pub dialog: Option<DialogId>,
    /// The absolute deadline, of a lease's start as well; as in [`ToolCall::deadline`](crate::calls::ToolCall::deadline).
    pub deadline: Option<Duration>,
    /// Hears the progress.
    pub progress: Option<OnProgress>,
    /// The trace that it belongs to, as in [`ToolCall::trace`](crate::calls::ToolCall::trace).
    pub trace: Option<TraceContext>,
    /// Who answers what the server asks because of it, as in [`ToolCall::caller`](crate::calls::ToolCall::caller).
    pub caller: Option<Arc<Caller>>,
    /// The `_meta` that the caller gives, as in [`ToolCall::meta`](crate::calls::ToolCall::meta).
    pub meta: Option<RawJson>,
    /// More members of the parameters, as in [`ToolCall::more`](crate::calls::ToolCall::more).
    pub extra_params: Option<RawJson>,
    /// What becomes of a result that asks for input; only where it is asked for as bytes.
    pub input: InputHandling,
}

/// How something is asked of a session, under the name that its server knows it by. Boxed: of a future that borrows what
/// it is given when it is made, the compiler cannot tell whether it may go from thread to thread.
type Sending<T> = Arc<dyn for<'a> Fn(&'a Session, &'a str, CallOptions) -> Sent<'a, T> + Send + Sync>;
type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send + 'a>>;

impl Desk {
    /// Fills a prompt in.
    pub(crate) async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        asking: RequestOptions,
        sight: Sight<'_>,
    ) -> Result<PromptResult, HostError> {
        let given = arguments.clone();
        let send: Sending<PromptResult> = Arc::new(move |session, name, options| {
            let given = given.clone();
            Box::pin(async move { session.get_prompt(name, &given, options).await.map(|it| it.value) })
        });
        self.prompt((name, arguments), asking, sight, send).await.map(|it| it.0).map_err(|it| it.error)
    }

    /// Fills a prompt in, and hands the result on as it is.
    pub(crate) async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        asking: RequestOptions,
        sight: Sight<'_>,
    ) -> Result<RawResult, RequestError> {
        let given = arguments.clone();
        let send: Sending<CallResponse<RawJson>> = Arc::new(move |session, name, options| {
            let given = given.clone();
            Box::pin(async move { session.get_prompt_raw(name, &given, options).await })
        });
        self.prompt((name, arguments), asking, sight, send).await.map(raw)
    }

    async fn prompt<T>(
        &self,
        (name, arguments): (&str, &RawJson),
        asking: RequestOptions,
        sight: Sight<'_>,
        send: Sending<T>,
    ) -> Result<(T, ServerId), RequestError> {
        let snapshot = self.seen(sight);
        if let Ok(prompt) = prompt(&snapshot, name, asking.server.as_ref()) {
            let missing = |it: HostError| Trouble::from(it).of(Some(prompt.server.clone()));
            complete_enough(prompt, arguments).map_err(missing)?;
        }
        self.ask("prompts/get", Wish::Prompt(name), asking, sight, send).await
    }

    /// Reads a resource.
    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        asking: RequestOptions,
        sight: Sight<'_>,
    ) -> Result<ReadResult, HostError> {
        let send: Sending<ReadResult> =
            Arc::new(|session, uri, options| Box::pin(session.read_resource(uri, options)));
        let read = self.ask("resources/read", Wish::Resource(uri), asking, sight, send).await;
        read.map(|it| it.0).map_err(|it| it.error)
    }

    /// Reads a resource, and hands the result on as it is.
    pub(crate) async fn read_resource_raw(
        &self,
        uri: &str,
        asking: RequestOptions,
        sight: Sight<'_>,
    ) -> Result<RawResult, RequestError> {
        let send: Sending<CallResponse<RawJson>> =
            Arc::new(|session, uri, options| Box::pin(session.read_resource_raw(uri, options)));
        self.ask("resources/read", Wish::Resource(uri), asking, sight, send).await.map(raw)
    }

    /// Says what an argument could be.
    pub(crate) async fn complete(
        &self,
        of: &CompletionReference,
        argument: &CompletionArgument,
        asking: RequestOptions,
        sight: Sight<'_>,
    ) -> Result<Completion, HostError> {
        let known = (of.clone(), argument.clone());
        let send: Sending<Completion> = Arc::new(move |session, name, options| {
            let (of, argument) = known.clone();
            Box::pin(async move { session.complete(&renamed(&of, name), &argument, options).await })
        });
        let completed = self.ask("completion/complete", completion(of), asking, sight, send).await;
        completed.map(|it| it.0).map_err(|it| it.error)
    }

    /// Says what an argument could be, and hands the result on as it is.
    pub(crate) async fn complete_raw(
        &self,
        of: &CompletionReference,
        argument: &CompletionArgument,
        asking: RequestOptions,
        sight: Sight<'_>,
    ) -> Result<RawResult, RequestError> {
        let known = (of.clone(), argument.clone());
        let send: Sending<CallResponse<RawJson>> = Arc::new(move |session, name, options| {
            let (of, argument) = known.clone();
            Box::pin(async move { session.complete_raw(&renamed(&of, name), &argument, options).await })
        });
        self.ask("completion/complete", completion(of), asking, sight, send).await.map(raw)
    }

    async fn ask<T>(
        &self,
        method: &'static str,
        wish: Wish<'_>,
        asking: RequestOptions,
        sight: Sight<'_>,
        send: Sending<T>,
    ) -> Result<(T, ServerId), RequestError> {
        let span = tracing::info_span!("ask", method, server = Empty, outcome = Empty, duration = Empty);
        async {
            let record = Record::begin();
            let res = self.answer(wish, &asking, sight, send).await;
            let outcome = res.as_ref().err().map_or("success", |it| it.error.kind.as_str());
            let duration = record.end(outcome);
            tracing::info!(outcome, ?duration, "asked");
            res
        }
        .instrument(span)
        .await
    }

    async fn answer<T>(
        &self,
        wish: Wish<'_>,
        asking: &RequestOptions,
        sight: Sight<'_>,
        send: Sending<T>,
    ) -> Result<(T, ServerId), RequestError> {
        let nowhere = |failure: HostError| Trouble::from(failure).of(None);
        let dialog = asking.dialog.as_ref();
        if let Some(failure) = dialog.and_then(|it| self.stopped(it)) {
            return Err(nowhere(failure));
        }
        let due = Due::begin(Instant::now(), asking.deadline);
        // As for calls: a retired gate means that another look shows what has taken its place.
        for _ in 0..TRIES {
            let found = look(&self.seen(sight), wish, asking.server.as_ref());
            let Found { server, place, name } = found.map_err(nowhere)?;
            let id = &server.spec.id;
            let of_it = |failure: HostError| Trouble::from(failure).of(Some(id.clone()));
            tracing::Span::current().record("server", id.as_str());
            let seat = Seat { server: id, place: &place, dialog };
            let instance = match due.within(self.instance(seat, sight)).await {
                None => return Err(of_it(due.missed(&server))),
                Some(Ok(instance)) => Some(instance),
                Some(Err(Nowhere::Refused(failure))) => return Err(of_it(failure)),
                Some(Err(Nowhere::Retired)) => None,
            };
            let guard = instance.as_ref().and_then(|it| enter(it, sight));
            let (Some(instance), Some(guard)) = (&instance, guard) else {
                match (sight, &place, &instance) {
                    // As for calls: a lease may have been given back in this moment.
                    (Sight::Latest, ..) | (Sight::Pinned(_), Place::Leased(_), Some(_)) => continue,
                    (Sight::Pinned(_), Place::Shared(_), _) | (Sight::Pinned(_), Place::Leased(_), None) => {
                        return Err(of_it(replaced(&server, wish)));
                    }
                }
            };
            instance.touch(Instant::now());
            let sent = |options| send(&instance.session, &name, options);
            let outcome = self.within(asking, &server, due, sent).await;
            instance.touch(Instant::now());
            drop(guard);
            return match outcome {
                Ok(value) => Ok((value, id.clone())),
                Err(trouble) => Err(trouble.of(Some(id.clone()))),
            };
        }
        let message = format!("{} is not available: its server is being replaced", wish.words());
        Err(nowhere(HostError::new(ErrorKind::Connection, message)))
    }

    async fn within<T, S: Future<Output = Result<T, CallError>>>(
        &self,
        asking: &RequestOptions,
        server: &ResolvedServer,
        due: Due,
        send: impl FnOnce(CallOptions) -> S,
    ) -> Result<T, Trouble> {
        let limits = &server.spec.limits;
        let deadline = due.rest(limits.request);
        let options = CallOptions {
            timeout: Some(deadline),
            idle_timeout: limits.idle,
            retry: RetryPolicy::Once,
            progress: asking.progress.clone(),
            trace: self.traced(asking.trace.as_ref()),
            caller: self.caller(asking.caller.as_ref(), asking.dialog.as_ref()),
            meta: asking.meta.clone(),
            extra_params: asking.extra_params.clone(),
            input: asking.input,
        };
        match tokio::time::timeout(outer(deadline, &options), send(options)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Trouble::new(call_failure(server, &error), &error)),
            Err(_) => {
                let what = format!("no answer within {} s", deadline.as_secs_f64());
                Err(about(server, ErrorKind::Timeout, what).into())
            }
        }
    }
}

fn raw((answer, server): (CallResponse<RawJson>, ServerId)) -> RawResult {
    RawResult { result: answer.value, server, request_id: Some(answer.request_id) }
}

/// What a completion is of, in the words of the catalog.
fn completion(of: &CompletionReference) -> Wish<'_> {
    match of {
        CompletionReference::Prompt(name) => Wish::Prompt(name),
        CompletionReference::ResourceTemplate(uri) => Wish::Template(uri),
    }
}

/// The same by the name that its server knows.
fn renamed(of: &CompletionReference, name: &str) -> CompletionReference {
    match of {
        CompletionReference::Prompt(_) => CompletionReference::Prompt(name.to_owned()),
        CompletionReference::ResourceTemplate(_) => CompletionReference::ResourceTemplate(name.to_owned()),
    }
}

/// Does a prompt get what it says that it needs?
fn complete_enough(prompt: &ExposedPrompt, arguments: &RawJson) -> Result<(), HostError> {
    let given: serde_json::Map<String, serde_json::Value> = arguments.read().unwrap_or_default();
    let missing: Vec<String> = prompt
        .prompt
        .arguments()
        .into_iter()
        .filter(|it| it.required && !given.contains_key(&it.name))
        .map(|it| format!("'{}'", shown(&it.name)))
        .collect();
    let name = prompt.name.as_str();
    match missing.as_slice() {
        [] => Ok(()),
        [one] => {
            Err(HostError::new(ErrorKind::Validation, format!("Prompt '{name}' needs the argument {one}")))
        }
        many => {
            let message = format!("Prompt '{name}' needs the arguments {}", many.join(", "));
            Err(HostError::new(ErrorKind::Validation, message))
        }
    }
}

/// What is told who asks too late of a pinned generation.
fn replaced(server: &ResolvedServer, wish: Wish<'_>) -> HostError {
    let message = format!(
        "Replaced: server '{}' was replaced or stopped after this generation; {} of it is no longer there",
        server.spec.id,
        wish.words()
    );
    HostError::new(ErrorKind::Connection, message)
}
