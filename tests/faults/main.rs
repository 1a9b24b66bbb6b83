//! The fault matrix, cell by cell: what the table says is what happens, in time, to nobody else, and nothing is left.
//!
//! A test is a face on a wire, in a process of its own; its cells run some beside each other, each with a server of its
//! own and a neighbour that has to answer all the while.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::print_stderr, reason = "what was proven is told to whoever asked for it")]

mod host;
mod machine;
mod peer;
mod run;
mod session;
mod ways;

use mcp_tests::faults::{Face, Wire};

/// A test for each face on each wire.
macro_rules! proves {
    ($($name:ident: $face:ident on $wire:ident;)*) => {
        $(
            #[test]
            fn $name() {
                run::check(stringify!($name), Face::$face, Wire::$wire);
            }
        )*
    };
}

// HD-117, HD-135, SK-12, SK-21: a fault ends its call in time and touches no other.
proves! {
    session_on_stdio: Session on Stdio;
    session_on_sse: Session on Sse;
    session_on_websocket: Session on WebSocket;
    session_on_http_with_streams: Session on Events;
    session_on_http_with_documents: Session on Document;
    host_on_stdio: Host on Stdio;
    host_on_sse: Host on Sse;
    host_on_websocket: Host on WebSocket;
    host_on_http_with_streams: Host on Events;
    host_on_http_with_documents: Host on Document;
    gateway_on_stdio: Gateway on Stdio;
    gateway_on_sse: Gateway on Sse;
    gateway_on_websocket: Gateway on WebSocket;
    gateway_on_http_with_streams: Gateway on Events;
    gateway_on_http_with_documents: Gateway on Document;
}
