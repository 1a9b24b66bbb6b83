//! The official SDK: rmcp used as documented.

#![expect(clippy::print_stdout, reason = "its one line of output is what it is for")]

use mcp_benches::Failure;
use mcp_benches::options::{self, Options};
use mcp_benches::scenario::{self, Ask, Client};
use rmcp::model::{CallToolRequestParams, Tool};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ServiceExt, object};

fn main() -> Result<(), Failure> {
    let options = Options::read();
    let runtime = options::runtime(&options)?;
    let line = runtime
        .block_on(async { tokio::spawn(async move { scenario::run::<Sdk>(&options).await }).await })??;
    println!("{line}");
    Ok(())
}

struct Sdk(RunningService<RoleClient, ()>);

impl Client for Sdk {
    type List = Vec<Tool>;

    async fn connect(options: &Options) -> Result<Self, Failure> {
        match options.transport() {
            "stdio" => {
                let (command, arguments) = options.server.split_first().ok_or("no server is given")?;
                let mut command = tokio::process::Command::new(command);
                command.args(arguments);
                Ok(Sdk(().serve(TokioChildProcess::new(command)?).await?))
            }
            "http" => {
                // Another connection of this process may have installed it.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let transport = StreamableHttpClientTransport::from_uri(options.url().to_owned());
                Ok(Sdk(().serve(transport).await?))
            }
            other => Err(format!("it has no transport {other:?}").into()),
        }
    }

    async fn call(&self, ask: Ask) -> Result<usize, Failure> {
        let arguments = match ask {
            Ask::Echo => object!({ "text": mcp_benches::TEXT }),
            Ask::Big(kib) => object!({ "kib": kib }),
            Ask::Sleep(milliseconds) => object!({ "ms": milliseconds }),
        };
        let call = CallToolRequestParams::new(ask.tool()).with_arguments(arguments);
        let result = self.0.call_tool(call).await?;
        Ok(result.content.iter().filter_map(|it| it.as_text()).map(|it| it.text.len()).sum())
    }

    async fn list(&self) -> Result<Vec<Tool>, Failure> {
        Ok(self.0.list_all_tools().await?)
    }

    fn count(list: &Vec<Tool>) -> usize {
        list.len()
    }

    async fn close(self) {
        // The result of closing is not measured.
        let _ = self.0.cancel().await;
    }
}
