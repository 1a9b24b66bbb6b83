//! A table that fits its width: a line for each item, the last column cut at the end.
//!
//! Nothing else is cut, for those are names that somebody types. Where they leave no room for the last column they are
//! folded instead.

use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use mcp_config::Colour;

use crate::output::plain;

/// The least room for the last column that is worth having.
const LEAST: usize = 20;
/// The most characters of a last column that is folded.
const FOLDED: usize = 200;
/// The empty columns between two.
const GAP: usize = 2;

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words, from the left.
    Words(&'static str),
    /// A number, to the right.
    Number(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Column::Words(heading) | Column::Number(heading) => heading,
        }
    }
}

/// How a table is to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// How many columns of characters there are.
    pub(crate) width: usize,
    /// Is the heading to stand out?
    pub(crate) colour: Colour,
}

/// The table, a line end after each line; empty where there are no rows. Each row has a text for each column, whoever
/// wrote it.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], look: Look) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(look.width).unwrap_or(u16::MAX))
        .set_truncation_indicator("…");
    match look.colour {
        Colour::Always => table.enforce_styling(),
        Colour::Never => table.force_no_tty(),
    };
    table.set_header(columns.iter().map(|it| Cell::new(it.heading()).add_attribute(Attribute::Bold)));
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|it| plain::line(it)).collect()).collect();
    let last = columns.len().saturating_sub(1);
    let wide = is_wide(columns, &rows, look.width);
    let longest = if wide { look.width } else { FOLDED };
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
            Some(Column::Words(_)) | None => {}
        }
        if wide && at < last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut res = table.trim_fmt();
    res.push('\n');
    res
}

/// Is there room for the last column beside the longest of all others?
fn is_wide(columns: &[Column], rows: &[Vec<String>], width: usize) -> bool {
    let others = columns.split_last().map(|(_, others)| others).unwrap_or_default();
    let longest = |(at, column): (usize, &Column)| {
        let lengths = rows.iter().map(|it| it.get(at).map_or(0, |it| it.chars().count()));
        lengths.max().unwrap_or_default().max(column.heading().len())
    };
    let names: usize = others.iter().enumerate().map(longest).sum();
    names + columns.len() * GAP + LEAST <= width
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::Words("TOOL"), Column::Words("SERVER"), Column::Words("DESCRIPTION")];

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
        let got = table(&COLUMNS, &rows(), Look { width, colour: Colour::Never });
        assert_eq!(got.trim_end_matches('\n').replace('\n', "|"), want);
        assert!(got.lines().all(|it| it.chars().count() <= width), "{got}");
    }

    #[test]
    fn a_table_fits_its_width() {
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
    fn numbers_stand_under_each_other() {
        let columns = [Column::Words("TOOL"), Column::Number("TOKENS"), Column::Words("DESCRIPTION")];
        let rows = [["a", "7", "x"], ["b", "1234", "y"]].map(|it| it.map(str::to_owned).to_vec());
        let got = table(&columns, &rows, Look { width: 80, colour: Colour::Never });
        assert_eq!(got, "TOOL  TOKENS  DESCRIPTION\na          7  x\nb       1234  y\n");
    }

    #[test]
    fn no_rows_are_no_table() {
        assert_eq!(table(&COLUMNS, &[], Look { width: 80, colour: Colour::Always }), "");
    }
}
