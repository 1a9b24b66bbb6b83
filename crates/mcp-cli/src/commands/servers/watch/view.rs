//! The state of the full-screen view, and the effect of keys on it. Pure: no terminal, no clock.
//!
//! Untrusted text is sanitized when it is stored, so that drawing needs no sanitizing.

use std::collections::{BTreeMap, VecDeque};

use mcp_host_model::Severity;
use mcp_host_registry::Problem;
use mcp_host_runtime::{HostEvent, HostEventKind, HostSnapshot, LeaseSnapshot, ServerState, ServerStatus};
use ratatui::crossterm::event::KeyCode;

use crate::output::sanitize;

/// The maximum number of log lines.
const MAX_LOG_LINES: usize = 500;
/// The maximum length of a text, in characters.
const MAX_CHARS: usize = 1000;
/// The maximum length of the filter, in bytes.
const MAX_FILTER: usize = 100;
/// The number of lines that a page key moves.
const PAGE: usize = 10;

/// The state of the view.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The path of the configuration.
    pub(super) title: String,
    pub(super) generation: u64,
    pub(super) tools: usize,
    pub(super) servers: Vec<ServerRow>,
    pub(super) problems: Vec<(Severity, String)>,
    /// The lines with their times.
    pub(super) log: VecDeque<String>,
    /// Returns the time of a log line.
    clock: Option<fn() -> String>,
    pub(super) filter: String,
    pub(super) mode: ViewMode,
    /// The id of the selected server.
    pub(super) selected: Option<String>,
    /// The number of lines that are scrolled out of the view at the top.
    pub(super) scroll: usize,
    /// The counts of each server, by its id.
    counts: BTreeMap<String, StartCounts>,
}

/// The part of the view that receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ViewMode {
    #[default]
    List,
    /// The selected server.
    Details,
    Help,
    /// The list, while the filter is typed.
    Filter,
}

/// The row of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerRow {
    /// The original id.
    pub(super) id: String,
    /// The sanitized id.
    pub(super) name: String,
    pub(super) state: ServerState,
    pub(super) era: &'static str,
    pub(super) tools: Vec<String>,
    /// The dialogs that lease instances of it.
    pub(super) leases: Vec<String>,
    /// The number of starts.
    pub(super) starts: usize,
    /// The number of failed starts and lost connections.
    pub(super) failures: usize,
    pub(super) failure: Option<String>,
    /// The failure without the words that are the same for many failures.
    pub(super) cause: Option<String>,
    pub(super) help: Option<String>,
}

/// The numbers of starts, and of failed starts and lost connections.
#[derive(Debug, Clone, Copy, Default)]
struct StartCounts {
    starts: usize,
    failures: usize,
}

/// An operation that a key requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ViewCommand {
    None,
    Restart(String),
    Disable(String),
    Quit,
}

impl View {
    /// An empty view. `clock` returns the time of a log line.
    pub(super) fn new(title: &str, clock: fn() -> String) -> View {
        View { title: sanitize_bounded(title), clock: Some(clock), ..View::default() }
    }

    /// Replaces the servers, tools, problems and leases.
    pub(super) fn update(&mut self, published: &HostSnapshot, leases: &[LeaseSnapshot]) {
        self.generation = published.generation;
        let tools = published.catalog.tools();
        self.tools = tools.len();
        let server = |status: &ServerStatus| {
            let counts = self.counts.get(&*status.id).copied().unwrap_or_default();
            let own = tools.iter().filter(|tool| status.id == tool.server);
            let leased = leases.iter().filter(|lease| status.id == lease.server);
            ServerRow {
                id: status.id.to_string(),
                name: sanitize_bounded(&status.id),
                state: status.state,
                era: status.era.map_or("-", |it| it.as_str()),
                tools: own.map(|it| sanitize_bounded(it.name.as_str())).collect(),
                leases: leased.map(lease_text).collect(),
                starts: counts.starts,
                failures: counts.failures,
                failure: status.error.as_ref().map(|failure| sanitize_bounded(&failure.to_string())),
                cause: status.error.as_ref().map(|failure| sanitize_bounded(failure.detail())),
                help: status.error.as_ref().and_then(|it| it.help.as_deref()).map(sanitize_bounded),
            }
        };
        self.servers = published.servers.iter().map(server).collect();
        let mut problems: Vec<(Severity, String)> = published
            .problems
            .iter()
            .map(|it| (it.problem.severity, sanitize_bounded(&problem_text(&it.problem))))
            .collect();
        problems.sort_by_key(|it| it.0);
        self.problems = problems;
        self.ensure_selection();
    }

