//! Tables that fit the terminal's width: one line per row, with the last column truncated.
//!
//! The other columns hold names that a user may type, so they are never truncated. If they leave too little room for the
//! last column, all columns are wrapped instead.

use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use mcp_config::Colour;

use crate::output::sanitize;

/// The minimum width of the last column.
const MIN_LAST_WIDTH: usize = 20;
/// The maximum length of the last column in a wrapped table, in characters.
const MAX_WRAPPED: usize = 200;
/// The spaces between two columns.
const GAP: usize = 2;

/// The heading and alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Aligned left.
    Text(&'static str),
    /// Aligned right.
    Number(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Column::Text(heading) | Column::Number(heading) => heading,
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
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(style.width).unwrap_or(u16::MAX))
        .set_truncation_indicator("…");
    match style.colour {
        Colour::Always => table.enforce_styling(),
        Colour::Never => table.force_no_tty(),
    };
    table.set_header(columns.iter().map(|it| Cell::new(it.heading()).add_attribute(Attribute::Bold)));
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|it| sanitize::line(it)).collect()).collect();
    let last = columns.len().saturating_sub(1);
    let wide = is_wide(columns, &rows, style.width);
    let longest = if wide { style.width } else { MAX_WRAPPED };
    for (number, mut row) in rows.into_iter().enumerate() {
        if let Some(text) = row.get_mut(last) {
            *text = text.chars().take(longest).collect();
        }
        table.add_row(row);
        if let (true, Some(row)) = (wide, table.row_mut(number)) {
            row.max_height(1);
        }
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        match columns.get(at) {
            Some(Column::Number(_)) => column.set_cell_alignment(CellAlignment::Right),
            Some(Column::Text(_)) | None => {}
        }
        if wide && at < last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut res = table.trim_fmt();
    res.push('\n');
    res
}

/// Whether the table is wide enough for the last column beside the others.
fn is_wide(columns: &[Column], rows: &[Vec<String>], width: usize) -> bool {
    let others = columns.split_last().map(|(_, others)| others).unwrap_or_default();
    let longest = |(at, column): (usize, &Column)| {
        let lengths = rows.iter().map(|it| it.get(at).map_or(0, |it| it.chars().count()));
        lengths.max().unwrap_or_default().max(column.heading().len())
    };
    let names: usize = others.iter().enumerate().map(longest).sum();
    names + columns.len() * GAP + MIN_LAST_WIDTH <= width
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
        assert!(got.lines().all(|it| it.chars().count() <= width), "{got}");
    }

    #[test]
    fn table_fits_its_width() {
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
                "demo__echo  demo            Answers with the text…|",
                "demo__add   demo            Adds two integers|",
                "x           another-server",
            ),
        );
        check(
            30,
            concat!(
                "TOOL      SERVER    DESCRIPT|",
                "                    ION|",
                "demo__ec  demo      Answers|",
                "ho                  with the|",
                "                    text it|",
                "                    is given|",
                "demo__ad  demo      Adds two|",
                "d                   integers|",
                "x         another-|",
                "          server",
            ),
        );
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
