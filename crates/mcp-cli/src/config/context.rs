//! Settings that every command receives: the console, and how to read files.

use std::path::PathBuf;
use std::time::Duration;

use mcp_host_config::Document;
use mcp_host_model::Dialect;
use mcp_host_runtime::{LoadRequest, SecretSources};
use tokio::time::timeout;

use crate::args::{DialectOptions, Format, GlobalArgs};
use crate::config::command_line_server::CommandLineServer;
use crate::config::input_prompt::InputPrompt;
use crate::config::locate::ConfigPath;
use crate::config::lock_mode::LockMode;
use crate::config::project_trust::{ProjectTrust, approved_servers};
use crate::config::user_secrets::secret_sources;
use crate::output::console::{Console, Report, WriteOutcome};
use crate::output::failure::Failure;
use crate::output::progress::{ProgressDisplay, ProgressMode};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signal::Signal;

/// How long the output may take after a signal.
const INTERRUPTED_PRINT_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings that every command receives.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The output streams.
    pub(crate) console: Console,
    /// A file of variables, in addition to the environment.
    pub(crate) env_file: Option<PathBuf>,
    /// The maximum number of servers of a file.
    pub(crate) max_servers: usize,
    /// The output format.
    pub(crate) format: Format,
    /// The requested dialect and profile.
    pub(crate) dialect: DialectOptions,
    /// Whether the lock file applies.
    pub(crate) lock_mode: LockMode,
    /// How configurations of projects are trusted.
    pub(crate) project_trust: ProjectTrust,
    /// The user's secrets.
    pub(crate) secrets: SecretSources,
    /// Questions for inputs without a value.
    pub(crate) inputs: InputPrompt,
    /// The server that the command line describes. The command then reads no configuration file.
    pub(crate) command_line: Option<CommandLineServer>,
    progress_mode: ProgressMode,
}

impl Context {
    /// Creates the context from the flags. Fails with a message if they contradict each other.
    pub(crate) fn new(global: &GlobalArgs, format: Format, console: Console) -> Result<Context, String> {
        let inputs = InputPrompt::new(console);
        Ok(Context {
            console,
            env_file: global.env_file.clone(),
            max_servers: global.max_servers.unwrap_or(Document::DEFAULT_MAX_SERVERS),
            format,
            dialect: global.dialect_options()?,
            lock_mode: LockMode::from_args(global)?,
            project_trust: ProjectTrust::new(global.trust_project)?,
            secrets: secret_sources(global.secret_command.clone(), inputs.clone()),
            inputs,
            command_line: None,
            progress_mode: ProgressMode::for_console(console.err_is_terminal, console.verbosity),
        })
    }

    /// A new progress display.
    pub(crate) fn progress(&self) -> ProgressDisplay {
        ProgressDisplay::new(self.progress_mode)
    }

    /// Prints a report and returns its exit code. A reader that does not read blocks only a separate thread.
    pub(crate) async fn print(&self, report: Report) -> Exit {
        let console = self.console;
        run_blocking(move || console.print(&report)).await
    }

    /// Prints what is known when a signal ended the command, and returns the exit code of the signal. The
    /// time is bounded, because a second signal must not wait for a reader of the output.
    pub(crate) async fn print_interrupted(&self, report: Report, signal: Signal) -> Exit {
        let _ = timeout(INTERRUPTED_PRINT_TIMEOUT, self.print(report)).await;
        Exit::Signal(signal)
    }

    /// Prints a part of the result while the progress line is hidden.
    pub(crate) async fn print_part(&self, progress: &ProgressDisplay, text: String) -> WriteOutcome {
        if text.is_empty() {
            return WriteOutcome::Complete;
        }
        let (console, progress) = (self.console, progress.clone());
        run_blocking(move || progress.suspend(|| console.write(&text))).await
    }

    /// Prints a report or a failure, and returns its exit code.
    pub(crate) async fn print_result(&self, result: Result<Report, Failure>) -> Exit {
        self.print(result.unwrap_or_else(|failure| failure.report(&self.console))).await
    }

    /// Prints a failure and returns its exit code.
    pub(crate) async fn print_failure(&self, failure: Failure) -> Exit {
        self.print(failure.report(&self.console)).await
    }

    /// The limit on the results of calls, in bytes, unless the command line states one. `None`: that of each server,
    /// which keeps a terminal readable. A program that reads the output receives everything.
    pub(crate) fn default_result_bytes(&self) -> Option<usize> {
        let is_for_terminal = self.format == Format::Text && self.console.out_is_terminal;
        (!is_for_terminal).then_some(usize::MAX)
    }

    /// The request to read a file with the options of the command line.
    pub(crate) fn load_request(&self, config: &ConfigPath) -> LoadRequest {
        let DialectOptions { dialect, profile } = match &config.text {
            Some(_) => DialectOptions { dialect: Some(Dialect::McpJson), profile: None },
            None => self.dialect,
        };
        let mut request = LoadRequest::new(&config.path);
        request.text = config.text.clone();
        request.needs_approval = config.is_of_project && self.project_trust.needs_approval(&config.path);
        request.approvals = approved_servers().map(|it| it.path().to_owned());
        request.dialect = dialect;
        request.profile = profile;
        request.env_file = self.env_file.clone();
        request.secrets = Some(self.secrets.clone());
        request.max_servers = self.max_servers;
        request
    }
}
