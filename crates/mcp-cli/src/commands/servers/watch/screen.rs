//! The full-screen view of `watch`: draws it, reads keys and executes their commands.
//!
//! The terminal is restored in every case: at a regular end, on a signal and on a panic.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcp_host_config::Colour;
use mcp_host_model::ServerId;
use mcp_host_registry::ProblemKind;
use mcp_host_runtime::{FollowRequest, Host, HostOptions, NotificationStreamItem};
use mcp_host_transport::{Listener, ServerEvent};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::draw::draw;
use super::view::{View, ViewCommand};
use crate::config::context::Context;
use crate::config::follow::profile_notes;
use crate::output::failure::Failure;
use crate::render::events::{EventLine, change_lines, file_event_lines};
use crate::runtime::exit::Exit;
use crate::runtime::signal::Signal;

/// How long one poll for keys may take. The thread can end only between polls.
const KEY_POLL: Duration = Duration::from_millis(100);
/// How long changes are collected before the next frame.
const FRAME_DELAY: Duration = Duration::from_millis(30);
/// The capacity of the queues for keys and log messages.
const QUEUE_CAPACITY: usize = 256;

/// Receives the log messages of servers.
pub(super) struct ServerLogs(mpsc::Receiver<String>);

/// Forwards the log messages of servers to the view.
struct LogListener(mpsc::Sender<String>);

impl Listener for LogListener {
    fn on_event<'a, 'b>(&'a self, event: ServerEvent) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        if let ServerEvent::Log(message) = event {
            let level = message.level.map_or("log", |it| it.as_str());
            let logger = message.logger.map(|it| format!("{it}: ")).unwrap_or_default();
            let data = message.data.map(|it| it.to_text().map_or_else(|| it.as_str().to_owned(), Into::into));
            // Messages are dropped while the queue is full.
            let _ = self.0.try_send(format!("{level} {logger}{}", data.unwrap_or_default()));
        }
        Box::pin(std::future::ready(()))
    }
}

/// Adds a listener for the log messages of servers.
pub(super) fn with_log_listener(mut options: HostOptions) -> (HostOptions, ServerLogs) {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    options.server_requests.handlers.listener = Some(Arc::new(LogListener(sender)));
    (options, ServerLogs(receiver))
}

/// The terminal in full-screen mode, and the thread that reads keys.
struct Screen {
    terminal: ratatui::DefaultTerminal,
    /// Tells the thread to end.
    should_stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    /// Enters full-screen mode and starts the thread, which sends its events to `keys`.
    fn start(keys: mpsc::Sender<Event>) -> std::io::Result<Screen> {
        // Also installs a panic hook that restores the terminal.
        let terminal = ratatui::try_init()?;
        let should_stop = Arc::new(AtomicBool::new(false));
        let mut screen = Screen { terminal, should_stop: Arc::clone(&should_stop), reader: None };
        let read = move || {
            while !should_stop.load(Ordering::Relaxed) {
                match event::poll(KEY_POLL) {
                    Ok(false) => {}
                    Ok(true) => {
                        let Ok(event) = event::read() else { return };
                        if keys.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    // The terminal was closed.
                    Err(_) => return,
                }
            }
        };
        screen.reader = Some(std::thread::Builder::new().name("mcp-keys".to_owned()).spawn(read)?);
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::Relaxed);
        // The thread ends after its current poll. If the terminal was closed, it never ends, because crossterm
        // 0.29 reads the end of input in an endless loop. Therefore the wait is bounded.
        let start = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && start.elapsed() < 5 * KEY_POLL
        {
            std::thread::sleep(KEY_POLL / 10);
        }
        ratatui::restore();
    }
}

/// A running operation on a server. Its output is the error message if it fails.
type ServerOperation<'a> = Pin<Box<dyn Future<Output = Option<String>> + 'a>>;

/// The operation of a command on a server; `None` if the command has none.
fn server_operation<'a>(host: &'a Host, command: ViewCommand) -> Option<ServerOperation<'a>> {
    let (ViewCommand::Restart(name) | ViewCommand::Disable(name)) = &command else { return None };
    let id = ServerId::parse(name).ok()?;
    Some(Box::pin(async move {
        let result = match command {
            ViewCommand::Restart(_) => host.restart(&id).await,
            _ => host.disable(&id).await,
        };
        result.err().map(|error| format!("{id}: {error}"))
    }))
}

