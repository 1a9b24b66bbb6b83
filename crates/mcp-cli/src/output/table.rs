//! Tables that fit a width: one line per row.
//!
//! All columns but the last hold names that a user may type, so they are never cut. The last column is cut to the
//! remaining width. If it does not fit at all, it is left out, then the column before it, and so on; the first column
//! stays. Cells of a [`Column::Wrapped`] are wrapped instead.

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use mcp_host_config::Colour;
use unicode_width::UnicodeWidthStr;

use crate::output::{sanitize, style};

/// The width of output that is not displayed: nothing is cut.
pub(crate) const UNLIMITED: usize = u16::MAX as usize;

/// The minimum width of the last column.
const MIN_LAST_WIDTH: usize = 12;
/// The maximum length of a cell that is wrapped, in columns.
const MAX_WRAPPED: usize = 400;
/// The spaces between two columns.
const GAP: usize = 2;

/// The heading and alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Aligned left.
    Text(&'static str),
    /// Aligned right.
    Number(&'static str),
    /// Aligned left, and wrapped at spaces if the table is too wide.
    Wrapped(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Column::Text(heading) | Column::Number(heading) | Column::Wrapped(heading) => heading,
        }
    }
}

/// The width and colours of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableStyle {
    /// The width in characters.
    pub(crate) width: usize,
    /// Whether colours and bold text are used.
    pub(crate) colour: Colour,
}

/// The table as text; empty if there are no rows. Each row has one text per column, which may be untrusted.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], style: TableStyle) -> String {
    if columns.iter().any(|column| matches!(column, Column::Wrapped(_))) {
        return wrapped_table(columns, rows, style);
    }
    TableWriter::new(columns, style).rows(rows)
}

/// Writes a table in several parts. A part may widen the columns of the parts after it.
#[derive(Debug)]
pub(crate) struct TableWriter<'a> {
    columns: &'a [Column],
    style: TableStyle,
    /// The widths of the columns so far.
    widths: Vec<usize>,
    /// The number of columns that fit; 0 before the first row.
    shown: usize,
}

impl<'a> TableWriter<'a> {
    /// A table without rows.
    pub(crate) fn new(columns: &'a [Column], style: TableStyle) -> TableWriter<'a> {
        let widths = columns.iter().map(|column| column.heading().len()).collect();
        TableWriter { columns, style, widths, shown: 0 }
    }

    /// The next rows, after the headings if they are the first ones.
    pub(crate) fn rows(&mut self, rows: &[Vec<String>]) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| sanitize::line(cell)).collect()).collect();
        for row in &rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let mut text = String::new();
        if self.shown == 0 {
            self.shown = (1..=self.columns.len()).rev().find(|count| self.fits(*count)).unwrap_or(1);
            let headings: Vec<String> = self.columns.iter().map(|it| it.heading().to_owned()).collect();
            let line = self.line(&headings);
            text.push_str(&style::paint(self.style.colour, style::BOLD, &line));
            text.push('\n');
        }
        for row in &rows {
            text.push_str(&self.line(row));
            text.push('\n');
        }
        text
    }

    /// Whether the first `count` columns fit. The last column of the table may be cut to [`MIN_LAST_WIDTH`].
    fn fits(&self, count: usize) -> bool {
        let (last, before) = self.widths[..count].split_last().expect("a table has columns");
        let min_last_width = if count == self.columns.len() { (*last).min(MIN_LAST_WIDTH) } else { *last };
        before.iter().sum::<usize>() + before.len() * GAP + min_last_width <= self.style.width
    }

    /// One line with the columns that fit.
    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        let mut used = 0;
        for (index, cell) in cells.iter().enumerate().take(self.shown) {
            if index + 1 == self.columns.len() {
                line.push_str(&truncate(cell, self.style.width.saturating_sub(used)));
                break;
            }
            let padding = " ".repeat(self.widths[index].saturating_sub(cell.width()));
            match self.columns[index] {
                Column::Number(_) => line.extend([padding.as_str(), cell]),
                Column::Text(_) | Column::Wrapped(_) => line.extend([cell, padding.as_str()]),
            }
            line.push_str("  ");
            used += self.widths[index] + GAP;
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Cuts a text to a width, with an ellipsis.
pub(crate) fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut res = String::new();
    for character in text.chars() {
        res.push(character);
        if res.width() >= width {
            res.pop();
            break;
        }
    }
    res.truncate(res.trim_end().len());
    if width > 0 {
        res.push('…');
    }
    res
}

