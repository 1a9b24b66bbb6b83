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

use crate::expectations::{CELL_LIMIT, TimeLimits, matches_outcome};
use crate::peer::{self, Faulty, MARK_VARIABLE};
use crate::{host, session};

/// The number of parallel cells.
const MAX_PARALLEL_CELLS: usize = 48;

/// The number of cells between two checks for leftovers, for which nothing may run.
const WAVE_CELLS: usize = 144;

/// Added to the number of a cell that runs again.
const SECOND_RUN: usize = 1_000_000;

/// The outcome of a healthy server.
const HEALTHY_OUTCOME: &str = "hello | hello";

/// The number of cells that are repeated to find a leak.
const SUSPECT_GROUP_CELLS: usize = 6;

/// The time in which resources must be released.
const RELEASE_LIMIT: Duration = Duration::from_secs(30);

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

    /// The same cell with a server of its own, for a second run.
    fn again(&self) -> Cell {
        Cell { number: self.number + SECOND_RUN, row: self.row.clone(), ..*self }
    }

    /// The expected outcome.
    pub(crate) fn expected_outcome(&self) -> &'static str {
        self.row.expected_outcome(self.variant, self.api).unwrap_or_default()
    }

    /// The expected outcome of the next request.
    pub(crate) fn next_outcome(&self) -> &'static str {
        self.expected_outcome().split(" | ").nth(1).unwrap_or_default()
    }

    /// The time limits of its requests.
    pub(crate) fn time_limits(&self) -> TimeLimits {
        TimeLimits::for_outcome(self.expected_outcome(), self.row.script().at)
    }

    /// Runs the cell and returns its outcome.
    async fn run(&self, faulty: &Faulty) -> String {
        let outcome = async {
            match self.api {
                Api::Session => session::run(faulty, self).await,
                Api::Host | Api::Gateway => host::run(faulty, self).await,
            }
        };
        tokio::time::timeout(CELL_LIMIT, outcome).await.unwrap_or_else(|_| "it hangs".to_owned())
    }

    /// The cell, for messages.
    fn describe(&self) -> String {
        format!("{:?}, {:?}, {} ({})", self.api, self.variant.era, self.row.fault, self.row.script)
    }
}

/// Runs every cell of a transport. `test` is the name of the calling test.
pub(crate) fn check(test: &str, transport: Transport) {
    // Many servers need many descriptors.
    let shell_command = "ulimit -n \"$(ulimit -Hn)\" 2>/dev/null; exec \"$0\" \"$@\"";
    if run_isolated_in(test, shell_command, &[]) == Isolation::AlreadyRun {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run_transport(transport));
}

/// Runs the cells of a transport, and checks their outcomes and what they leave.
async fn run_transport(transport: Transport) {
    let faulty = Faulty::start();
    // Creates everything that exists once per process.
    for api in Api::ALL {
        let expectation = Expectation {
            transports: &Transport::ALL,
            era: None,
            session: HEALTHY_OUTCOME,
            host: HEALTHY_OUTCOME,
            gateway: None,
        };
        let first = FaultRow {
            script: "start=well".to_owned(),
            expectations: vec![expectation],
            exclusions: Vec::new(),
            ..rows().remove(0)
        };
        let first =
            Cell { api, variant: Variant { transport, era: Era::Legacy }, row: first, number: usize::MAX };
        let outcome = first.run(&faulty).await;
        assert_eq!(outcome, HEALTHY_OUTCOME, "a server that is well");
    }
    let before = RunResources::after_release().await;

    let mut cells = select_cells(transport);
    let (mut wrong, mut outcomes) = (Vec::new(), BTreeSet::new());
    for wave in cells.chunks_mut(WAVE_CELLS) {
        let start = Instant::now();
        // The slowest cells first, so that they overlap with others. The system drops a connection that is not read
        // after half a minute.
        wave.sort_by_key(|it| {
            Reverse((it.row.script().does(Step::Deaf), it.time_limits().expected_timeouts()))
        });
        let run = async |cell: &Cell| {
            let start = Instant::now();
            (cell.run(&faulty).await, start.elapsed())
        };
        let running = stream::iter(wave.iter()).map(|it| async move { (it, run(it).await) });
        let mut running = std::pin::pin!(running.buffer_unordered(MAX_PARALLEL_CELLS));
        let mut suspects = Vec::new();
        while let Some((cell, (got, took))) = running.next().await {
            write_note(cell, &got, took);
            if !matches_outcome(cell.expected_outcome(), &got) {
                suspects.push(cell);
            }
            outcomes.insert(got);
        }
        // The limits of these requests are short. Beside many others, a server may write after them.
        let suspects: Vec<Cell> = suspects.into_iter().map(Cell::again).collect();
        for cell in &suspects {
            let got = cell.run(&faulty).await;
            if !matches_outcome(cell.expected_outcome(), &got) {
                wrong.push(format!("{}: {got}, and not {}", cell.describe(), cell.expected_outcome()));
            }
        }
        kill_escaped_processes(&suspects);
        let run_time = start.elapsed();
        kill_escaped_processes(wave);
        if let Err(left) = before.wait_for_release().await {
            wrong.push(format!(
                "{left} after one of\n  {}",
                find_leaking_cells(wave, &faulty).await.join("\n  ")
            ));
        }
        if std::env::var_os("MCP_TEST_FAULT_NOTES").is_some() {
            eprintln!(
                "a wave of {} took {run_time:?}, and {:?} to be gone",
                wave.len(),
                start.elapsed() - run_time
            );
        }
    }
    eprintln!("{} cells, {} outcomes: {}", cells.len(), outcomes.len(), transport.label());
    assert!(wrong.is_empty(), "{}\n{}", transport.label(), wrong.join("\n"));
}