    /// Counts starts and failures, and logs retries.
    pub(super) fn record_event(&mut self, event: &HostEvent) {
        let counts = self.counts.entry(event.server.clone()).or_default();
        match &event.kind {
            HostEventKind::Starting { failures: _ } => counts.starts += 1,
            HostEventKind::StartFailed(_) | HostEventKind::ConnectionLost(_) => counts.failures += 1,
            HostEventKind::RestartScheduled { after, failures: _ } => {
                let text = format!("{}: retry in {:.1} s", event.server, after.as_secs_f64());
                self.log(&text);
            }
            HostEventKind::RestartSuspended { after, failures } => {
                let seconds = after.as_secs();
                let text = format!("{}: failed {failures} times, next attempt in {seconds} s", event.server);
                self.log(&text);
            }
            // Other events are visible in the next generation.
            _ => {}
        }
    }

    /// Appends a line to the log.
    pub(super) fn log(&mut self, text: &str) {
        if self.log.len() == MAX_LOG_LINES {
            self.log.pop_front();
        }
        let time = self.clock.map(|clock| clock() + " ").unwrap_or_default();
        self.log.push_back(time + &sanitize_bounded(text));
    }

    /// The servers that match the filter.
    pub(super) fn visible_servers(&self) -> Vec<&ServerRow> {
        let filter = self.filter.to_lowercase();
        let matches = |row: &&ServerRow| {
            row.name.to_lowercase().contains(&filter) || row.state.as_str().contains(filter.as_str())
        };
        self.servers.iter().filter(matches).collect()
    }

    /// The index of the selection among the visible servers.
    pub(super) fn selected_index(&self) -> Option<usize> {
        self.visible_servers().iter().position(|it| Some(&it.id) == self.selected.as_ref())
    }

    /// The selected server.
    pub(super) fn selected_server(&self) -> Option<&ServerRow> {
        self.servers.iter().find(|it| Some(&it.id) == self.selected.as_ref())
    }

    /// Handles a key. Returns the operation that it requests.
    pub(super) fn handle_key(&mut self, key: KeyCode) -> ViewCommand {
        match self.mode {
            ViewMode::Filter => {
                self.handle_key_in_filter(key);
                ViewCommand::None
            }
            ViewMode::Help => {
                self.mode = ViewMode::List;
                if key == KeyCode::Char('q') { ViewCommand::Quit } else { ViewCommand::None }
            }
            ViewMode::Details => self.handle_key_in_details(key),
            ViewMode::List => self.handle_key_in_list(key),
        }
    }

