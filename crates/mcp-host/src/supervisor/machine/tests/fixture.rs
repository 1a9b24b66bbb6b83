//! A state machine that text commands drive, for tests of the machine and of its snapshots.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{
    ClientCredentials, ClientGrant, ClientKey, Endpoint, Era, ErrorKind, Exposure, NameClass, NamePolicy,
    NameTransform, Profile, RawJson, ServerId, ServerSpec, Sharing, SpecOrigin, StdioEndpoint, StdioSpec,
    TransportSpec, UrlEndpoint, read_tools,
};
use mcp_host_registry::{Builtins, ListKind, Problem, ProviderRejection, ServerLists};
use mcp_host_transport::ListChangeCounts;
use tokio::time::Instant;

use crate::config::desired::{DesiredServers, FailedServer};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::event::HostEventKind;
use crate::supervisor::dialog_end::DialogEnd;
use crate::supervisor::lease_policy::{LeasePolicy, RequestingServers};
use crate::supervisor::lists::ListSnapshot;
use crate::supervisor::machine::{
    ConnectionLoss, DrainMode, LeaseReply, LeaseRequest, LossMoment, Machine, MachineAction, MachineEvent,
    MachineSettings, RouteTarget, StartTicket, StartedInstance, WaiterId,
};
use crate::supervisor::machine::{ProbePolicy, RestartPolicy, Supervision};
use crate::supervisor::tool_problem::ToolProblem;

/// Returns a server from text: `a=1.2` is the server `a` with revision 1 of its connection and revision 2 of its names
/// (a suffix of every name). Options: `-unloaded` does not list its tools, `-nowrite` hides its tool `write`,
/// `-brief` limits its calls to 1 s, `-own` gives each dialog its own instance, `-auto` does so after a server request,
/// `-bare` leaves names unchanged, `-user` exchanges the token of each user.
pub(crate) fn server(text: &str) -> ResolvedServer {
    let (id, revisions) = text.split_once('=').unwrap();
    let (revisions, option) = revisions.split_once('-').unwrap_or((revisions, ""));
    let (runtime, exposure) = revisions.split_once('.').unwrap();
    let mut endpoint = StdioEndpoint::new("npx");
    endpoint.args.push(runtime.into());
    let mut shown = Exposure::all(NamePolicy::Qualify { class: NameClass::Strict });
    if exposure != "1" {
        shown.tools.transforms.push(NameTransform::Suffix(format!("-{exposure}")));
    }
    if option == "bare" {
        shown.tools.naming = NamePolicy::Pass;
    }
    if option == "nowrite" {
        shown.tools.filter.blacklist.push("write".to_owned());
    }
    let origin = SpecOrigin::new(Profile::HoloDeck, "f");
    let transport = TransportSpec::Stdio(StdioSpec::new("npx"));
    let mut spec = ServerSpec::new(ServerId::parse(id).unwrap(), origin, transport);
    if option == "brief" {
        spec.limits.request = Duration::from_secs(1);
    }
    spec.discovery.tools = option != "unloaded";
    spec.exposure = shown;
    spec.sharing = match option {
        "own" => Sharing::PerOwner,
        "auto" => Sharing::Auto,
        _ => Sharing::Shared,
    };
    let endpoint = match option {
        "user" => user_endpoint(runtime),
        _ => Endpoint::Stdio(endpoint),
    };
    ResolvedServer::new(spec, endpoint)
}

fn user_endpoint(runtime: &str) -> Endpoint {
    let mut endpoint = UrlEndpoint::new(format!("https://a.example/{runtime}").parse().unwrap());
    let key = ClientKey::Secret("secret".into());
    let credentials = ClientCredentials::new(ClientGrant::TokenExchange, "host", key, "https://id.example");
    endpoint.client_credentials = Some(credentials);
    Endpoint::Http(endpoint)
}