/// A table whose wrapped columns share the width that the others leave.
fn wrapped_table(columns: &[Column], rows: &[Vec<String>], style: TableStyle) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(style.width).unwrap_or(u16::MAX));
    match style.colour {
        Colour::Always => table.enforce_styling(),
        Colour::Never => table.force_no_tty(),
    };
    table.set_header(columns.iter().map(|it| Cell::new(it.heading()).add_attribute(Attribute::Bold)));
    for row in rows {
        let max_width = if style.width < UNLIMITED { MAX_WRAPPED } else { usize::MAX };
        table.add_row(row.iter().map(|cell| truncate(&sanitize::line(cell), max_width)));
    }
    let last = columns.len().saturating_sub(1);
    for (index, (column, kind)) in table.column_iter_mut().zip(columns).enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        match kind {
            Column::Text(_) | Column::Number(_) => {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            Column::Wrapped(_) => {}
        }
    }
    let mut res = table.trim_fmt();
    res.push('\n');
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::Text("TOOL"), Column::Text("SERVER"), Column::Text("DESCRIPTION")];

    fn rows() -> Vec<Vec<String>> {
        [
            ["demo__echo", "demo", "Answers with the text it is given"],
            ["demo__add", "demo", "Adds\ntwo \u{1b}[31mintegers"],
            ["x", "another-server", ""],
        ]
        .map(|it| it.map(str::to_owned).to_vec())
        .to_vec()
    }

    #[track_caller]
    fn check(width: usize, want: &str) {
        let got = table(&COLUMNS, &rows(), TableStyle { width, colour: Colour::Never });
        assert_eq!(got.trim_end_matches('\n').replace('\n', "|"), want);
    }

    #[test]
    fn names_are_never_cut() {
        check(
            80,
            concat!(
                "TOOL        SERVER          DESCRIPTION|",
                "demo__echo  demo            Answers with the text it is given|",
                "demo__add   demo            Adds two integers|",
                "x           another-server",
            ),
        );
        check(
            52,
            concat!(
                "TOOL        SERVER          DESCRIPTION|",
                "demo__echo  demo            Answers with the text i…|",
                "demo__add   demo            Adds two integers|",
                "x           another-server",
            ),
        );
        // Descriptions are left out first, then the other columns.
        check(39, "TOOL        SERVER|demo__echo  demo|demo__add   demo|x           another-server");
        check(25, "TOOL|demo__echo|demo__add|x");
        check(5, "TOOL|demo__echo|demo__add|x");
        check(
            UNLIMITED,
            concat!(
                "TOOL        SERVER          DESCRIPTION|",
                "demo__echo  demo            Answers with the text it is given|",
                "demo__add   demo            Adds two integers|",
                "x           another-server",
            ),
        );
    }

    #[test]
    fn later_part_keeps_the_widths() {
        let style = TableStyle { width: 60, colour: Colour::Never };
        let mut writer = TableWriter::new(&COLUMNS, style);
        let part = |name: &str| [vec![name.to_owned(), "s".to_owned(), "d".to_owned()]];
        assert_eq!(writer.rows(&[]), "");
        assert_eq!(writer.rows(&part("longer")), "TOOL    SERVER  DESCRIPTION\nlonger  s       d\n");
        assert_eq!(writer.rows(&part("a")), "a       s       d\n");
        assert_eq!(writer.rows(&part("the-longest")), "the-longest  s       d\n");
    }

    #[test]
    fn wrapped_columns_keep_their_whole_text() {
        let columns = [Column::Text("ARGUMENT"), Column::Wrapped("TYPE"), Column::Wrapped("DESCRIPTION")];
        let rows = [["path", "string", "Where the file is that is to be read"]];
        let rows = rows.map(|it| it.map(str::to_owned).to_vec());
        let got = table(&columns, &rows, TableStyle { width: 40, colour: Colour::Never });
        assert_eq!(
            got,
            "ARGUMENT  TYPE    DESCRIPTION\npath      string  Where the file is that\n                  is to be read\n"
        );
        assert_eq!(
            table(&columns, &rows, TableStyle { width: UNLIMITED, colour: Colour::Never }).lines().count(),
            2
        );
    }

    #[test]
    fn width_is_that_of_the_terminal() {
        assert_eq!(truncate("日本語", 6), "日本語");
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(truncate("ab cd", 4), "ab…");
        assert_eq!(truncate("ab", 0), "");
    }

    #[test]
    fn numbers_are_aligned_right() {
        let columns = [Column::Text("TOOL"), Column::Number("TOKENS"), Column::Text("DESCRIPTION")];
        let rows = [["a", "7", "x"], ["b", "1234", "y"]].map(|it| it.map(str::to_owned).to_vec());
        let got = table(&columns, &rows, TableStyle { width: 80, colour: Colour::Never });
        assert_eq!(got, "TOOL  TOKENS  DESCRIPTION\na          7  x\nb       1234  y\n");
    }

    #[test]
    fn table_without_rows_is_empty() {
        assert_eq!(table(&COLUMNS, &[], TableStyle { width: 80, colour: Colour::Always }), "");
    }
}
