//! Serves the control socket of this process.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_host_model::ServerId;
use mcp_host_runtime::{Host, InstanceStderr, PendingQuestion, PendingQuestions};
use mcp_host_transport::StderrLines;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::control::protocol::{
    CallDescription, ControlReply, ControlRequest, HostStatus, InstanceOutput, MAX_LINE_BYTES, WaitingCall,
    call_answer, parse_request, to_line,
};
use crate::control::system::{ControlListener, ControlStream};
use crate::output::shown_arguments;
use crate::runtime::system::terminate_self;

/// The maximum number of connections. Further ones wait.
const MAX_CONNECTIONS: usize = 16;

/// The maximum time between two requests, and for a write.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What the control socket is about.
#[derive(Clone)]
pub(crate) struct ControlledHost {
    pub(crate) host: Arc<Host>,
    pub(crate) questions: PendingQuestions,
    /// Returns the current status.
    pub(crate) status: Arc<dyn Fn() -> HostStatus + Send + Sync>,
}

impl ControlledHost {
    /// The last lines of a server.
    fn logs(&self, server: &str) -> ControlReply {
        let found = ServerId::parse(server).map(|id| self.host.stderr(&id)).unwrap_or_default();
        let output = |instance: InstanceStderr| {
            let StderrLines { count, lines, .. } = instance.stderr;
            InstanceOutput { process: instance.pid, count, lines }
        };
        ControlReply::Logs { instances: found.into_iter().map(output).collect() }
    }

    /// Restarts a server.
    async fn restart(&self, server: &str) -> ControlReply {
        let restarted = match ServerId::parse(server) {
            Ok(id) => self.host.restart(&id).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        restarted.map_or_else(|message| ControlReply::Error { message }, |()| ControlReply::Done)
    }
}

/// The control socket of this process.
pub(crate) struct ControlServer {
    listener: ControlListener,
}

impl ControlServer {
    /// Opens the socket.
    pub(crate) fn open() -> io::Result<ControlServer> {
        ControlListener::bind().map(|listener| ControlServer { listener })
    }

