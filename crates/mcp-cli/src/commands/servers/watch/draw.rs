//! Draws the view into a frame of any size. Pure: it depends only on its arguments.

use mcp_host_config::Colour;
use mcp_host_model::Severity;
use mcp_host_runtime::ServerState;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::view::{ServerRow, View, ViewMode};
use crate::output::count;
use crate::output::table::truncate;

/// The keys and their descriptions, for the last line and the help.
const KEYS: [(&str, &str); 8] = [
    ("?", "help"),
    ("q", "quit"),
    ("↑↓", "select, or scroll"),
    ("⏎", "details"),
    ("r", "restart"),
    ("d", "disable, or enable"),
    ("/", "filter by name or state"),
    ("esc", "back, or clear filter"),
];

/// Below this width, only the most important columns are shown.
const NARROW_WIDTH: u16 = 60;

/// Draws the view.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, colour: Colour) {
    let styles = Styles(colour);
    let area = frame.area();
    let problems = match view.problems.len() {
        0 => 0,
        count => u16::try_from(count).unwrap_or(u16::MAX).min(area.height / 5).saturating_add(1),
    };
    let servers = u16::try_from(view.visible_servers().len()).unwrap_or(u16::MAX).saturating_add(1);
    let available = area.height.saturating_sub(2 + problems);
    let [head, top, middle, bottom, foot] = Layout::vertical([
        Constraint::Length(1),
        // The log gets at least a third of the space below the heading.
        Constraint::Length(servers.min(available.saturating_sub(available / 3)).max(2)),
        Constraint::Length(problems),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(view, styles, area.width)), head);
    match view.mode {
        ViewMode::Details => {
            let whole = Rect::new(top.x, top.y, top.width, foot.y.saturating_sub(top.y)).intersection(area);
            draw_details(frame, view, styles, whole);
        }
        ViewMode::List | ViewMode::Filter | ViewMode::Help => {
            draw_servers(frame, view, styles, top);
            draw_list(frame, "problems", problem_lines(view, styles, area.width), styles, middle);
            let height = usize::from(bottom.height.saturating_sub(1));
            let last = view.log.iter().skip(view.log.len().saturating_sub(height));
            draw_list(
                frame,
                "log",
                last.map(|line| Line::from(fit(line, area.width))).collect(),
                styles,
                bottom,
            );
        }
    }
    frame.render_widget(Paragraph::new(footing(view, styles, area.width)), foot);
    if view.mode == ViewMode::Help {
        draw_help(frame, styles);
    }
}

/// The styles of the view; without colours, only bold text.
#[derive(Clone, Copy)]
struct Styles(Colour);

impl Styles {
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
            ServerState::Disabled => Color::DarkGray,
            ServerState::Failed | ServerState::Stopped => Color::Red,
            _ => Color::Yellow,
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

/// Cuts a text to a width, with an ellipsis.
fn fit(text: &str, width: u16) -> String {
    truncate(text, usize::from(width))
}

/// The first line: the title and the counts.
fn heading(view: &View, styles: Styles, width: u16) -> Line<'static> {
    let ready = view.servers.iter().filter(|it| it.state == ServerState::Ready).count();
    let counts = format!(
        "  generation {}  {ready}/{} ready  {}  {}",
        view.generation,
        view.servers.len(),
        count(view.tools, "tool"),
        count(view.problems.len(), "problem")
    );
    let title = Span::styled(fit(&view.title, width), styles.bold());
    let rest = usize::from(width).saturating_sub(title.width());
    Line::from(vec![title, Span::raw(truncate(&counts, rest))])
}

/// The last line: the filter, or the keys.
fn footing(view: &View, styles: Styles, width: u16) -> Line<'static> {
    match (view.mode, view.filter.is_empty()) {
        (ViewMode::Filter, _) => Line::from(format!("/{}▏", view.filter)),
        (_, false) => Line::from(format!("/{}  esc: clear filter", view.filter)),
        (_, true) => {
            let keys: Vec<String> =
                KEYS.iter().map(|(key, action)| format!("{key} {}", before_comma(action))).collect();
            Line::styled(fit(&keys.join("  "), width), styles.faint())
        }
    }
}

/// The short description of a key: the part before the comma.
fn before_comma(text: &str) -> &str {
    text.split(',').next().unwrap_or(text)
}

