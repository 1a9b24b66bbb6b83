//! A long day in the life of a host and its gateway: servers of all wires that are called, edited, killed, and told to
//! change their lists, dialogs that come and go, clients that vanish. What must always hold is looked at throughout:
//! every call ends once, in time and with its own answer, who is not touched never fails, numbers of generations only
//! grow, what is leased has one owner, and afterwards nothing is left.
//!
//! `cargo xtask soak` runs it as long as it is told; among the other tests it runs for a short while.

#![expect(clippy::print_stderr, reason = "a run tells its figures")]

mod callers;
mod clients;
mod dialogs;
mod field;
mod random;
mod tally;
mod trouble;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_gateway::{Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host::{Host, HostOptions, LeasePolicy};
use mcp_tests::{Alone, Holdings, alone, eventually, resident};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use field::Field;
use random::Random;
use tally::Tally;

/// Longer than any call may take: the longest deadline, and what a busy machine adds.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much more memory may be in use in the last quarter of a run than in the third, in KiB.
const GROWTH: usize = 16 << 10;

/// How many times as long a run may last until everything has happened.
const MOST_AGAIN: usize = 20;

/// How long a client of the gateway may be silent before what it had is ended.
const IDLE: Duration = Duration::from_secs(10);

/// How many of each there are.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// How long trouble goes on.
    lasting: Duration,
    seed: u64,
    /// Servers over standard input and output, and of each of the other wires.
    piped: usize,
    of_each_wire: usize,
    callers: usize,
    dialogs: usize,
    clients: usize,
}

impl Size {
    /// By `MCP_TEST_SOAK_SECONDS` and `MCP_TEST_SOAK_SEED`: from ten minutes on in full.
    fn of_this_run() -> Size {
        let number = |name| std::env::var(name).ok().and_then(|it: String| it.parse::<u64>().ok());
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
fn a_long_day_loses_nothing_and_leaves_nothing() {
    match alone("soak::a_long_day_loses_nothing_and_leaves_nothing") {
        Alone::HasRun => return,
        Alone::Here => {}
    }
    let size = Size::of_this_run();
    eprintln!("{size:?}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // What a process gets once and keeps: a thread that starts processes, the signal of their ends.
    let short = Size {
        lasting: Duration::from_secs(1),
        piped: 2,
        of_each_wire: 2,
        callers: 4,
        dialogs: 2,
        clients: 4,
        ..size
    };
    runtime.block_on(day(short, Course::Rehearsal));
    let before = settled(&runtime);
    let memory = runtime.block_on(day(size, Course::Whole));
    let after = settled(&runtime);
    eprintln!("held before {before:?}, after {after:?}; in use in KiB: {memory:?}");
    assert_eq!(after, before);
    let quarter = |from: usize| memory[from * memory.len() / 4..(from + 1) * memory.len() / 4].iter().max();
    let (third, last) = (quarter(2).copied().unwrap_or_default(), quarter(3).copied().unwrap_or_default());
    assert!(last <= third + GROWTH, "{last} KiB are in use, before it were {third}");
}

/// What the process holds once no task of the runtime is left.
fn settled(runtime: &Runtime) -> Holdings {
    eventually("no task is left", || runtime.metrics().num_alive_tasks() == 0);
    let mut last = Holdings::now();
    eventually("nothing moves any more", || {
        std::thread::sleep(Duration::from_millis(500));
        let now = Holdings::now();
        std::mem::replace(&mut last, now) == now
    });
    last
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// To have done everything once that a process does once.
    Rehearsal,
    /// To show that it goes well: it lasts until everything has happened, however slow the machine.
    Whole,
}

/// What all who do something share.
#[derive(Clone)]
struct World {
    host: Arc<Host>,
    field: Arc<Field>,
    tally: Arc<Tally>,
    over: CancellationToken,
    gateway: String,
}

impl World {
    fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }
}

/// One run. Gives the memory in use, in KiB, in equal distances of time.
async fn day(size: Size, course: Course) -> Vec<usize> {
    let field = Arc::new(Field::new(size.piped, size.of_each_wire));
    let options = HostOptions {
        leases: LeasePolicy { max_leases: size.dialogs * 2 + 64, ..LeasePolicy::default() },
        ..HostOptions::default()
    };
    let host = Arc::new(Host::start(options));
    let following = host.follow(field.follow()).await;
    field.runs(&host).await;

    let bounds = Bounds { idle: IDLE, ..Bounds::default() };
    let gateway = Gateway::new(Arc::clone(&host), GatewayOptions { bounds, ..GatewayOptions::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    let server = HttpServer::bind(address, gateway.clone(), HttpOptions::default()).await.unwrap();
    let world = World {
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
    actors.spawn(trouble::edit(world.clone(), random.fork()));
    actors.spawn(trouble::crash(world.clone(), random.fork()));
    actors.spawn(trouble::kill(world.clone(), random.fork()));
    actors.spawn(trouble::storm(world.clone(), random.fork()));
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
    while course == Course::Whole && !world.tally.absent().is_empty() {
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

    // The trouble is over: all are well again, by themselves, and everybody who was counted is gone.
    field.settle();
    field.runs(&host).await;
    callers::everybody_answers(&world).await;
    let idle = async {
        while gateway.clients() != (0, 0) {
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

/// Looks on while they do what they do; whoever meets what must not be ends it all.
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
            () = tokio::time::sleep((lasting / 40).min(Duration::from_secs(30))) => memory.push(resident()),
        }
    }
    memory
}

/// The numbers of generations only grow, no name stands twice, and every tool has a server.
async fn numbers_grow(world: World) {
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
        let mut names: Vec<&str> = now.catalog.tools().iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        assert!(!names.windows(2).any(|it| it[0] == it[1]), "a name stands twice");
        world.tally.count("generations", "published");
    }
}
