//! `lock`: records what the servers offer in a lock file, and shows what has changed since.
//!
//! If a lock file exists, only the servers and items that the user names are approved again. An item with a hard
//! finding is approved only if the user accepts findings.

mod action;
mod findings;
mod programs;
mod report;

use std::path::PathBuf;

use mcp_host_model::ServerId;
use mcp_host_registry::{Drift, DriftPolicy, ItemKind, LockFile};
use mcp_host_runtime::{
    DesiredServers, Host, HostSnapshot, ServerDefinitions, Supervision, create_like, lock_path, read_lock,
    save,
};

use crate::args::{Format, LockArgs};
use crate::config::context::Context;
use crate::config::lock::RENEWAL;
use crate::config::refusal::StartRefusal;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::{gateway_options, with_host};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{count, json, sanitize, style};
use crate::render::status::server_lines_where;
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};
use action::LockAction;
use findings::OfferFindings;
use programs::Programs;
use report::{LockJson, ServerDrift};

/// The servers to start and the existing lock file.
struct PreparedLock {
    desired: DesiredServers,
    configuration: PathBuf,
    path: PathBuf,
    lock: LockFile,
    programs: Programs,
    /// The text of the lock file; `None` if there is none.
    before: Option<String>,
    action: LockAction,
    /// Whether items with hard findings are approved too.
    accepts_findings: bool,
}

/// Creates, shows or updates the lock file of a configuration.
pub(crate) async fn run(context: &Context, args: LockArgs, signals: &mut Signals) -> Result<Exit, Failure> {
    let prepared = run_until_signal(signals, prepare(context, args)).await??;
    let desired = prepared.desired.clone();
    let host = Host::start(gateway_options(Supervision::Off));
    let exit = with_host(host, desired, signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::All).await;
        context.print_result(compare_and_write(context, host, prepared).await).await
    });
    Ok(exit.await)
}

/// Reads the configuration and the lock file, and selects the action.
async fn prepare(context: &Context, args: LockArgs) -> Result<PreparedLock, Failure> {
    let LockArgs { file, update, all, check, accept_findings } = args;
    let config = context.open_and_report(file.as_deref()).await?;
    StartRefusal::check(&config)?;
    let path = lock_path(&config.path);
    let read = {
        let path = path.clone();
        run_blocking(move || read_lock(&path)).await
    };
    let (lock, before) = match read {
        Ok(Some(loaded)) => (loaded.lock, Some(loaded.text)),
        Ok(None) if check => {
            let failure = Failure::new(format!("{} does not exist", path.display()));
            return Err(failure.help(Some("create it with `mcp-host lock`")));
        }
        Ok(None) => (LockFile::default(), None),
        Err(error) => {
            let help = "correct it, or delete it and approve everything again";
            return Err(Failure::new(error.to_string()).help(Some(help)));
        }
    };
    let action = if all {
        LockAction::ApproveAll
    } else if !update.is_empty() {
        LockAction::Approve(update)
    } else if before.is_some() {
        LockAction::Show
    } else {
        LockAction::Create
    };
    let mut desired = config.loaded.desired;
    let servers = desired.servers.clone();
    let programs = run_blocking(move || Programs::read(&servers)).await;
    desired.servers.retain(|server| programs.may_start(server.spec.id.as_str(), &lock, &action));
    Ok(PreparedLock {
        desired,
        programs,
        configuration: config.path,
        path,
        lock,
        before,
        action,
        accepts_findings: accept_findings,
    })
}

/// Compares the started servers with the lock file, writes it if requested, and reports the changes.
async fn compare_and_write(
    context: &Context,
    host: &Host,
    prepared: PreparedLock,
) -> Result<Report, Failure> {
    let PreparedLock {
        desired: _,
        configuration,
        path,
        lock: approved,
        programs,
        before,
        action,
        accepts_findings,
    } = prepared;
    let published = host.snapshot();
    let offers = collect_offers(host, &published);
    let mut lock = approved.clone();
    approve(&mut lock, &offers, &published, &action).map_err(Failure::usage)?;
    programs.approve(&mut lock, &offers, &action);
    let findings = OfferFindings::of(&offers);
    let held_back = if accepts_findings { 0 } else { findings.hold_back(&mut lock, &approved, &offers) };
    let text = lock.to_text();
    let is_written = match action {
        LockAction::Show => false,
        // An empty lock file would withhold everything.
        LockAction::Create => !offers.is_empty(),
        LockAction::ApproveAll | LockAction::Approve(_) => before.as_deref() != Some(text.as_str()),
    };
    if is_written {
        let path = path.clone();
        let written = run_blocking(move || match before {
            Some(before) => save(&path, &before, &text),
            None => create_like(&path, &text, &configuration),
        });
        written.await.map_err(|error| Failure::new(error.to_string()))?;
    }
    // Compare with the previous lock file, so that the output shows what was approved just now.
    let started = published.servers.iter().map(|status| server_drift(status.id.as_str(), &offers, &approved));
    let waiting = programs.waiting(&published);
    let waiting =
        waiting.iter().map(|id| ServerDrift { is_waiting: true, ..server_drift(id, &offers, &approved) });
    let drifts = started.chain(waiting).map(|it| {
        let program_changes = programs.changes(&it.server, &approved);
        ServerDrift { program_changes, ..it }
    });
    let drifts: Vec<ServerDrift> = drifts.map(|it| it.with_findings(&findings, &lock)).collect();
    let has_drift = offers.iter().any(|(id, offer)| !compute_drift(&lock, id, offer).is_empty())
        || drifts.iter().any(|it| it.is_waiting);
    let is_missing = |server: &ServerDrift| server.offer.is_none() && !server.is_waiting;
    let exit = if drifts.iter().any(is_missing) {
        Exit::Unreachable
    } else if held_back > 0 || (has_drift && !is_written) {
        Exit::Failure
    } else {
        Exit::Success
    };
    let colour = context.console.out_colour;
    let out = match context.format {
        Format::Json => json::document(&LockJson::new(&path, is_written, &drifts)),
        Format::Text => drifts.iter().map(|server| server.text(colour, is_written)).collect(),
    };
    let is_unreachable = |id: &str| drifts.iter().any(|drift| drift.server == id && drift.offer.is_none());
    let err_colour = context.console.err_colour;
    let err = server_lines_where(&published, |status| is_unreachable(&status.id), err_colour);
    let mut after = if is_written {
        context.console.note(&format!("{} is written and applies from now on", path.display()))
    } else if held_back == 0 && has_drift {
        let help = "`--update SERVER` or `--update SERVER/TOOL` approves a part, `--all` approves everything";
        style::help(err_colour, help)
    } else {
        String::new()
    };
    if before_had_no_programs(&approved, &lock) {
        after.push_str(&context.console.note(RENEWAL));
    }
    after.push_str(&programs.hints(&context.console));
    if held_back > 0 {
        let items = count(held_back, "item");
        let help = format!(
            "{items} with a hard finding is not approved, and stays withheld; `--accept-findings` approves it too"
        );
        after.push_str(&style::help(err_colour, &help));
    }
    Ok(Report { out, err, exit, after })
}

