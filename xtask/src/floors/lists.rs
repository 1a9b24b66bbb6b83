//! The lists: what each crate may depend on, and which words it may not contain.
//!
//! A crate with no list here fails the gate, so that a new crate gets its floor before its first dependency.

/// What one crate may depend on. A name that stands in no list is a trespass.
#[derive(Debug)]
pub(crate) struct Floor {
    pub name: &'static str,
    /// Our crates below it.
    pub ours: &'static [&'static str],
    /// Crates of others.
    pub others: &'static [&'static str],
    /// Crates that may be there only as optional ones, and only under this feature.
    pub under_feature: &'static [(&'static str, &'static [&'static str])],
    /// What its tests and benches may use besides.
    pub development: &'static [&'static str],
}

/// The house, from the ground up.
pub(crate) const FLOORS: &[Floor] = &[
    Floor {
        name: "mcp-model",
        ours: &[],
        others: &["base64", "bytes", "secrecy", "serde", "serde_json", "thiserror", "url"],
        under_feature: &[],
        development: &["proptest"],
    },
    Floor {
        name: "mcp-demo",
        ours: &[],
        others: &[
            "axum",
            "base64",
            "futures-util",
            "rmcp",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio-util",
        ],
        under_feature: &[],
        development: &["tempfile", "tokio-tungstenite"],
    },
    Floor {
        name: "mcp-config",
        ours: &["mcp-model"],
        others: &[
            "annotate-snippets",
            "anstyle",
            "encoding_rs",
            "granit-parser",
            "jsonc-parser",
            "schemars",
            "serde",
            "serde_json",
            "similar",
            "strsim",
            "thiserror",
            "url",
        ],
        under_feature: &[],
        development: &["divan", "insta", "jsonschema", "proptest"],
    },
    Floor {
        name: "mcp-registry",
        ours: &["mcp-model"],
        others: &["blake3", "jsonschema", "serde", "serde_json", "sha2", "strsim", "thiserror"],
        under_feature: &[],
        development: &["divan", "insta", "proptest", "regex"],
    },
    Floor {
        name: "mcp-transport",
        ours: &["mcp-model"],
        others: &[
            "async-trait",
            "bytes",
            "memchr",
            "serde",
            "serde_json",
            "slab",
            "thiserror",
            "tokio",
            "tracing",
        ],
        under_feature: &[
            ("stdio", &["encoding_rs", "nix"]),
            (
                "http",
                &[
                    "base64",
                    "futures-util",
                    "http",
                    "hyper-util",
                    "reqwest",
                    "rustls",
                    "rustls-platform-verifier",
                    "url",
                ],
            ),
            (
                "sse",
                &[
                    "base64",
                    "futures-util",
                    "http",
                    "hyper-util",
                    "reqwest",
                    "rustls",
                    "rustls-platform-verifier",
                    "url",
                ],
            ),
            ("rmcp", &["rmcp"]),
            ("oauth", &["oauth2", "rmcp"]),
            (
                "websocket",
                &[
                    "base64",
                    "futures-util",
                    "http",
                    "httparse",
                    "hyper-util",
                    "rustls",
                    "rustls-platform-verifier",
                    "tokio-rustls",
                    "tokio-tungstenite",
                    "tower-service",
                    "url",
                ],
            ),
        ],
        development: &["axum", "divan", "mcp-demo", "proptest", "rcgen", "tempfile"],
    },
    Floor {
        name: "mcp-acp",
        ours: &["mcp-config", "mcp-model"],
        others: &["serde", "serde_json", "thiserror", "url"],
        under_feature: &[("schema", &["agent-client-protocol-schema"])],
        development: &["insta", "jsonschema", "proptest"],
    },
    Floor {
        name: "mcp-host",
        ours: &["mcp-config", "mcp-model", "mcp-registry", "mcp-transport"],
        others: &[
            "base64",
            "blake3",
            "bytes",
            "fs4",
            "metrics",
            "serde",
            "serde_json",
            "tempfile",
            "thiserror",
            "tokio",
            "tracing",
        ],
        under_feature: &[
            (
                "otel",
                &[
                    "metrics-opentelemetry",
                    "opentelemetry",
                    "opentelemetry-otlp",
                    "opentelemetry_sdk",
                    "rustls",
                    "tracing-opentelemetry",
                    "tracing-subscriber",
                ],
            ),
            ("oauth", &["url"]),
            ("watch", &["notify"]),
        ],
        development: &["insta", "mcp-demo", "metrics-util", "proptest", "tracing-subscriber"],
    },
    Floor {
        name: "mcp-acp-agent",
        ours: &["mcp-acp", "mcp-config", "mcp-host", "mcp-model", "mcp-registry", "mcp-transport"],
        others: &["async-trait", "futures-util", "serde", "serde_json", "tokio", "url"],
        under_feature: &[("sdk", &["agent-client-protocol"]), ("mcp-over-acp", &["bytes", "tracing"])],
        development: &["agent-client-protocol", "insta", "mcp-demo", "tempfile"],
    },
    Floor {
        name: "mcp-gateway",
        ours: &["mcp-host", "mcp-model", "mcp-registry", "mcp-transport"],
        others: &[
            "async-trait",
            "base64",
            "blake3",
            "bytes",
            "futures-util",
            "getrandom",
            "http",
            "hyper",
            "hyper-util",
            "memchr",
            "percent-encoding",
            "rustls",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tokio-util",
            "tracing",
            "url",
        ],
        under_feature: &[],
        development: &["mcp-config", "mcp-demo", "rcgen", "tempfile"],
    },
    Floor {
        name: "mcp-cli",
        ours: &[
            "mcp-acp",
            "mcp-config",
            "mcp-demo",
            "mcp-gateway",
            "mcp-host",
            "mcp-model",
            "mcp-registry",
            "mcp-transport",
        ],
        others: &[
            "anstream",
            "anstyle",
            "axum",
            "base64",
            "clap",
            "clap_complete",
            "clap_mangen",
            "comfy-table",
            "futures-util",
            "indicatif",
            "metrics",
            "metrics-exporter-prometheus",
            "nix",
            "ratatui",
            "rustyline",
            "serde",
            "serde_json",
            "tokio",
            "tracing",
            "tracing-subscriber",
            "url",
        ],
        under_feature: &[],
        development: &["insta", "oauth2", "rcgen", "rustls", "tempfile"],
    },
];

