//! What the full-screen view shows, and what keys do to it: state in, state out. Pure.
//!
//! Everything that comes from outside is made harmless when it enters, so that nothing behind this has to think of it.

use std::collections::{BTreeMap, VecDeque};

use mcp_host::{HostEvent, HostEventKind, HostSnapshot, LeaseReceipt, ServerState};
use mcp_model::Severity;

use crate::output::plain;

/// How many lines of the log are kept.
const LOG: usize = 500;
/// The longest line that is kept, in characters.
const LONGEST: usize = 1000;
/// The longest filter.
const FILTER: usize = 100;
/// How far a page goes.
const PAGE: usize = 10;

/// All that is shown.
#[derive(Debug, Default)]
pub(super) struct View {
    /// What is watched.
    pub(super) title: String,
    pub(super) generation: u64,
    pub(super) tools: usize,
    pub(super) servers: Vec<Server>,
    pub(super) problems: Vec<(Severity, String)>,
    pub(super) log: VecDeque<String>,
    pub(super) filter: String,
    pub(super) mode: Mode,
    /// The id of the server that the mark is on.
    pub(super) selected: Option<String>,
    /// How many lines of what is scrolled are above the first that is shown.
    pub(super) scroll: usize,
    counts: BTreeMap<String, Counts>,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    List,
    /// One server.
    Details,
    Help,
    /// The filter is being written.
    Filter,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// As it is written, for orders.
    pub(super) id: String,
    /// As it is shown.
    pub(super) name: String,
    pub(super) state: ServerState,
    pub(super) era: &'static str,
    pub(super) tools: Vec<String>,
    /// Whose instances of it there are.
    pub(super) leases: Vec<String>,
    /// How often it was started, and how often that failed or it was lost.
    pub(super) starts: usize,
    pub(super) failures: usize,
    /// What is wrong with it, and what to do.
    pub(super) failure: Option<String>,
    pub(super) help: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    starts: usize,
    failures: usize,
}

/// A key, as far as it means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Enter,
    Escape,
    Erase,
    Interrupt,
    Letter(char),
}

/// What the host is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    Nothing,
    Restart(String),
    Disable(String),
    /// The end, and whether Ctrl-C asked for it.
    Quit,
    Interrupted,
}

impl View {
    pub(super) fn new(title: &str) -> View {
        View { title: harmless(title), ..View::default() }
    }

    /// This is so now.
    pub(super) fn publish(&mut self, published: &HostSnapshot, leases: &[LeaseReceipt]) {
        self.generation = published.generation;
        let tools = published.catalog.tools();
        self.tools = tools.len();
        let server = |it: &mcp_host::ServerStatus| {
            let counts = self.counts.get(&it.id).copied().unwrap_or_default();
            let own = tools.iter().filter(|tool| tool.server.as_str() == it.id);
            let leased = leases.iter().filter(|lease| lease.server.as_str() == it.id);
            Server {
                id: it.id.clone(),
                name: harmless(&it.id),
                state: it.state,
                era: it.era.map_or("-", |it| it.as_str()),
                tools: own.map(|it| harmless(it.name.as_str())).collect(),
                leases: leased.map(lease).collect(),
                starts: counts.starts,
                failures: counts.failures,
                failure: it.error.as_ref().map(|it| harmless(&it.to_string())),
                help: it.error.as_ref().and_then(|it| it.help.as_deref()).map(harmless),
            }
        };
        self.servers = published.servers.iter().map(server).collect();
        let mut problems: Vec<(Severity, String)> = published
            .problems
            .iter()
            .map(|it| (it.problem.severity, harmless(&it.problem.message)))
            .collect();
        problems.sort_by_key(|it| it.0);
        self.problems = problems;
        self.keep_selection();
    }

    /// This happened to a server.
    pub(super) fn happened(&mut self, event: &HostEvent) {
        let counts = self.counts.entry(event.server.clone()).or_default();
        match &event.kind {
            HostEventKind::Starting { failures: _ } => counts.starts += 1,
            HostEventKind::StartFailed(_) | HostEventKind::Lost(_) => counts.failures += 1,
            HostEventKind::RestartScheduled { after, failures: _ } => {
                let text = format!("{}: tried again in {:.1} s", event.server, after.as_secs_f64());
                self.say(&text);
            }
            HostEventKind::RestartSuspended { after, failures: setbacks } => {
                let seconds = after.as_secs();
                let text =
                    format!("{}: went wrong {setbacks} times, left alone for {seconds} s", event.server);
                self.say(&text);
            }
            // The next generation says it.
            _ => {}
        }
    }

    /// A line for the log.
    pub(super) fn say(&mut self, text: &str) {
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(harmless(text));
    }

    /// The servers that the filter lets through.
    pub(super) fn shown(&self) -> Vec<&Server> {
        let filter = self.filter.to_lowercase();
        let fits = |it: &&Server| {
            it.name.to_lowercase().contains(&filter) || it.state.as_str().contains(filter.as_str())
        };
        self.servers.iter().filter(fits).collect()
    }

