//! The view as a frame: as much of it as there is room for. Pure.

use mcp_config::Colour;
use mcp_host::ServerState;
use mcp_model::Severity;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::view::{Mode, Server, View};

/// The keys, for the last line and for help.
const KEYS: [(&str, &str); 8] = [
    ("?", "help"),
    ("q", "end"),
    ("↑↓", "choose, or scroll"),
    ("⏎", "details"),
    ("r", "start anew"),
    ("d", "switch off, or on"),
    ("/", "filter by name or state"),
    ("esc", "back, or no filter"),
];

/// Where there is less room than this, only the columns that matter most are shown.
const NARROW: u16 = 60;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, colour: Colour) {
    let paint = Paint(colour);
    let area = frame.area();
    let problems = match view.problems.len() {
        0 => 0,
        count => u16::try_from(count).unwrap_or(u16::MAX).min(area.height / 5).saturating_add(1),
    };
    let servers = u16::try_from(view.shown().len()).unwrap_or(u16::MAX).saturating_add(1);
    let room = area.height.saturating_sub(2 + problems);
    let [head, top, middle, bottom, foot] = Layout::vertical([
        Constraint::Length(1),
        // What is below gets a third of what the servers would take.
        Constraint::Length(servers.min(room.saturating_sub(room / 3)).max(2)),
        Constraint::Length(problems),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(view, paint)), head);
    match view.mode {
        Mode::Details => {
            let whole = Rect::new(top.x, top.y, top.width, foot.y.saturating_sub(top.y)).intersection(area);
            details(frame, view, paint, whole);
        }
        Mode::List | Mode::Filter | Mode::Help => {
            table(frame, view, paint, top);
            list(frame, "problems", problem_lines(view, paint), paint, middle);
            let height = usize::from(bottom.height.saturating_sub(1));
            let last = view.log.iter().skip(view.log.len().saturating_sub(height));
            list(frame, "log", last.map(|it| Line::from(it.as_str())).collect(), paint, bottom);
        }
    }
    frame.render_widget(Paragraph::new(footing(view, paint)), foot);
    if view.mode == Mode::Help {
        help(frame, paint);
    }
}

/// Styles, where colours are wanted; without them only what no colour is needed for.
#[derive(Clone, Copy)]
struct Paint(Colour);

impl Paint {
    fn colour(self, colour: Color) -> Style {
        match self.0 {
            Colour::Always => Style::new().fg(colour),
            Colour::Never => Style::new(),
        }
    }

    fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn faint(self) -> Style {
        self.colour(Color::DarkGray)
    }

    fn state(self, state: ServerState) -> Style {
        self.colour(match state {
            ServerState::Ready => Color::Green,
            ServerState::Starting | ServerState::Restarting => Color::Yellow,
            ServerState::Disabled => Color::DarkGray,
            ServerState::Failed | ServerState::Stopped => Color::Red,
        })
    }

    fn severity(self, severity: Severity) -> Style {
        self.colour(match severity {
            Severity::Error => Color::Red,
            Severity::Warning => Color::Yellow,
            Severity::Info => Color::Cyan,
        })
    }
}

fn heading(view: &View, paint: Paint) -> Line<'_> {
    let ready = view.servers.iter().filter(|it| it.state == ServerState::Ready).count();
    let counts = format!(
        "  generation {}  {ready}/{} ready  {}  {}",
        view.generation,
        view.servers.len(),
        counted(view.tools, "tool"),
        counted(view.problems.len(), "problem")
    );
    Line::from(vec![Span::styled(view.title.as_str(), paint.bold()), Span::raw(counts)])
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn footing(view: &View, paint: Paint) -> Line<'_> {
    match (view.mode, view.filter.is_empty()) {
        (Mode::Filter, _) => Line::from(format!("/{}▏", view.filter)),
        (_, false) => Line::from(format!("/{}  esc: all of them", view.filter)),
        (_, true) => {
            let keys: Vec<String> =
                KEYS.iter().map(|(key, does)| format!("{key} {}", first_word(does))).collect();
            Line::styled(keys.join("  "), paint.faint())
        }
    }
}

