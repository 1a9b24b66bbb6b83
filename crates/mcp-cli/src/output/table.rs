//! A table of tools that fits its width: a line for each tool, its description cut at the end.
//!
//! Names are never cut. Where they leave no room for a description they are folded instead.

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use mcp_config::Colour;

use crate::output::plain;

/// The least room for a description that is worth having.
const LEAST: usize = 20;
/// The most characters of a description that is folded.
const FOLDED: usize = 200;
/// The empty columns between two.
const GAP: usize = 2;

/// One line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The name it is called by.
    pub(crate) tool: &'a str,
    /// Its server.
    pub(crate) server: &'a str,
    /// In the server's words.
    pub(crate) description: &'a str,
}

/// How a table is to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// How many columns there are.
    pub(crate) width: usize,
    /// Is the heading to stand out?
    pub(crate) colour: Colour,
}

/// The table, a line end after each line; empty where there are no rows.
pub(crate) fn table(rows: &[Row<'_>], look: Look) -> String {
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
    table
        .set_header(["TOOL", "SERVER", "DESCRIPTION"].map(|it| Cell::new(it).add_attribute(Attribute::Bold)));
    let wide = is_wide(rows, look.width);
    let longest = if wide { look.width } else { FOLDED };
    for (number, Row { tool, server, description }) in rows.iter().enumerate() {
        let description: String = plain::line(description).chars().take(longest).collect();
        table.add_row([plain::line(tool), plain::line(server), description]);
        if let (true, Some(row)) = (wide, table.row_mut(number)) {
            row.max_height(1);
        }
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if wide && at < 2 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut res = table.trim_fmt();
    res.push('\n');
    res
}

/// Is there room for a description beside the longest names?
fn is_wide(rows: &[Row<'_>], width: usize) -> bool {
    let longest = |of: fn(&Row<'_>) -> usize| rows.iter().map(of).max().unwrap_or_default();
    let names = longest(|it| it.tool.chars().count()) + longest(|it| it.server.chars().count().max(6));
    names + 3 * GAP + LEAST <= width
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row<'_>] = &[
        Row { tool: "demo__echo", server: "demo", description: "Answers with the text it is given" },
        Row { tool: "demo__add", server: "demo", description: "Adds\ntwo \u{1b}[31mintegers" },
        Row { tool: "x", server: "another-server", description: "" },
    ];

    #[track_caller]
    fn check(width: usize, want: &str) {
        let got = table(ROWS, Look { width, colour: Colour::Never });
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
    fn no_rows_are_no_table() {
        assert_eq!(table(&[], Look { width: 80, colour: Colour::Always }), "");
    }
}
