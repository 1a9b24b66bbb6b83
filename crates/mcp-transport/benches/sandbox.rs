//! The time that a sandbox adds to the start of a stdio server.
//!
//! Rounds with and without a sandbox alternate, so that both have the same machine. A start ends with the handshake.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that cannot continue panics")]

#[cfg(target_os = "linux")]
mod linux {
    use std::time::{Duration, Instant};

    use mcp_host_model::{Endpoint, Sandbox, SandboxPreset};
    use mcp_host_transport::{DialOptions, Session, SessionOptions, dialer};
    use mcp_testkit::servers::shell_server;

    const ROUNDS: usize = 200;

    pub(crate) async fn run() {
        let (mut plain, mut boxed) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain.push(start(None).await);
            boxed.push(start(Some(Sandbox::new(SandboxPreset::Project))).await);
        }
        let (plain, boxed) = (median(plain), median(boxed));
        let ratio = boxed.as_secs_f64() / plain.as_secs_f64();
        println!(
            "without {plain:?}, with {boxed:?}, difference {:?}, ratio {ratio:.2}",
            boxed.saturating_sub(plain)
        );
    }

    async fn start(sandbox: Option<Sandbox>) -> Duration {
        let mut endpoint = shell_server("");
        endpoint.sandbox = sandbox;
        let dial = dialer(&Endpoint::Stdio(endpoint), &DialOptions::default()).unwrap();
        let before = Instant::now();
        let session = Session::connect(dial, SessionOptions::default()).await.unwrap();
        let res = before.elapsed();
        session.close(Duration::from_secs(2)).await;
        res
    }

    fn median(mut times: Vec<Duration>) -> Duration {
        times.sort();
        times[times.len() / 2]
    }
}

#[cfg(target_os = "linux")]
#[tokio::main]
async fn main() {
    linux::run().await;
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("there is no sandbox on this system");
}