    fn handle_key_in_list(&mut self, key: KeyCode) -> ViewCommand {
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.move_selection(|index, _| index.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_selection(|index, _| index + 1),
            KeyCode::PageUp => self.move_selection(|index, _| index.saturating_sub(PAGE)),
            KeyCode::PageDown => self.move_selection(|index, _| index + PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.move_selection(|_, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.move_selection(|_, last| last),
            KeyCode::Enter if self.selected_server().is_some() => {
                self.mode = ViewMode::Details;
                self.scroll = 0;
            }
            KeyCode::Char('?') => self.mode = ViewMode::Help,
            KeyCode::Char('/') => self.mode = ViewMode::Filter,
            KeyCode::Esc => {
                self.filter.clear();
                self.ensure_selection();
            }
            KeyCode::Char('q') => return ViewCommand::Quit,
            KeyCode::Char(letter) => return self.server_command(letter),
            _ => {}
        }
        ViewCommand::None
    }

    fn handle_key_in_details(&mut self, key: KeyCode) -> ViewCommand {
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.scroll = 0,
            KeyCode::Enter | KeyCode::Esc | KeyCode::Backspace => self.mode = ViewMode::List,
            KeyCode::Char('?') => self.mode = ViewMode::Help,
            KeyCode::Char('q') => return ViewCommand::Quit,
            KeyCode::Char(letter) => return self.server_command(letter),
            _ => {}
        }
        ViewCommand::None
    }

    fn handle_key_in_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.mode = ViewMode::List,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = ViewMode::List;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.len() < MAX_FILTER && !letter.is_control() => {
                self.filter.push(letter);
            }
            _ => {}
        }
        self.ensure_selection();
    }

    /// The operation of a letter on the selected server.
    fn server_command(&mut self, letter: char) -> ViewCommand {
        let Some(ServerRow { id, state, .. }) = self.selected_server() else { return ViewCommand::None };
        let (name, is_disabled) = (id.clone(), *state == ServerState::Disabled);
        match (letter, is_disabled) {
            // Restarting a disabled server enables it.
            ('r', _) | ('d', true) => {
                self.log(&format!("{name}: restarting"));
                ViewCommand::Restart(name)
            }
            ('d', false) => {
                self.log(&format!("{name}: disabling"));
                ViewCommand::Disable(name)
            }
            (_, _) => ViewCommand::None,
        }
    }

    /// Selects the server at the index that `target` computes from the selected and the last index.
    fn move_selection(&mut self, target: impl FnOnce(usize, usize) -> usize) {
        let visible = self.visible_servers();
        let Some(last) = visible.len().checked_sub(1) else { return };
        let index = target(self.selected_index().unwrap_or_default(), last).min(last);
        self.selected = Some(visible[index].id.clone());
    }

    /// Selects the first visible server if the selected one is not visible.
    fn ensure_selection(&mut self) {
        if self.selected_index().is_none() {
            self.selected = self.visible_servers().first().map(|it| it.id.clone());
        }
    }
}

/// The message of a problem. The error of a server is its name and the cause.
fn problem_text(problem: &Problem) -> String {
    match (&problem.server, &problem.detail) {
        (Some(server), Some(detail)) => format!("{server}: {detail}"),
        (_, _) => problem.message.clone(),
    }
}

fn lease_text(lease: &LeaseSnapshot) -> String {
    let dialog = match lease.dialog.as_str() {
        "" => "calls without a dialog".to_owned(),
        name => sanitize_bounded(name),
    };
    match lease.pid {
        Some(pid) => format!("{dialog} (process {pid})"),
        None => dialog,
    }
}