    /// Serves connections until the future is dropped.
    pub(crate) async fn serve(&self, subject: &ControlledHost) -> std::convert::Infallible {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let permit = Arc::clone(&permits).acquire_owned().await.expect("the semaphore is not closed");
            match self.listener.accept().await {
                Ok(stream) => {
                    let subject = subject.clone();
                    connections.spawn(async move {
                        let _permit = permit;
                        // The peer may end the connection at any time.
                        let _ = serve_connection(stream, &subject).await;
                    });
                    while connections.try_join_next().is_some() {}
                }
                Err(error) => {
                    tracing::warn!(%error, "the control socket accepts no connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Answers the requests of a connection until it ends.
async fn serve_connection(stream: ControlStream, subject: &ControlledHost) -> io::Result<()> {
    let questions = &subject.questions;
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(MAX_LINE_BYTES as u64);
        let length = timeout(IDLE_TIMEOUT, limited.read_until(b'\n', &mut line)).await??;
        if length == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            let message = "a request is a line of at most 1 MiB".to_owned();
            return send(&mut writer, &ControlReply::Error { message }).await;
        }
        let reply = match parse_request(&line) {
            Ok(ControlRequest::ListApprovals) => waiting(questions),
            Ok(ControlRequest::Answer { id, allow, remember }) => {
                ControlReply::Answered { calls: questions.answer(id, call_answer(allow, remember)) }
            }
            Ok(ControlRequest::Status) => ControlReply::Status(Box::new((subject.status)())),
            Ok(ControlRequest::Stop) => match terminate_self() {
                Ok(()) => ControlReply::Done,
                Err(error) => ControlReply::Error { message: format!("the host cannot be stopped: {error}") },
            },
            Ok(ControlRequest::Logs { server }) => subject.logs(&server),
            Ok(ControlRequest::Restart { server }) => subject.restart(&server).await,
            Ok(ControlRequest::WatchApprovals) => {
                let mut changes = questions.subscribe();
                let mut unexpected = [0];
                loop {
                    send(&mut writer, &waiting(questions)).await?;
                    tokio::select! {
                        changed = changes.changed() => if changed.is_err() { return Ok(()) },
                        // The peer sends nothing more; it ends the connection.
                        _ = reader.read(&mut unexpected) => return Ok(()),
                    }
                }
            }
            Err(error) => error,
        };
        send(&mut writer, &reply).await?;
    }
}

async fn send(writer: &mut (impl AsyncWriteExt + Unpin), reply: &ControlReply) -> io::Result<()> {
    timeout(IDLE_TIMEOUT, writer.write_all(&to_line(reply))).await?
}

fn waiting(questions: &PendingQuestions) -> ControlReply {
    ControlReply::Approvals { waiting: questions.list().iter().map(to_waiting_call).collect() }
}

fn to_waiting_call(pending: &PendingQuestion) -> WaitingCall {
    let question = &pending.question;
    let action: &'static str = question.action.into();
    let call = CallDescription {
        server: question.server.to_string(),
        tool: question.tool.clone(),
        action: action.to_owned(),
        user: question.user.as_deref().map(str::to_owned),
        rule: question.rule.to_string(),
        changed: question.is_changed,
        seconds: SystemTime::now().duration_since(pending.asked_at).unwrap_or_default().as_secs(),
        arguments: shown_arguments(question.arguments.as_str()),
    };
    WaitingCall { id: pending.id, call }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use mcp_host_runtime::HostOptions;
    use tokio::net::UnixStream;

    use super::*;

    /// Sends bytes on a connection, and returns all replies.
    async fn exchange(bytes: &[u8]) -> String {
        let (client, server) = UnixStream::pair().unwrap();
        let subject = ControlledHost {
            host: Arc::new(Host::start(HostOptions::default())),
            questions: PendingQuestions::new(),
            status: Arc::new(HostStatus::default),
        };
        let served = tokio::spawn(async move { serve_connection(server, &subject).await });
        let (mut reader, mut writer) = client.into_split();
        let bytes = bytes.to_vec();
        let writing = tokio::spawn(async move {
            // The server may have ended the connection.
            let _ = writer.write_all(&bytes).await;
        });
        let mut text = String::new();
        let _ = reader.read_to_string(&mut text).await;
        writing.await.unwrap();
        let _ = served.await.unwrap();
        text
    }

    #[tokio::test]
    async fn cp_018_hostile_input_ends_with_an_error_or_the_connection() {
        let error = |column| {
            format!("{{\"reply\":\"error\",\"message\":\"not a request: invalid at column {column}\"}}\n")
        };
        assert_eq!(exchange(b"").await, "");
        assert_eq!(exchange(b"no secret\n").await, error(2));
        assert!(
            exchange(b"{\"request\":\"answer\",\"id\":-1,\"allow\":true}\n").await.contains("not a request")
        );
        assert!(exchange(b"{\"request\":\"list_approvals\",\"x\":1}\n").await.contains("\"reply\""));
        assert!(exchange(b"\xff\xfe\x00\n").await.contains("not a request"));
        assert_eq!(
            exchange(b"{\"request\":\"answer\",\"id\":1,\"allow\":true,\"remember\":\"always\"}\n").await,
            "{\"reply\":\"answered\",\"calls\":0}\n"
        );
        let deep = "[".repeat(10_000) + "\n";
        assert!(exchange(deep.as_bytes()).await.contains("not a request"));
        let endless = vec![b'x'; MAX_LINE_BYTES + 10];
        assert!(exchange(&endless).await.contains("a line of at most 1 MiB"));
        assert_eq!(
            exchange(b"{\"request\":\"list_approvals\"}\n").await,
            "{\"reply\":\"approvals\",\"waiting\":[]}\n"
        );
    }
}