fn first_word(text: &str) -> &str {
    text.split([',']).next().unwrap_or(text)
}

fn table(frame: &mut Frame<'_>, view: &View, paint: Paint, area: Rect) {
    let shown = view.shown();
    let wide = area.width >= NARROW;
    let longest = shown.iter().map(|it| it.name.chars().count()).max().unwrap_or_default().clamp(6, 30);
    let row = |it: &'_ Server| {
        let Server { id: _, name, state, era, tools, leases, starts, failures, failure, help: _ } = it;
        let mut cells =
            vec![Cell::from(name.clone()), Cell::from(Span::styled(state.as_str(), paint.state(*state)))];
        if wide {
            let counts = [tools.len().to_string(), leases.len().to_string(), format!("{starts}/{failures}")];
            cells.push(Cell::from(*era));
            cells.extend(counts.map(Cell::from));
        }
        cells.push(Cell::from(failure.clone().unwrap_or_default()));
        Row::new(cells)
    };
    let name = Constraint::Length(u16::try_from(longest).unwrap_or(30));
    let (head, widths) = match wide {
        true => (
            vec!["SERVER", "STATE", "ERA", "TOOLS", "LEASES", "STARTS", "WHAT IS WRONG"],
            [10, 6, 5, 6, 6].map(Constraint::Length).to_vec(),
        ),
        false => (vec!["SERVER", "STATE", "WHAT IS WRONG"], vec![Constraint::Length(10)]),
    };
    let widths = std::iter::once(name).chain(widths).chain([Constraint::Fill(1)]);
    let table = Table::new(shown.iter().map(|it| row(it)), widths)
        .header(Row::new(head).style(paint.bold()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(view.mark());
    frame.render_stateful_widget(table, area, &mut state);
}

fn problem_lines(view: &View, paint: Paint) -> Vec<Line<'_>> {
    let line = |(severity, text): &'_ (Severity, String)| {
        Line::from(vec![
            Span::styled(severity.as_str(), paint.severity(*severity)),
            Span::raw(format!(": {text}")),
        ])
    };
    view.problems.iter().map(line).collect()
}

fn list(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'_>>, paint: Paint, area: Rect) {
    let block = Block::new().borders(Borders::TOP).border_style(paint.faint()).title(format!(" {title} "));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn details(frame: &mut Frame<'_>, view: &View, paint: Paint, area: Rect) {
    let mut lines = Vec::new();
    match view.marked() {
        None => lines.push(Line::from("this server is none any more")),
        Some(Server { id: _, name, state, era, tools, leases, starts, failures, failure, help }) => {
            let field = |name: &'static str, value: String| {
                Line::from(vec![Span::styled(format!("{name:<9}"), paint.bold()), Span::raw(value)])
            };
            lines.push(field("server", name.clone()));
            lines.push(field("state", state.as_str().to_owned()));
            lines.push(field("era", (*era).to_owned()));
            lines.push(field("started", format!("{starts} times, {failures} of them failed or were lost")));
            lines.extend(failure.iter().map(|it| field("wrong", it.clone())));
            lines.extend(help.iter().map(|it| field("help", it.clone())));
            let nothing = |it: &[String]| if it.is_empty() { "none".to_owned() } else { it.join(", ") };
            lines.push(field("leases", nothing(leases)));
            lines.push(field("tools", nothing(tools)));
        }
    }
    let scroll = u16::try_from(view.scroll).unwrap_or(u16::MAX);
    let block = Block::new().borders(Borders::TOP).border_style(paint.faint()).title(" details ");
    let text = Paragraph::new(lines).block(block).wrap(Wrap { trim: false }).scroll((scroll, 0));
    frame.render_widget(text, area);
}