fn draw_servers(frame: &mut Frame<'_>, view: &View, styles: Styles, area: Rect) {
    let shown = view.visible_servers();
    let is_wide = area.width >= NARROW_WIDTH;
    let name_width =
        shown.iter().map(|server| server.name.chars().count()).max().unwrap_or_default().clamp(6, 30);
    // The widths are those of the columns between the name and the error.
    let (headings, widths): (_, &[u16]) = if is_wide {
        (vec!["SERVER", "STATE", "ERA", "TOOLS", "LEASES", "STARTS", "ERROR"], &[10, 6, 5, 6, 6])
    } else {
        (vec!["SERVER", "STATE", "ERROR"], &[10])
    };
    // Each column before the error is followed by one space.
    let before =
        u16::try_from(name_width).unwrap_or(30) + 1 + widths.iter().map(|width| width + 1).sum::<u16>();
    let cause_width = area.width.saturating_sub(before);
    let row = |server: &'_ ServerRow| {
        let mut cells = vec![
            Cell::from(truncate(&server.name, name_width)),
            Cell::from(Span::styled(server.state.as_str(), styles.state(server.state))),
        ];
        if is_wide {
            let starts = format!("{}/{}", server.starts, server.failures);
            let counts = [server.tools.len().to_string(), server.leases.len().to_string(), starts];
            cells.push(Cell::from(server.era));
            cells.extend(counts.map(Cell::from));
        }
        cells.push(Cell::from(fit(server.cause.as_deref().unwrap_or_default(), cause_width)));
        Row::new(cells)
    };
    let name = Constraint::Length(u16::try_from(name_width).unwrap_or(30));
    let constraints = std::iter::once(name)
        .chain(widths.iter().map(|width| Constraint::Length(*width)))
        .chain([Constraint::Fill(1)]);
    let table = Table::new(shown.iter().map(|it| row(it)), constraints)
        .header(Row::new(headings).style(styles.bold()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(view.selected_index());
    frame.render_stateful_widget(table, area, &mut state);
}

fn problem_lines(view: &View, styles: Styles, width: u16) -> Vec<Line<'static>> {
    let line = |(severity, text): &'_ (Severity, String)| {
        let severity = Span::styled(severity.as_str(), styles.severity(*severity));
        let rest = usize::from(width).saturating_sub(severity.width());
        let text = truncate(&format!(": {text}"), rest);
        Line::from(vec![severity, Span::raw(text)])
    };
    view.problems.iter().map(line).collect()
}

fn draw_list(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'_>>, styles: Styles, area: Rect) {
    let block = Block::new().borders(Borders::TOP).border_style(styles.faint()).title(format!(" {title} "));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_details(frame: &mut Frame<'_>, view: &View, styles: Styles, area: Rect) {
    let mut lines = Vec::new();
    match view.selected_server() {
        None => lines.push(Line::from("this server was removed")),
        Some(server) => {
            let field = |name: &'static str, value: String| {
                Line::from(vec![Span::styled(format!("{name:<9}"), styles.bold()), Span::raw(value)])
            };
            lines.push(field("server", server.name.clone()));
            lines.push(field("state", server.state.as_str().to_owned()));
            lines.push(field("era", server.era.to_owned()));
            let started = format!("{} times; {} failed or lost", server.starts, server.failures);
            lines.push(field("started", started));
            lines.extend(server.failure.iter().map(|it| field("error", it.clone())));
            lines.extend(server.help.iter().map(|it| field("help", it.clone())));
            let list_or_none = |it: &[String]| if it.is_empty() { "none".to_owned() } else { it.join(", ") };
            lines.push(field("leases", list_or_none(&server.leases)));
            lines.push(field("tools", list_or_none(&server.tools)));
        }
    }
    let scroll = u16::try_from(view.scroll).unwrap_or(u16::MAX);
    let block = Block::new().borders(Borders::TOP).border_style(styles.faint()).title(" details ");
    let text = Paragraph::new(lines).block(block).wrap(Wrap { trim: false }).scroll((scroll, 0));
    frame.render_widget(text, area);
}

