//! `explain`: what the rules of a server's entry do to names, one rule after the other. Nothing is started, so that a
//! filter can be tried before there is a server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mcp_config::Colour;
use mcp_host::Loaded;
use mcp_model::{Exposure, Rules, ServerId};
use mcp_registry::{Builtins, Decider, Decision, ListKind, Stage, Verdict, decide_all};
use serde::Serialize;

use crate::args::Format;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::source::{Source, Unreadable, open};

/// The words of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    file: Option<PathBuf>,
    /// The server whose rules are asked; not needed where there is only one
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// A tool's name as the server knows it; may be given several times, and then names clash as they would
    #[arg(long, value_name = "NAME", required_unless_present_any = ["prompt", "resource"])]
    tool: Vec<String>,
    /// A prompt's name as the server knows it
    #[arg(long, value_name = "NAME")]
    prompt: Vec<String>,
    /// A resource's name as the server knows it
    #[arg(long, value_name = "NAME")]
    resource: Vec<String>,
}

/// Explains names. Blocks.
pub(crate) fn run(context: &Context, words: &Words) -> Report {
    let Words { file, server, tool, prompt, resource } = words;
    let colour = context.console.err;
    let source = match open(file.as_deref().unwrap_or(Path::new("")), context) {
        Ok(source) => source,
        Err(Unreadable { path: _, message, help }) => {
            return context.console.failure(Exit::Wrong, &plain::line(&message), help.as_deref());
        }
    };
    let err = source.taken(colour) + &source.mistakes(colour);
    let (id, exposure) = match rules(&source, server.as_deref()) {
        Ok(found) => found,
        Err((exit, message)) => {
            let failure = context.console.failure(exit, &message, None);
            return Report { err: err + &failure.err, ..failure };
        }
    };
    let asked = [
        (ListKind::Tool, &exposure.tools, tool),
        (ListKind::Prompt, &exposure.prompts, prompt),
        (ListKind::Resource, &exposure.resources, resource),
    ];
    let explained: Vec<Explained> =
        asked.into_iter().flat_map(|(list, rules, names)| explain(list, &id, rules, names)).collect();
    let out = match context.format {
        Format::Json => json::document(&Document { decisions: &explained }),
        Format::Text => {
            explained.iter().map(|it| it.text(context.console.out)).collect::<Vec<_>>().join("\n")
        }
    };
    Report { out, err, exit: Exit::Done, after: String::new() }
}

/// The rules of the server that is meant. Fails with a sentence.
fn rules<'a>(source: &'a Source, name: Option<&str>) -> Result<(ServerId, &'a Exposure), (Exit, String)> {
    let Loaded { reading, .. } = &source.loaded;
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
        Some(spec) => Ok((spec.id.clone(), &spec.exposure)),
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
    let decider = Decider::new(server, rules);
    let decisions = decide_all(&Builtins::default(), list, server, rules, &names);
    let explained = decisions.into_iter().map(|decision| {
        let stages = decider.stages(list, &decision.original);
        Explained { list: list.as_str(), decision, stages }
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
    list: &'static str,
    #[serde(flatten)]
    decision: Decision,
    stages: Vec<Stage>,
}

impl Explained {
    /// A line about the end, and one for each rule.
    fn text(&self, colour: Colour) -> String {
        let Explained { list, decision, stages } = self;
        let Decision { server, original, exposed, verdict, rule } = decision;
        let original = plain::line(original);
        let end = match exposed {
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
        for Stage { rule, message, name } in stages {
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
        res
    }
}
