//! The evidence about a server: what was observed when its connection ended.

use std::fmt;

use crate::error::unmatched_output::UnmatchedOutput;

/// Observations of a server, bounded and redacted, for error messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Evidence {
    /// The process id.
    pub pid: Option<u32>,
    /// The sandbox of its process, as text.
    pub sandbox: Option<String>,
    /// How its process ended.
    pub exit: Option<ProcessExit>,
    /// How it closed its WebSocket.
    pub close: Option<CloseStatus>,
    /// The last lines of its standard error, oldest first.
    pub stderr: Vec<String>,
    /// The number of received bytes that were not JSON-RPC.
    pub noise_bytes: u64,
    /// The first of those bytes, as text.
    pub noise_sample: Option<String>,
    /// The last output that resembles MCP but belongs to no request.
    pub unmatched: Option<UnmatchedOutput>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessExit {
    /// It exited with this status.
    Status(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
        /// The signal's name, such as `SIGKILL`.
        name: Option<&'static str>,
    },
}

/// How a server closed its WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseStatus {
    /// With this close frame.
    Code {
        /// The code.
        code: u16,
        /// The server's reason, without secrets; may be empty.
        reason: String,
    },
    /// With an empty close frame.
    NoCode,
    /// Without a close frame.
    NoFrame,
}

impl ProcessExit {
    /// The exit code; `None` after a signal.
    pub fn code(self) -> Option<i32> {
        match self {
            ProcessExit::Status(code) => Some(code),
            ProcessExit::Signal { .. } => None,
        }
    }

    /// Whether the process was killed (SIGKILL).
    pub fn was_killed(self) -> bool {
        const SIGKILL: i32 = 9;
        matches!(self, ProcessExit::Signal { number: SIGKILL, .. })
    }
}

impl fmt::Display for Evidence {
    /// The evidence as text that follows the reason: `; its standard error ended with: …`. Empty without evidence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.stderr.is_empty() {
            write!(f, "; its standard error ended with: {}", self.stderr.join(" | "))?;
        }
        if let Some(unmatched) = &self.unmatched {
            write!(f, "; {unmatched}")?;
        }
        if self.noise_bytes > 0 {
            // Only a process has a standard output.
            let location = if self.pid.is_some() { "of its standard output" } else { "that it sent" };
            write!(f, "; {} bytes {location} were not MCP", self.noise_bytes)?;
            if let Some(sample) = &self.noise_sample {
                write!(f, " (they begin with {sample:?})")?;
            }
        }
        if let Some(sandbox) = &self.sandbox {
            write!(f, "; it ran in a sandbox: {sandbox}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Only Windows has negative ones, which are known by their digits.
            ProcessExit::Status(status @ ..0) => write!(f, "exit status 0x{status:08X}"),
            ProcessExit::Status(status) => write!(f, "exit status {status}"),
            ProcessExit::Signal { number, name: Some(name) } => write!(f, "signal {number} ({name})"),
            ProcessExit::Signal { number, name: None } => write!(f, "signal {number}"),
        }
    }
}

impl fmt::Display for CloseStatus {
    /// `with code 1011 (internal error): "…"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, reason) = match self {
            CloseStatus::Code { code, reason } => (*code, reason),
            CloseStatus::NoCode => return f.write_str("without a code"),
            CloseStatus::NoFrame => return f.write_str("without a close frame"),
        };
        write!(f, "with code {code}")?;
        let meaning = match code {
            1000 => " (normal)",
            1001 => " (going away)",
            1002 => " (protocol error)",
            1003 => " (unsupported data)",
            1007 => " (invalid data)",
            1008 => " (policy violation)",
            1009 => " (message too big)",
            1010 => " (missing extension)",
            1011 => " (internal error)",
            1012 => " (restart)",
            1013 => " (try again later)",
            1014 => " (bad gateway)",
            _ => "",
        };
        f.write_str(meaning)?;
        if reason.is_empty() { Ok(()) } else { write!(f, ": {reason:?}") }
    }
}
