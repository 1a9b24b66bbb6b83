//! Soak test of a host and its gateway: servers over all transports are called, edited, killed and changed, dialogs
//! come and go, clients disconnect.
//!
//! Invariants are checked throughout: every call ends once, in time and with its own result; undisturbed servers never
//! fail; generation numbers only grow; a lease has one owner; afterwards no resources are left.
//!
//! `cargo xtask soak` runs it for a given time; the test suite runs it for seconds.

#![expect(clippy::print_stderr, reason = "a run tells its figures")]

mod callers;
mod clients;
mod dialogs;
mod disturbances;
mod servers;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_host_gateway::{Bounds, ClientCounts, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host_runtime::{Host, HostOptions};
use mcp_testkit::isolation::{Isolation, run_isolated};
use mcp_testkit::process::{ProcessResources, resident_memory};
use mcp_testkit::random::Random;
use mcp_testkit::wait::block_until;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use servers::Servers;
use tally::Tally;

/// More than the longest deadline of a call, for busy machines.
const PATIENCE: Duration = Duration::from_secs(120);

/// The allowed memory growth between the third and the last quarter of a run, in KiB.
const GROWTH: usize = 16 << 10;

/// The longest run, as a multiple of its planned time.
const MOST_AGAIN: usize = 20;

/// The idle time of a gateway client before its state is removed.
const IDLE: Duration = Duration::from_secs(10);

/// The size of a run.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// The time of the disturbances.
    lasting: Duration,
    seed: u64,
    /// The number of stdio servers, and of servers of each other transport.
    piped: usize,
    of_each_wire: usize,
    callers: usize,
    dialogs: usize,
    clients: usize,
}

impl Size {
    /// The size from `MCP_TEST_SOAK_SECONDS` and `MCP_TEST_SOAK_SEED`; full size from ten minutes.
    fn of_this_run() -> Size {
        let number = |name| std::env::var(name).ok().and_then(|value: String| value.parse::<u64>().ok());
        let seconds = number("MCP_TEST_SOAK_SECONDS").unwrap_or(15);
        let seed = number("MCP_TEST_SOAK_SEED").unwrap_or(1);
        let lasting = Duration::from_secs(seconds);
        match seconds {
            0..600 => Size { lasting, seed, piped: 6, of_each_wire: 4, callers: 16, dialogs: 12, clients: 8 },
            600.. => {
                Size { lasting, seed, piped: 14, of_each_wire: 12, callers: 48, dialogs: 200, clients: 32 }
            }
        }
    }
}

#[test]
fn soak_loses_no_call_and_leaks_nothing() {
    match run_isolated("soak::soak_loses_no_call_and_leaks_nothing") {
        Isolation::AlreadyRun => return,
        Isolation::Here => {}
    }
    let size = Size::of_this_run();
    eprintln!("{size:?}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // Resources that a process creates once and keeps: the launcher thread and the SIGCHLD handler.
    let short = Size {
        lasting: Duration::from_secs(1),
        piped: 2,
        of_each_wire: 2,
        callers: 4,
        dialogs: 2,
        clients: 4,
        ..size
    };
    runtime.block_on(run_once(short, RunPurpose::Rehearsal));
    let before = settled(&runtime);
    let memory = runtime.block_on(run_once(size, RunPurpose::Whole));
    let after = settled(&runtime);
    eprintln!("held before {before:?}, after {after:?}; in use in KiB: {memory:?}");
    assert_eq!(after, before);
    let quarter = |from: usize| memory[from * memory.len() / 4..(from + 1) * memory.len() / 4].iter().max();
    let (third, last) = (quarter(2).copied().unwrap_or_default(), quarter(3).copied().unwrap_or_default());
    assert!(last <= third + GROWTH, "{last} KiB are in use, before it were {third}");
}

/// The resources of the process once no task of the runtime is left.
fn settled(runtime: &Runtime) -> ProcessResources {
    block_until(|| runtime.metrics().num_alive_tasks() == 0);
    let mut last = ProcessResources::now();
    block_until(|| {
        std::thread::sleep(Duration::from_millis(500));
        let now = ProcessResources::now();
        std::mem::replace(&mut last, now) == now
    });
    last
}

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPurpose {
    /// Warm up: run everything once that a process does once.
    Rehearsal,
    /// The real run, which lasts until everything has happened.
    Whole,
}

/// State that all actors share.
#[derive(Clone)]
struct SoakState {
    host: Arc<Host>,
    field: Arc<Servers>,
    tally: Arc<Tally>,
    over: CancellationToken,
    gateway: String,
}

impl SoakState {
    fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }
}

