//! The cases of the benchmark, and the clients that run each of them.

/// A client: a column of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    /// The hand-written client.
    Floor,
    /// hyper without our crates.
    Hyper,
    /// reqwest without our crates.
    Reqwest,
    /// Our `Session`.
    Session,
    /// Our `Session` on a current-thread runtime.
    SessionOneThread,
    /// Our `Host`.
    Host,
    /// rmcp, the official SDK.
    Sdk,
}

impl Row {
    pub(super) fn name(self) -> &'static str {
        match self {
            Row::Floor => "floor",
            Row::Hyper => "hyper",
            Row::Reqwest => "reqwest",
            Row::Session => "`Session`",
            Row::SessionOneThread => "`Session`, one thread",
            Row::Host => "`Host`",
            Row::Sdk => "rmcp",
        }
    }

    pub(super) fn program(self) -> &'static str {
        match self {
            Row::Floor | Row::Hyper | Row::Reqwest => "floor",
            Row::Session | Row::SessionOneThread | Row::Host => "ours",
            Row::Sdk => "sdk",
        }
    }

    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Row::Floor | Row::Session | Row::Sdk => &[],
            Row::Hyper => &["--by", "hyper"],
            Row::Reqwest => &["--by", "reqwest"],
            Row::SessionOneThread => &["--rt", "ct"],
            Row::Host => &["--api", "host"],
        }
    }
}

/// The transport between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchTransport {
    /// The client starts the server.
    Stdio,
    /// HTTP with JSON responses.
    Http,
    /// HTTP with event streams as responses.
    Events,
}

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// One measurement.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) title: &'static str,
    pub(super) transport: BenchTransport,
    /// Arguments of the client.
    pub(super) arguments: &'static str,
    /// Arguments of the server.
    pub(super) server: &'static str,
    /// The field of the client's JSON output.
    pub(super) metric: &'static str,
    /// The factor from the metric to `unit`.
    pub(super) scale: f64,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    /// Whether client and server share one processor.
    pub(super) is_pinned: bool,
    pub(super) rows: &'static [Row],
    /// A multiple of the number of rounds, for short measurements with much variance.
    pub(super) rounds_factor: usize,
}

const STDIO: &[Row] = &[Row::Floor, Row::Session, Row::Host, Row::Sdk];
const MANY: &[Row] = &[Row::Floor, Row::Session, Row::SessionOneThread, Row::Host, Row::Sdk];
const HTTP: &[Row] = &[Row::Floor, Row::Hyper, Row::Reqwest, Row::Session, Row::Host, Row::Sdk];
const HTTP_MANY: &[Row] =
    &[Row::Floor, Row::Hyper, Row::Reqwest, Row::Session, Row::SessionOneThread, Row::Host, Row::Sdk];
const FLEET: &[Row] = &[Row::Floor, Row::Host, Row::Sdk];
/// Without the host, which writes a large result to a file.
const LARGE: &[Row] = &[Row::Floor, Row::Session, Row::Sdk];
const OURS: &[Row] = &[Row::Floor, Row::Session];

const CASE: Case = Case {
    title: "",
    transport: BenchTransport::Stdio,
    arguments: "",
    server: "",
    metric: "p50_us",
    scale: 1.0,
    unit: "µs",
    better: Better::Less,
    is_pinned: false,
    rows: STDIO,
    rounds_factor: 1,
};

const RATE: Case = Case { metric: "calls_per_s", unit: "/s", better: Better::More, rows: MANY, ..CASE };

