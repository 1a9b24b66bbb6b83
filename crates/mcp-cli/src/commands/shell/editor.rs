//! The line that is being typed: a thread of its own, for reading it blocks.
//!
//! The terminal is as it was before when this goes, however it goes: a thread that reads a key cannot be stopped, and so
//! it cannot be asked to put things right.

use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use mcp_config::Colour;
use mcp_host::HostSnapshot;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use tokio::sync::{mpsc, oneshot, watch};

use crate::commands::shell::complete::{complete, is_kept};
use crate::commands::shell::words::words;

/// How many lines are remembered.
const REMEMBERED: usize = 1000;

/// What was typed.
#[derive(Debug)]
pub(super) enum Typed {
    /// A line, or several that are one.
    Line(String),
    /// Ctrl-C.
    Nothing,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// Reads lines from the terminal.
pub(super) struct Lines {
    asks: mpsc::UnboundedSender<(String, oneshot::Sender<Typed>)>,
    _terminal: Terminal,
}

/// How the terminal was.
struct Terminal(Option<Termios>);

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSADRAIN, before);
        }
    }
}

impl Lines {
    /// Begins. What can be completed is looked up in the latest generation. Fails where the terminal cannot be used.
    pub(super) fn begin(
        published: watch::Receiver<Arc<HostSnapshot>>,
        history: Option<PathBuf>,
        colour: Colour,
    ) -> io::Result<Lines> {
        let terminal = Terminal(tcgetattr(io::stdin().as_fd()).ok());
        let (asks, asked) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("mcp-shell".to_owned()).spawn(move || {
            read(&Assistant { published, colour }, history.as_deref(), asked);
        })?;
        Ok(Lines { asks, _terminal: terminal })
    }

    /// The next line.
    pub(super) async fn next(&self, prompt: &str) -> Typed {
        let (answer, typed) = oneshot::channel();
        match self.asks.send((prompt.to_owned(), answer)) {
            Ok(()) => typed.await.unwrap_or(Typed::End),
            Err(_) => Typed::End,
        }
    }
}

type Asked = mpsc::UnboundedReceiver<(String, oneshot::Sender<Typed>)>;

fn read(assistant: &Assistant, history: Option<&std::path::Path>, mut asked: Asked) {
    let config = Config::builder().completion_type(CompletionType::List).history_ignore_space(true).build();
    let Ok(mut editor) = Editor::<Assistant, FileHistory>::with_config(config) else { return };
    let _ = rustyline::history::History::set_max_len(editor.history_mut(), REMEMBERED);
    editor.set_helper(Some(assistant.clone()));
    if let Some(path) = history {
        // There may be none yet.
        let _ = editor.load_history(path);
    }
    while let Some((prompt, answer)) = asked.blocking_recv() {
        let typed = match editor.readline(prompt.as_str()) {
            Ok(line) => {
                let kept = is_kept(&line, &assistant.published.borrow());
                if kept && editor.add_history_entry(line.as_str()).unwrap_or(false) {
                    keep(&mut editor, history);
                }
                Typed::Line(line)
            }
            Err(ReadlineError::Interrupted) => Typed::Nothing,
            Err(_) => Typed::End,
        };
        if answer.send(typed).is_err() {
            return;
        }
    }
}

/// Writes the history, for its owner alone. One that cannot be written is remembered until the end.
fn keep(editor: &mut Editor<Assistant, FileHistory>, path: Option<&std::path::Path>) {
    use std::os::unix::fs::OpenOptionsExt;
    let Some(path) = path else { return };
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    // It is nobody else's from its first byte on.
    let opened = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    if opened.is_ok() {
        let _ = editor.save_history(path);
    }
}

/// Helps with a line.
#[derive(Clone)]
struct Assistant {
    published: watch::Receiver<Arc<HostSnapshot>>,
    colour: Colour,
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, candidates) = complete(line, pos, &self.published.borrow());
        let pair = |it: String| Pair { display: it.trim_end().to_owned(), replacement: it };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(crate::output::paint::paint(self.colour, crate::output::paint::NOTE, prompt))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match words(context.input()) {
            Ok(_) => ValidationResult::Valid(None),
            Err(_) => ValidationResult::Incomplete,
        })
    }
}