/// Repeats cells in small groups and names those with leftovers; without such a cell, names all.
async fn find_leaking_cells(wave: &[Cell], faulty: &Faulty) -> Vec<String> {
    let mut res = Vec::new();
    for few in wave.chunks(SUSPECT_GROUP_CELLS) {
        let before = RunResources::now();
        join_all(few.iter().map(|it| it.run(faulty))).await;
        kill_escaped_processes(few);
        if before.wait_for_release().await.is_err() {
            res.extend(few.iter().map(Cell::describe));
        }
    }
    if res.is_empty() { wave.iter().map(Cell::describe).collect() } else { res }
}

/// Every n-th cell is tested without the full matrix, another one for each transport and API, so that every fault is
/// tested somewhere.
const TESTED_INTERVAL: usize = 3;

/// The cells of a transport: all, or a part of them without the full matrix.
fn select_cells(transport: Transport) -> Vec<Cell> {
    let is_whole = std::env::var("MCP_TEST_FAULTS").is_ok_and(|it| it == "whole");
    let only = std::env::var("MCP_TEST_FAULT_ROWS").unwrap_or_default();
    let mut res = Vec::new();
    for (api, era) in Api::ALL.into_iter().flat_map(|it| [(it, Era::Legacy), (it, Era::Modern)]) {
        let variant = Variant { transport, era };
        let rows = rows().into_iter().enumerate();
        let rows = rows.filter(|(_, it)| it.is_tested(variant, api) && it.script.contains(&only));
        let first_tested = api as usize + transport as usize + era as usize;
        let rows =
            rows.filter(|(number, _)| is_whole || (number + first_tested).is_multiple_of(TESTED_INTERVAL));
        res.extend(rows.map(|(number, row)| Cell { api, variant, row, number }));
    }
    res
}

/// Kills the processes that have left the group of their server: a host does not own them any more.
fn kill_escaped_processes(wave: &[Cell]) {
    for cell in wave.iter().filter(|it| Script::does(&it.row.script(), Step::Escape)) {
        let escaped = peer::marked_processes(&peer::mark(&cell.key("faulty")));
        if cell.variant.transport == Transport::Stdio {
            assert!(!escaped.is_empty(), "else this row shows nothing");
        }
        for pid in escaped {
            let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
            assert!(killed.success());
        }
    }
}

/// What the process of the tests holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunResources {
    holdings: ProcessResources,
    tasks: usize,
    processes: usize,
}

impl RunResources {
    fn now() -> RunResources {
        let own = format!("{}-", std::process::id());
        RunResources {
            holdings: ProcessResources::now(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            processes: peer::marked_processes(&own).len(),
        }
    }

    /// Waits until all tasks and processes have ended.
    async fn after_release() -> RunResources {
        let start = tokio::time::Instant::now();
        while start.elapsed() < RELEASE_LIMIT
            && (RunResources::now().tasks > 0 || RunResources::now().processes > 0)
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let res = RunResources::now();
        assert_eq!((res.tasks, res.processes), (0, 0), "{MARK_VARIABLE}");
        res
    }

    /// Waits until no more than this is held. The error says what is left.
    async fn wait_for_release(self) -> Result<(), String> {
        let start = tokio::time::Instant::now();
        loop {
            let now = RunResources::now();
            let is_released = now.holdings.descriptors <= self.holdings.descriptors
                && now.holdings.children <= self.holdings.children
                && now.tasks <= self.tasks
                && now.processes <= self.processes;
            if is_released {
                return Ok(());
            }
            if start.elapsed() > RELEASE_LIMIT {
                return Err(format!("{now:?} is left, and not {self:?},"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Appends the outcome to the file of notes, if there is one, for new rows.
fn write_note(cell: &Cell, got: &str, took: Duration) {
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
