//! The table as it stands on the page, and what it comes to in numbers.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Era, Face, Group, MachineRow, Row, Way, Wire, machine, rows};

/// How much the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Faults.
    pub faults: usize,
    /// Cells that a test proves: a fault on a wire in an era at a face.
    pub cells: usize,
    /// Of cells that make no sense, each with its reason.
    pub absent: usize,
    /// Different outcomes.
    pub outcomes: usize,
}

/// What the whole table comes to.
pub fn totals() -> Totals {
    let rows = rows();
    let (mut cells, mut absent, mut outcomes) = (0, 0, BTreeSet::new());
    for row in &rows {
        for (way, face) in Way::all().flat_map(|way| Face::ALL.map(|face| (way, face))) {
            if row.absent(way.wire).is_some() {
                absent += usize::from(face == Face::Session || way.era == Era::Legacy);
            } else if row.is_proven(way, face) {
                cells += 1;
                outcomes.extend(row.want(way, face));
            }
        }
    }
    Totals { faults: rows.len(), cells, absent, outcomes: outcomes.len() }
}

/// The page with all rows.
pub fn page() -> String {
    let mut res = String::from(
        "# The fault matrix\n\n\
         Each fault, the script by which the faulty server of the tests does it, and what comes of it. *Session* is what\n\
         mcp-transport's `Session` tells of the request that the fault happened to, and of the next one; *host* what\n\
         `Host::call` tells of the same two, which a client of the gateway is told, too, unless it says otherwise. \"started again\"\n\
         says that the host lost the server and has put a new connection in its place; what is told of the next request is told\n\
         after that. Sessions are looked at in both eras, host and gateway in both where they differ; where an era is named, the\n\
         other one stands beside it. A neighbour answers before, during and after each of them, and afterwards no process, task or\n\
         descriptor is left. This page is made by `cargo xtask docs` from the table that `cargo xtask faults` proves.\n",
    );
    for group in Group::ALL {
        let _ = write!(
            res,
            "\n## {}\n\n| fault | script | wires | session | host |\n|---|---|---|---|---|\n",
            group.words()
        );
        for row in rows().iter().filter(|it| it.group == group) {
            write_row(&mut res, row);
        }
    }
    res += "\n## In the machine\n\n| fault | at | what comes of it |\n|---|---|---|\n";
    for MachineRow { fault, place, want } in machine() {
        let _ = writeln!(res, "| {fault} | {place} | {want} |");
    }
    res
}

fn write_row(res: &mut String, row: &Row) {
    let mut head = format!("{} | `{}`", row.fault, row.script);
    for want in &row.wants {
        let on = words(want.wires, row);
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
    for absent in &row.absent {
        let on = absent.wires.iter().map(|it| it.words()).collect::<Vec<_>>().join(", ");
        let _ = writeln!(res, "| {head} | {on} | none: {} | |", absent.why);
        head = " | ".to_owned();
    }
}

/// The wires of an expectation, of those that the fault is on.
fn words(wires: &[Wire], row: &Row) -> String {
    let on: Vec<&str> = wires.iter().filter(|it| row.absent(**it).is_none()).map(|it| it.words()).collect();
    if on.len() == Wire::ALL.len() { "all".to_owned() } else { on.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Script;

    #[test]
    fn no_cell_is_unexplained_and_none_twice() {
        let mut wrong = Vec::new();
        for row in rows() {
            assert_eq!(Script::parse(&row.script).err(), None);
            for way in Way::all() {
                let here = || row.wants.iter().filter(move |it| it.wires.contains(&way.wire));
                let general = here().filter(|it| it.era.is_none()).count();
                let special = here().filter(|it| it.era == Some(way.era)).count();
                let explained = row.absent(way.wire).is_some() || row.want(way, Face::Session).is_some();
                if !explained || general > 1 || special > 1 {
                    wrong.push(format!("{} on {way:?}", row.script));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn no_fault_stands_there_twice() {
        let mut scripts: Vec<String> = rows().into_iter().map(|it| it.script).collect();
        let all = scripts.len();
        scripts.sort();
        scripts.dedup();
        assert_eq!(scripts.len(), all);
    }
}
