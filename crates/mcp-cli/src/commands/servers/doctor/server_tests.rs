//! Runs the tests of all servers at once, and prints each report as soon as it is complete.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_config::ResolvedServer;
use mcp_host_registry::{Builtins, Catalog, CatalogServer, ExposureVerdict, ListKind, Problem, ProblemKind};
use mcp_host_runtime::{ActiveProblem, DesiredServers, FailedServer, HostSnapshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::findings::cross_server_problems;
use super::lock_check::LockState;
use super::report::{DoctorJson, FailureCause, ServerReport, StepOutcome, StepResult, exit_code};
use super::step_log::StepLog;
use super::steps::test_server;
use super::text::report_text;
use crate::args::Format;
use crate::config::context::Context;
use crate::host::startup::{NOTE_AFTER, SHOW_AFTER};
use crate::output::console::{Report, WriteOutcome};
use crate::output::json;
use crate::output::progress::{ProgressDisplay, waiting_text};
use crate::render::status::problem_lines;

/// The tests of all servers.
pub(super) struct ServerTests<'a> {
    context: &'a Context,
    progress: ProgressDisplay,
    /// In the order of the file; invalid entries are last.
    tests: Vec<ServerTest>,
    /// The tasks. Each returns the index of its test and what the server offers.
    running: JoinSet<(usize, Option<CatalogServer>)>,
    /// Whether a report was printed.
    has_output: bool,
}

/// The test of one server.
struct ServerTest {
    name: String,
    transport: Option<&'static str>,
    target: Option<String>,
    step_log: StepLog,
    is_done: bool,
    is_printed: bool,
    /// What the server offers, if its lists were read.
    entry: Option<CatalogServer>,
}

