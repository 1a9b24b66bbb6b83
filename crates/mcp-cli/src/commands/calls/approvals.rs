//! `approvals`: shows the calls that wait for an approval in running hosts, and answers them.

use std::collections::HashSet;
use std::io;

use mcp_host_runtime::{CallAnswers, StoredAnswer};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::args::{AnswerArgs, ApprovalsArgs, ApprovalsCommand, Format};
use crate::config::call_rules::call_answers;
use crate::config::context::Context;
use crate::control::client::ControlClient;
use crate::control::protocol::{CallDescription, ControlReply, ControlRequest, Remember, WaitingCall};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{count, json, sanitize};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

/// A call that waits, with its id over all hosts.
#[derive(Serialize)]
struct ListedCall {
    id: String,
    #[serde(flatten)]
    call: CallDescription,
}

/// The JSON document of the list.
#[derive(Serialize)]
struct WaitingJson {
    waiting: Vec<ListedCall>,
}

/// The JSON document of the remembered answers.
#[derive(Serialize)]
struct RememberedJson {
    remembered: Vec<StoredAnswer>,
}

/// Runs the command.
pub(crate) async fn run(
    context: &Context,
    args: ApprovalsArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let work = async {
        match args.command {
            Some(ApprovalsCommand::Allow(answer)) => send_answer(&answer, true).await,
            Some(ApprovalsCommand::Deny(answer)) => send_answer(&answer, false).await,
            Some(ApprovalsCommand::Remembered) => run_blocking(remembered).await.map(|all| {
                Report::out(match context.format {
                    Format::Text => remembered_text(&all),
                    Format::Json => json::document(&RememberedJson { remembered: all }),
                })
            }),
            Some(ApprovalsCommand::Forget { subject }) => run_blocking(move || forget(&subject)).await,
            None if args.watch => watch(context).await,
            None => list().await.map(|waiting| {
                Report::out(match context.format {
                    Format::Text if waiting.is_empty() => "no call waits for an approval\n".to_owned(),
                    Format::Text => waiting.iter().map(ListedCall::text).collect(),
                    Format::Json => json::document(&WaitingJson { waiting }),
                })
            }),
        }
    };
    let report = run_until_signal(signals, work).await??;
    Ok(context.print(report).await)
}

impl ListedCall {
    fn new(process: u32, call: WaitingCall) -> ListedCall {
        let WaitingCall { id, call } = call;
        ListedCall { id: format!("{process}-{id}"), call }
    }

    fn text(&self) -> String {
        let CallDescription { server, tool, action, user, rule, changed, seconds, arguments } = &self.call;
        let user = user.as_ref().map(|it| format!(" for {}", sanitize::line(it))).unwrap_or_default();
        let changed = if *changed { ", changed since your last answer" } else { "" };
        let [server, tool, action] = [server, tool, action].map(|it| sanitize::line(it));
        format!(
            "{}  `{tool}` of {server}{user}: {action}{changed}, waits {seconds} s\n  arguments: {}\n  rule: {}\n",
            self.id,
            sanitize::line(arguments),
            sanitize::line(rule)
        )
    }
}

fn control_failure(error: &io::Error) -> Failure {
    Failure::new(format!("the running hosts cannot be reached: {error}"))
}

async fn connect_all() -> Result<Vec<ControlClient>, Failure> {
    ControlClient::connect_all().await.map_err(|error| control_failure(&error))
}

/// The calls that wait in all hosts.
async fn list() -> Result<Vec<ListedCall>, Failure> {
    let mut res = Vec::new();
    for mut client in connect_all().await? {
        // A host that does not reply, for example because it ends, has nothing to answer.
        if let Ok(ControlReply::Approvals { waiting }) = client.request(&ControlRequest::ListApprovals).await
        {
            res.extend(waiting.into_iter().map(|call| ListedCall::new(client.process, call)));
        }
    }
    Ok(res)
}

/// Prints new calls of the hosts that run now, until they end.
async fn watch(context: &Context) -> Result<Report, Failure> {
    let clients = connect_all().await?;
    if clients.is_empty() {
        return Err(Failure::new("no host runs").help(Some("`mcp-host serve` starts one")));
    }
    let (sender, mut calls) = mpsc::channel(16);
    for client in clients {
        tokio::spawn(watch_host(client, sender.clone()));
    }
    drop(sender);
    while let Some(call) = calls.recv().await {
        let text = match context.format {
            Format::Text => call.text(),
            Format::Json => json::line(&call),
        };
        context.print(Report::out(text)).await;
    }
    Ok(Report::err("the hosts have ended\n".to_owned()))
}

