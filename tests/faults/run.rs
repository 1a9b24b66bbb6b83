//! All cells of a wire: many beside each other, for most of their time they wait, and after them a look at what is left.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use mcp_tests::faults::{Era, Expectation, Face, Row, Script, Step, Way, Wire, rows};
use mcp_tests::{Isolation, ProcessResources, run_isolated_in};
use tokio::runtime::Handle;

use crate::expectations::{HANGS, Patience, fits};
use crate::peer::{self, Faulty, MARK};
use crate::{host, session};

/// So many cells run beside each other.
const BESIDE: usize = 48;

/// After so many is looked at what they have left behind, which wants that nothing runs.
const WAVE: usize = 144;

/// What comes of a server that is well.
const WELL: &str = "hello | hello";

/// Among so few whoever has left something behind is looked for.
const FEW: usize = 6;

/// How long what is over may need to be gone.
const SETTLES: Duration = Duration::from_secs(30);

/// One cell: a fault on a way at a face.
pub(crate) struct Cell {
    pub(crate) face: Face,
    pub(crate) way: Way,
    pub(crate) row: Row,
    number: usize,
}

impl Cell {
    /// A name that no other cell's server has.
    pub(crate) fn key(&self, role: &str) -> String {
        let era = match self.way.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        format!("{}-{:?}-{era}-{role}", self.number, self.face)
    }

    /// What the table says of it.
    pub(crate) fn want(&self) -> &'static str {
        self.row.want(self.way, self.face).unwrap_or_default()
    }

    /// What it says of the next request.
    pub(crate) fn next(&self) -> &'static str {
        self.want().split(" | ").nth(1).unwrap_or_default()
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::of(self.want(), self.row.script().at)
    }

    async fn run(&self, faulty: &Faulty) -> String {
        let running = async {
            match self.face {
                Face::Session => session::run(faulty, self).await,
                Face::Host | Face::Gateway => host::run(faulty, self).await,
            }
        };
        tokio::time::timeout(HANGS, running).await.unwrap_or_else(|_| "it hangs".to_owned())
    }

    fn name(&self) -> String {
        format!("{:?}, {:?}, {} ({})", self.face, self.way.era, self.row.fault, self.row.script)
    }
}

/// Runs every cell of a wire. `test` is the test's own name.
pub(crate) fn check(test: &str, wire: Wire) {
    // Many servers and their clients are many descriptors.
    let more = "ulimit -n \"$(ulimit -Hn)\" 2>/dev/null; exec \"$0\" \"$@\"";
    if run_isolated_in(test, more, &[]) == Isolation::AlreadyRun {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(all(wire));
}

async fn all(wire: Wire) {
    let faulty = Faulty::start();
    // Whatever is made once in a process is made now.
    for face in Face::ALL {
        let want = Expectation { wires: &Wire::ALL, era: None, session: WELL, host: WELL, gateway: None };
        let first = Row {
            script: "start=well".to_owned(),
            wants: vec![want],
            absent: Vec::new(),
            ..rows().remove(0)
        };
        let first = Cell { face, way: Way { wire, era: Era::Legacy }, row: first, number: usize::MAX };
        let warm = first.run(&faulty).await;
        assert_eq!(warm, WELL, "a server that is well");
    }
    let before = Left::settled().await;

    let mut cells = cells(wire);
    let (mut wrong, mut outcomes) = (Vec::new(), BTreeSet::new());
    for wave in cells.chunks_mut(WAVE) {
        let begun = Instant::now();
        // Those that wait longest begin first, so that nobody is waited for run_isolated; whoever is not read any more is let go of
        // by the system, after half a minute.
        wave.sort_by_key(|it| Reverse((it.row.script().does(Step::Deaf), it.patience().in_vain())));
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
    eprintln!("{} cells, {} outcomes: {}", cells.len(), outcomes.len(), wire.words());
    assert!(wrong.is_empty(), "{}\n{}", wire.words(), wrong.join("\n"));
}

/// Something is left after these: runs them again, a few at a time, and names those that leave something again; else all.
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

/// Each so many-th cell is proven where the whole table is not asked for, another one on each wire and at each face: so
/// every fault is, somewhere.
const SHORT: usize = 3;

fn cells(wire: Wire) -> Vec<Cell> {
    let is_whole = std::env::var("MCP_TEST_FAULTS").is_ok_and(|it| it == "whole");
    let only = std::env::var("MCP_TEST_FAULT_ROWS").unwrap_or_default();
    let mut res = Vec::new();
    for (face, era) in Face::ALL.into_iter().flat_map(|it| [(it, Era::Legacy), (it, Era::Modern)]) {
        let way = Way { wire, era };
        let rows = rows().into_iter().enumerate();
        let rows = rows.filter(|(_, it)| it.is_proven(way, face) && it.script.contains(&only));
        let turn = face as usize + wire as usize + era as usize;
        let rows = rows.filter(|(number, _)| is_whole || (number + turn).is_multiple_of(SHORT));
        res.extend(rows.map(|(number, row)| Cell { face, way, row, number }));
    }
    res
}

/// What has left its process group is no process of ours any more: it is there, and it is ended here.
fn escaped(wave: &[Cell]) {
    for cell in wave.iter().filter(|it| Script::does(&it.row.script(), Step::Escape)) {
        let escaped = peer::marked(&peer::mark(&cell.key("faulty")));
        if cell.way.wire == Wire::Stdio {
            assert!(!escaped.is_empty(), "else this row shows nothing");
        }
        for pid in escaped {
            let ended = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
            assert!(ended.success());
        }
    }
}

/// What there is of a process that runs nothing.
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

    /// Once no task runs any more.
    async fn settled() -> Left {
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < SETTLES && (Left::now().tasks > 0 || Left::now().processes > 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let res = Left::now();
        assert_eq!((res.tasks, res.processes), (0, 0), "{MARK}");
        res
    }

    /// Waits until there is no more than this; else says what there is.
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

/// Notes what was seen, for whoever writes a new row.
fn observe(cell: &Cell, got: &str, took: Duration) {
    use std::io::Write;
    if let Some(path) = std::env::var_os("MCP_TEST_FAULT_NOTES") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        let Cell { face, way, row, number: _ } = cell;
        let seconds = took.as_secs_f64();
        writeln!(file, "{}\t{face:?}\t{:?}\t{:?}\t{got}\t{seconds:.1}", row.script, way.wire, way.era)
            .unwrap();
    }
}
