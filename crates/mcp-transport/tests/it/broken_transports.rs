//! Deliberately broken transports: the conformance check finds each fault, and each of its rows can fail.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_host_model::Limits;
use mcp_host_transport::testing::{
    ConformanceReport, ROW_TIMEOUT, ResponseForm, Script, ServerAction, check_transport,
};
use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, FrameSink, Link, Outbound, OutboundMessage, OutboundQueue, StreamId,
};
use mcp_testkit::servers;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The capacity of a connection in each direction.
const PIPE_BYTES: usize = 64 << 10;

/// What a transport does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Sends line breaks of a body as they are.
    SplitsBodies,
    /// Does not send notices of cancelled requests.
    SendsNoCancelNotice,
    /// Skips noise without counting it.
    HidesNoise,
    /// Has no limit for a message.
    NoLimit,
    /// Has a lower limit than that of the dial.
    LowLimit,
    /// Delivers a last line that is not complete.
    DeliversRest,
    /// Does not notice that the server disconnects.
    IgnoresDisconnect,
    IgnoresQueueEnd,
    IgnoresShutdown,
    /// Reads in a task that is not its own.
    LeaksReader,
    /// Writes in a task that is not its own.
    LeaksWriter,
    /// Connects once only.
    ConnectsOnce,
    /// Delivers nothing.
    IsDeaf,
    /// Ends at once.
    EndsAtOnce,
}

/// The reader or the writer of a connection.
type Part = Pin<Box<dyn Future<Output = io::Result<DisconnectReason>> + Send>>;

/// A transport over lines, with faults.
#[derive(Clone)]
struct BrokenTransport {
    faults: &'static [Fault],
    max_message_bytes: usize,
    server: mpsc::UnboundedSender<DuplexStream>,
    was_connected: Arc<AtomicBool>,
}

impl BrokenTransport {
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    async fn run(self, link: Link) -> Disconnect {
        let Link { outbound, inbound, mut shutdown, .. } = link;
        let was_connected = self.was_connected.swap(true, Ordering::Relaxed);
        if self.has(Fault::EndsAtOnce) || (self.has(Fault::ConnectsOnce) && was_connected) {
            return Disconnect::new(DisconnectReason::PeerClosed);
        }
        let (stream, server_stream) = duplex(PIPE_BYTES);
        self.server.send(server_stream).unwrap();
        let (read, write) = split(stream);
        let receiving = self.clone().receive(read, inbound);
        let sending = self.clone().send(write, outbound);
        let (receiving, sending) = (Box::pin(receiving), Box::pin(sending));
        let receiving = self.leaked_if(Fault::LeaksReader, receiving);
        let sending = self.leaked_if(Fault::LeaksWriter, sending);
        let carrying = async {
            tokio::select! { end = receiving => end, end = sending => end }
        };
        let end = tokio::select! {
            end = carrying => end,
            _ = shutdown.requested(), if !self.has(Fault::IgnoresShutdown) => Ok(DisconnectReason::Stopped),
        };
        Disconnect::new(end.unwrap_or_else(|error| DisconnectReason::Broken(error.to_string())))
    }

    /// Runs a part in a task that does not end with this future, if the transport has the fault.
    async fn leaked_if(&self, fault: Fault, part: Part) -> io::Result<DisconnectReason> {
        if self.has(fault) { tokio::spawn(part).await.unwrap() } else { part.await }
    }

    async fn receive(
        self,
        read: ReadHalf<DuplexStream>,
        inbound: Arc<dyn FrameSink>,
    ) -> io::Result<DisconnectReason> {
        let mut reader = BufReader::new(read);
        let mut max_message_bytes = self.max_message_bytes as u64;
        if self.has(Fault::NoLimit) {
            max_message_bytes = u64::MAX - 1;
        } else if self.has(Fault::LowLimit) {
            max_message_bytes = 60_000;
        }
        loop {
            let mut line = Vec::new();
            (&mut reader).take(max_message_bytes + 1).read_until(b'\n', &mut line).await?;
            match line.last() {
                None if self.has(Fault::IgnoresDisconnect) => std::future::pending().await,
                None => return Ok(DisconnectReason::PeerClosed),
                Some(b'\n') => {}
                Some(_) if line.len() as u64 > max_message_bytes => {
                    return Ok(DisconnectReason::Broken("a line is too long".to_owned()));
                }
                Some(_) if !self.has(Fault::DeliversRest) => continue,
                Some(_) => {}
            }
            let is_noise = !line.starts_with(b"{");
            if self.has(Fault::IsDeaf) || (self.has(Fault::HidesNoise) && is_noise) {
                continue;
            }
            inbound.deliver(StreamId::Shared, line.trim_ascii_end().to_vec().into());
            tokio::task::yield_now().await;
        }
    }

