//! The fault matrix: each cell has the expected outcome in time, other servers are unaffected, and no resources are
//! left.
//!
//! Each transport is one test in its own process. Its cells run in parallel, each with its own server and a healthy
//! one.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]
#![expect(clippy::print_stderr, reason = "the matrix prints what it covered")]

mod expectations;
mod host;
mod machine;
mod peer;
mod run;
mod session;

use mcp_tests::faults::Transport;

/// Defines a test for each transport.
macro_rules! test_transports {
    ($($name:ident: $transport:ident;)*) => {
        $(
            #[test]
            fn $name() {
                run::check(stringify!($name), Transport::$transport);
            }
        )*
    };
}

// HD-117, HD-135, SK-12, SK-21: a fault ends its call in time and touches no other.
test_transports! {
    on_stdio: Stdio;
    on_sse: Sse;
    on_websocket: WebSocket;
    on_http_with_streams: Events;
    on_http_with_documents: Document;
}