    /// Where the mark is among those that are shown.
    pub(super) fn mark(&self) -> Option<usize> {
        self.shown().iter().position(|it| Some(&it.id) == self.selected.as_ref())
    }

    /// The server that the mark is on.
    pub(super) fn marked(&self) -> Option<&Server> {
        self.servers.iter().find(|it| Some(&it.id) == self.selected.as_ref())
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: Key) -> Order {
        if key == Key::Interrupt {
            return Order::Interrupted;
        }
        match self.mode {
            Mode::Filter => self.write(key),
            Mode::Help => {
                self.mode = Mode::List;
                return if key == Key::Letter('q') { Order::Quit } else { Order::Nothing };
            }
            Mode::Details => return self.read(key),
            Mode::List => return self.choose(key),
        }
        Order::Nothing
    }

    fn choose(&mut self, key: Key) -> Order {
        match key {
            Key::Up | Key::Letter('k') => self.go(|at, _| at.saturating_sub(1)),
            Key::Down | Key::Letter('j') => self.go(|at, _| at + 1),
            Key::PageUp => self.go(|at, _| at.saturating_sub(PAGE)),
            Key::PageDown => self.go(|at, _| at + PAGE),
            Key::First | Key::Letter('g') => self.go(|_, _| 0),
            Key::Last | Key::Letter('G') => self.go(|_, last| last),
            Key::Enter if self.marked().is_some() => {
                self.mode = Mode::Details;
                self.scroll = 0;
            }
            Key::Letter('?') => self.mode = Mode::Help,
            Key::Letter('/') => self.mode = Mode::Filter,
            Key::Escape => {
                self.filter.clear();
                self.keep_selection();
            }
            Key::Letter('q') => return Order::Quit,
            Key::Letter(it) => return self.order(it),
            Key::Enter | Key::Erase | Key::Interrupt => {}
        }
        Order::Nothing
    }

    fn read(&mut self, key: Key) -> Order {
        match key {
            Key::Up | Key::Letter('k') => self.scroll = self.scroll.saturating_sub(1),
            Key::Down | Key::Letter('j') => self.scroll = self.scroll.saturating_add(1),
            Key::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            Key::PageDown => self.scroll = self.scroll.saturating_add(PAGE),
            Key::First | Key::Letter('g') => self.scroll = 0,
            Key::Enter | Key::Escape | Key::Erase => self.mode = Mode::List,
            Key::Letter('?') => self.mode = Mode::Help,
            Key::Letter('q') => return Order::Quit,
            Key::Letter(it) => return self.order(it),
            Key::Last | Key::Interrupt => {}
        }
        Order::Nothing
    }

    fn write(&mut self, key: Key) {
        match key {
            Key::Enter => self.mode = Mode::List,
            Key::Escape => {
                self.filter.clear();
                self.mode = Mode::List;
            }
            Key::Erase => {
                self.filter.pop();
            }
            Key::Letter(it) if self.filter.len() < FILTER && !it.is_control() => self.filter.push(it),
            Key::Letter(_)
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::First
            | Key::Last
            | Key::Interrupt => {}
        }
        self.keep_selection();
    }

    /// What a letter orders about the marked server.
    fn order(&mut self, letter: char) -> Order {
        let Some(Server { id, state, .. }) = self.marked() else { return Order::Nothing };
        let (name, off) = (id.clone(), *state == ServerState::Disabled);
        match (letter, off) {
            // One that is switched off is switched on by starting it.
            ('r', _) | ('d', true) => {
                self.say(&format!("{name}: is started anew"));
                Order::Restart(name)
            }
            ('d', false) => {
                self.say(&format!("{name}: is switched off"));
                Order::Disable(name)
            }
            (_, _) => Order::Nothing,
        }
    }

    fn go(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let shown = self.shown();
        let Some(last) = shown.len().checked_sub(1) else { return };
        let at = to(self.mark().unwrap_or_default(), last).min(last);
        self.selected = Some(shown[at].id.clone());
    }

    /// The mark stays on its server, and goes to the first where that is gone.
    fn keep_selection(&mut self) {
        if self.mark().is_none() {
            self.selected = self.shown().first().map(|it| it.id.clone());
        }
    }
}

fn lease(lease: &LeaseReceipt) -> String {
    let who = match lease.dialog.as_str() {
        "" => "calls without a dialog".to_owned(),
        name => harmless(name),
    };
    match lease.pid {
        Some(pid) => format!("{who} (process {pid})"),
        None => who,
    }
}

