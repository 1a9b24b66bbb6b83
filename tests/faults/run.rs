//! All cells of a transport in parallel, and a check for leftover resources.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use mcp_testkit::isolation::{Isolation, run_isolated_in};
use mcp_testkit::process::ProcessResources;
use mcp_tests::faults::{Api, Era, Expectation, FaultRow, Script, Step, Transport, Variant, rows};
use tokio::runtime::Handle;

use crate::expectations::{CELL_LIMIT, TimeLimits, fits};
use crate::peer::{self, Faulty, MARK};
use crate::{host, session};

/// The number of parallel cells.
const BESIDE: usize = 48;

/// The number of cells between two checks for leftovers, for which nothing may run.
const WAVE: usize = 144;

/// The outcome of a healthy server.
const WELL: &str = "hello | hello";

/// The number of cells that are repeated to find a leak.
const FEW: usize = 6;

/// The time in which resources must be released.
const SETTLES: Duration = Duration::from_secs(30);

/// A cell: a fault on a transport in an era at an API.
pub(crate) struct Cell {
    pub(crate) api: Api,
    pub(crate) variant: Variant,
    pub(crate) row: FaultRow,
    number: usize,
}

impl Cell {
    /// A unique name for the server of the cell.
    pub(crate) fn key(&self, role: &str) -> String {
        let era = match self.variant.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        format!("{}-{:?}-{era}-{role}", self.number, self.api)
    }

    /// The expected outcome.
    pub(crate) fn want(&self) -> &'static str {
        self.row.want(self.variant, self.api).unwrap_or_default()
    }

    /// The expected outcome of the next request.
    pub(crate) fn next(&self) -> &'static str {
        self.want().split(" | ").nth(1).unwrap_or_default()
    }

    pub(crate) fn time_limits(&self) -> TimeLimits {
        TimeLimits::of(self.want(), self.row.script().at)
    }

    async fn run(&self, faulty: &Faulty) -> String {
        let running = async {
            match self.api {
                Api::Session => session::run(faulty, self).await,
                Api::Host | Api::Gateway => host::run(faulty, self).await,
            }
        };
        tokio::time::timeout(CELL_LIMIT, running).await.unwrap_or_else(|_| "it hangs".to_owned())
    }

    fn name(&self) -> String {
        format!("{:?}, {:?}, {} ({})", self.api, self.variant.era, self.row.fault, self.row.script)
    }
}

