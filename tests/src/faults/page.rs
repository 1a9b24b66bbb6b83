//! The table as a page, and its totals.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Api, Era, FaultRow, Group, MachineRow, Transport, Variant, machine, rows};

/// The totals of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Faults.
    pub faults: usize,
    /// Tested cells: a fault on a transport in an era at an API.
    pub cells: usize,
    /// Excluded cells.
    pub exclusions: usize,
    /// Different outcomes.
    pub outcomes: usize,
}

/// Computes the totals.
pub fn totals() -> Totals {
    let rows = rows();
    let (mut cells, mut exclusions, mut outcomes) = (0, 0, BTreeSet::new());
    for row in &rows {
        for (variant, api) in Variant::all().flat_map(|variant| Api::ALL.map(|api| (variant, api))) {
            if row.exclusions(variant.transport).is_some() {
                exclusions += usize::from(api == Api::Session || variant.era == Era::Legacy);
            } else if row.is_tested(variant, api) {
                cells += 1;
                outcomes.extend(row.expected_outcome(variant, api));
            }
        }
    }
    Totals { faults: rows.len(), cells, exclusions, outcomes: outcomes.len() }
}

/// The page with all rows.
pub fn page() -> String {
    let mut res = String::from(
        "# The fault matrix\n\n\
         Each fault, the script of the faulty server, and the outcome. *Session* is the outcome of the faulty \
         request and of\n\
         the next request at `Session` of mcp-transport, *host* that of `Host::call`. A gateway client has the \
         outcome of the\n\
         host unless the row says otherwise. \"restarted\" means that the host lost the server and connected again; \
         the next\n\
         request is made after that. Sessions are tested in both eras, host and gateway in both where they differ. \
         Another\n\
         server responds before, during and after each fault, and no process, task or descriptor is left. `cargo \
         xtask docs`\n\
         generates this page from the table that `cargo xtask faults` tests.\n",
    );
    for group in Group::ALL {
        let _ = write!(
            res,
            "\n## {}\n\n| fault | script | transports | session | host |\n|---|---|---|---|---|\n",
            group.label()
        );
        for row in rows().iter().filter(|it| it.group == group) {
            write_row(&mut res, row);
        }
    }
    res += "\n## In the machine\n\n| fault | affected operation | outcome |\n|---|---|---|\n";
    for MachineRow { fault, place, want } in machine() {
        let _ = writeln!(res, "| {fault} | {place} | {want} |");
    }
    res
}

fn write_row(res: &mut String, row: &FaultRow) {
    let mut head = format!("{} | `{}`", row.fault, row.script);
    for want in &row.expectations {
        let on = transport_list(want.transports, row);
        let era = match want.era {
            None => "",
            Some(Era::Legacy) => ", legacy",
            Some(Era::Modern) => ", modern",
        };
        let cell = |it: &str| it.replace(" | ", ", then ");
        let gateway = want.gateway.map(|it| format!("; gateway: {}", cell(it))).unwrap_or_default();
        let _ =
            writeln!(res, "| {head} | {on}{era} | {} | {}{gateway} |", cell(want.session), cell(want.host));
        head = " | ".to_owned();
    }
    for exclusions in &row.exclusions {
        let on = exclusions.transports.iter().map(|it| it.label()).collect::<Vec<_>>().join(", ");
        let _ = writeln!(res, "| {head} | {on} | does not apply: {} | |", exclusions.reason);
        head = " | ".to_owned();
    }
}

/// The transports of an expectation, without excluded ones.
fn transport_list(transports: &[Transport], row: &FaultRow) -> String {
    let on: Vec<&str> =
        transports.iter().filter(|it| row.exclusions(**it).is_none()).map(|it| it.label()).collect();
    if on.len() == Transport::ALL.len() { "all".to_owned() } else { on.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Script;

    #[test]
    fn every_cell_has_one_expectation_or_exclusion() {
        let mut wrong = Vec::new();
        for row in rows() {
            assert_eq!(Script::parse(&row.script).err(), None);
            for variant in Variant::all() {
                let here =
                    || row.expectations.iter().filter(move |it| it.transports.contains(&variant.transport));
                let general = here().filter(|it| it.era.is_none()).count();
                let special = here().filter(|it| it.era == Some(variant.era)).count();
                let explained = row.exclusions(variant.transport).is_some()
                    || row.expected_outcome(variant, Api::Session).is_some();
                if !explained || general > 1 || special > 1 {
                    wrong.push(format!("{} on {variant:?}", row.script));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn scripts_are_unique() {
        let mut scripts: Vec<String> = rows().into_iter().map(|it| it.script).collect();
        let all = scripts.len();
        scripts.sort();
        scripts.dedup();
        assert_eq!(scripts.len(), all);
    }
}