/// Shows the state of a host until a key ends it.
pub(super) async fn run(context: &Context, host: &Host, request: FollowRequest, logs: ServerLogs) -> Exit {
    let title = request.files.first().map(|file| file.path.display().to_string()).unwrap_or_default();
    let mut view = View::new(&title, || jiff::Zoned::now().strftime("%H:%M:%S").to_string());
    let (sender, mut keys) = mpsc::channel(QUEUE_CAPACITY);
    let mut screen = match Screen::start(sender) {
        Ok(screen) => screen,
        Err(error) => {
            let failure = Failure::new(format!("cannot use the terminal: {error}"));
            return context.print_failure(failure.help(Some("use `--plain`"))).await;
        }
    };
    let ServerLogs(mut logs) = logs;
    let mut events = host.events();
    let mut changes = host.subscribe();
    let mut published = host.snapshot();
    let mut follow_handle = host.follow(request).await;
    profile_notes(context, &follow_handle).iter().for_each(|note| view.log(note));
    let mut pending: FuturesUnordered<ServerOperation<'_>> = FuturesUnordered::new();
    let mut frame_due = Some(Instant::now());
    // Only differences from the previous frame are written. After a resize, the content of the terminal is unknown.
    let mut needs_clear = false;
    loop {
        tokio::select! {
            biased;
            event = keys.recv() => match event {
                // The terminal was closed.
                None => return Exit::Success,
                Some(Event::Resize(..)) => needs_clear = true,
                Some(Event::Key(KeyEvent { kind: KeyEventKind::Release, .. })) => {}
                Some(Event::Key(KeyEvent { code: KeyCode::Char('c'), modifiers, .. }))
                    if modifiers.contains(KeyModifiers::CONTROL) => return Exit::Signal(Signal::Interrupt),
                Some(Event::Key(KeyEvent { code, modifiers, .. }))
                    if !modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
                {
                    match view.handle_key(code) {
                        ViewCommand::None => {}
                        ViewCommand::Quit => return Exit::Success,
                        command => pending.extend(server_operation(host, command)),
                    }
                }
                Some(_) => {}
            },
            event = follow_handle.next() => match event {
                Some(event) => log_events(&mut view, file_event_lines(event)),
                // The host is shut down only by this command, so it has failed.
                None => return Exit::Failure,
            },
            event = events.next() => match event {
                Some(NotificationStreamItem::Notification(event)) => view.record_event(&event),
                Some(NotificationStreamItem::Lagged(missed)) => view.log(&format!("{missed} events were missed")),
                None => return Exit::Failure,
            },
            _ = changes.changed() => {
                let now = changes.borrow_and_update().clone();
                log_events(&mut view, change_lines(&published, &now));
                published = now;
            }
            Some(error) = pending.next(), if !pending.is_empty() => {
                error.iter().for_each(|error| view.log(error));
            }
            Some(line) = logs.recv() => view.log(&line),
            () = tokio::time::sleep_until(frame_due.unwrap_or_else(Instant::now)), if frame_due.is_some() => {
                frame_due = None;
                // Leases change without a new generation.
                view.update(&published, &host.leases());
                let colour = context.console.out_colour;
                let cleared = if std::mem::take(&mut needs_clear) { screen.terminal.clear() } else { Ok(()) };
                if cleared.and_then(|()| screen.terminal.draw(|frame| draw(frame, &view, colour))).is_err() {
                    // The terminal was closed.
                    return Exit::Success;
                }
                continue;
            }
        }
        frame_due = frame_due.or_else(|| Some(Instant::now() + FRAME_DELAY));
    }
}

/// Appends the text of events to the log of the view.
fn log_events(view: &mut View, events: Vec<EventLine>) {
    // The error of a server is also in the line with its state.
    let is_repeated = |event: &EventLine| {
        matches!(event,
        EventLine::Problem(active) if active.problem.kind == ProblemKind::ServerError)
    };
    for event in events.into_iter().filter(|event| !is_repeated(event)) {
        event.text(Colour::Never).lines().for_each(|line| view.log(line));
    }
}
