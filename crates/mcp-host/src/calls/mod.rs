//! A call from its name to its result. Whatever goes wrong becomes a result that says so.

pub(crate) mod admin;
mod ask;
mod bound;
pub(crate) mod deadline;
mod find;
mod outcome;
mod own;
pub(crate) mod pin;
pub(crate) mod provider_refusal;
pub(crate) mod resource_lookup;
pub(crate) mod result_format;
pub(crate) mod spill;
mod subscribe;
mod tell;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{CallResult, ErrorKind, RawJson, ServerId, Tool, TraceContext};
use mcp_registry::{ValidationOutcome, ValidatorCache};
use mcp_transport::{CallError, CallOptions, Caller, InputHandling, OnProgress, RequestId, RetryPolicy};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::Instrument;

use crate::calls::pin::PinnedGeneration;
use crate::calls::spill::Spills;
use crate::failure::HostError;
use crate::failure::excerpt::excerpt;
use crate::host::TraceSource;
use crate::metrics::Meter;
use crate::notifications::dialog_callers::Voices;
use crate::notifications::log_levels::Levels;
use crate::notifications::stream::Hub;
use crate::notifications::subscriptions::Subscriptions;
use crate::state::server_info_cache::Acquaintances;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::committer::{Command, Shared};
use crate::supervisor::connector::{about, call_failure};
use crate::supervisor::dialog::Ends;
use crate::supervisor::dialog::{DialogId, ReminderText};
use crate::supervisor::gate::Guard;
use crate::supervisor::machine::{Answer, Event, LeaseTable, Place, Snapshot, ToolNote, Wanting, later};
use crate::telemetry::spans::CallRecord;
pub use ask::RequestOptions;
use deadline::{Due, outer};
use find::{find, shown};
use result_format::{Form, Trouble};
pub use result_format::{RawResult, RequestError};

/// How often a call is looked up whose instance was retired between its look-up and its beginning.
const TRIES: usize = 4;

/// A call to be made.
#[derive(Clone)]
pub struct ToolCall {
    /// The tool's exposed name, or its original name where no other server has one of that name.
    pub name: String,
    /// A JSON object.
    pub arguments: RawJson,
    /// Hears the call's progress.
    pub progress: Option<OnProgress>,
    /// The absolute deadline, which covers also the start of what is leased; that start goes on without the call. Where
    /// `None`, a start has the server's `limits.startup`, and the call itself `limits.request`.
    pub deadline: Option<Duration>,
    /// The server that is meant, where the name alone is not enough.
    pub server: Option<ServerId>,
    /// The dialog that calls. What is not shared is leased to it; calls without a dialog share theirs.
    pub dialog: Option<DialogId>,
    /// The trace that the call belongs to, which its server is told; where `None`, what
    /// [`HostOptions::trace`](crate::host::HostOptions::trace) gives.
    pub trace: Option<TraceContext>,
    /// Who answers what the server asks because of the call; where `None`, who speaks for the dialog
    /// ([`Host::dialog_with`](crate::host::Host::dialog_with)), else the host's own handlers.
    pub caller: Option<Arc<Caller>>,
    /// The `_meta` that the caller gives, handed on but for what belongs to his own connection
    /// ([`CallOptions::meta`](mcp_transport::CallOptions::meta)).
    pub meta: Option<RawJson>,
    /// More members of the request's parameters, a JSON object, handed on.
    pub extra_params: Option<RawJson>,
    /// What becomes of a result that asks for input; only [`Host::call_raw`](crate::host::Host::call_raw) can hand it on.
    pub input: InputHandling,
}

impl ToolCall {
    /// A call of `name` with nothing special about it.
    pub fn new(name: impl Into<String>, arguments: RawJson) -> ToolCall {
        ToolCall {
            name: name.into(),
            arguments,
            progress: None,
            deadline: None,
            server: None,
            dialog: None,
            trace: None,
            caller: None,
            meta: None,
            extra_params: None,
            input: InputHandling::ByHandlers,
        }
    }
}

impl fmt::Debug for ToolCall {
    /// Without the arguments, which are a model's or a user's own words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToolCall {
            name,
            arguments,
            progress: _,
            deadline,
            server,
            dialog,
            trace,
            caller,
            meta: _,
            extra_params: _,
            input,
        } = self;
        f.debug_struct("ToolCall")
            .field("name", name)
            .field("arguments", &format_args!("{} bytes", arguments.as_bytes().len()))
            .field("deadline", deadline)
            .field("server", server)
            .field("dialog", dialog)
            .field("trace", trace)
            .field("caller", caller)
            .field("input", input)
            .finish_non_exhaustive()
    }
}

