//! Resource usage of this process from `/proc`, and summaries of times.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A measurement from its start.
#[derive(Debug)]
pub struct Meter {
    begun: Instant,
    processor_us: f64,
}

impl Meter {
    /// Starts a measurement.
    pub fn begin() -> Meter {
        Meter { begun: Instant::now(), processor_us: processor_us() }
    }

    /// Adds the usage since the start to a line, for this many calls.
    pub fn end(&self, calls: usize, line: &mut Value) {
        line["cpu_us_per_call"] = json!((processor_us() - self.processor_us) / calls as f64);
        line["calls_per_s"] = json!(calls as f64 / self.begun.elapsed().as_secs_f64());
    }
}

/// A summary of times.
pub fn summary(mut times: Vec<Duration>) -> Value {
    let first_ms = times.first().map_or(0.0, |it| it.as_secs_f64() * 1e3);
    times.sort_unstable();
    let at = |part: f64| {
        let place = (times.len().saturating_sub(1) as f64 * part) as usize;
        times.get(place).map_or(0.0, |it| it.as_secs_f64() * 1e6)
    };
    json!({
        "p50_us": at(0.5),
        "p99_us": at(0.99),
        "p999_us": at(0.999),
        "max_us": at(1.0),
        "n": times.len(),
        "first_ms": first_ms
    })
}

/// Processor time of this process, in microseconds.
pub fn processor_us() -> f64 {
    let nanoseconds: u64 = tasks()
        .filter_map(|it| {
            let text = fs::read_to_string(it.join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        })
        .sum();
    nanoseconds as f64 / 1e3
}

/// Voluntary context switches of this process, which are its wake-ups.
pub fn wakeups() -> u64 {
    tasks()
        .filter_map(|it| field(&fs::read_to_string(it.join("status")).ok()?, "voluntary_ctxt_switches"))
        .sum()
}

/// A field of `/proc/self/status`, in KiB if it is a size.
pub fn status(name: &str) -> u64 {
    field(&fs::read_to_string("/proc/self/status").unwrap_or_default(), name).unwrap_or(0)
}

/// The number of open files.
pub fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn tasks() -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(|it| Some(it.ok()?.path()))
}

fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "VmHWMx:\t1 kB\nVmHWM:\t  2048 kB\nvoluntary_ctxt_switches:\t17\n";
        assert_eq!(field(text, "VmHWM"), Some(2048));
        assert_eq!(field(text, "voluntary_ctxt_switches"), Some(17));
        assert_eq!(field(text, "VmRSS"), None);
    }

    #[test]
    fn a_summary_of_nothing_is_nothing() {
        assert_eq!(summary(Vec::new())["n"], 0);
        let line = summary((1..=100).map(Duration::from_micros).collect());
        assert_eq!((&line["p50_us"], &line["p99_us"]), (&json!(50.0), &json!(99.0)));
    }
}
