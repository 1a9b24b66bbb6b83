//! Runs many commands in parallel and searches their output for markers.

use std::sync::Arc;

use mcp_testkit::program::ProgramOutput;
use tokio::task::JoinSet;

use super::fixture::LeakFixture;
use super::markers::found;

/// The number of parallel commands: they mostly wait for a server that does not respond.
const AT_ONCE: usize = 32;

/// The findings, so that one failure lists all leaks.
#[derive(Default)]
pub(super) struct Search {
    texts: usize,
    leaks: Vec<String>,
    /// The number of outputs with a redacted server text.
    taken_out: usize,
}

impl Search {
    pub(super) fn look(&mut self, what: &str, text: &str) {
        self.texts += 1;
        self.taken_out += usize::from(text.contains("***"));
        for spot in found(text) {
            let lines: Vec<String> = text
                .lines()
                .filter(|it| found(it).contains(&spot))
                .take(2)
                .map(|it| cut(it, spot.mark()))
                .collect();
            self.leaks.push(format!("{what}: {spot:?} in {lines:?}"));
        }
    }

    pub(super) fn ran(&mut self, what: &str, ran: &ProgramOutput) {
        assert!(ran.code.is_some_and(|it| it < 100), "{what} ended by itself: {ran:#?}");
        self.look(&format!("{what} (standard output)"), &ran.stdout);
        self.look(&format!("{what} (standard error)"), &ran.stderr);
    }

    /// Runs these commands with this standard input.
    pub(super) async fn run(
        &mut self,
        world: &Arc<LeakFixture>,
        rows: Vec<Vec<String>>,
        input: &'static str,
    ) {
        let mut running: JoinSet<(String, ProgramOutput)> = JoinSet::new();
        for row in rows {
            if running.len() >= AT_ONCE {
                let (what, ran) = running.join_next().await.expect("some run").unwrap();
                self.ran(&what, &ran);
            }
            let world = Arc::clone(world);
            running.spawn(async move {
                let words: Vec<&str> = row.iter().map(String::as_str).collect();
                (row.join(" "), world.run(&words, input).await)
            });
        }
        while let Some(done) = running.join_next().await {
            let (what, ran) = done.unwrap();
            self.ran(&what, &ran);
        }
    }

    /// Asserts that nothing was found, and that something was redacted.
    #[track_caller]
    pub(super) fn end(self) {
        assert!(self.leaks.is_empty(), "{} leaks:\n{}", self.leaks.len(), self.leaks.join("\n"));
        assert!(self.taken_out > 0, "no server has repeated anything in {} texts", self.texts);
    }
}

/// The text around a marker.
fn cut(line: &str, mark: String) -> String {
    let at = line.find(&mark).unwrap_or_default();
    let around: String = line[..at].chars().rev().take(160).collect();
    around.chars().rev().chain(line[at..].chars().take(120)).collect()
}

/// The arguments of commands.
pub(super) fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|it| (*it).to_owned()).collect()).collect()
}

/// Each row with each suffix.
pub(super) fn with(rows: &[Vec<String>], ends: &[&[&str]]) -> Vec<Vec<String>> {
    let extended = |row: &Vec<String>, end: &&[&str]| {
        row.iter().cloned().chain(end.iter().map(|it| (*it).to_owned())).collect::<Vec<_>>()
    };
    rows.iter().flat_map(|row| ends.iter().map(move |end| extended(row, end))).collect()
}