/// Runs every cell of a transport. `test` is the name of the calling test.
pub(crate) fn check(test: &str, transport: Transport) {
    // Many servers need many descriptors.
    let more = "ulimit -n \"$(ulimit -Hn)\" 2>/dev/null; exec \"$0\" \"$@\"";
    if run_isolated_in(test, more, &[]) == Isolation::AlreadyRun {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(all(transport));
}

async fn all(transport: Transport) {
    let faulty = Faulty::start();
    // Creates everything that exists once per process.
    for api in Api::ALL {
        let want =
            Expectation { transports: &Transport::ALL, era: None, session: WELL, host: WELL, gateway: None };
        let first = FaultRow {
            script: "start=well".to_owned(),
            expectations: vec![want],
            exclusions: Vec::new(),
            ..rows().remove(0)
        };
        let first =
            Cell { api, variant: Variant { transport, era: Era::Legacy }, row: first, number: usize::MAX };
        let warm = first.run(&faulty).await;
        assert_eq!(warm, WELL, "a server that is well");
    }
    let before = Left::settled().await;

    let mut cells = cells(transport);
    let (mut wrong, mut outcomes) = (Vec::new(), BTreeSet::new());
    for wave in cells.chunks_mut(WAVE) {
        let begun = Instant::now();
        // The slowest cells first, so that they overlap with others. The system drops a connection that is not read
        // after half a minute.
        wave.sort_by_key(|it| {
            Reverse((it.row.script().does(Step::Deaf), it.time_limits().expected_timeouts()))
        });
        let run = async |cell: &Cell| {
            let begun = Instant::now();
            (cell.run(&faulty).await, begun.elapsed())
        };
        let running = stream::iter(wave.iter()).map(|it| async move { (it, run(it).await) });
        let mut running = std::pin::pin!(running.buffer_unordered(BESIDE));
        while let Some((cell, (got, took))) = running.next().await {
            observe(cell, &got, took);
            if !fits(cell.want(), &got) {
                wrong.push(format!("{}: {got}, and not {}", cell.name(), cell.want()));
            }
            outcomes.insert(got);
        }
        let ran = begun.elapsed();
        escaped(wave);
        if let Err(left) = before.is_back().await {
            wrong.push(format!("{left} after one of\n  {}", suspects(wave, &faulty).await.join("\n  ")));
        }
        if std::env::var_os("MCP_TEST_FAULT_NOTES").is_some() {
            eprintln!("a wave of {} took {ran:?}, and {:?} to be gone", wave.len(), begun.elapsed() - ran);
        }
    }
    eprintln!("{} cells, {} outcomes: {}", cells.len(), outcomes.len(), transport.label());
    assert!(wrong.is_empty(), "{}\n{}", transport.label(), wrong.join("\n"));
}

/// Repeats cells in small groups and names those with leftovers; without such a cell, names all.
async fn suspects(wave: &[Cell], faulty: &Faulty) -> Vec<String> {
    let mut res = Vec::new();
    for few in wave.chunks(FEW) {
        let before = Left::now();
        join_all(few.iter().map(|it| it.run(faulty))).await;
        escaped(few);
        if before.is_back().await.is_err() {
            res.extend(few.iter().map(Cell::name));
        }
    }
    if res.is_empty() { wave.iter().map(Cell::name).collect() } else { res }
}

/// Every n-th cell is tested without the full matrix, another one for each transport and API, so that every fault is
/// tested somewhere.
const TIMEOUT_LIMIT: usize = 3;

fn cells(transport: Transport) -> Vec<Cell> {
    let is_whole = std::env::var("MCP_TEST_FAULTS").is_ok_and(|it| it == "whole");
    let only = std::env::var("MCP_TEST_FAULT_ROWS").unwrap_or_default();
    let mut res = Vec::new();
    for (api, era) in Api::ALL.into_iter().flat_map(|it| [(it, Era::Legacy), (it, Era::Modern)]) {
        let variant = Variant { transport, era };
        let rows = rows().into_iter().enumerate();
        let rows = rows.filter(|(_, it)| it.is_tested(variant, api) && it.script.contains(&only));
        let turn = api as usize + transport as usize + era as usize;
        let rows = rows.filter(|(number, _)| is_whole || (number + turn).is_multiple_of(TIMEOUT_LIMIT));
        res.extend(rows.map(|(number, row)| Cell { api, variant, row, number }));
    }
    res
}

/// A process that left its group is not ours any more: it is expected, and killed here.
fn escaped(wave: &[Cell]) {
    for cell in wave.iter().filter(|it| Script::does(&it.row.script(), Step::Escape)) {
        let escaped = peer::marked(&peer::mark(&cell.key("faulty")));
        if cell.variant.transport == Transport::Stdio {
            assert!(!escaped.is_empty(), "else this row shows nothing");
        }
        for pid in escaped {
            let ended = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
            assert!(ended.success());
        }
    }
}

/// The resources of a process that runs no cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    holdings: ProcessResources,
    tasks: usize,
    processes: usize,
}

impl Left {
    fn now() -> Left {
        let own = format!("{}-", std::process::id());
        Left {
            holdings: ProcessResources::now(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            processes: peer::marked(&own).len(),
        }
    }

    /// After all tasks have ended.
    async fn settled() -> Left {
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < SETTLES && (Left::now().tasks > 0 || Left::now().processes > 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let res = Left::now();
        assert_eq!((res.tasks, res.processes), (0, 0), "{MARK}");
        res
    }

    /// Waits until no more than this is left; else returns what is left.
    async fn is_back(self) -> Result<(), String> {
        let begun = tokio::time::Instant::now();
        loop {
            let now = Left::now();
            let back = now.holdings.descriptors <= self.holdings.descriptors
                && now.holdings.children <= self.holdings.children
                && now.tasks <= self.tasks
                && now.processes <= self.processes;
            if back {
                return Ok(());
            }
            if begun.elapsed() > SETTLES {
                return Err(format!("{now:?} is left, and not {self:?},"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Prints the outcome, for new rows.
fn observe(cell: &Cell, got: &str, took: Duration) {
    use std::io::Write;
    if let Some(path) = std::env::var_os("MCP_TEST_FAULT_NOTES") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        let Cell { api, variant, row, number: _ } = cell;
        let seconds = took.as_secs_f64();
        writeln!(
            file,
            "{}\t{api:?}\t{:?}\t{:?}\t{got}\t{seconds:.1}",
            row.script, variant.transport, variant.era
        )
        .unwrap();
    }
}
