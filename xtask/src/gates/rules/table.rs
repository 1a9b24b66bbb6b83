//! Rule ids, and the table of the rules: `| id | rule | where |`.

use std::collections::BTreeSet;
use std::fmt;

use crate::error::Violation;

/// The page with the table.
pub(super) const TABLE: &str = "docs/rules.md";

/// The prefixes of ids, each with its number of digits. A longer prefix comes first.
pub(super) const FAMILIES: &[(&str, usize)] = &[
    ("HD-FR", 3),
    ("HD-KE", 1),
    ("HD-SC", 1),
    ("HDX-", 2),
    ("HD-", 3),
    ("DIA-", 2),
    ("DMX-", 2),
    ("DM-", 3),
    ("ACPX-", 2),
    ("ACP-", 3),
    ("CP-", 3),
    ("RPT-", 3),
    ("SH-", 3),
    ("SK-", 2),
    ("X-", 2),
];

/// The id of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleId {
    pub family: &'static str,
    pub digits: usize,
    pub number: u32,
}

impl RuleId {
    /// Parses an id such as `HD-041`.
    pub(super) fn parse(text: &str) -> Option<RuleId> {
        FAMILIES.iter().find_map(|&(family, digits)| {
            let number = text.strip_prefix(family)?;
            let exact = number.len() == digits && number.bytes().all(|it| it.is_ascii_digit());
            exact.then(|| RuleId { family, digits, number: number.parse().unwrap_or_default() })
        })
    }

    /// The number with its leading zeros.
    pub(super) fn number_text(self) -> String {
        format!("{:0width$}", self.number, width = self.digits)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.family, self.number_text())
    }
}

/// The ids of the table, and the violations of its rows.
pub(super) fn read_table(text: &str) -> (BTreeSet<RuleId>, Vec<Violation>) {
    let mut known = BTreeSet::new();
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(row) = line.strip_prefix('|').and_then(|it| it.trim_end().strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        if cells[0] == "id" || cells[0].starts_with("---") {
            continue;
        }
        let mut add = |message: String| violations.push(Violation::new(TABLE, index + 1, message));
        match (RuleId::parse(cells[0]), cells.len()) {
            (None, _) => add(format!("`{}` is not a rule id", cells[0])),
            (Some(id), 3) if cells.iter().all(|it| !it.is_empty()) => {
                if !known.insert(id) {
                    add(format!("{id} occurs twice"));
                }
            }
            (Some(id), _) => add(format!("{id} needs three cells: id, rule, where")),
        }
    }
    (known, violations)
}