/// The crates that are values and functions of values.
pub(crate) const PURE_CRATES: &[&str] = &["mcp-acp", "mcp-config", "mcp-model", "mcp-registry"];

/// The files of other crates that decide and do not act.
pub(crate) const PURE_FILES: &[&str] = &[
    "crates/mcp-acp-agent/src/error.rs",
    "crates/mcp-acp-agent/src/evidence.rs",
    "crates/mcp-acp-agent/src/over_acp/message.rs",
    "crates/mcp-acp-agent/src/wanted.rs",
    "crates/mcp-gateway/src/frame.rs",
    "crates/mcp-gateway/src/http/guard.rs",
    "crates/mcp-gateway/src/http/headers.rs",
    "crates/mcp-gateway/src/listing.rs",
    "crates/mcp-gateway/src/meta.rs",
    "crates/mcp-gateway/src/params.rs",
    "crates/mcp-gateway/src/reply.rs",
    "crates/mcp-gateway/src/scope.rs",
    "crates/mcp-gateway/src/shown.rs",
    "crates/mcp-gateway/src/splice.rs",
    "crates/mcp-gateway/src/subscribing.rs",
    "crates/mcp-gateway/src/tokens.rs",
    "crates/mcp-gateway/src/told.rs",
    "crates/mcp-host/src/machine/lease.rs",
    "crates/mcp-host/src/machine/lease/backoff.rs",
    "crates/mcp-host/src/machine/mod.rs",
    "crates/mcp-host/src/machine/recover.rs",
    "crates/mcp-host/src/machine/slot.rs",
    "crates/mcp-host/src/machine/stopped.rs",
    "crates/mcp-host/src/machine/supervision.rs",
    "crates/mcp-host/src/machine/view.rs",
    "crates/mcp-host/src/machine/words.rs",
    "crates/mcp-host/src/watch/debounce.rs",
    "crates/mcp-host/src/watch/files.rs",
    "crates/mcp-host/src/watch/merge.rs",
    "crates/mcp-host/src/watch/places.rs",
    "crates/mcp-transport/src/deadline.rs",
    "crates/mcp-transport/src/frame.rs",
    "crates/mcp-transport/src/http/backoff.rs",
    "crates/mcp-transport/src/oauth/grant.rs",
    "crates/mcp-transport/src/oauth/reach.rs",
    "crates/mcp-transport/src/web/event_stream.rs",
    "crates/mcp-transport/src/websocket/pulse.rs",
    "crates/mcp-transport/src/oversize.rs",
    "crates/mcp-transport/src/pace.rs",
    "crates/mcp-transport/src/recording/canonical.rs",
    "crates/mcp-transport/src/recording/cleaner.rs",
    "crates/mcp-transport/src/recording/message.rs",
    "crates/mcp-transport/src/recording/player.rs",
    "crates/mcp-transport/src/recording/take.rs",
    "crates/mcp-transport/src/recording/tape.rs",
    "crates/mcp-transport/src/recording/text.rs",
    "crates/mcp-transport/src/redact.rs",
    "crates/mcp-transport/src/sdk/asked.rs",
    "crates/mcp-transport/src/sdk/convert.rs",
    "crates/mcp-transport/src/sdk/ledger.rs",
    "crates/mcp-transport/src/scan.rs",
    "crates/mcp-transport/src/session/kept.rs",
    "crates/mcp-transport/src/session/mirror.rs",
    "crates/mcp-transport/src/stdio/encoding.rs",
    "crates/mcp-transport/src/stdio/lines.rs",
];

/// The type of a moment, which a pure file in a crate with a runtime may take as an argument. It is no clock.
pub(crate) const MOMENT: &str = "tokio::time::Instant";

/// What no pure code says: it waits for nothing, reads nothing, and is told the time.
pub(crate) const IMPURE_WORDS: &[&str] = &["tokio", "async", "std::fs", "std::env", "::now("];

/// Where `rmcp::` may stand.
pub(crate) const RMCP: &[&str] = &[
    "benches/src/bin/sdk.rs",
    "crates/mcp-demo/",
    "crates/mcp-transport/src/oauth/",
    "crates/mcp-transport/src/sdk/",
];

/// Where JSON-RPC and MCP numbers may be written.
pub(crate) const NUMBERS: &[&str] = &["crates/mcp-acp/src/code.rs", "crates/mcp-model/src/code.rs"];

/// Where the one file with `unsafe` may stand.
pub(crate) const UNSAFE: &str = "crates/mcp-transport/src/stdio/";