impl<'a> ServerTests<'a> {
    /// Starts the tests. Dropping the value ends them, with all processes that they started.
    pub(super) fn start(context: &'a Context, desired: DesiredServers, lock: LockState) -> ServerTests<'a> {
        let mut tests = ServerTests {
            context,
            progress: context.progress(),
            tests: Vec::new(),
            running: JoinSet::new(),
            has_output: false,
        };
        for (index, server) in desired.servers.into_iter().enumerate() {
            let test = ServerTest::from_server(&server);
            let (step_log, lock) = (test.step_log.clone(), lock.clone());
            tests.running.spawn(async move { (index, test_server(step_log, server, lock).await) });
            tests.tests.push(test);
        }
        tests.tests.extend(desired.failed.into_iter().map(ServerTest::from_invalid_entry));
        tests
    }

    /// Waits for all tests and prints the reports. Cancel-safe.
    pub(super) async fn wait(&mut self) {
        let show_after = Instant::now() + SHOW_AFTER;
        let note_after = Instant::now() + NOTE_AFTER;
        let progress = self.progress.clone();
        let _clear = progress.clear_on_drop();
        loop {
            let now = Instant::now();
            let text = self.waiting_text();
            progress.show(&text);
            if now >= note_after && !self.running.is_empty() {
                progress.note(&format!("still {text}"));
            }
            if now >= show_after && self.print_reports().await != WriteOutcome::Complete {
                return;
            }
            let timer = [show_after, note_after].into_iter().find(|timer| now < *timer);
            tokio::select! {
                joined = self.running.join_next() => match joined {
                    None => return,
                    Some(Ok((index, entry))) => {
                        let test = &mut self.tests[index];
                        (test.is_done, test.entry) = (true, entry);
                    }
                    // The tasks are never aborted, so one can only have panicked.
                    Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                },
                () = sleep_until(timer.unwrap_or(now)), if timer.is_some() => {}
            }
        }
    }

    fn waiting_text(&self) -> String {
        waiting_text("testing", &self.unfinished(), self.tests.len())
    }

    /// The names of the servers whose tests are not done.
    fn unfinished(&self) -> Vec<&str> {
        self.tests.iter().filter(|test| !test.is_done).map(|test| test.name.as_str()).collect()
    }

    /// Prints the reports of the servers that are done.
    async fn print_reports(&mut self) -> WriteOutcome {
        if self.context.format == Format::Json {
            return WriteOutcome::Complete;
        }
        let text = self.take_reports(|test| test.is_done);
        self.context.print_part(&self.progress, text).await
    }

    /// The reports that `is_due` accepts and that were not printed yet, separated by blank lines.
    fn take_reports(&mut self, is_due: impl Fn(&ServerTest) -> bool) -> String {
        let mut text = String::new();
        for test in self.tests.iter_mut().filter(|test| is_due(test) && !test.is_printed) {
            if std::mem::replace(&mut self.has_output, true) {
                text.push('\n');
            }
            text.push_str(&report_text(&test.report(), self.context.console.out_colour));
            test.is_printed = true;
        }
        text
    }

    /// The output that remains, and the exit code. Tests that are still running are reported as interrupted.
    pub(super) fn final_report(&mut self) -> Report {
        let reports: Vec<ServerReport> = self.tests.iter().map(ServerTest::report).collect();
        let exit = exit_code(&reports);
        let published = self.combined_snapshot();
        let out = match self.context.format {
            Format::Json => {
                let problems = published.problems.iter().map(|active| &active.problem).collect();
                json::document(&DoctorJson { servers: &reports, problems })
            }
            Format::Text if reports.is_empty() => "no servers are configured\n".to_owned(),
            Format::Text => {
                let mut text = self.take_reports(|_| true);
                let problems = problem_lines(&published, self.context.console.out_colour);
                if !problems.is_empty() {
                    text.push('\n');
                    text.push_str(&problems);
                }
                text
            }
        };
        let after = match self.unfinished().as_slice() {
            [] => String::new(),
            names => self.context.console.note(&format!("interrupted while testing {}", names.join(", "))),
        };
        Report { out, exit, after, ..Report::default() }
    }

    /// A snapshot with the catalog of all servers that were read, and the problems that a single test cannot find.
    fn combined_snapshot(&self) -> HostSnapshot {
        let entries: Vec<CatalogServer> = self.tests.iter().filter_map(|test| test.entry.clone()).collect();
        let catalog = Catalog::build(&Builtins::default(), &entries);
        let since = SystemTime::now();
        let problems = catalog.problems().iter().filter(|problem| is_about_names(problem));
        let problems = problems.cloned().chain(cross_server_problems(&entries));
        let problems = problems.map(|problem| ActiveProblem { problem, since }).collect();
        let mut snapshot = HostSnapshot::default();
        snapshot.catalog = Arc::new(catalog);
        snapshot.problems = problems;
        snapshot
    }
}

/// Whether a problem is about the name of a tool, a prompt or a toolset.
fn is_about_names(problem: &Problem) -> bool {
    let is_name_problem = matches!(
        problem.kind,
        ProblemKind::Hidden {
            list: ListKind::Tool | ListKind::Prompt,
            verdict: ExposureVerdict::Collision
                | ExposureVerdict::OwnCollision
                | ExposureVerdict::InvalidName
        }
    );
    // Of a catalog, only a collision of toolsets has this kind.
    is_name_problem || problem.kind == ProblemKind::ServerError
}

impl ServerTest {
    fn new(name: String) -> ServerTest {
        ServerTest {
            name,
            transport: None,
            target: None,
            step_log: StepLog::new(),
            is_done: false,
            is_printed: false,
            entry: None,
        }
    }

    fn from_server(server: &ResolvedServer) -> ServerTest {
        ServerTest {
            transport: Some(server.endpoint.kind().as_str()),
            target: Some(server.endpoint.label()),
            ..ServerTest::new(server.spec.id.to_string())
        }
    }

    /// The finished test of an invalid entry, which cannot be started.
    fn from_invalid_entry(failed: FailedServer) -> ServerTest {
        let FailedServer { id, error } = failed;
        let test = ServerTest::new(id.to_string());
        let result = StepResult {
            outcome: StepOutcome::Failed(FailureCause::Configuration),
            message: error.to_string(),
            help: error.help,
        };
        let _ = test.step_log.record("configuration", result);
        ServerTest { is_done: true, ..test }
    }

    fn report(&self) -> ServerReport {
        ServerReport {
            name: self.name.clone(),
            transport: self.transport,
            target: self.target.clone(),
            steps: if self.is_done { self.step_log.steps() } else { self.step_log.interrupted_steps() },
        }
    }
}