/// Sanitizes an untrusted text to one line of bounded length.
fn sanitize_bounded(text: &str) -> String {
    let start: String = text.chars().take(MAX_CHARS).collect();
    sanitize::line(&start)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    use mcp_host_model::{Era, ErrorKind, Exposure, NamePolicy, RawJson, ServerId, read_tools};
    use mcp_host_registry::{Builtins, Catalog, CatalogServer, ServerLists};
    use mcp_host_runtime::{ActiveProblem, HostError};

    use super::*;

    /// The time of all log lines.
    const TIME: &str = "12:34:56";

    /// Four servers, one with hostile text.
    pub(in super::super) fn published() -> HostSnapshot {
        let page = r#"{"tools":[{"name":"echo","inputSchema":{}},{"name":"add\u001b[2J","inputSchema":{}}]}"#;
        let page = RawJson::parse(page.into()).unwrap();
        let lists = Arc::new(ServerLists::of_tools(read_tools(&page).unwrap().into_shared()));
        let entry =
            CatalogServer::new(ServerId::parse("files").unwrap(), Exposure::all(NamePolicy::Pass), lists);
        let states = [
            ("files", ServerState::Ready),
            ("search", ServerState::Starting),
            ("broken", ServerState::Failed),
            ("off", ServerState::Disabled),
        ];
        let mut res = crate::tests::published(&states);
        res.generation = 7;
        res.catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        res.servers[0].era = Some(Era::Modern);
        res.servers[2].error = Some({
            let mut error = HostError::new(ErrorKind::Connection, "it \u{1b}[2Jended\r\n\u{202e}at once");
            error.help = Some("start it \u{9b}31mby hand".into());
            error
        });
        let problem = |problem| ActiveProblem { problem, since: UNIX_EPOCH };
        res.problems.push(problem(Problem::workspace_config_error("line 3 \u{1b}]0;x\u{7}is wrong")));
        res
    }

    pub(in super::super) fn view() -> View {
        let mut view = View::new(".minds/mcp.yaml", || TIME.to_owned());
        let event = |server: &str, what| HostEvent::new(UNIX_EPOCH, server.to_owned(), what);
        view.record_event(&event("broken", HostEventKind::Starting { failures: 0 }));
        let failure = HostError::new(ErrorKind::Connection, String::new());
        view.record_event(&event("broken", HostEventKind::ConnectionLost(failure)));
        view.record_event(&event(
            "broken",
            HostEventKind::RestartScheduled { after: Duration::from_millis(1500), failures: 1 },
        ));
        view.update(&published(), &[]);
        view
    }

    /// Presses `keys` and compares the commands, the selection, the mode and the filter.
    #[track_caller]
    fn check(keys: &str, want: &str) {
        let mut view = view();
        let mut commands = Vec::new();
        for symbol in keys.chars() {
            let key = match symbol {
                '↑' => KeyCode::Up,
                '↓' => KeyCode::Down,
                '⏎' => KeyCode::Enter,
                '⎋' => KeyCode::Esc,
                '⌫' => KeyCode::Backspace,
                '⇟' => KeyCode::PageDown,
                letter => KeyCode::Char(letter),
            };
            let command = view.handle_key(key);
            if command != ViewCommand::None {
                commands.push(format!("{command:?}"));
            }
        }
        let selected = view.selected.as_deref().unwrap_or("nothing");
        assert_eq!(
            format!("{} on {selected} in {:?} {:?}", commands.join(" "), view.mode, view.filter),
            want
        );
    }

    #[test]
    fn keys_select_and_control_servers() {
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
        check("/q", " on nothing in Filter \"q\"");
    }

    #[test]
    fn filter_is_edited_and_cleared() {
        check("/BRO⏎", " on broken in List \"BRO\"");
        check("/broken⌫⌫⌫⌫⌫⌫⌫", " on broken in Filter \"\"");
        check("/absent⏎jrd", " on nothing in List \"absent\"");
        check("/absent⏎⎋", " on files in List \"\"");
        check("/failed⏎", " on broken in List \"failed\"");
        check("/x⎋", " on files in List \"\"");
    }

    #[test]
    fn selection_follows_its_server() {
        let mut view = view();
        view.handle_key(KeyCode::Char('G'));
        let mut published = published();
        published.servers.remove(0);
        view.update(&published, &[]);
        assert_eq!((view.selected.as_deref(), view.selected_index()), (Some("off"), Some(2)));
        published.servers.pop();
        view.update(&published, &[]);
        assert_eq!(view.selected.as_deref(), Some("search"));
        published.servers.clear();
        view.update(&published, &[]);
        assert_eq!(view.selected, None);
        assert_eq!(view.handle_key(KeyCode::Char('r')), ViewCommand::None);
    }

    #[test]
    fn log_is_bounded() {
        let mut view = view();
        for number in 0..2 * MAX_LOG_LINES {
            view.log(&format!("{number} {}", "x".repeat(2 * MAX_CHARS)));
        }
        assert_eq!(view.log.len(), MAX_LOG_LINES);
        assert!(view.log.iter().all(|it| it.chars().count() <= TIME.len() + 1 + MAX_CHARS));
    }
}
