//! `doctor`: each server step by step, each step timed, until one fails; and what to do about that one.
//!
//! The steps are those that a host takes too, but one at a time: where the others say that a server cannot be used,
//! this says how far it was possible to go. Servers are examined beside each other, and told in the file's order.

mod examine;
mod lists;
mod locked;
mod program;
mod reach;
mod words;

use std::path::Path;
use std::time::Duration;

use mcp_host::{DesiredServers, FailedServer, HostError};
use mcp_model::ErrorKind;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tokio::task::JoinSet;

use crate::args::{Format, Servers};
use crate::commands::listing::only;
use crate::commands::next;
use crate::context::{Context, unless_signalled};
use crate::exit::Exit;
use crate::locked::approval;
use crate::output::console::Report;
use crate::output::{json, plain};
use crate::signals::Signals;
use locked::Locked;

/// How one server fared.
#[derive(Debug, Serialize)]
struct Examined {
    /// The server, as it is written.
    name: String,
    /// Which transport it has; `None` where its entry cannot be resolved.
    transport: Option<&'static str>,
    /// What it is reached by: its command, or its URL.
    target: Option<String>,
    /// In the order in which they were taken; the last one may have failed.
    steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// What was done.
    name: &'static str,
    outcome: Outcome,
    /// What came of it.
    message: String,
    /// What to try.
    help: Option<String>,
    took: Duration,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// As it should.
    Done,
    /// It went on, but somebody should look at it.
    Doubtful,
    /// It is the last one.
    Failed(Blame),
}

/// Whose matter a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blame {
    /// The configuration's.
    Configuration,
    /// The world's.
    World,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Doubtful => "doubtful",
            Outcome::Failed(Blame::Configuration | Blame::World) => "failed",
        }
    }
}

impl Serialize for Step {
    /// `{"step", "outcome", "message", "help", "duration_ms"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Step { name, outcome, message, help, took } = self;
        let mut res = serializer.serialize_struct("Step", 5)?;
        res.serialize_field("step", name)?;
        res.serialize_field("outcome", outcome.as_str())?;
        res.serialize_field("message", message)?;
        res.serialize_field("help", help)?;
        res.serialize_field("duration_ms", &(took.as_secs_f64() * 1000.0))?;
        res.end()
    }
}

/// `{"servers"}`.
#[derive(Serialize)]
struct Document<'a> {
    servers: &'a [Examined],
}

/// Examines the servers of a configuration.
pub(crate) async fn run(context: &Context, servers: &Servers, signals: &mut Signals) -> Exit {
    let (wanted, locked) = match unless_signalled(signals, prepare(context, servers)).await {
        Err(signal) => return Exit::Signal(signal),
        Ok(Err(exit)) => return exit,
        Ok(Ok(prepared)) => prepared,
    };
    // A signal drops what is examined, and with that ends every process that was started for it.
    let examined = match unless_signalled(signals, examine_all(context, wanted, locked)).await {
        Err(signal) => return Exit::Signal(signal),
        Ok(examined) => examined,
    };
    let out = match context.format {
        Format::Json => json::document(&Document { servers: &examined }),
        Format::Text if examined.is_empty() => "no servers are configured\n".to_owned(),
        Format::Text => {
            examined.iter().map(|it| words::text(it, context.console.out)).collect::<Vec<_>>().join("\n")
        }
    };
    let exit = exit(&examined);
    let after = match (exit, context.format) {
        (Exit::Done, Format::Text) if !examined.is_empty() => {
            let file = next::file(servers.file.as_deref().unwrap_or(Path::new("")));
            context.console.next(&format!("`mcp-host tools {file}` lists their tools"))
        }
        (_, _) => String::new(),
    };
    context.tell(Report { out, err: String::new(), exit, after }).await
}