/// Sends each new call of a host, until the host ends.
async fn watch_host(mut client: ControlClient, sender: mpsc::Sender<ListedCall>) {
    if client.send(&ControlRequest::WatchApprovals).await.is_err() {
        return;
    }
    let mut seen: HashSet<u64> = HashSet::new();
    while let Ok(Some(ControlReply::Approvals { waiting })) = client.next_reply().await {
        let current = waiting.iter().map(|it| it.id).collect();
        for call in waiting.into_iter().filter(|it| !seen.contains(&it.id)) {
            if sender.send(ListedCall::new(client.process, call)).await.is_err() {
                return;
            }
        }
        seen = current;
    }
}

/// Answers a call that waits.
async fn send_answer(args: &AnswerArgs, allow: bool) -> Result<Report, Failure> {
    let AnswerArgs { id, session, always } = args;
    let unknown = || {
        let message = format!("no call with the id `{}` waits", sanitize::line(id));
        Failure::new(message).help(Some("`mcp-host approvals` lists those that wait"))
    };
    let parts = id.split_once('-').and_then(|(process, id)| Some((process.parse().ok()?, id.parse().ok()?)));
    let (process, number): (u32, u64) = parts.ok_or_else(unknown)?;
    let mut clients = connect_all().await?;
    let client = clients.iter_mut().find(|it| it.process == process).ok_or_else(unknown)?;
    let remember = match (session, always) {
        (_, true) => Remember::Always,
        (true, false) => Remember::Session,
        (false, false) => Remember::Once,
    };
    let request = ControlRequest::Answer { id: number, allow, remember };
    match client.request(&request).await.map_err(|error| control_failure(&error))? {
        ControlReply::Answered { calls: 0 } => Err(unknown()),
        ControlReply::Answered { calls } => {
            let verb = if allow { "allowed" } else { "refused" };
            Ok(Report::out(format!("{} {verb}\n", count(calls, "call"))))
        }
        ControlReply::Error { message } => Err(Failure::new(message)),
        ControlReply::Approvals { .. }
        | ControlReply::Status(_)
        | ControlReply::Logs { .. }
        | ControlReply::Done => Err(Failure::new("the host sent another reply than expected")),
    }
}

fn stored_answers() -> Result<CallAnswers, Failure> {
    call_answers().ok_or_else(|| Failure::new("there is no private state folder; set XDG_STATE_HOME"))
}

fn answers_failure(error: &io::Error) -> Failure {
    Failure::new(format!("the remembered answers cannot be used: {error}"))
}

/// The answers that are remembered for always. Blocks.
fn remembered() -> Result<Vec<StoredAnswer>, Failure> {
    stored_answers()?.list().map_err(|error| answers_failure(&error))
}

fn remembered_text(all: &[StoredAnswer]) -> String {
    let line = |it: &StoredAnswer| {
        let verb = if it.allowed { "allow" } else { "deny" };
        let subject = &it.subject;
        let user = subject.user.as_ref().map(|user| format!(" for {}", sanitize::line(user)));
        let [server, tool, file] =
            [&subject.server, &subject.tool, &subject.file].map(|it| sanitize::line(it));
        format!("{verb} {server}/{tool}{} in {file}\n", user.unwrap_or_default())
    };
    if all.is_empty() { "no answer is remembered\n".to_owned() } else { all.iter().map(line).collect() }
}

/// Forgets the answers about a server or a tool. Blocks.
fn forget(subject: &str) -> Result<Report, Failure> {
    let (server, tool) = subject.split_once('/').map_or((subject, None), |it| (it.0, Some(it.1)));
    let is_meant =
        |it: &StoredAnswer| it.subject.server == server && tool.is_none_or(|tool| it.subject.tool == tool);
    let forgotten = stored_answers()?.forget(is_meant).map_err(|error| answers_failure(&error))?;
    Ok(Report::out(format!("{} forgotten\n", count(forgotten, "answer"))))
}