    async fn send(
        self,
        mut write: WriteHalf<DuplexStream>,
        mut outbound: OutboundQueue,
    ) -> io::Result<DisconnectReason> {
        while let Some(command) = outbound.next().await {
            let body = match command {
                Outbound::Send(OutboundMessage { body, .. }) => body,
                Outbound::Cancel { notice: Some(notice), .. } if !self.has(Fault::SendsNoCancelNotice) => {
                    notice
                }
                Outbound::Cancel { .. } => continue,
            };
            let mut line = body.to_vec();
            if !self.has(Fault::SplitsBodies) {
                line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            }
            line.push(b'\n');
            write.write_all(&line).await?;
        }
        if self.has(Fault::IgnoresQueueEnd) {
            std::future::pending::<()>().await;
        }
        Ok(DisconnectReason::Stopped)
    }
}

/// Performs the script on each connection.
async fn serve(mut connections: mpsc::UnboundedReceiver<DuplexStream>, script: Script) {
    while let Some(stream) = connections.recv().await {
        let script = Arc::clone(&script);
        tokio::spawn(async move {
            let (read, mut write) = split(stream);
            let mut lines = BufReader::new(read).lines();
            while let Some(message) = lines.next_line().await? {
                for action in script(&serde_json::from_str(&message)?) {
                    let text = match action {
                        ServerAction::Send(text) | ServerAction::Respond(_, text) => format!("{text}\n"),
                        ServerAction::SendFirstHalf(text) => text[..text.len() / 2].to_owned(),
                        ServerAction::SendSecondHalf(text) => format!("{}\n", &text[text.len() / 2..]),
                        ServerAction::KeepOpen => continue,
                        ServerAction::Disconnect => return Ok(()),
                    };
                    write.write_all(text.as_bytes()).await?;
                }
            }
            io::Result::Ok(())
        });
    }
}

/// The report of a transport with faults. It takes no longer than a row may take.
async fn report(faults: &'static [Fault]) -> ConformanceReport {
    let begun = Instant::now();
    let start = async |script, limits: Limits| {
        let (server, connections) = mpsc::unbounded_channel();
        tokio::spawn(serve(connections, script));
        let was_connected = Arc::new(AtomicBool::new(false));
        let transport =
            BrokenTransport { faults, max_message_bytes: limits.message_bytes, server, was_connected };
        servers::in_memory("broken", move |link| transport.clone().run(link)) as Arc<dyn Dial>
    };
    let report = check_transport(ResponseForm::Shared, start).await;
    assert!(begun.elapsed() <= ROW_TIMEOUT + Duration::from_millis(100), "{faults:?}: {:?}", begun.elapsed());
    report
}

/// The rows with another outcome.
fn mismatched_rows(report: &ConformanceReport) -> BTreeSet<&'static str> {
    report.mismatches.iter().map(|it| it.row).collect()
}

async fn check(faults: &'static [Fault], want: &[&'static str]) -> BTreeSet<&'static str> {
    let report = report(faults).await;
    let got = mismatched_rows(&report);
    assert_eq!(got, want.iter().copied().collect(), "{faults:?}: {report}");
    got
}

/// The faults of one transport are independent: each has rows of its own.
#[tokio::test(start_paused = true)]
async fn each_row_fails_for_a_broken_transport() {
    use Fault::*;
    let sound = report(&[]).await;
    sound.assert_ok();
    let rows: BTreeSet<&str> = sound.rows.iter().copied().collect();
    assert!(rows.len() > 30 && sound.skipped.is_empty(), "{sound}");
    let mut failed = check(
        &[SplitsBodies, SendsNoCancelNotice, HidesNoise, NoLimit, IgnoresQueueEnd, ConnectsOnce],
        &[
            "line breaks in the arguments of a call",
            "a call that is dropped in the middle of its response",
            "noise, which is counted",
            "a message above the size limit",
            "the end of the queue",
            "a second session over the same dial",
        ],
    )
    .await;
    let leaks = [
        "`run` is dropped at once",
        "`run` is dropped while it waits",
        "`run` is dropped while it sends 12 MiB",
    ];
    let lost = [
        "half a message, then the end",
        "a message without its end, then the end",
        "a server that disconnects in a call",
        "a server that disconnects in the handshake",
    ];
    let large = [
        "a message below the size limit",
        "a message of 10 MiB",
        "a small response behind a large one that is not read",
    ];
    failed.extend(check(&[DeliversRest, LeaksWriter], &[&lost[..2], &leaks].concat()).await);
    failed.extend(check(&[IgnoresDisconnect, LeaksReader], &[&lost[..], &leaks].concat()).await);
    failed.extend(check(&[LowLimit, IgnoresShutdown], &[&large[..], &["a shutdown"]].concat()).await);
    for faults in [&[IsDeaf], &[EndsAtOnce]] {
        let report = report(faults).await;
        assert_eq!(report.rows, sound.rows);
        failed.extend(mismatched_rows(&report));
    }
    assert_eq!(failed, rows);
}