/// What is to be examined. A file with mistakes is examined all the same: entries that are sound go on.
async fn prepare(context: &Context, servers: &Servers) -> Result<(DesiredServers, Locked), Exit> {
    let Servers { file, server } = servers;
    let colour = context.console.err;
    let file = file.clone().unwrap_or_default();
    let failed = |exit, message: &str, help: Option<&str>| context.console.failure(exit, message, help);
    let source = match context.open(&file).await {
        Ok(source) => source,
        Err(it) => {
            let report = failed(Exit::Wrong, &plain::line(&it.message), it.help.as_deref());
            return Err(context.tell(report).await);
        }
    };
    let err = source.taken(colour) + &source.complaints(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    let locked = Locked::of(approval(context, &source.file).await);
    let wanted = match source.loaded.refused {
        false => source.loaded.desired,
        true => refused(&source),
    };
    match server {
        None => Ok((wanted, locked)),
        Some(name) => match only(wanted, name) {
            Ok(wanted) => Ok((wanted, locked)),
            Err(message) => Err(context.tell(failed(Exit::Usage, &message, None)).await),
        },
    }
}

/// A file that is refused as a whole starts nothing, here neither.
fn refused(source: &crate::source::Source) -> DesiredServers {
    let message = "the file has an error that spoils all of it, so that none of its servers is started";
    let failure = HostError {
        kind: ErrorKind::Config,
        message: message.to_owned(),
        help: Some("mend what `mcp-host check` shows, then examine again".to_owned()),
    };
    let entries = source.loaded.reading.entries.iter();
    let failed = entries.map(|it| FailedServer { id: it.name.clone(), error: failure.clone() });
    DesiredServers { servers: Vec::new(), failed: failed.collect() }
}

async fn examine_all(context: &Context, wanted: DesiredServers, locked: Locked) -> Vec<Examined> {
    let progress = context.progress();
    progress.say(&format!("examining {} servers", wanted.servers.len() + wanted.failed.len()));
    let mut examinations = JoinSet::new();
    for (at, server) in wanted.servers.into_iter().enumerate() {
        let locked = locked.clone();
        examinations.spawn(async move { (at, examine::server(server, locked).await) });
    }
    let mut examined = Vec::new();
    while let Some(joined) = examinations.join_next().await {
        match joined {
            Ok(it) => examined.push(it),
            // Nobody aborts them, so that one can only have panicked.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    progress.clear();
    examined.sort_by_key(|(at, _)| *at);
    let failed = wanted.failed.into_iter().map(|FailedServer { id, error: failure }| Examined {
        name: id,
        transport: None,
        target: None,
        steps: vec![Step {
            name: "configuration",
            outcome: Outcome::Failed(Blame::Configuration),
            message: failure.to_string(),
            help: failure.help,
            took: Duration::ZERO,
        }],
    });
    examined.into_iter().map(|(_, it)| it).chain(failed).collect()
}

/// The first result that counts: an entry is written wrongly, a server cannot be used, all is well.
fn exit(examined: &[Examined]) -> Exit {
    let outcomes = || examined.iter().flat_map(|it| &it.steps).map(|it| it.outcome);
    if outcomes().any(|it| it == Outcome::Failed(Blame::Configuration)) {
        Exit::Wrong
    } else if outcomes().any(|it| it == Outcome::Failed(Blame::World)) {
        Exit::Unreachable
    } else {
        Exit::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcomes: &[Outcome], want: Exit) {
        let step = |outcome: &Outcome| Step {
            name: "n",
            outcome: *outcome,
            message: String::new(),
            help: None,
            took: Duration::ZERO,
        };
        let examined = Examined {
            name: "s".into(),
            transport: None,
            target: None,
            steps: outcomes.iter().map(step).collect(),
        };
        assert_eq!(exit(&[examined]), want);
    }

    #[test]
    fn the_exit_code_names_whose_matter_it_is() {
        check(&[], Exit::Done);
        check(&[Outcome::Done, Outcome::Doubtful], Exit::Done);
        check(&[Outcome::Done, Outcome::Failed(Blame::World)], Exit::Unreachable);
        check(&[Outcome::Failed(Blame::Configuration)], Exit::Wrong);
    }
}
