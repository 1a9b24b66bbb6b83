//! Asks at the terminal for inputs (`${input:id}`) without a value, and offers to keep the answers.
//!
//! An answer holds for the whole run. It is asked for only while a command reads the configuration whose servers it
//! starts, so that neither `check` nor a later change of the file asks.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use mcp_host_config::{INPUT_PREFIX, SecretSource};
use mcp_host_model::Secret;

use crate::config::user_secrets::open_secret_store;
use crate::output::console::{Console, Report};
use crate::output::question::{is_confirmed, is_interactive};
use crate::output::sanitize;
use crate::runtime::system::TerminalSettings;

/// The source of secrets that asks the user. Clones share the answers.
#[derive(Clone)]
pub(crate) struct InputPrompt {
    console: Console,
    state: Arc<Mutex<PromptState>>,
}

/// The answers, and whether to ask. Locked during a question, so that one is asked at a time.
#[derive(Default)]
struct PromptState {
    is_asking: bool,
    /// By the name of the secret; `None` if the user gave none.
    answers: BTreeMap<String, Option<Secret>>,
}

impl InputPrompt {
    pub(crate) fn new(console: Console) -> InputPrompt {
        InputPrompt { console, state: Arc::default() }
    }

    /// Asks until the guard is dropped, if there is a terminal.
    pub(crate) fn ask_for_inputs(&self) -> AskingGuard {
        let is_asking = is_interactive();
        self.lock().is_asking = is_asking;
        AskingGuard { prompt: self.clone(), settings: is_asking.then(TerminalSettings::read) }
    }

    fn lock(&self) -> MutexGuard<'_, PromptState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Asks for a value. Blocks.
    fn ask(&self, name: &str) -> Option<Secret> {
        let id = name.trim_start_matches(INPUT_PREFIX).to_lowercase();
        let question =
            format!("A server needs the input `{}` (not shown; Enter: none): ", sanitize::line(&id));
        let value = rpassword::prompt_password(question).ok().filter(|it| !it.is_empty()).map(Secret::new)?;
        let Ok(store) = open_secret_store() else { return Some(value) };
        self.print(format!("Keep it for later starts, as the secret {name}? [y/N] "));
        if is_confirmed(io::stdin().lock())
            && let Err(error) = store.set(name, &value)
        {
            self.print(self.console.note(&format!("it is not kept: {error}")));
        }
        Some(value)
    }

    fn print(&self, text: String) {
        self.console.print(&Report::err(text));
    }
}

impl SecretSource for InputPrompt {
    fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        if !name.starts_with(INPUT_PREFIX) {
            return Ok(None);
        }
        let mut state = self.lock();
        if let Some(known) = state.answers.get(name) {
            return Ok(known.clone());
        }
        if !state.is_asking {
            return Ok(None);
        }
        let answer = self.ask(name);
        state.answers.insert(name.to_owned(), answer.clone());
        Ok(answer)
    }
}

/// While it exists, inputs without a value are asked for.
pub(crate) struct AskingGuard {
    prompt: InputPrompt,
    /// The terminal before a question, which a signal may end while the input is hidden.
    settings: Option<TerminalSettings>,
}

impl Drop for AskingGuard {
    fn drop(&mut self) {
        // A question that a signal interrupts keeps the lock until the process ends.
        if let Ok(mut state) = self.prompt.state.try_lock() {
            state.is_asking = false;
        }
        if let Some(settings) = &self.settings {
            settings.restore();
        }
    }
}

impl std::fmt::Debug for InputPrompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InputPrompt")
    }
}