/// Where calls are taken.
pub(crate) struct Desk {
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot<Shared>>>,
    pub(crate) leases: watch::Receiver<Arc<LeaseTable<Shared>>>,
    pub(crate) validators: ValidatorCache,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) reminder: ReminderText,
    pub(crate) idle: Option<Duration>,
    pub(crate) wall_clock: WallClock,
    pub(crate) meter: Arc<Meter>,
    pub(crate) spills: Spills,
    pub(crate) ends: Ends,
    pub(crate) trace: Option<TraceSource>,
    pub(crate) voices: Arc<Voices>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) levels: Arc<Levels>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) acquaintances: Arc<Acquaintances>,
}

/// Which generation a call is of.
#[derive(Clone, Copy)]
pub(crate) enum Sight<'a> {
    /// The latest.
    Latest,
    /// One that is kept.
    Pinned(&'a PinnedGeneration),
}

/// What was found under a call's name.
enum Found {
    /// A server's tool.
    Servers(Target),
    /// One of the host's own.
    Own(Arc<Tool>),
}

/// A tool of a server, and where its calls go.
#[derive(Clone)]
struct Target {
    server: Arc<ResolvedServer>,
    place: Place<Shared>,
    tool: Arc<Tool>,
}

/// Where something is sent, and for whom.
#[derive(Clone, Copy)]
struct Seat<'a> {
    server: &'a ServerId,
    place: &'a Place<Shared>,
    dialog: Option<&'a DialogId>,
}

/// How a call ended.
struct Ending<T> {
    /// Whose tool it was, if it was found.
    tool: Option<(ServerId, String)>,
    budget: usize,
    duration: Duration,
    outcome: Result<Done<T>, Trouble>,
}

/// What a call brought.
struct Done<T> {
    request_id: Option<RequestId>,
    value: T,
    /// What is not as it should be.
    warnings: Vec<String>,
}

/// Why a call has no instance to go to.
enum Nowhere {
    /// It was retired meanwhile: another look may show another one.
    Retired,
    /// For this reason.
    Refused(HostError),
}

impl Desk {
    /// Makes a call.
    pub(crate) async fn call(&self, call: ToolCall, sight: Sight<'_>) -> CallResult {
        let record = CallRecord::begin(&self.meter);
        let span = record.span();
        // In its place, for it is large: what is put into something else is copied.
        let work = pin!(async {
            let ending = self.make(&call, sight, &record).await;
            let result = self.result(&call, ending, &record).await;
            record.end(result.error.as_ref().map(|it| it.kind), result.metadata.duration);
            result
        });
        work.instrument(span).await
    }

    /// Makes a call whose result is handed on as it is.
    pub(crate) async fn call_raw(&self, call: ToolCall, sight: Sight<'_>) -> Result<RawResult, RequestError> {
        let record = CallRecord::begin(&self.meter);
        let span = record.span();
        let work = pin!(async {
            let Ending { tool, budget: _, duration, outcome } =
                self.make::<RawJson>(&call, sight, &record).await;
            let server = tool.map(|it| it.0);
            let outcome = match (outcome, server) {
                (Ok(Done { request_id, value, warnings: _ }), Some(server)) => {
                    record.weighed(value.as_bytes().len());
                    Ok(RawResult { result: value, server, request_id })
                }
                (Ok(_), None) => unreachable!("a result is some tool's"),
                (Err(trouble), server) => Err(trouble.of(server)),
            };
            record.end(outcome.as_ref().err().map(|it| it.error.kind), duration);
            outcome
        });
        work.instrument(span).await
    }

    /// The latest generation.
    pub(crate) fn latest(&self) -> Arc<Snapshot<Shared>> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// The generation that is looked at.
    fn seen(&self, sight: Sight<'_>) -> Arc<Snapshot<Shared>> {
        match sight {
            Sight::Latest => self.latest(),
            Sight::Pinned(pinned) => Arc::clone(pinned.routing()),
        }
    }

    /// The trace that something belongs to: the one that its caller says, else the host's own.
    fn traced(&self, said: Option<&TraceContext>) -> Option<TraceContext> {
        said.cloned().or_else(|| self.trace.as_ref().and_then(|it| it()))
    }

    /// Who something is asked for: whoever its caller says, else who speaks for the dialog.
    fn caller(&self, said: Option<&Arc<Caller>>, dialog: Option<&DialogId>) -> Option<Arc<Caller>> {
        said.cloned().or_else(|| dialog.and_then(|it| self.voices.of(it)))
    }