/// A stranger's text on one line, and bounded.
fn harmless(text: &str) -> String {
    let start: String = text.chars().take(LONGEST).collect();
    plain::line(&start)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    use mcp_host::{ActiveProblem, HostError};
    use mcp_model::{Era, ErrorKind, Exposure, NamePolicy, RawJson, ServerId, read_tools};
    use mcp_registry::{Builtins, Catalog, Problem, ServerEntry, ServerLists};

    use super::*;
    use crate::fixture;

    /// Three servers, one of which is hostile.
    pub(in super::super) fn published() -> HostSnapshot {
        let page = r#"{"tools":[{"name":"echo","inputSchema":{}},{"name":"add\u001b[2J","inputSchema":{}}]}"#;
        let page = RawJson::parse(page.into()).unwrap();
        let lists = Arc::new(ServerLists {
            tools: read_tools(&page).unwrap().into_shared(),
            ..ServerLists::default()
        });
        let entry = ServerEntry {
            id: ServerId::parse("files").unwrap(),
            exposure: Exposure::all(NamePolicy::Pass),
            lists,
        };
        let states = [
            ("files", ServerState::Ready),
            ("search", ServerState::Starting),
            ("broken", ServerState::Failed),
            ("off", ServerState::Disabled),
        ];
        let mut res = fixture::published(&states);
        res.generation = 7;
        res.catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        res.servers[0].era = Some(Era::Modern);
        res.servers[2].error = Some(HostError {
            kind: ErrorKind::Connection,
            message: "it \u{1b}[2Jended\r\n\u{202e}at once".into(),
            help: Some("start it \u{9b}31mby hand".into()),
        });
        let problem = |problem| ActiveProblem { problem, since: UNIX_EPOCH };
        res.problems.push(problem(Problem::workspace_config_error("line 3 \u{1b}]0;x\u{7}is wrong")));
        res
    }

    pub(in super::super) fn view() -> View {
        let mut view = View::new(".minds/mcp.yaml");
        let event = |server: &str, what| HostEvent { at: UNIX_EPOCH, server: server.to_owned(), kind: what };
        view.happened(&event("broken", HostEventKind::Starting { failures: 0 }));
        let failure = HostError { kind: ErrorKind::Connection, message: String::new(), help: None };
        view.happened(&event("broken", HostEventKind::Lost(failure)));
        view.happened(&event(
            "broken",
            HostEventKind::RestartScheduled { after: Duration::from_millis(1500), failures: 1 },
        ));
        view.publish(&published(), &[]);
        view
    }

    /// What the letters and arrows of `keys` lead to: orders, the mark, the mode and the filter.
    #[track_caller]
    fn check(keys: &str, want: &str) {
        let mut view = view();
        let mut orders = Vec::new();
        for it in keys.chars() {
            let key = match it {
                '↑' => Key::Up,
                '↓' => Key::Down,
                '⏎' => Key::Enter,
                '⎋' => Key::Escape,
                '⌫' => Key::Erase,
                '⇟' => Key::PageDown,
                '×' => Key::Interrupt,
                it => Key::Letter(it),
            };
            let order = view.press(key);
            if order != Order::Nothing {
                orders.push(format!("{order:?}"));
            }
        }
        let mark = view.selected.as_deref().unwrap_or("nothing");
        assert_eq!(format!("{} on {mark} in {:?} {:?}", orders.join(" "), view.mode, view.filter), want);
    }

    #[test]
    fn keys_move_and_order() {
        check("", " on files in List \"\"");
        check("jj", " on broken in List \"\"");
        check("↓↓↑", " on search in List \"\"");
        check("⇟⇟", " on off in List \"\"");
        check("kkG", " on off in List \"\"");
        check("Gg", " on files in List \"\"");
        check("r", "Restart(\"files\") on files in List \"\"");
        check("d", "Disable(\"files\") on files in List \"\"");
        check("Gd", "Restart(\"off\") on off in List \"\"");
        check("⏎r⎋", "Restart(\"files\") on files in List \"\"");
        check("⏎", " on files in Details \"\"");
        check("?", " on files in Help \"\"");
        check("?x", " on files in List \"\"");
        check("q", "Quit on files in List \"\"");
        check("⏎q", "Quit on files in Details \"\"");
        check("/q×", "Interrupted on nothing in Filter \"q\"");
    }

    #[test]
    fn a_filter_is_written_and_taken_back() {
        check("/BRO⏎", " on broken in List \"BRO\"");
        check("/broken⌫⌫⌫⌫⌫⌫⌫", " on broken in Filter \"\"");
        check("/nobody⏎jrd", " on nothing in List \"nobody\"");
        check("/nobody⏎⎋", " on files in List \"\"");
        check("/failed⏎", " on broken in List \"failed\"");
        check("/x⎋", " on files in List \"\"");
    }

    #[test]
    fn the_mark_stays_on_its_server() {
        let mut view = view();
        view.press(Key::Letter('G'));
        let mut published = published();
        published.servers.remove(0);
        view.publish(&published, &[]);
        assert_eq!((view.selected.as_deref(), view.mark()), (Some("off"), Some(2)));
        published.servers.pop();
        view.publish(&published, &[]);
        assert_eq!(view.selected.as_deref(), Some("search"));
        published.servers.clear();
        view.publish(&published, &[]);
        assert_eq!(view.selected, None);
        assert_eq!(view.press(Key::Letter('r')), Order::Nothing);
    }

    #[test]
    fn the_log_has_an_end() {
        let mut view = view();
        for number in 0..2 * LOG {
            view.say(&format!("{number} {}", "x".repeat(2 * LONGEST)));
        }
        assert_eq!(view.log.len(), LOG);
        assert!(view.log.iter().all(|it| it.chars().count() <= LONGEST));
    }
}
