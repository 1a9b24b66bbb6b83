//! A server's standard error: handed on line by line, the last lines kept as evidence.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

use super::lines::{Line, Lines};
use crate::redact::Redactor;

/// How many lines are kept, and how long each may be.
const LINES: usize = 20;
const LINE_BYTES: usize = 500;

/// A line longer than this is cut while it is read.
const READ_LIMIT: usize = 64 << 10;

/// The last lines, shared with whoever writes the evidence.
#[derive(Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Reads until the stream ends. A server that floods it costs time, not memory.
pub(crate) async fn read(mut stderr: ChildStderr, tail: Tail, redactor: Arc<Redactor>, server: String) {
    let mut lines = Lines::new(READ_LIMIT);
    loop {
        match stderr.read_buf(lines.room()).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        while let Some(line) = lines.next() {
            let line = match line {
                Line::Whole(line) => line,
                Line::TooLong(oversize) => oversize.head,
            };
            keep(&line, &tail, &redactor, &server);
            // A flood of short lines is many of them in one read.
            tokio::task::consume_budget().await;
        }
    }
    if let Some(line) = lines.rest() {
        keep(&line, &tail, &redactor, &server);
    }
}

fn keep(line: &[u8], tail: &Tail, redactor: &Redactor, server: &str) {
    let text = redactor.clean(&String::from_utf8_lossy(line), LINE_BYTES);
    if text.trim().is_empty() {
        return;
    }
    tracing::debug!(target: "mcp_server_stderr", server, "{text}");
    tail.push(text);
}
