//! The line editor of the shell, in a thread of its own because reading blocks.
//!
//! The thread cannot be stopped while it waits for a key. Dropping [`LineReader`] therefore restores the
//! terminal itself.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_host_config::Colour;
use mcp_host_runtime::HostSnapshot;
use mcp_host_transport::open_regular_file;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use tokio::sync::{mpsc, oneshot, watch};

use crate::commands::calls::shell::complete::{complete, is_history_allowed};
use crate::commands::calls::shell::tokenize::split_words;
use crate::output::style;
use crate::runtime::system::{TerminalSettings, private_file_options};

/// The maximum number of lines in the history.
const MAX_HISTORY: usize = 1000;

/// The result of reading a line.
#[derive(Debug)]
pub(super) enum LineResult {
    /// A line; a continued line contains line feeds.
    Line(String),
    /// Ctrl-C.
    Cancelled,
    /// Ctrl-D, or the terminal was closed.
    End,
}

/// Reads lines from the terminal.
pub(super) struct LineReader {
    requests: mpsc::UnboundedSender<ReadRequest>,
    _terminal: TerminalState,
}

/// The terminal settings before the shell started.
struct TerminalState(TerminalSettings);

impl Drop for TerminalState {
    fn drop(&mut self) {
        self.0.restore();
    }
}

impl LineReader {
    /// Starts the thread. Completions come from the latest published state. Fails if the thread cannot be started.
    pub(super) fn start(
        published: watch::Receiver<Arc<HostSnapshot>>,
        history: Option<PathBuf>,
        colour: Colour,
    ) -> io::Result<LineReader> {
        let terminal = TerminalState(TerminalSettings::read());
        let (requests, receiver) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("mcp-shell".to_owned()).spawn(move || {
            read_lines(&LineHelper { published, colour }, history.as_deref(), receiver);
        })?;
        Ok(LineReader { requests, _terminal: terminal })
    }

    /// Shows the prompt and reads the next line.
    pub(super) async fn read_line(&self, prompt: &str) -> LineResult {
        let (reply, input) = oneshot::channel();
        match self.requests.send(ReadRequest { prompt: prompt.to_owned(), reply }) {
            Ok(()) => input.await.unwrap_or(LineResult::End),
            Err(_) => LineResult::End,
        }
    }
}

/// A request to read one line.
struct ReadRequest {
    prompt: String,
    reply: oneshot::Sender<LineResult>,
}

/// Runs the thread: reads one line per request.
fn read_lines(
    helper: &LineHelper,
    history: Option<&Path>,
    mut requests: mpsc::UnboundedReceiver<ReadRequest>,
) {
    let config = Config::builder().completion_type(CompletionType::List).history_ignore_space(true).build();
    let Ok(mut editor) = Editor::<LineHelper, FileHistory>::with_config(config) else { return };
    let _ = rustyline::history::History::set_max_len(editor.history_mut(), MAX_HISTORY);
    editor.set_helper(Some(helper.clone()));
    if let Some(path) = history {
        // The file may not exist yet.
        if open_regular_file(path).is_ok() {
            let _ = editor.load_history(path);
        }
    }
    while let Some(ReadRequest { prompt, reply }) = requests.blocking_recv() {
        let input = match editor.readline(prompt.as_str()) {
            Ok(line) => {
                let is_allowed = is_history_allowed(&line, &helper.published.borrow());
                if is_allowed && editor.add_history_entry(line.as_str()).unwrap_or(false) {
                    save_history(&mut editor, history);
                }
                LineResult::Line(line)
            }
            Err(ReadlineError::Interrupted) => LineResult::Cancelled,
            Err(_) => LineResult::End,
        };
        if reply.send(input).is_err() {
            return;
        }
    }
}

/// Saves the history in a file that only its owner can read. Errors are ignored.
fn save_history(editor: &mut Editor<LineHelper, FileHistory>, path: Option<&Path>) {
    let Some(path) = path else { return };
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    // Created with its permissions before anything is written.
    let opened = private_file_options().append(true).create(true).open(path);
    if opened.is_ok() {
        let _ = editor.save_history(path);
    }
}

/// Completion, highlighting and validation for the editor.
#[derive(Clone)]
struct LineHelper {
    published: watch::Receiver<Arc<HostSnapshot>>,
    colour: Colour,
}

impl Helper for LineHelper {}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, candidates) = complete(line, pos, &self.published.borrow());
        let pair = |text: String| Pair { display: text.trim_end().to_owned(), replacement: text };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Hinter for LineHelper {
    type Hint = String;
}

impl Highlighter for LineHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(style::paint(self.colour, style::NOTE, prompt))
    }
}

impl Validator for LineHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match split_words(context.input()) {
            Ok(_) => ValidationResult::Valid(None),
            Err(_) => ValidationResult::Incomplete,
        })
    }
}
