//! `lock`: what the servers offer is written down, and what has changed since is shown, so that somebody can look at it
//! before a model does.
//!
//! Nothing is approved by accident: where there is a lock already, only what is named is written into it.

mod shown;

use std::path::{Path, PathBuf};

use clap::Args;
use mcp_host::{
    DesiredServers, Host, HostSnapshot, ServerDefinitions, Supervision, create, lock_path, read_lock, save,
};
use mcp_model::ServerId;
use mcp_registry::{Drift, DriftPolicy, ItemKind, LockFile};

use crate::args::Format;
use crate::commands::refused::Refusal;
use crate::commands::status;
use crate::context::{Context, blocking, unless_signalled};
use crate::exit::Exit;
use crate::hosted;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::signals::Signals;
use crate::source::Unreadable;
use crate::starting::{Wanting, started};
use shown::{Document, Looked};

/// The words of `lock`.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    file: Option<PathBuf>,
    /// Approve of what this server offers now, or of one tool, prompt or resource of it; may be given several times
    #[arg(long, value_name = "SERVER[/TOOL]")]
    update: Vec<String>,
    /// Approve of everything as it is now
    #[arg(long, conflicts_with = "update")]
    all: bool,
    /// Write nothing, and fail where anything is not as it was approved
    #[arg(long, conflicts_with_all = ["update", "all"])]
    check: bool,
}

/// What is to be done with the lock.
enum Wish {
    /// Write what is not there yet.
    Begin,
    /// Show what has changed.
    Look,
    /// Approve of everything.
    All,
    /// Approve of these.
    These(Vec<String>),
}

/// What there is before anything is started.
struct Prepared {
    wanted: DesiredServers,
    configuration: PathBuf,
    path: PathBuf,
    lock: LockFile,
    /// The text of the lock; `None` where there is none.
    before: Option<String>,
    wish: Wish,
}

/// Writes or looks at the lock of a configuration.
pub(crate) async fn run(context: &Context, words: Words, signals: &mut Signals) -> Exit {
    let prepared = match unless_signalled(signals, prepare(context, words)).await {
        Err(signal) => return Exit::Signal(signal),
        Ok(Err(exit)) => return exit,
        Ok(Ok(prepared)) => prepared,
    };
    let wanted = prepared.wanted.clone();
    hosted::with(wanted, (Supervision::Off, None), signals, async |host| {
        started(host, &context.progress(), Wanting::All).await;
        finish(context, host, prepared).await
    })
    .await
}

