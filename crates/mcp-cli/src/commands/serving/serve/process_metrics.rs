//! Metrics of this process and of its build, under the names that the Prometheus clients use.
//!
//! They are read from `/proc` for each page. On other systems than Linux there is only the build.

/// One metric without labels.
struct ProcessMetric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: f64,
}

/// Renders the page.
pub(super) fn render() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        "# HELP mcp_host_build_info The version of mcp-host.\n# TYPE mcp_host_build_info gauge\n\
         mcp_host_build_info{{version=\"{version}\"}} 1\n"
    );
    for ProcessMetric { name, kind, help, value } in read_process() {
        page.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"));
    }
    page
}

/// Reads the metrics of this process; none if the system does not tell.
#[cfg(target_os = "linux")]
fn read_process() -> Vec<ProcessMetric> {
    let metric = |name, kind, help, value| ProcessMetric { name, kind, help, value };
    let Ok(process) = procfs::process::Process::myself() else { return Vec::new() };
    let mut metrics = Vec::new();
    if let Ok(stat) = process.stat() {
        let ticks = procfs::ticks_per_second() as f64;
        let cpu = (stat.utime + stat.stime) as f64 / ticks;
        metrics.push(metric("process_cpu_seconds_total", "counter", "Processor time in seconds.", cpu));
        let resident = (stat.rss * procfs::page_size()) as f64;
        metrics.push(metric("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", resident));
        metrics.push(metric(
            "process_virtual_memory_bytes",
            "gauge",
            "Virtual memory in bytes.",
            stat.vsize as f64,
        ));
        metrics.push(metric("process_threads", "gauge", "Number of threads.", stat.num_threads as f64));
        if let Ok(boot) = procfs::boot_time_secs() {
            let start = boot as f64 + stat.starttime as f64 / ticks;
            metrics.push(metric(
                "process_start_time_seconds",
                "gauge",
                "Start of the process, since the epoch.",
                start,
            ));
        }
    }
    if let Ok(count) = process.fd_count() {
        metrics.push(metric("process_open_fds", "gauge", "Number of open file descriptors.", count as f64));
    }
    if let Ok(limits) = process.limits()
        && let procfs::process::LimitValue::Value(limit) = limits.max_open_files.soft_limit
    {
        let help = "Maximum number of open file descriptors.";
        metrics.push(metric("process_max_fds", "gauge", help, limit as f64));
    }
    metrics
}

#[cfg(not(target_os = "linux"))]
fn read_process() -> Vec<ProcessMetric> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-206
    #[test]
    fn page_has_the_process_and_the_build() {
        let page = render();
        for name in [
            "mcp_host_build_info{version=\"",
            "process_cpu_seconds_total ",
            "process_resident_memory_bytes ",
            "process_start_time_seconds ",
            "process_open_fds ",
            "process_max_fds ",
        ] {
            let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{page}"));
            let value: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            assert!(value >= 0.0, "{line}");
        }
    }
}
