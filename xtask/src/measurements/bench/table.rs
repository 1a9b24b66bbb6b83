//! Tables for the page, from the measured values.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::cases::{BetterDirection, Case, Client};
use crate::measurements::page::number_text;

/// The values by title of the case and id of the client, one for each round.
pub(super) type Measurements = BTreeMap<(String, String), Vec<f64>>;

/// One row for each case and one column for each client. A cell has the median and its ratio to the floor of the same
/// round.
pub(super) fn case_rows(cases: &[Case], clients: &[&Client], measured: &Measurements) -> String {
    let mut res = "| case |".to_owned();
    clients.iter().for_each(|client| res.push_str(&format!(" {} |", client.name)));
    res.push_str("\n|---|");
    clients.iter().for_each(|_| res.push_str("---|"));
    res.push('\n');
    for case in cases {
        let hint = if case.better == BetterDirection::More { ", more is better" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(res, "| {}{hint} |", case.title);
        let values = |id: &str| measured.get(&(case.title.clone(), id.to_owned()));
        for client in clients {
            let floor = values("floor").filter(|_| client.id != "floor");
            let _ = match values(&client.id) {
                None => write!(res, " |"),
                Some(values) => write!(res, " {} |", cell_text(values, floor, &case.unit)),
            };
        }
        res.push('\n');
    }
    res
}

fn cell_text(values: &[f64], floor: Option<&Vec<f64>>, unit: &str) -> String {
    let value = format!("{} {unit}", number_text(median(values)));
    match floor {
        None => value,
        Some(floor) => {
            let ratios: Vec<f64> = values
                .iter()
                .zip(floor)
                .filter(|it| *it.1 > 0.0)
                .map(|(value, floor)| value / floor)
                .collect();
            format!("{value} ({:.2}×)", median(&ratios))
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::bench::cases::Cases;

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let floor = vec![1.0, 10.0, 100.0];
        assert_eq!(cell_text(&[2.0, 20.0, 200.0], Some(&floor), "ms"), "20.0 ms (2.00×)");
        assert_eq!(cell_text(&[400.0, 20.0, 200.0], Some(&floor), "ms"), "200 ms (2.00×)");
        assert_eq!(cell_text(&[123_456.0], None, "/s"), "123,456 /s");
    }

    #[test]
    fn a_case_without_values_has_an_empty_cell() {
        let cases = Cases::read().unwrap();
        let first = &cases.comparison[..1];
        let measured = Measurements::from([((first[0].title.clone(), "floor".to_owned()), vec![7.0])]);
        assert_eq!(
            case_rows(first, &cases.clients_of(first), &measured),
            "| case | floor | `Session` | `Host` | rmcp |\n|---|---|---|---|---|\n\
             | stdio, one by one: time of a call | 7.00 µs | | | |\n"
        );
    }
}