async fn prepare(context: &Context, words: Words) -> Result<Prepared, Exit> {
    let Words { file, update, all, check } = words;
    let refuse = async |refusal: Refusal| {
        let failure = refusal.failure;
        let message = plain::line(&failure.to_string());
        context.tell(context.console.failure(Exit::Wrong, &message, failure.help.as_deref())).await
    };
    let source = match context.open(file.as_deref().unwrap_or(Path::new(""))).await {
        Ok(source) => source,
        Err(unreadable) => return Err(refuse(Refusal::unreadable(unreadable)).await),
    };
    let colour = context.console.err;
    let err = source.taken(colour) + &source.complaints(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    if let Some(refusal) = Refusal::of(&source) {
        return Err(refuse(refusal).await);
    }
    let path = lock_path(&source.file);
    let read = {
        let path = path.clone();
        blocking(move || read_lock(&path)).await
    };
    let unreadable = |message: String, help: &str| {
        Refusal::unreadable(Unreadable {
            path: path.display().to_string(),
            message,
            help: Some(help.to_owned()),
        })
    };
    let (lock, before) = match read {
        Ok(Some((lock, text))) => (lock, Some(text)),
        Ok(None) if check => {
            let message = format!("there is no {}", path.display());
            return Err(refuse(unreadable(message, "`mcp-host lock` writes it")).await);
        }
        Ok(None) => (LockFile::default(), None),
        Err(error) => {
            let help = "mend it, or take it away and look at everything again";
            return Err(refuse(unreadable(error.to_string(), help)).await);
        }
    };
    let wish = match (before.is_some(), all, update.is_empty()) {
        (_, true, _) => Wish::All,
        (_, false, false) => Wish::These(update),
        (true, false, true) => Wish::Look,
        (false, false, true) => Wish::Begin,
    };
    Ok(Prepared { wanted: source.loaded.desired, configuration: source.file, path, lock, before, wish })
}

/// Compares, writes what is to be written, and tells of it.
async fn finish(context: &Context, host: &Host, prepared: Prepared) -> Exit {
    let Prepared { wanted: _, configuration, path, lock: approved, before, wish } = prepared;
    let published = host.snapshot();
    let offers = offers(host, &published);
    let mut lock = approved.clone();
    if let Err(message) = approve(&mut lock, &offers, &published, &wish) {
        return context.tell(context.console.failure(Exit::Usage, &message, None)).await;
    }
    let text = lock.to_text();
    let writes = match wish {
        Wish::Look => false,
        // An empty lock would withhold everything.
        Wish::Begin => !offers.is_empty(),
        Wish::All | Wish::These(_) => before.as_deref() != Some(text.as_str()),
    };
    if writes {
        let (path, before) = (path.clone(), before.clone());
        let written = blocking(move || match before {
            Some(before) => save(&path, &before, &text),
            None => create(&path, &text, &configuration),
        });
        if let Err(error) = written.await {
            return context.tell(context.console.failure(Exit::Wrong, &error.to_string(), None)).await;
        }
    }
    // What was approved just now is shown too: it is what somebody has to answer for.
    let looked: Vec<Looked> =
        published.servers.iter().map(|it| look(it.id.as_str(), &offers, &approved)).collect();
    let left = offers.iter().any(|(id, offer)| !drift(&lock, id, offer).is_empty());
    let unreachable = looked.iter().any(|it| it.offer.is_none());
    let exit = match (left, unreachable) {
        (_, true) => Exit::Unreachable,
        (true, false) if !writes => Exit::Wrong,
        (_, false) => Exit::Done,
    };
    let colour = context.console.out;
    let out = match context.format {
        Format::Json => json::document(&Document::of(&path, writes, &looked)),
        Format::Text => looked.iter().map(|it| it.text(colour, writes)).collect(),
    };
    let down = status::some(
        &published,
        |it| looked.iter().any(|of| of.server == it.id && of.offer.is_none()),
        context.console.err,
    );
    let mut after = String::new();
    if writes {
        let note = paint::paint(context.console.err, paint::NOTE, "note");
        after = format!(
            "{note}: {} is written, and counts from now on\n",
            plain::line(&path.display().to_string())
        );
    } else if left {
        after = paint::help(
            context.console.err,
            "`--update SERVER`, or SERVER/TOOL, approves of a part, and `--all` of everything",
        );
    }
    context.tell(Report { out, err: down, exit, after }).await
}

/// What those servers offer that could be reached.
fn offers(host: &Host, published: &HostSnapshot) -> Vec<(ServerId, ServerDefinitions)> {
    let ids = published.servers.iter().filter_map(|it| ServerId::parse(&it.id).ok());
    ids.filter_map(|id| host.definitions(&id).map(|offer| (id, offer))).collect()
}

fn drift(lock: &LockFile, server: &ServerId, offer: &ServerDefinitions) -> Drift {
    Drift::compute(lock.server(server), &offer.observed, &offer.read_lists, DriftPolicy::default())
}

fn look<'a>(server: &str, offers: &'a [(ServerId, ServerDefinitions)], lock: &'a LockFile) -> Looked<'a> {
    let found = offers.iter().find(|it| it.0.as_str() == server);
    Looked {
        server: server.to_owned(),
        offer: found.map(|it| &it.1),
        drift: found.map(|(id, offer)| drift(lock, id, offer)),
        approved: lock.servers.get(server),
    }
}

/// Writes into the lock what is wished for. Fails with a sentence where there is no such thing.
fn approve(
    lock: &mut LockFile,
    offers: &[(ServerId, ServerDefinitions)],
    published: &HostSnapshot,
    wish: &Wish,
) -> Result<(), String> {
    let whole = |lock: &mut LockFile, id: &ServerId, offer: &ServerDefinitions| {
        let mut now = offer.observed.clone();
        // What could not be read now stays as it was approved.
        for (item, prints) in lock.server(id).into_iter().flat_map(|it| &it.items) {
            if !offer.read_lists.contains(&item.list()) {
                now.items.insert(*item, prints.clone());
            }
        }
        lock.servers.insert(id.as_str().to_owned(), now);
    };
    match wish {
        Wish::Look => {}
        Wish::Begin => offers.iter().for_each(|(id, offer)| whole(lock, id, offer)),
        Wish::All => {
            lock.servers.retain(|name, _| published.servers.iter().any(|it| it.id == *name));
            offers.iter().for_each(|(id, offer)| whole(lock, id, offer));
        }
        Wish::These(names) => {
            for name in names {
                // A server's name may have a stroke in it, too.
                if let Some((id, offer)) = offers.iter().find(|it| it.0.as_str() == name) {
                    whole(lock, id, offer);
                    continue;
                }
                let part = offers.iter().find_map(|(id, offer)| {
                    let key = name.strip_prefix(id.as_str())?.strip_prefix('/')?;
                    let is_there = |item: &ItemKind| {
                        offer.observed.item(*item, key).is_some()
                            || lock.server(id).is_some_and(|it| it.item(*item, key).is_some())
                    };
                    let items: Vec<ItemKind> = ItemKind::ALL.into_iter().filter(is_there).collect();
                    (!items.is_empty()).then_some((id, offer, key, items))
                });
                let Some((id, offer, key, items)) = part else {
                    let there: Vec<&str> = offers.iter().map(|it| it.0.as_str()).collect();
                    return Err(format!(
                        "there is no server or tool `{}` to be approved of; the servers are: {}",
                        plain::line(name),
                        plain::line(&there.join(", "))
                    ));
                };
                items.into_iter().for_each(|item| lock.approve(id, item, key, &offer.observed));
            }
        }
    }
    Ok(())
}