/// Returns lists from text: `t,u,!v` has two tools and a failed read with the message `!v`; `-` has nothing.
pub(crate) fn listing(names: &str) -> ListSnapshot {
    let tools = names.split(',').filter(|it| *it != "-" && !it.starts_with('!'));
    let tools: Vec<String> =
        tools.map(|it| format!(r#"{{"name":"{it}","inputSchema":{{"type":"object"}}}}"#)).collect();
    let page = RawJson::parse(format!(r#"{{"tools":[{}]}}"#, tools.join(",")).into()).unwrap();
    let mut lists = ServerLists::default();
    lists.tools = read_tools(&page).unwrap().into_shared();
    let failures = names.split(',').filter(|it| it.starts_with('!'));
    let failures = failures.map(|it| (ListKind::Tool, HostError::new(ErrorKind::Timeout, it))).collect();
    ListSnapshot { lists: Arc::new(lists), failures, ..ListSnapshot::empty(ListChangeCounts::default()) }
}

/// A state machine with the tickets of its starts and a clock.
pub(crate) struct MachineDriver {
    pub(crate) machine: Machine<u64>,
    tickets: Vec<StartTicket>,
    seconds: u64,
    now: Instant,
    waiters: WaiterId,
}

impl MachineDriver {
    /// Creates a machine that does not restart failed servers.
    pub(crate) fn new() -> MachineDriver {
        MachineDriver::with(Supervision::Off)
    }

    /// Creates a machine that restarts servers after 1 to 2 s, then 2 to 4 s and so on. It suspends restarts for 50 to
    /// 100 s after four failures, resets failures after 10 s of uptime, and probes every 30 s.
    pub(crate) fn supervised() -> MachineDriver {
        let seconds = Duration::from_secs;
        MachineDriver::with(Supervision::Restart(RestartPolicy {
            initial_backoff: seconds(2),
            max_backoff: seconds(60),
            stable_after: seconds(10),
            max_failures: 4,
            cooldown: seconds(100),
            probe: ProbePolicy { interval: Some(seconds(30)), timeout: seconds(5) },
            seed: 0,
        }))
    }

    fn with(supervision: Supervision) -> MachineDriver {
        let mut builtins = Builtins::default();
        builtins.tools = Vec::new();
        builtins.toolsets = vec!["own".to_owned()];
        let leases = LeasePolicy {
            idle_timeout: Some(Duration::from_secs(20)),
            max_leases: 2,
            requesting_servers: RequestingServers::Lease,
        };
        let machine =
            Machine::new(MachineSettings { builtins, supervision, leases, ..MachineSettings::default() });
        MachineDriver { machine, tickets: Vec::new(), seconds: 0, now: Instant::now(), waiters: 0 }
    }

    /// Returns the event of a step; `a` is a server, `d` a dialog, `t` a tool, and `1` a start.
    ///
    /// | step | event |
    /// |---|---|
    /// | `configure a=1.1 b!` | these servers are configured; the entry of `b` is invalid |
    /// | `started 1 t,u`, `fail 1` | the start succeeds with these tools, or fails |
    /// | `lists 1 t`, `disconnect 1`, `request 1` | the instance has new tools, is lost, or sends a server request |
    /// | `exit 1` | the instance ends between two calls |
    /// | `unchecked a t`, `checked a t` | the arguments of a tool cannot be validated, or can again |
    /// | `invalid a t`, `valid a t` | a result of a tool is invalid, or valid again |
    /// | `stop d why`, `resume d`, `end d` | the dialog is stopped, resumed, or ends |
    /// | `spilled`, `spilled why` | a large result was written to files, or could not be |
    /// | `probed 1`, `suspend` | the instance responds to a probe; the computer was suspended |
    /// | `wait 3`, `due` | three seconds pass; time passes until something is due |
    /// | `lease d a 1`, `release d a` | the dialog requests a lease on the base 1, or releases one |
    /// | `idle 2 5`, `idle 2 busy` | the instance is unused for 5 s, or in use |
    /// | `restart a`, `disable a`, `close` | the server is restarted or disabled; the host shuts down |
    ///
    /// A last number in `stop d why 1`, `lease d a 1 1` and `end d 1` is the number of dialogs that had ended before.
    fn event(&mut self, step: &str) -> MachineEvent<u64> {
        let mut words = step.split_whitespace();
        let verb = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        let ticket = || self.tickets.iter().find(|it| it.number.to_string() == words[0]).unwrap().clone();
        let number = |at: usize| words.get(at).map_or(0, |it| it.parse().unwrap());
        let names = || words.get(1).copied().unwrap_or("t");
        match verb {
            "configure" => {
                let failed = words.iter().filter_map(|it| it.strip_suffix('!'));
                let failure = HostError::new(ErrorKind::Config, "bad entry");
                MachineEvent::Configure(DesiredServers {
                    servers: words.iter().filter(|it| it.contains('=')).map(|it| server(it)).collect(),
                    failed: failed.map(|id| FailedServer { id: id.into(), error: failure.clone() }).collect(),
                })
            }
            "started" => {
                let ticket = ticket();
                let instance = ticket.number;
                MachineEvent::Started(
                    ticket,
                    StartedInstance { instance, era: Era::Legacy, listing: listing(names()) },
                )
            }
            "fail" => MachineEvent::StartFailed(ticket(), HostError::new(ErrorKind::Connection, "no start")),
            "lists" => MachineEvent::ListsRead(ticket(), listing(names())),
            "request" => MachineEvent::ServerRequest(ticket(), mcp_host_model::Method::ListRoots),
            "disconnect" | "exit" => {
                let error = HostError::new(ErrorKind::Connection, "lost");
                let moment = match verb {
                    "exit" => LossMoment::BetweenCalls,
                    _ => LossMoment::Other,
                };
                MachineEvent::Disconnected(ticket(), ConnectionLoss { error, moment })
            }
            "unchecked" | "checked" | "invalid" | "valid" => MachineEvent::ToolProblem {
                server: ServerId::parse(words[0]).unwrap(),
                tool: words[1].into(),
                problem: match verb {
                    "unchecked" | "checked" => ToolProblem::ArgumentsUnchecked,
                    _ => ToolProblem::ResultInvalid,
                },
                reason: matches!(verb, "unchecked" | "invalid").then(|| "its schema is odd".into()),
            },
            "stop" => {
                let (provider, tool) = ("p", None);
                let mut rejection = ProviderRejection::new(provider, words[0], words[1]);
                rejection.tool = tool;
                let problem = Problem::provider_rejected(&rejection);
                MachineEvent::StopDialog { dialog: DialogId::new(words[0]), problem, ends_seen: number(2) }
            }
            "resume" => MachineEvent::ResumeDialog(DialogId::new(words[0])),
            "spilled" => MachineEvent::SetSpillProblem(words.first().map(|it| Problem::spill_failed(it))),
            "probed" => MachineEvent::ProbeSucceeded(ticket()),
            "suspend" => MachineEvent::ClockJumped(Duration::from_secs(3600)),
            "wait" | "due" => MachineEvent::Tick,
            "lease" => {
                self.waiters += 1;
                let (dialog, server) = (DialogId::new(words[0]), ServerId::parse(words[1]).unwrap());
                let request = LeaseRequest { dialog, server, base: words[2].parse().unwrap() };
                MachineEvent::RequestLease { request, ends_seen: number(3), waiter: self.waiters }
            }
            "idle" => {
                let idle_since = words[1].parse().ok().map(|it| self.now - Duration::from_secs(it));
                MachineEvent::IdleChecked(ticket(), idle_since)
            }
            "release" => {
                self.waiters += 1;
                MachineEvent::ReleaseLease {
                    dialog: DialogId::new(words[0]),
                    server: ServerId::parse(words[1]).unwrap(),
                    waiter: self.waiters,
                }
            }
            "end" => {
                MachineEvent::DialogEnded(DialogEnd { dialog: DialogId::new(words[0]), number: number(1) })
            }
            "restart" => MachineEvent::Restart(ServerId::parse(words[0]).unwrap()),
            "disable" => MachineEvent::Disable(ServerId::parse(words[0]).unwrap()),
            "close" => MachineEvent::Close,
            other => panic!("no such step: {other}"),
        }
    }

    /// Handles the event of a step and returns the actions, such as `start a=1, watch 1`. The number is that of a start
    /// or of its instance.
    ///
    /// An instance is retired after its calls and pins (`retire`), after these and its tasks (`replace`), after its
    /// calls (`close`), after its calls without a time limit (`release`), or after these and its tasks (`hand-over`).
    /// `start-leased` starts an instance of a dialog. A waiter has a number of its own: `1 gets 2`, `1 is refused`.
    pub(crate) fn step(&mut self, step: &str) -> String {
        match step.split_once(' ') {
            Some(("wait", seconds)) => self.now += Duration::from_secs(seconds.parse().unwrap()),
            _ if step == "due" => self.now = self.machine.next_wake().expect("there is something to do"),
            _ => {}
        }
        let event = self.event(step);
        let actions = self.machine.handle(event, self.now);
        let words = actions.into_iter().map(|action| match action {
            MachineAction::Start(ticket, _) => {
                self.tickets.push(ticket.clone());
                format!("start {}={}", ticket.server, ticket.number)
            }
            MachineAction::AbortStart(ticket) => format!("abort {}", ticket.number),
            MachineAction::Watch { instance, .. } => format!("watch {instance}"),
            MachineAction::SetLimits(instance, _) => format!("limit {instance}"),
            MachineAction::Probe { instance, .. } => format!("probe {instance}"),
            MachineAction::StartLeased(ticket, ..) => {
                self.tickets.push(ticket.clone());
                format!("start-leased {}={}", ticket.server, ticket.number)
            }
            MachineAction::Reply(waiter, reply) => match reply {
                LeaseReply::Granted(instance) => format!("{waiter} gets {instance}"),
                LeaseReply::Refused(_) => format!("{waiter} is refused"),
                LeaseReply::Stale => format!("{waiter} is stale"),
                LeaseReply::Released => format!("{waiter} has released"),
                LeaseReply::NotHeld => format!("{waiter} had no lease"),
            },
            MachineAction::CheckIdle(_, instance) => format!("check-idle {instance}"),
            MachineAction::Retire { instance, drain, waiter } => {
                let verb = match drain {
                    DrainMode::CallsAndPins => "retire",
                    DrainMode::CallsPinsAndTasks => "replace",
                    DrainMode::Calls => "close",
                    DrainMode::CallsUnlimited => "release",
                    DrainMode::CallsUnlimitedAndTasks => "hand-over",
                };
                let waiter = waiter.map_or_else(String::new, |it| format!(" for {it}"));
                format!("{verb} {instance}{waiter}")
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Returns the host events since the last call, for example `a starting 0, a ready`.
    pub(crate) fn event_texts(&mut self) -> String {
        let words = self.machine.take_events(UNIX_EPOCH).into_iter().map(|it| {
            let what = match it.kind {
                HostEventKind::Starting { failures } => format!("starting {failures}"),
                HostEventKind::Ready { .. } => "ready".to_owned(),
                HostEventKind::StartFailed(_) => "not started".to_owned(),
                HostEventKind::ConnectionLost(_) => "lost".to_owned(),
                HostEventKind::RestartScheduled { failures, .. } => format!("again {failures}"),
                HostEventKind::RestartSuspended { failures, .. } => format!("alone {failures}"),
                HostEventKind::LeasedPerDialog { method } => format!("leased because of {method}"),
                HostEventKind::Leased { dialog } => format!("leased to {dialog}"),
                HostEventKind::LeaseFailed { dialog, .. } => format!("not leased to {dialog}"),
                HostEventKind::Released { dialog, reason } => format!("released by {dialog} {reason:?}"),
                HostEventKind::Disabled => "disabled".to_owned(),
                HostEventKind::ListsChanged => "listed".to_owned(),
                HostEventKind::Retired => "retired".to_owned(),
            };
            format!("{} {what}", it.server)
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Returns the leases with their instances, then the reminders, for example `d/a=3 | d/a`. `None` if unchanged.
    pub(crate) fn leases(&mut self) -> Option<String> {
        let table = self.machine.lease_table()?;
        let held =
            table.active.iter().map(|((dialog, server), it)| format!("{dialog}/{server}={}", it.instance));
        let mut held: Vec<_> = held.collect();
        held.sort();
        let reminders = table.reminders.iter().map(|(dialog, server)| format!("{dialog}/{server}"));
        let reminders: Vec<_> = reminders.collect();
        Some(format!("{} | {}", held.join(" "), reminders.join(" ")).trim().to_owned())
    }

    /// Returns the states of the servers, then the tools, for example `a:ready=1 b:failed | a__t`. `=1` is the shared
    /// instance, `~1` the base of leases, `!` an error.
    pub(crate) fn status(&mut self) -> String {
        self.seconds += 1;
        let routing_table = self.machine.next_routing_table(UNIX_EPOCH + Duration::from_secs(self.seconds));
        let servers = routing_table.snapshot.servers.iter().map(|it| {
            let id = ServerId::parse(&it.id).ok();
            let route = id.and_then(|id| routing_table.routes.get(&id));
            let instance = route.map_or_else(String::new, |it| match &it.target {
                RouteTarget::Shared(instance) => format!("={instance}"),
                RouteTarget::Leased(base) => format!("~{base}"),
            });
            let mark = if it.error.is_some() { "!" } else { "" };
            format!("{}:{}{instance}{mark}", it.id, it.state.as_str())
        });
        let servers = servers.collect::<Vec<_>>().join(" ");
        let tools = routing_table.snapshot.catalog.tools().iter().map(|it| it.name.to_string());
        let tools = tools.collect::<Vec<_>>().join(" ");
        format!("{servers} | {tools}").trim().to_owned()
    }
}
