//! `watch` on a terminal: draws the view, reads keys, and does what they order.
//!
//! The terminal is as it was when this ends, in whatever way: asked to, by a signal, or by a panic.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcp_config::Colour;
use mcp_host::{FollowRequest, Host, HostOptions};
use mcp_model::ServerId;
use mcp_transport::{Handlers, Listener, ServerEvent};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::draw::draw;
use super::lines;
use super::view::{Key, Order, View};
use crate::context::Context;
use crate::exit::Exit;
use crate::signals::Signal;

/// How often keys are looked for, so that the thread that does it can be ended.
const LOOK: Duration = Duration::from_millis(100);
/// How long changes are gathered before they are drawn.
const GATHERED: Duration = Duration::from_millis(30);
/// How many messages of servers wait to be shown.
const WAITING: usize = 256;

/// What servers log, on its way to the view.
pub(super) struct Logs(mpsc::Receiver<String>);

struct Ear(mpsc::Sender<String>);

impl Listener for Ear {
    fn on_event<'a, 'b>(&'a self, event: ServerEvent) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        if let ServerEvent::Log(message) = event {
            let level = message.level.map_or("log", |it| it.as_str());
            let logger = message.logger.map(|it| format!("{it}: ")).unwrap_or_default();
            let data = message.data.map(|it| it.to_text().map_or_else(|| it.as_str().to_owned(), Into::into));
            // What nobody has the time to read is not shown.
            let _ = self.0.try_send(format!("{level} {logger}{}", data.unwrap_or_default()));
        }
        Box::pin(std::future::ready(()))
    }
}

/// The options of a host whose servers' logs are shown.
pub(super) fn listening(options: HostOptions) -> (HostOptions, Logs) {
    let (tell, told) = mpsc::channel(WAITING);
    let handlers = Handlers { listener: Some(Arc::new(Ear(tell))), ..options.handlers };
    (HostOptions { handlers, ..options }, Logs(told))
}

/// The terminal while it is ours.
struct Screen {
    terminal: ratatui::DefaultTerminal,
    ended: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

/// What is on the terminal before the next picture, of which only what differs is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    AsDrawn,
    /// Its size was another one, though it may be the same again by now.
    Unknown,
}

impl Screen {
    fn begin(keys: mpsc::Sender<event::Event>) -> std::io::Result<Screen> {
        // A panic puts the terminal right before it is told.
        let terminal = ratatui::try_init()?;
        let ended = Arc::new(AtomicBool::new(false));
        let mut screen = Screen { terminal, ended: Arc::clone(&ended), reader: None };
        let read = move || {
            while !ended.load(Ordering::Relaxed) {
                match event::poll(LOOK) {
                    Ok(false) => {}
                    Ok(true) => {
                        let Ok(event) = event::read() else { return };
                        if keys.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    // The terminal is gone, and with it whoever presses keys.
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
        self.ended.store(true, Ordering::Relaxed);
        // It ends by its next look. Where the terminal is gone it does not: crossterm 0.29 reads the end of input again and
        // again, and nobody can stop it. Then it goes with the process.
        let begun = Instant::now();
        while self.reader.as_ref().is_some_and(|it| !it.is_finished()) && begun.elapsed() < 5 * LOOK {
            std::thread::sleep(LOOK / 10);
        }
        ratatui::restore();
    }
}

/// Something that a key has ordered, under way.
type Errand<'a> = Pin<Box<dyn Future<Output = Option<String>> + 'a>>;

fn errand<'a>(host: &'a Host, order: Order) -> Option<Errand<'a>> {
    let (Order::Restart(name) | Order::Disable(name)) = &order else { return None };
    let id = ServerId::parse(name).ok()?;
    Some(Box::pin(async move {
        let done = match order {
            Order::Restart(_) => host.restart(&id).await,
            _ => host.disable(&id).await,
        };
        done.err().map(|it| format!("{id}: {it}"))
    }))
}

/// Shows what a host does until a key ends it.
pub(super) async fn run(context: &Context, host: &Host, request: FollowRequest, logs: Logs) -> Exit {
    let title = request.files.first().map(|it| it.path.display().to_string()).unwrap_or_default();
    let mut view = View::new(&title);
    let (tell, mut keys) = mpsc::channel(WAITING);
    let mut screen = match Screen::begin(tell) {
        Ok(screen) => screen,
        Err(error) => {
            let message = format!("the terminal cannot be used: {error}");
            let failure = context.console.failure(Exit::Wrong, &message, Some("`--plain` needs none"));
            return context.tell(failure).await;
        }
    };
    let Logs(mut logs) = logs;
    let mut events = host.events();
    let mut changes = host.subscribe();
    changes.mark_changed();
    let mut told = host.snapshot();
    let mut following = host.follow(request).await;
    let mut errands: FuturesUnordered<Errand<'_>> = FuturesUnordered::new();
    let mut due = Some(Instant::now());
    let mut ground = Ground::AsDrawn;
    loop {
        tokio::select! {
            biased;
            key = keys.recv() => match key.map(|it| {
                if matches!(it, event::Event::Resize(..)) {
                    ground = Ground::Unknown;
                }
                key_of(&it).map_or(Order::Nothing, |it| view.press(it))
            }) {
                Some(Order::Nothing) => {}
                // The terminal may be gone, and with it whoever presses keys.
                Some(Order::Quit) | None => return Exit::Done,
                Some(Order::Interrupted) => return Exit::Signal(Signal::Interrupt),
                Some(order @ (Order::Restart(_) | Order::Disable(_))) => errands.extend(errand(host, order)),
            },
            event = following.next() => match event {
                Some(event) => tell_all(&mut view, lines::of_event(event)),
                // Nobody but us shuts the host down, so that it has failed.
                None => return Exit::Wrong,
            },
            event = events.recv() => match event {
                Ok(event) => view.happened(&event),
                Err(RecvError::Lagged(missed)) => view.say(&format!("{missed} events were missed")),
                Err(RecvError::Closed) => return Exit::Wrong,
            },
            _ = changes.changed() => {
                let now = changes.borrow_and_update().clone();
                tell_all(&mut view, lines::between(&told, &now));
                told = now;
            }
            Some(failed) = errands.next(), if !errands.is_empty() => {
                failed.iter().for_each(|it| view.say(it));
            }
            Some(line) = logs.recv() => view.say(&line),
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                // Leases come and go without a generation.
                view.publish(&told, &host.leases());
                let colour = context.console.out;
                let cleared = match std::mem::replace(&mut ground, Ground::AsDrawn) {
                    Ground::AsDrawn => Ok(()),
                    Ground::Unknown => screen.terminal.clear(),
                };
                if cleared.and_then(|()| screen.terminal.draw(|frame| draw(frame, &view, colour))).is_err() {
                    // Nobody sees it any more.
                    return Exit::Done;
                }
                continue;
            }
        }
        due = due.or_else(|| Some(Instant::now() + GATHERED));
    }
}

fn tell_all(view: &mut View, lines: Vec<lines::Line>) {
    for it in lines {
        it.text(Colour::Never).lines().for_each(|it| view.say(it));
    }
}

/// What a key means; a new size means only that all is to be drawn again.
fn key_of(event: &event::Event) -> Option<Key> {
    let event::Event::Key(KeyEvent {
        code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, ..
    }) = event
    else {
        return None;
    };
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(_) if modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => return None,
        KeyCode::Char(it) => Key::Letter(*it),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::First,
        KeyCode::End => Key::Last,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Erase,
        _ => return None,
    })
}
