//! An agent's loop with a scripted model: `cargo run -p mcp-host-runtime --example agent`.
//!
//! Its configuration changes while a call runs, and two dialogs lease an instance each of the bundled demo server.

#![expect(clippy::print_stdout, reason = "the output shows what happens")]

use std::collections::VecDeque;
use std::error::Error;
use std::fs;

use mcp_host_model::{RawJson, ServerId};
use mcp_host_runtime::{
    Dialog, DialogId, FollowRequest, Host, HostEventKind, HostOptions, LoadRequest, NotificationStreamItem,
    ToolCall,
};

/// A server that is not shared: each dialog leases an instance of its own. The command `mcp-host` runs this program.
const CONFIGURATION: &str = "
version: 1
servers:
  demo:
    transport: stdio
    command: mcp-host
    args: [demo-server]
    transform: [{prefix: old_}]
";

/// The interface to a model: it gets the tools and the results so far, and returns the next call, if any.
trait Model {
    fn next_call(&mut self, tools: &[String], results: &[String]) -> Option<(String, String)>;
}

/// A scripted model that needs no provider. It finds the names of its tools in the list that it is shown.
struct Script(VecDeque<(&'static str, &'static str)>);

impl Model for Script {
    fn next_call(&mut self, tools: &[String], _: &[String]) -> Option<(String, String)> {
        let (tool, arguments) = self.0.pop_front()?;
        let name = tools.iter().find(|name| name.ends_with(tool))?;
        Some((name.clone(), arguments.to_owned()))
    }
}

/// Asks the model and makes its calls until it has no more.
async fn run(dialog: &Dialog, model: &mut dyn Model) -> Result<(), Box<dyn Error>> {
    let mut results = Vec::new();
    loop {
        // Pinned: the model can call the tools that it is shown, even if the configuration changes during the turn.
        let turn = dialog.pin();
        let tools: Vec<_> = turn.snapshot().catalog.tools().iter().map(|it| it.name.to_string()).collect();
        let Some((tool, arguments)) = model.next_call(&tools, &results) else { return Ok(()) };
        let result = turn.call(ToolCall::new(&*tool, RawJson::parse(arguments.clone().into())?)).await;
        // Errors are passed to the model, so that it can correct its calls.
        let text = match &result.error {
            None => result.text(),
            Some(error) => format!("{}: {}", error.kind, error.message),
        };
        println!("{}: {tool} {arguments} -> {text}", dialog.id());
        results.push(text);
    }
}

async fn agent() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("mcp.yaml");
    fs::write(&file, CONFIGURATION)?;
    let mut options = HostOptions::default();
    options.processes.own_executable = Some(std::env::current_exe()?);
    let host = Host::start(options);
    let following = host.follow(FollowRequest::new(vec![LoadRequest::new(&file)])).await;
    host.wait_until_ready().await;
    for it in &host.snapshot().problems {
        println!("{}: {}", it.problem.severity, it.problem.message);
    }

    // Hot reload: the call that runs while the file is saved ends well, and the next turn has the new names.
    let save = async {
        fs::write(&file, CONFIGURATION.replace("old_", "new_"))?;
        host.subscribe().wait_for(|it| it.catalog.tool("new_add").is_some()).await?;
        println!("reloaded");
        Ok(())
    };
    let ada = host.dialog(DialogId::new("ada"));
    let mut slow = Script([("sleep", r#"{"ms": 3000}"#)].into());
    tokio::try_join!(run(&ada, &mut slow), save)?;
    run(&ada, &mut Script([("add", r#"{"a": "two"}"#), ("echo", r#"{"text": "hello"}"#)].into())).await?;

    // Leases: `change_tools` adds a tool or removes it again, so its result shows the state of the instance.
    let script = || Script([("change_tools", r#"{"name": "note"}"#)].into());
    let bob = host.dialog(DialogId::new("bob"));
    run(&ada, &mut script()).await?;
    run(&bob, &mut script()).await?;
    run(&ada, &mut script()).await?;
    println!("leases: {}", host.leases().len());
    // A released dialog gets a new instance with its next call.
    host.release(ada.id(), &ServerId::parse("demo")?).await?;
    run(&bob, &mut script()).await?;
    run(&ada, &mut script()).await?;
    // Dropping a dialog releases what it has leased.
    let mut events = host.events();
    drop(bob);
    while let Some(NotificationStreamItem::Notification(event)) = events.next().await {
        if let HostEventKind::Released { dialog, reason } = &event.kind {
            println!("{dialog}: released {}: {reason:?}", event.server);
            break;
        }
    }
    following.stop().await;
    host.shutdown().await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    match std::env::args().nth(1) {
        Some(it) if it == "demo-server" => Ok(runtime.block_on(mcp_host_demo::serve_stdio())?),
        _ => runtime.block_on(agent()),
    }
}
