//! `tools`, `prompts` and `resources`: starts the servers, shows what they offer, and stops them.
//!
//! What is shown of each kind stands in a file of its own; here is what the three have in common.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mcp_host::{Approval, DesiredServers, HostSnapshot, ServerState, Supervision};

use crate::args::Format;
use crate::commands::refused::Refusal;
use crate::commands::schemas::judged;
use crate::commands::{next, prompts, resources, status, tools};
use crate::context::{Context, unless_signalled};
use crate::exit::Exit;
use crate::hosted;
use crate::locked::approval;
use crate::output::console::Report;
use crate::output::table::Look;
use crate::output::{json, paint, plain};
use crate::signals::Signals;
use crate::starting::{Wanting, started};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The configuration.
    pub(crate) file: &'a Path,
    /// The only server that is wanted.
    pub(crate) server: Option<&'a str>,
    /// What is listed of the servers.
    pub(crate) what: What<'a>,
}

/// What is listed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What<'a> {
    /// Tools, in the way that is asked for.
    Tools(tools::Manner<'a>),
    /// Prompts.
    Prompts,
    /// Resources, and templates of resources.
    Resources,
}

/// Lists what a configuration's servers offer.
pub(crate) async fn run(context: &Context, request: Request<'_>, signals: &mut Signals) -> Exit {
    match unless_signalled(signals, prepare(context, request)).await {
        Err(signal) => Exit::Signal(signal),
        Ok(Err(exit)) => exit,
        Ok(Ok((wanted, path, approval))) => {
            let rejected = wanted.failed.len();
            hosted::with(wanted, (Supervision::Off, approval), signals, async |host| {
                started(host, &context.progress(), Wanting::All).await;
                let published = match request.what {
                    What::Tools(_) => judged(host.snapshot()).await,
                    What::Prompts | What::Resources => host.snapshot(),
                };
                let exit = exit(&published, rejected);
                let mut report = report(context, request.what, &published, exit);
                if let (What::Tools(_), Format::Text) = (request.what, context.format) {
                    report.after = context.console.next(&next::call(&published, &path));
                }
                context.tell(report).await
            })
            .await
        }
    }
}

/// What is to be started; or the end, where that is nothing.
async fn prepare(
    context: &Context,
    request: Request<'_>,
) -> Result<(DesiredServers, PathBuf, Option<Approval>), Exit> {
    let colour = context.console.err;
    let source = match context.open(request.file).await {
        Ok(source) => source,
        Err(unreadable) => return Err(refuse(context, request.what, &Refusal::unreadable(unreadable)).await),
    };
    let err = source.taken(colour) + &source.complaints(colour);
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    if let Some(refusal) = Refusal::of(&source) {
        return Err(refuse(context, request.what, &refusal).await);
    }
    let (wanted, path) = (source.loaded.desired, source.file);
    let approval = match approval(context, &path).await {
        Ok(approval) => approval,
        Err(unreadable) => return Err(refuse(context, request.what, &Refusal::unreadable(unreadable)).await),
    };
    let Some(name) = request.server else { return Ok((wanted, path, approval)) };
    match only(wanted, name) {
        Ok(wanted) => Ok((wanted, path, approval)),
        Err(message) => Err(context.tell(context.console.failure(Exit::Usage, &message, None)).await),
    }
}

async fn refuse(context: &Context, what: What<'_>, refusal: &Refusal) -> Exit {
    let err = paint::error(
        context.console.err,
        &plain::line(&refusal.failure.to_string()),
        refusal.failure.help.as_deref(),
    );
    let out = match context.format {
        Format::Json => document(what, &refusal.published(SystemTime::now())),
        Format::Text => String::new(),
    };
    context.tell(Report { out, err, exit: Exit::Wrong, after: String::new() }).await
}

/// The one server that is asked for. Fails with a sentence that says which there are.
pub(super) fn only(mut wanted: DesiredServers, name: &str) -> Result<DesiredServers, String> {
    let names: Vec<String> = wanted
        .servers
        .iter()
        .map(|it| it.spec.id.to_string())
        .chain(wanted.failed.iter().map(|it| it.id.clone()))
        .collect();
    wanted.servers.retain(|it| it.spec.id.as_str() == name);
    wanted.failed.retain(|it| it.id == name);
    match (wanted.servers.is_empty() && wanted.failed.is_empty(), names.is_empty()) {
        (false, _) => Ok(wanted),
        (true, false) => {
            let names = plain::line(&names.join(", "));
            Err(format!("there is no server `{}`; there are: {names}", plain::line(name)))
        }
        (true, true) => Err(format!("there is no server `{}`, nor any other", plain::line(name))),
    }
}