fn help(frame: &mut Frame<'_>, paint: Paint) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(key, does)| {
            Line::from(vec![Span::styled(format!(" {key:<5}"), paint.bold()), Span::raw(*does)])
        })
        .collect();
    let area = frame.area();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let width = area.width.min(36);
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), place);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::view::Key;
    use super::super::view::tests::view;
    use super::*;

    fn drawn(width: u16, height: u16, view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, Colour::Never)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| {
            let cells: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            cells.trim_end().to_owned()
        };
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_usual_terminal() {
        insta::assert_snapshot!(drawn(90, 16, &view()), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
        SERVER STATE      ERA    TOOLS LEASES STARTS WHAT IS WRONG
        files  ready      modern 2     0      0/0
        search starting   -      0     0      0/0
        broken failed     -      0     0      1/1    MCPConnectionError: it ended at once
        off    disabled   -      0     0      0/0
         problems ────────────────────────────────────────────────────────────────────────────────
        error: line 3 is wrong
         log ─────────────────────────────────────────────────────────────────────────────────────
        broken: tried again in 1.5 s





        ? help  q end  ↑↓ choose  ⏎ details  r start anew  d switch off  / filter by name or state
        ");
    }

    #[test]
    fn a_narrow_one() {
        insta::assert_snapshot!(drawn(36, 10, &view()), @r"
        .minds/mcp.yaml  generation 7  1/4 r
        SERVER STATE      WHAT IS WRONG
        files  ready
        search starting
        broken failed     MCPConnectionError
         problems ──────────────────────────
        error: line 3 is wrong
         log ───────────────────────────────
        broken: tried again in 1.5 s
        ? help  q end  ↑↓ choose  ⏎ details
        ");
    }

    #[test]
    fn details_and_help_and_filter() {
        let mut view = view();
        view.press(Key::Letter('j'));
        view.press(Key::Letter('j'));
        view.press(Key::Enter);
        insta::assert_snapshot!(drawn(60, 12, &view), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
         details ───────────────────────────────────────────────────
        server   broken
        state    failed
        era      -
        started  1 times, 1 of them failed or were lost
        wrong    MCPConnectionError: it ended at once
        help     start it 31mby hand
        leases   none
        tools    none

        ? help  q end  ↑↓ choose  ⏎ details  r start anew  d switch
        ");
        view.press(Key::Letter('?'));
        insta::assert_snapshot!(drawn(60, 12, &view), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
        SERVER STATE┌ keys ────────────────────────────┐T IS WRONG
        files  ready│ ?    help                        │
        search start│ q    end                         │
        broken faile│ ↑↓   choose, or scroll           │ConnectionEr
        off    disab│ ⏎    details                     │
         problems ──│ r    start anew                  │────────────
        error: line │ d    switch off, or on           │
         log ───────│ /    filter by name or state     │────────────
        broken: trie│ esc  back, or no filter          │
                    └──────────────────────────────────┘
        ? help  q end  ↑↓ choose  ⏎ details  r start anew  d switch
        ");
        view.press(Key::Escape);
        view.press(Key::Letter('/'));
        view.press(Key::Letter('o'));
        insta::assert_snapshot!(drawn(60, 8, &view), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
        SERVER STATE      ERA    TOOLS LEASES STARTS WHAT IS WRONG
        broken failed     -      0     0      1/1    MCPConnectionEr
        off    disabled   -      0     0      0/0
         problems ──────────────────────────────────────────────────
        error: line 3 is wrong
         log ───────────────────────────────────────────────────────
        /o▏
        ");
    }

    #[test]
    fn any_size_is_drawn_and_nothing_commands_the_terminal() {
        let mut view = view();
        for number in 0..50 {
            view.say(&format!("line {number} \u{1b}[2J\u{202e}"));
        }
        for key in [Key::Escape, Key::Letter('?'), Key::Escape, Key::Enter, Key::Escape, Key::Letter('/')] {
            view.press(key);
            for width in [1, 2, 3, 5, 8, 13, 20, 80, 300] {
                for height in [1, 2, 3, 4, 5, 8, 20, 60] {
                    let text = drawn(width, height, &view);
                    assert!(!text.contains(|it: char| it.is_control() && it != '\n' || it == '\u{202e}'));
                }
            }
        }
        view.scroll = usize::MAX;
        view.mode = Mode::Details;
        drawn(1, 1, &view);
        drawn(80, 24, &View::new(""));
    }
}
