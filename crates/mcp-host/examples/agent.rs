//! The loop of an agent with a scripted model: `cargo run -p mcp-host-runtime --example agent [CONFIGURATION]`.
//!
//! Without an argument it uses the configuration of the quick start, whose only server is the bundled demo server.

#![expect(clippy::print_stdout, reason = "what the agent says is what it is for")]

use std::collections::VecDeque;
use std::error::Error;

use mcp_host::{Dialog, DialogId, Host, HostOptions, LoadRequest, ToolCall, load};
use mcp_model::RawJson;

const QUICK_START: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/quickstart/.minds/mcp.yaml");

/// A model's answer.
enum Answer {
    Call { tool: String, arguments: String },
    Say(String),
}

/// The interface to a model: it gets the tools and the conversation, and answers.
trait Model {
    fn answer(&mut self, tools: &[String], said: &[String]) -> Answer;
}

/// A scripted model that needs no provider: it makes these calls, then sums up.
struct Script(VecDeque<(&'static str, &'static str)>);

impl Model for Script {
    fn answer(&mut self, tools: &[String], said: &[String]) -> Answer {
        match self.0.pop_front() {
            Some((tool, arguments)) => {
                Answer::Call { tool: tool.to_owned(), arguments: arguments.to_owned() }
            }
            None => Answer::Say(format!("I have {} tools, and was told: {}", tools.len(), said.join(", "))),
        }
    }
}

/// Asks the model and makes its calls, until it returns a text.
async fn run(dialog: &Dialog, model: &mut dyn Model) -> Result<String, Box<dyn Error>> {
    let mut said = Vec::new();
    loop {
        // Pinned, so that the model can call the tools that it is shown, even if the configuration changes during
        // the turn.
        let turn = dialog.pin();
        let tools: Vec<String> =
            turn.snapshot().catalog.tools().iter().map(|it| it.name.to_string()).collect();
        match model.answer(&tools, &said) {
            Answer::Say(text) => return Ok(text),
            Answer::Call { tool, arguments } => {
                println!("{tool} {arguments}");
                let result = turn.call(ToolCall::new(tool, RawJson::parse(arguments.into())?)).await;
                // Errors are passed to the model, so that it can correct its calls.
                said.push(match &result.error {
                    None => result.text(),
                    Some(error) => format!("{}: {}", error.kind, error.message),
                });
            }
        }
    }
}

async fn agent(file: String) -> Result<(), Box<dyn Error>> {
    let wanted = load(&LoadRequest::new(file))?.into_desired()?;
    // The command `mcp-host` in a configuration runs this program; see `main`.
    let own_executable = Some(std::env::current_exe()?);
    let host = Host::start({
        let mut res = HostOptions::default();
        res.processes.own_executable = own_executable;
        res
    });
    host.apply(wanted).await;
    host.ready().await;
    for it in &host.snapshot().problems {
        println!("{}: {}", it.problem.severity, it.problem.message);
    }
    let script = [
        ("demo_echo", r#"{"text": "hello"}"#),
        ("demo_add", r#"{"a": 2, "b": 3}"#),
        ("demo_add", r#"{"a": "two"}"#),
    ];
    let dialog = host.dialog(DialogId::new("example"));
    println!("{}", run(&dialog, &mut Script(script.into())).await?);
    host.shutdown().await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    match std::env::args().nth(1) {
        Some(it) if it == "demo-server" => Ok(runtime.block_on(mcp_demo::serve_stdio())?),
        file => runtime.block_on(agent(file.unwrap_or_else(|| QUICK_START.to_owned()))),
    }
}
