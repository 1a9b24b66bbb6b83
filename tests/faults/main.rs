//! The fault matrix, cell by cell: what the table says is what happens, in time, to nobody else, and nothing is left.
//!
//! A test is a wire, in a process of its own; its cells, at all faces, run many beside each other, each with a server of
//! its own and a neighbour that has to answer all the while.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::print_stderr, reason = "what was proven is told to whoever asked for it")]

mod expectations;
mod host;
mod machine;
mod peer;
mod run;
mod session;

use mcp_tests::faults::Wire;

/// A test for each wire.
macro_rules! proves {
    ($($name:ident: $wire:ident;)*) => {
        $(
            #[test]
            fn $name() {
                run::check(stringify!($name), Wire::$wire);
            }
        )*
    };
}

// HD-117, HD-135, SK-12, SK-21: a fault ends its call in time and touches no other.
proves! {
    on_stdio: Stdio;
    on_sse: Sse;
    on_websocket: WebSocket;
    on_http_with_streams: Events;
    on_http_with_documents: Document;
}