fn draw_help(frame: &mut Frame<'_>, styles: Styles) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(key, action)| {
            Line::from(vec![Span::styled(format!(" {key:<5}"), styles.bold()), Span::raw(*action)])
        })
        .collect();
    let area = frame.area();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let width = area.width.min(36);
    let popup = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, popup);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), popup);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyCode;

    use super::super::view::tests::view;
    use super::*;

    fn render(width: u16, height: u16, view: &View) -> String {
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
    fn wide_terminal_shows_all_columns() {
        insta::assert_snapshot!(render(90, 16, &view()), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
        SERVER STATE      ERA    TOOLS LEASES STARTS ERROR
        files  ready      modern 2     0      0/0
        search starting   -      0     0      0/0
        broken failed     -      0     0      1/1    it ended at once
        off    disabled   -      0     0      0/0
         problems ────────────────────────────────────────────────────────────────────────────────
        error: line 3 is wrong
         log ─────────────────────────────────────────────────────────────────────────────────────
        12:34:56 broken: retry in 1.5 s





        ? help  q quit  ↑↓ select  ⏎ details  r restart  d disable  / filter by name or state  es…
        ");
    }

    #[test]
    fn narrow_terminal_shows_few_columns() {
        insta::assert_snapshot!(render(36, 10, &view()), @r"
        .minds/mcp.yaml  generation 7  1/4…
        SERVER STATE      ERROR
        files  ready
        search starting
        broken failed     it ended at once
         problems ──────────────────────────
        error: line 3 is wrong
         log ───────────────────────────────
        12:34:56 broken: retry in 1.5 s
        ? help  q quit  ↑↓ select  ⏎ detail…
        ");
    }

    #[test]
    fn details_help_and_filter_are_drawn() {
        let mut view = view();
        view.handle_key(KeyCode::Char('j'));
        view.handle_key(KeyCode::Char('j'));
        view.handle_key(KeyCode::Enter);
        insta::assert_snapshot!(render(60, 12, &view), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
         details ───────────────────────────────────────────────────
        server   broken
        state    failed
        era      -
        started  1 times; 1 failed or lost
        error    MCPConnectionError: it ended at once
        help     start it 31mby hand
        leases   none
        tools    none

        ? help  q quit  ↑↓ select  ⏎ details  r restart  d disable…
        ");
        view.handle_key(KeyCode::Char('?'));
        insta::assert_snapshot!(render(60, 12, &view), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
        SERVER STATE┌ keys ────────────────────────────┐OR
        files  ready│ ?    help                        │
        search start│ q    quit                        │
        broken faile│ ↑↓   select, or scroll           │ended at on…
        off    disab│ ⏎    details                     │
         problems ──│ r    restart                     │────────────
        error: line │ d    disable, or enable          │
         log ───────│ /    filter by name or state     │────────────
        12:34:56 bro│ esc  back, or clear filter       │
                    └──────────────────────────────────┘
        ? help  q quit  ↑↓ select  ⏎ details  r restart  d disable…
        ");
        view.handle_key(KeyCode::Esc);
        view.handle_key(KeyCode::Char('/'));
        view.handle_key(KeyCode::Char('o'));
        insta::assert_snapshot!(render(60, 8, &view), @r"
        .minds/mcp.yaml  generation 7  1/4 ready  2 tools  1 problem
        SERVER STATE      ERA    TOOLS LEASES STARTS ERROR
        broken failed     -      0     0      1/1    it ended at on…
        off    disabled   -      0     0      0/0
         problems ──────────────────────────────────────────────────
        error: line 3 is wrong
         log ───────────────────────────────────────────────────────
        /o▏
        ");
    }

    #[test]
    fn any_size_is_drawn_without_control_characters() {
        let mut view = view();
        for number in 0..50 {
            view.log(&format!("line {number} \u{1b}[2J\u{202e}"));
        }
        for key in
            [KeyCode::Esc, KeyCode::Char('?'), KeyCode::Esc, KeyCode::Enter, KeyCode::Esc, KeyCode::Char('/')]
        {
            view.handle_key(key);
            for width in [1, 2, 3, 5, 8, 13, 20, 80, 300] {
                for height in [1, 2, 3, 4, 5, 8, 20, 60] {
                    let text = render(width, height, &view);
                    assert!(!text.contains(|it: char| it.is_control() && it != '\n' || it == '\u{202e}'));
                }
            }
        }
        view.scroll = usize::MAX;
        view.mode = ViewMode::Details;
        render(1, 1, &view);
        render(80, 24, &View::new("", String::new));
    }
}