/// Whether the lock file was of a version without programs, and stays so.
fn before_had_no_programs(before: &LockFile, now: &LockFile) -> bool {
    !before.servers.is_empty() && before.programs.is_none() && now.programs.is_none()
}

/// The offers of the reachable servers.
fn collect_offers(host: &Host, published: &HostSnapshot) -> Vec<(ServerId, ServerDefinitions)> {
    let ids = published.server_ids().cloned();
    ids.filter_map(|id| host.server_definitions(&id).map(|offer| (id, offer))).collect()
}

fn compute_drift(lock: &LockFile, server: &ServerId, offer: &ServerDefinitions) -> Drift {
    Drift::compute(lock.server(server), &offer.observed, &offer.read_lists, DriftPolicy::default())
}

fn server_drift<'a>(
    server: &str,
    offers: &'a [(ServerId, ServerDefinitions)],
    lock: &'a LockFile,
) -> ServerDrift<'a> {
    let found = offers.iter().find(|(id, _)| id.as_str() == server);
    ServerDrift {
        server: server.to_owned(),
        offer: found.map(|(_, offer)| offer),
        drift: found.map(|(id, offer)| compute_drift(lock, id, offer)),
        approved: lock.servers.get(server),
        findings: Vec::new(),
        program_changes: Vec::new(),
        is_waiting: false,
        held_back: 0,
    }
}

/// Approves what the action selects. Fails with a message if a name is unknown.
fn approve(
    lock: &mut LockFile,
    offers: &[(ServerId, ServerDefinitions)],
    published: &HostSnapshot,
    action: &LockAction,
) -> Result<(), String> {
    match action {
        LockAction::Show => {}
        LockAction::Create => offers.iter().for_each(|(id, offer)| approve_server(lock, id, offer)),
        LockAction::ApproveAll => {
            lock.servers.retain(|name, _| published.servers.iter().any(|status| status.id == **name));
            offers.iter().for_each(|(id, offer)| approve_server(lock, id, offer));
        }
        LockAction::Approve(names) => {
            for name in names {
                // Checked first, because a server's name may contain a slash.
                if let Some((id, offer)) = offers.iter().find(|(id, _)| id.as_str() == name) {
                    approve_server(lock, id, offer);
                } else {
                    approve_item(lock, offers, name)?;
                }
            }
        }
    }
    Ok(())
}

/// Approves everything that a server offers now.
fn approve_server(lock: &mut LockFile, id: &ServerId, offer: &ServerDefinitions) {
    let mut approved = offer.observed.clone();
    // A list that could not be read keeps its approval.
    for (item, definitions) in lock.server(id).into_iter().flat_map(|server| &server.items) {
        if !offer.read_lists.contains(&item.list()) {
            approved.items.insert(*item, definitions.clone());
        }
    }
    lock.servers.insert(id.as_str().to_owned(), approved);
}

/// Approves the current state of the item `SERVER/KEY`. An approved item that the server no longer offers is
/// removed from the lock file.
fn approve_item(
    lock: &mut LockFile,
    offers: &[(ServerId, ServerDefinitions)],
    name: &str,
) -> Result<(), String> {
    for (id, offer) in offers {
        let Some(key) = name.strip_prefix(id.as_str()).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let exists = |item: &ItemKind| {
            offer.observed.item(*item, key).is_some()
                || lock.server(id).is_some_and(|server| server.item(*item, key).is_some())
        };
        let items: Vec<ItemKind> = ItemKind::ALL.into_iter().filter(exists).collect();
        if !items.is_empty() {
            items.into_iter().for_each(|item| lock.approve(id, item, key, &offer.observed));
            return Ok(());
        }
    }
    let servers: Vec<&str> = offers.iter().map(|(id, _)| id.as_str()).collect();
    Err(format!(
        "there is no server or item `{}` to approve; the servers are: {}",
        sanitize::line(name),
        sanitize::line(&servers.join(", "))
    ))
}