/// The comparison of clients.
pub(super) const CASES: [Case; 20] = [
    Case {
        title: "stdio, one by one: time of a call",
        arguments: "--scenario seq --n 10000",
        is_pinned: true,
        ..CASE
    },
    Case {
        title: "stdio, one by one: client's processor time",
        arguments: "--scenario seq --n 10000",
        metric: "cpu_us_per_call",
        is_pinned: true,
        ..CASE
    },
    Case { title: "stdio, 64 in flight", arguments: "--scenario conc --conc 64 --n 40000", ..RATE },
    Case {
        title: "stdio, result of 1 MiB",
        arguments: "--scenario big --kib 1024 --n 10",
        scale: 1e-3,
        unit: "ms",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "stdio, result of 10 MiB",
        arguments: "--scenario big --kib 10240 --n 3",
        scale: 1e-3,
        unit: "ms",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "stdio, result of 10 MiB: peak memory above idle",
        arguments: "--scenario big --kib 10240 --n 3",
        metric: "grown_kb",
        scale: 1.0 / 1024.0,
        unit: "MiB",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "stdio, echo beside results of 4 MiB: p99",
        arguments: "--scenario hol --kib 4096 --n 60",
        metric: "p99_us",
        scale: 1e-3,
        unit: "ms",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "list of 10,000 tools",
        arguments: "--scenario list --n 2",
        server: "--tools 10000",
        metric: "first_ms",
        unit: "ms",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "list of 10,000 tools: memory kept",
        arguments: "--scenario list --n 2",
        server: "--tools 10000",
        metric: "rss_delta_kb",
        scale: 1.0 / 1024.0,
        unit: "MiB",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "list of 10,000 tools: memory kept a second later",
        arguments: "--scenario list --n 2 --rest-ms 1200",
        server: "--tools 10000",
        metric: "rss_delta_kb",
        scale: 1.0 / 1024.0,
        unit: "MiB",
        rows: LARGE,
        ..CASE
    },
    Case {
        title: "20 servers at once, all ready",
        arguments: "--scenario fleet --n 20",
        server: "--tools 20",
        metric: "all_ready_ms",
        unit: "ms",
        rows: FLEET,
        rounds_factor: 3,
        ..CASE
    },
    Case {
        title: "20 servers at once, met before, all ready",
        arguments: "--scenario fleet --n 20 --mode again",
        server: "--tools 20",
        metric: "all_ready_ms",
        unit: "ms",
        rows: FLEET,
        rounds_factor: 3,
        ..CASE
    },
    Case {
        title: "20 servers that take 300 ms each, all ready",
        arguments: "--scenario fleet --n 20",
        server: "--tools 20 --startup-ms 300",
        metric: "all_ready_ms",
        unit: "ms",
        rows: FLEET,
        ..CASE
    },
    Case {
        title: "100 servers: memory",
        arguments: "--scenario fleet --n 100",
        server: "--tools 20",
        metric: "rss_kb",
        scale: 1.0 / 1024.0,
        unit: "MiB",
        rows: FLEET,
        ..CASE
    },
    Case {
        title: "HTTP, JSON replies, one by one: time of a call",
        transport: BenchTransport::Http,
        arguments: "--scenario seq --n 5000",
        is_pinned: true,
        rows: HTTP,
        ..CASE
    },
    Case {
        title: "HTTP, event streams, one by one: time of a call",
        transport: BenchTransport::Events,
        arguments: "--scenario seq --n 5000",
        is_pinned: true,
        rows: HTTP,
        ..CASE
    },
    Case {
        title: "HTTP, JSON replies, 64 in flight",
        transport: BenchTransport::Http,
        arguments: "--scenario conc --conc 64 --n 10000",
        rows: HTTP_MANY,
        rounds_factor: 3,
        ..RATE
    },
    Case {
        title: "HTTP, event streams, 64 in flight",
        transport: BenchTransport::Events,
        arguments: "--scenario conc --conc 64 --n 10000",
        rows: HTTP_MANY,
        rounds_factor: 3,
        ..RATE
    },
    Case {
        title: "HTTP, echo beside results of 4 MiB: p99",
        transport: BenchTransport::Http,
        arguments: "--scenario hol --kib 4096 --n 60",
        metric: "p99_us",
        scale: 1e-3,
        unit: "ms",
        rows: &[Row::Floor, Row::Hyper, Row::Reqwest, Row::Session, Row::Sdk],
        ..CASE
    },
    Case {
        title: "HTTP, 64 calls of 50 ms, all over",
        transport: BenchTransport::Http,
        arguments: "--scenario sleep --conc 64 --ms 50",
        metric: "makespan_ms",
        unit: "ms",
        rows: HTTP,
        ..CASE
    },
];

const CALLERS: Case = Case { rows: OURS, rounds_factor: 2, ..RATE };
const SIZES: Case = Case { scale: 1e-3, unit: "ms", rows: OURS, ..CASE };
const TOOLS: Case = Case {
    arguments: "--scenario list --n 5",
    metric: "p50_us",
    scale: 1e-3,
    unit: "ms",
    rows: OURS,
    ..CASE
};
const SERVERS: Case = Case {
    server: "--tools 20",
    metric: "all_ready_ms",
    unit: "ms",
    rows: &[Row::Floor, Row::Host],
    rounds_factor: 2,
    ..CASE
};

/// Growth of the cost with the load.
pub(super) const GROWTH: [Case; 16] = [
    Case { title: "1 caller", arguments: "--scenario conc --conc 1 --n 20000", ..CALLERS },
    Case { title: "4 callers", arguments: "--scenario conc --conc 4 --n 20000", ..CALLERS },
    Case { title: "16 callers", arguments: "--scenario conc --conc 16 --n 40000", ..CALLERS },
    Case { title: "64 callers", arguments: "--scenario conc --conc 64 --n 40000", ..CALLERS },
    Case { title: "result of 1 KiB", arguments: "--scenario big --kib 1 --n 2000", ..SIZES },
    Case { title: "result of 32 KiB", arguments: "--scenario big --kib 32 --n 500", ..SIZES },
    Case { title: "result of 1 MiB", arguments: "--scenario big --kib 1024 --n 20", ..SIZES },
    Case { title: "result of 10 MiB", arguments: "--scenario big --kib 10240 --n 3", ..SIZES },
    Case { title: "list of 10 tools", server: "--tools 7", ..TOOLS },
    Case { title: "list of 100 tools", server: "--tools 97", ..TOOLS },
    Case { title: "list of 1,000 tools", server: "--tools 997", ..TOOLS },
    Case { title: "list of 10,000 tools", server: "--tools 9997", ..TOOLS },
    Case { title: "1 server, ready", arguments: "--scenario fleet --n 1", ..SERVERS },
    Case { title: "20 servers, ready", arguments: "--scenario fleet --n 20", ..SERVERS },
    Case { title: "100 servers, ready", arguments: "--scenario fleet --n 100", ..SERVERS },
    Case { title: "200 servers, ready", arguments: "--scenario fleet --n 200", ..SERVERS },
];
