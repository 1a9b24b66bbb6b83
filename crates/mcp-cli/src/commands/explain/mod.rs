//! `explain`: what the rules of a server's entry do to names, one rule after the other, and what a lock beside it says of
//! them. Nothing is started unless that is asked for, so that a filter can be tried before there is a server.

mod standing;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mcp_config::Colour;
use mcp_host::{Approval, LoadedConfig, ServerDefinitions, Supervision};
use mcp_model::{Exposure, Rules, ServerId};
use mcp_registry::{Builtins, CompiledRules, Decision, ListKind, RuleStep, Verdict, decide_all};
use serde::Serialize;

use crate::args::Format;
use crate::commands::listing::only;
use crate::commands::status;
use crate::context::{Context, unless_signalled};
use crate::exit::Exit;
use crate::hosted;
use crate::locked::approval;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::signals::Signals;
use crate::source::{Source, Unreadable};
use crate::starting::{Wanting, started};
use standing::{Standing, standing};

/// The words of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    file: Option<PathBuf>,
    /// The server whose rules are asked; not needed where there is only one
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// A tool's name as the server knows it; may be given several times, and then names clash as they would
    #[arg(long, value_name = "NAME", required_unless_present_any = ["prompt", "resource", "start"])]
    tool: Vec<String>,
    /// A prompt's name as the server knows it
    #[arg(long, value_name = "NAME")]
    prompt: Vec<String>,
    /// A resource's name as the server knows it
    #[arg(long, value_name = "NAME")]
    resource: Vec<String>,
    /// Start the server, and explain all that it offers unless something is named; with a lock, whether it is as it was
    /// approved
    #[arg(long)]
    start: bool,
}

/// Names to explain, by their list.
type Names = [(ListKind, Vec<String>); 3];

/// What there is before anything is started.
struct Prepared {
    source: Source,
    server: ServerId,
    names: Names,
    approval: Option<Approval>,
}

/// Explains names.
pub(crate) async fn run(context: &Context, words: Words, signals: &mut Signals) -> Exit {
    let starts = words.start;
    let prepared = match unless_signalled(signals, prepare(context, words)).await {
        Err(signal) => return Exit::Signal(signal),
        Ok(Err(exit)) => return exit,
        Ok(Ok(prepared)) => prepared,
    };
    if !starts {
        return tell(context, &prepared, None).await;
    }
    let wanted = match only(prepared.source.loaded.desired.clone(), prepared.server.as_str()) {
        Ok(wanted) => wanted,
        Err(message) => return context.tell(context.console.failure(Exit::Wrong, &message, None)).await,
    };
    // What is withheld is to be explained as well.
    hosted::with(wanted, (Supervision::Off, None), signals, async |host| {
        started(host, &context.progress(), Wanting::All).await;
        if let Some(offer) = host.definitions(&prepared.server) {
            return tell(context, &prepared, Some(&offer)).await;
        }
        let err = status::servers(&host.snapshot(), context.console.err);
        context.tell(Report { out: String::new(), err, exit: Exit::Unreachable, after: String::new() }).await
    })
    .await
}