/// One run. Returns the memory in use at equal intervals, in KiB.
async fn run_once(size: Size, course: RunPurpose) -> Vec<usize> {
    let field = Arc::new(Servers::new(size.piped, size.of_each_wire));
    let mut options = HostOptions::default();
    options.leases.max_leases = size.dialogs * 2 + 64;
    let host = Arc::new(Host::start(options));
    let following = host.follow(field.follow()).await;
    field.runs(&host).await;

    let mut bounds = Bounds::default();
    bounds.idle_timeout = IDLE;
    let gateway = Gateway::new(Arc::clone(&host), {
        let mut options = GatewayOptions::default();
        options.bounds = bounds;
        options
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let server = HttpServer::bind(address, gateway.clone(), HttpOptions::default()).await.unwrap();
    let world = SoakState {
        host: Arc::clone(&host),
        field: Arc::clone(&field),
        tally: Arc::default(),
        over: CancellationToken::new(),
        gateway: server.url(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));

    let mut random = Random::new(size.seed);
    let mut actors = JoinSet::new();
    actors.spawn(numbers_grow(world.clone()));
    actors.spawn(disturbances::edit(world.clone(), random.fork()));
    actors.spawn(disturbances::crash(world.clone(), random.fork()));
    actors.spawn(disturbances::kill(world.clone(), random.fork()));
    actors.spawn(disturbances::storm(world.clone(), random.fork()));
    for _ in 0..size.callers {
        actors.spawn(callers::call_on(world.clone(), random.fork()));
    }
    for number in 0..size.dialogs {
        actors.spawn(dialogs::talk_on(world.clone(), random.fork(), number));
    }
    for _ in 0..size.clients {
        actors.spawn(clients::connect_on(world.clone(), random.fork()));
    }
    let mut memory = watch(&mut actors, size.lasting, &world.tally).await;
    let mut more = 0;
    while course == RunPurpose::Whole && !world.tally.absent().is_empty() {
        assert!(more < MOST_AGAIN, "this never happened: {:?}", world.tally.absent());
        more += 1;
        memory = watch(&mut actors, size.lasting, &world.tally).await;
    }

    world.over.cancel();
    let ending = async {
        while let Some(actor) = actors.join_next().await {
            actor.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, ending).await.expect("whoever does something ends");
    eprintln!("{}", world.tally);

    // The disturbances are over: all servers recover, and all actors have ended.
    field.settle();
    field.runs(&host).await;
    callers::everybody_answers(&world).await;
    let idle = async {
        while gateway.client_counts() != ClientCounts::default() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, idle).await.expect("no client is left");
    drop(stop);
    serving.await.unwrap();
    following.stop().await;
    host.shutdown().await;
    memory
}

/// Monitors the actors; a failed actor ends the run.
async fn watch(actors: &mut JoinSet<()>, lasting: Duration, tally: &Tally) -> Vec<usize> {
    let (begun, mut memory) = (Instant::now(), Vec::new());
    while begun.elapsed() < lasting {
        tokio::select! {
            Some(actor) = actors.join_next() => {
                if actor.is_err() {
                    eprintln!("after {:?}:\n{tally}", begun.elapsed());
                }
                actor.unwrap();
            }
            () = tokio::time::sleep((lasting / 40).min(Duration::from_secs(30))) => memory.push(resident_memory()),
        }
    }
    memory
}

/// Checks that generation numbers only grow, names are unique, and every tool has a server.
async fn numbers_grow(world: SoakState) {
    let mut published = world.host.subscribe();
    let mut last = published.borrow_and_update().generation;
    loop {
        tokio::select! {
            () = world.over.cancelled() => return,
            changed = published.changed() => changed.unwrap(),
        }
        let now = Arc::clone(&published.borrow_and_update());
        assert!(now.generation > last, "generation {} after {last}", now.generation);
        last = now.generation;
        let mut names: Vec<&str> = now.catalog.tools().iter().map(|item| item.name.as_str()).collect();
        names.sort_unstable();
        assert!(!names.windows(2).any(|it| it[0] == it[1]), "a name stands twice");
        world.tally.count("generations", "published");
    }
}