    async fn make<T: Form>(&self, call: &ToolCall, sight: Sight<'_>, record: &CallRecord<'_>) -> Ending<T> {
        let nowhere = |failure: HostError| {
            let duration = record.elapsed();
            Ending { tool: None, budget: usize::MAX, duration, outcome: Err(failure.into()) }
        };
        // Also of a pinned generation: that a dialog is stopped holds from the moment it is said (DM-066).
        if let Some(failure) = call.dialog.as_ref().and_then(|it| self.stopped(it)) {
            return nowhere(failure);
        }
        // The clock is looked at when a call begins and when it ends, and more often only where it waits in between.
        let due = Due::begin(record.begun(), call.deadline);
        // A gate that is retired means that the server was replaced or stopped since the look-up, and that its
        // successor, or its absence, was published before. So one more look-up is enough, but for a lease, which may
        // be given back again and again.
        for _ in 0..TRIES {
            let snapshot = self.seen(sight);
            let target = match target(&snapshot, call) {
                Ok(Found::Servers(target)) => target,
                // Boxed, as all that is rare: every call's future would be as large.
                Ok(Found::Own(tool)) => return Box::pin(self.order(call, &tool, record)).await,
                Err(failure) => return nowhere(failure),
            };
            record.found(&target.server.spec.id, &target.tool.name);
            let ended = |outcome, at: Instant| Ending {
                tool: Some((target.server.spec.id.clone(), target.tool.name.to_string())),
                budget: target.server.spec.limits.result_bytes,
                duration: at.saturating_duration_since(record.begun()),
                outcome,
            };
            let ending = |outcome| ended(outcome, Instant::now());
            let seat =
                Seat { server: &target.server.spec.id, place: &target.place, dialog: call.dialog.as_ref() };
            let instance = match &target.place {
                Place::Shared(instance) => Ok(Arc::clone(instance)),
                Place::Leased(_) => match Box::pin(due.within(self.instance(seat, sight))).await {
                    None => return ending(Err(due.missed(&target.server).into())),
                    Some(found) => found,
                },
            };
            let instance = match instance {
                Ok(instance) => instance,
                Err(Nowhere::Refused(failure)) => return ending(Err(failure.into())),
                Err(Nowhere::Retired) => match sight {
                    Sight::Latest => continue,
                    Sight::Pinned(_) => return ending(Err(replaced(call, &target).into())),
                },
            };
            let Some(guard) = enter(&instance, sight) else {
                match (sight, &target.place) {
                    // A lease that was given back in this moment.
                    (Sight::Latest, _) | (Sight::Pinned(_), Place::Leased(_)) => continue,
                    (Sight::Pinned(_), Place::Shared(_)) => {
                        return ending(Err(replaced(call, &target).into()));
                    }
                }
            };
            let now = match &target.place {
                Place::Shared(_) => record.begun(),
                Place::Leased(_) => Instant::now(),
            };
            instance.touch(now);
            let outcome = self.send(call, &target, &instance, (due, now)).await;
            let now = Instant::now();
            instance.touch(now);
            drop(guard);
            return ended(outcome, now);
        }
        let message = format!("Tool '{}' is not available: its server is being replaced", shown(&call.name));
        nowhere(HostError::new(ErrorKind::Connection, message))
    }

    /// The instance that something goes to.
    async fn instance(&self, seat: Seat<'_>, sight: Sight<'_>) -> Result<Shared, Nowhere> {
        let Seat { server, place, dialog } = seat;
        let base = match place {
            Place::Shared(instance) => return Ok(Arc::clone(instance)),
            Place::Leased(base) => *base,
        };
        let server = server.clone();
        let dialog = dialog.cloned().unwrap_or_else(DialogId::none);
        match sight {
            Sight::Latest => self.leased(Wanting { dialog, server, base }).await,
            Sight::Pinned(pinned) => {
                let kept = pinned.leased(&dialog, &server);
                if let Some(kept) = kept.as_ref().filter(|it| it.gate.is_open() && !it.is_over()) {
                    return Ok(Arc::clone(kept));
                }
                // Given back or lost: another one of the same start is as good. Where that start was replaced, what is
                // kept takes the turn's calls while it drains.
                let wanting = Wanting { dialog: dialog.clone(), server: server.clone(), base };
                match self.leased(wanting).await {
                    Ok(instance) => {
                        pinned.keep(&dialog, &server, &instance);
                        Ok(instance)
                    }
                    Err(Nowhere::Retired) => kept.filter(|it| it.takes_pinned()).ok_or(Nowhere::Retired),
                    Err(Nowhere::Refused(failure)) => Err(Nowhere::Refused(failure)),
                }
            }
        }
    }

    /// The dialog's own instance: the one that it has, else a new one.
    async fn leased(&self, wanting: Wanting) -> Result<Shared, Nowhere> {
        let key = (wanting.dialog.clone(), wanting.server.clone());
        if let Some(held) = self.leases.borrow().held.get(&key)
            && held.base == wanting.base
            && held.instance.gate.is_open()
        {
            return Ok(Arc::clone(&held.instance));
        }
        let (answer, taken) = oneshot::channel();
        let shut_down = || Nowhere::Refused(HostError::new(ErrorKind::Connection, "the host was shut down"));
        let asked = self.ends.so_far();
        self.commands.send(Command::Lease(wanting, asked, answer)).await.map_err(|_| shut_down())?;
        match taken.await {
            Ok(Answer::Granted(instance)) => Ok(instance),
            Ok(Answer::Refused(failure)) => Err(Nowhere::Refused(failure)),
            Ok(Answer::Again | Answer::Released | Answer::NotHeld) => Err(Nowhere::Retired),
            Err(_) => Err(shut_down()),
        }
    }