async fn prepare(context: &Context, words: Words) -> Result<Prepared, Exit> {
    let Words { file, server, tool, prompt, resource, start: _ } = words;
    let unreadable = async |it: Unreadable| {
        let Unreadable { path: _, message, help } = it;
        context.tell(context.console.failure(Exit::Wrong, &plain::line(&message), help.as_deref())).await
    };
    let source = match context.open(file.as_deref().unwrap_or(Path::new(""))).await {
        Ok(source) => source,
        Err(it) => return Err(unreadable(it).await),
    };
    let colour = context.console.err;
    let err = source.taken(colour) + &source.mistakes(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    let id = match meant(&source, server.as_deref()) {
        Ok(id) => id,
        Err((exit, message)) => {
            return Err(context.tell(context.console.failure(exit, &message, None)).await);
        }
    };
    let approval = match approval(context, &source.file).await {
        Ok(approval) => approval,
        Err(it) => return Err(unreadable(it).await),
    };
    let names = [(ListKind::Tool, tool), (ListKind::Prompt, prompt), (ListKind::Resource, resource)];
    Ok(Prepared { source, server: id, names, approval })
}

/// Tells what becomes of each name.
async fn tell(context: &Context, prepared: &Prepared, offer: Option<&ServerDefinitions>) -> Exit {
    let Prepared { source, server, names, approval } = prepared;
    let spec = source.loaded.reading.servers.iter().find(|it| it.id == *server);
    let Exposure { tools, prompts, resources } = &spec.expect("it has rules, which were found").exposure;
    let all = offer.filter(|_| names.iter().all(|it| it.1.is_empty())).map(offered);
    let explained = all.as_ref().unwrap_or(names).iter().flat_map(|(list, names)| {
        let rules = match list {
            ListKind::Tool => tools,
            ListKind::Prompt => prompts,
            ListKind::Resource => resources,
        };
        explain(*list, server, rules, names)
    });
    let explained: Vec<Explained> = explained
        .map(|mut it| {
            let item = (it.kind, it.decision.original.as_str());
            it.lock = approval.as_ref().and_then(|approval| standing(approval, server, offer, item));
            it
        })
        .collect();
    let out = match context.format {
        Format::Json => json::document(&Document { decisions: &explained }),
        Format::Text if explained.is_empty() => "it offers nothing\n".to_owned(),
        Format::Text => {
            explained.iter().map(|it| it.text(context.console.out)).collect::<Vec<_>>().join("\n")
        }
    };
    context.tell(Report { out, err: String::new(), exit: Exit::Done, after: String::new() }).await
}

/// Everything that a server offers, by its own names.
fn offered(offer: &ServerDefinitions) -> Names {
    let lists = &offer.lists;
    let resources = lists.resources.iter().map(|it| it.name.to_string());
    let templates = lists.templates.iter().map(|it| it.name.to_string());
    [
        (ListKind::Tool, lists.tools.iter().map(|it| it.name.to_string()).collect()),
        (ListKind::Prompt, lists.prompts.iter().map(|it| it.name.to_string()).collect()),
        (ListKind::Resource, resources.chain(templates).collect()),
    ]
}

/// The server that is meant, which has rules. Fails with a sentence.
fn meant(source: &Source, name: Option<&str>) -> Result<ServerId, (Exit, String)> {
    let LoadedConfig { reading, .. } = &source.loaded;
    let names = || reading.entries.iter().map(|it| plain::line(&it.name)).collect::<Vec<_>>().join(", ");
    let entry = match (name, reading.entries.as_slice()) {
        (_, []) => return Err((Exit::Wrong, "there are no servers in it".to_owned())),
        (None, [entry]) => entry,
        (None, [_, ..]) => {
            return Err((
                Exit::Usage,
                format!("say which server is meant: `--server` and one of {}", names()),
            ));
        }
        (Some(name), entries) => match entries.iter().find(|it| it.name == name) {
            Some(entry) => entry,
            None => {
                let message = format!("there is no server `{}`; there are: {}", plain::line(name), names());
                return Err((Exit::Usage, message));
            }
        },
    };
    match reading.servers.iter().find(|it| it.id.as_str() == entry.name) {
        Some(spec) => Ok(spec.id.clone()),
        None => Err((
            Exit::Wrong,
            format!(
                "the entry of server `{}` is written wrongly, so that it has no rules",
                plain::line(&entry.name)
            ),
        )),
    }
}

fn explain(list: ListKind, server: &ServerId, rules: &Rules, names: &[String]) -> Vec<Explained> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let decider = CompiledRules::new(server, rules);
    let decisions = decide_all(&Builtins::default(), list, server, rules, &names);
    let explained = decisions.into_iter().map(|decision| {
        let stages = decider.explain(list, &decision.original);
        Explained { kind: list, list: list.as_str(), decision, stages, lock: None }
    });
    explained.collect()
}

/// `{"decisions"}`.
#[derive(Serialize)]
struct Document<'a> {
    decisions: &'a [Explained],
}

/// What became of one name, and on which way.
#[derive(Serialize)]
struct Explained {
    #[serde(skip)]
    kind: ListKind,
    list: &'static str,
    #[serde(flatten)]
    decision: Decision,
    stages: Vec<RuleStep>,
    /// What the lock says of it; `None` where there is none, or it says nothing.
    lock: Option<Standing>,
}

impl Explained {
    /// A line about the end, and one for each rule.
    fn text(&self, colour: Colour) -> String {
        let Explained { kind: _, list, decision, stages, lock } = self;
        let is_withheld = lock.as_ref().is_some_and(|it| it.withheld);
        let Decision { server, original, exposed, verdict, rule } = decision;
        let original = plain::line(original);
        let end = match exposed {
            Some(_) if is_withheld => {
                let hidden = paint::paint(colour, paint::BAD, "is not shown: withheld");
                format!("{list} `{original}` of server `{server}` {hidden}\n")
            }
            Some(name) => {
                let shown = paint::paint(
                    colour,
                    paint::GOOD,
                    &format!("is shown as `{}`", plain::line(name.as_str())),
                );
                format!("{list} `{original}` of server `{server}` {shown}\n")
            }
            None => {
                let hidden = paint::paint(colour, paint::BAD, &format!("is not shown: {}", verdict.as_str()));
                format!("{list} `{original}` of server `{server}` {hidden}\n")
            }
        };
        let mut res = end;
        for RuleStep { rule, message, name } in stages {
            let name = match name {
                Some(name) => format!("`{}`", plain::line(name)),
                None => paint::paint(colour, paint::BAD, "hidden"),
            };
            let _ = writeln!(res, "  {:9}  {} → {name}", rule.as_str(), plain::line(message));
        }
        if *verdict == Verdict::Collision {
            let hidden = paint::paint(colour, paint::BAD, "hidden");
            let _ = writeln!(res, "  {:9}  {} → {hidden}", "collision", plain::line(rule));
        }
        if let Some(Standing { message, .. }) = lock {
            let end = match exposed {
                Some(_) if is_withheld => {
                    format!(" → {}", paint::paint(colour, paint::BAD, "withheld"))
                }
                Some(name) => format!(" → `{}`", plain::line(name.as_str())),
                None => String::new(),
            };
            let _ = writeln!(res, "  {:9}  {}{end}", "lock", plain::line(message));
        }
        res
    }
}