/// The first result that counts: an entry is written wrongly, a server cannot be used, all is well.
fn exit(published: &HostSnapshot, rejected: usize) -> Exit {
    let is_ready = |state| match state {
        ServerState::Ready => true,
        ServerState::Starting
        | ServerState::Restarting
        | ServerState::Failed
        | ServerState::Disabled
        | ServerState::Stopped => false,
    };
    match (rejected, published.servers.iter().all(|it| is_ready(it.state))) {
        (1.., _) => Exit::Wrong,
        (0, false) => Exit::Unreachable,
        (0, true) => Exit::Done,
    }
}

fn report(context: &Context, what: What<'_>, published: &HostSnapshot, exit: Exit) -> Report {
    let look = Look { width: context.console.width, colour: context.console.out };
    let done = |out| Report { out, err: String::new(), exit, after: String::new() };
    let out = match (what, context.format) {
        (What::Tools(tools::Manner::One(name)), format) => {
            match (tools::one(published, name, look), format) {
                (Ok(text), Format::Text) => return done(text),
                (Ok(_), Format::Json) => return done(document(what, published)),
                (Err(message), format) => {
                    let exit = if exit == Exit::Done { Exit::Wrong } else { exit };
                    let failure = context.console.failure(exit, &message, None);
                    let out = if format == Format::Json { document(what, published) } else { String::new() };
                    // The server that has it may be the one that is not there.
                    let err = failure.err + &status::servers(published, context.console.err);
                    return Report { out, err, ..failure };
                }
            }
        }
        (_, Format::Json) => return done(document(what, published)),
        (What::Tools(tools::Manner::Tree), Format::Text) => [tools::tree(published, look), String::new()],
        (What::Tools(tools::Manner::Table), Format::Text) => {
            with_servers(tools::text(published, look), published, look)
        }
        (What::Prompts, Format::Text) => with_servers(prompts::text(published, look), published, look),
        (What::Resources, Format::Text) => with_servers(resources::text(published, look), published, look),
    };
    let [list, servers] = out;
    let parts = [list, servers, status::problems(published, look.colour)];
    let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    done(match parts.is_empty() {
        true => "no servers are configured\n".to_owned(),
        false => parts.join("\n"),
    })
}

/// A list, and the lines of the servers.
fn with_servers(list: String, published: &HostSnapshot, look: Look) -> [String; 2] {
    [list, status::servers(published, look.colour)]
}

fn document(what: What<'_>, published: &HostSnapshot) -> String {
    match what {
        What::Tools(tools::Manner::Table | tools::Manner::Tree) => json::document(published),
        What::Tools(tools::Manner::One(name)) => tools::document(published, name),
        What::Prompts => json::document(&prompts::Document(published)),
        What::Resources => json::document(&resources::Document(published)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host::{FailedServer, HostError, ServerStatus};
    use mcp_model::ErrorKind;
    use mcp_registry::Catalog;

    use super::*;

    #[track_caller]
    fn check(states: &[ServerState], rejected: usize, want: Exit) {
        let status =
            |state: &ServerState| ServerStatus { id: "s".into(), state: *state, era: None, error: None };
        let published = HostSnapshot {
            generation: 1,
            catalog: Arc::new(Catalog::empty()),
            servers: states.iter().map(status).collect(),
            problems: Vec::new(),
        };
        assert_eq!(exit(&published, rejected), want);
    }

    #[test]
    fn the_exit_code_names_the_first_thing_to_mend() {
        use ServerState::{Failed, Ready, Starting};
        check(&[Ready, Ready], 0, Exit::Done);
        check(&[], 0, Exit::Done);
        check(&[Ready, Failed], 0, Exit::Unreachable);
        check(&[Ready, Starting], 0, Exit::Unreachable);
        check(&[Ready, Failed], 1, Exit::Wrong);
        check(&[Failed, Failed], 1, Exit::Wrong);
    }

    #[test]
    fn a_server_that_is_not_there_is_answered_with_those_that_are() {
        let failed = |id: &str| FailedServer {
            id: id.to_owned(),
            error: HostError { kind: ErrorKind::McpConfig, message: String::new(), help: None },
        };
        let wanted = DesiredServers { servers: Vec::new(), failed: vec![failed("a"), failed("b")] };
        assert_eq!(only(wanted.clone(), "b").unwrap().failed, [failed("b")]);
        assert_eq!(only(wanted, "c").unwrap_err(), "there is no server `c`; there are: a, b");
        assert_eq!(
            only(DesiredServers::default(), "c").unwrap_err(),
            "there is no server `c`, nor any other"
        );
    }
}