    async fn send<T: Form>(
        &self,
        call: &ToolCall,
        target: &Target,
        instance: &Shared,
        (due, now): (Due, Instant),
    ) -> Result<Done<T>, Trouble> {
        let Target { server, place: _, tool } = target;
        self.validate(call, &server.spec.id, tool)?;
        let limits = &server.spec.limits;
        let deadline = due.rest(limits.request);
        let replay = if tool.hints.is_repeatable() { RetryPolicy::Once } else { RetryPolicy::Never };
        let options = CallOptions {
            timeout: Some(deadline),
            idle_timeout: limits.idle,
            retry: replay,
            progress: call.progress.clone(),
            trace: self.traced(call.trace.as_ref()),
            caller: self.caller(call.caller.as_ref(), call.dialog.as_ref()),
            meta: call.meta.clone(),
            extra_params: call.extra_params.clone(),
            input: call.input,
        };
        let outer = outer(deadline, &options);
        let answer = pin!(T::fetch(&instance.session, &tool.name, &call.arguments, options));
        match tokio::time::timeout_at(later(now, outer), answer).await {
            Ok(Ok(answer)) => {
                let warnings = answer.value.judge(self, &server.spec.id, tool);
                Ok(Done { request_id: Some(answer.request_id), value: answer.value, warnings })
            }
            Ok(Err(error @ CallError::Closed(_))) if replay == RetryPolicy::Never => {
                let mut res = call_failure(server, &error);
                res.message.push_str("; it is not known whether the call ran");
                Err(res.into())
            }
            Ok(Err(error)) => Err(Trouble::new(call_failure(server, &error), &error)),
            Err(_) => {
                let what = format!("no answer within {} s", deadline.as_secs_f64());
                Err(about(server, ErrorKind::Timeout, what).into())
            }
        }
    }

    /// Checks the arguments against the tool's schema, before anything is sent.
    fn validate(&self, call: &ToolCall, server: &ServerId, tool: &Tool) -> Result<(), HostError> {
        let invalid = |what: &str| {
            let message = format!("Invalid arguments for tool '{}': {what}", shown(&call.name));
            HostError::new(ErrorKind::Validation, message)
        };
        if !call.arguments.is_object() {
            return Err(invalid("they must be a JSON object"));
        }
        match self.validators.check_arguments(&tool.input_schema, &call.arguments) {
            Ok(ValidationOutcome::Valid) => {}
            Ok(ValidationOutcome::Unvalidated(reason)) => {
                tracing::debug!(reason, "arguments are passed on unchecked");
                self.note(server, tool, ToolNote::ArgumentsUnchecked, Some(excerpt(reason)));
            }
            Err(errors) => return Err(invalid(&excerpt(errors.to_string().replace('\n', "; ")))),
        }
        Ok(())
    }
}

impl Desk {
    /// Tells what was found out about a tool; `None` where it is no longer so.
    fn note(&self, server: &ServerId, tool: &Tool, note: ToolNote, reason: Option<String>) {
        let (server, tool) = (server.clone(), tool.name.to_string());
        // A full queue only means that the problem is shown after another call.
        let _ = self.commands.try_send(Command::Found(Event::Noted { server, tool, note, reason }));
    }
}

/// What the call means in this generation.
fn target(snapshot: &Snapshot<Shared>, call: &ToolCall) -> Result<Found, HostError> {
    let (tool, route) = find(snapshot, &call.name, call.server.as_ref())?;
    let tool = tool.tool.clone();
    Ok(match route {
        Some(route) => {
            Found::Servers(Target { server: Arc::clone(&route.server), place: route.place.clone(), tool })
        }
        None => Found::Own(tool),
    })
}

fn enter<'a>(instance: &'a Shared, sight: Sight<'_>) -> Option<Guard<'a>> {
    match sight {
        Sight::Latest => instance.gate.begin(),
        Sight::Pinned(_) => instance.gate.begin_pinned(),
    }
}

/// What a pinned call is told that comes too late.
fn replaced(call: &ToolCall, target: &Target) -> HostError {
    let message = format!(
        "Replaced: server '{}' was replaced or stopped after this generation; tool '{}' of it is no longer there",
        target.server.spec.id,
        shown(&call.name)
    );
    HostError::new(ErrorKind::Connection, message)
}
