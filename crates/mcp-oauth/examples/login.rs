//! Lists the tools of a server that requires a login: `cargo run -p mcp-host-oauth --example login -- URL`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its results")]

use std::error::Error;
use std::sync::Arc;

use mcp_host_model::{Endpoint, UrlEndpoint};
use mcp_host_oauth::{LoopbackRedirect, MemoryTokenStore, OAuth, OAuthOptions, Url};
use mcp_host_transport::{DialOptions, Session, SessionOptions, dialer};

/// The names of the tools of the server at `url`. `show_page` has the user open the login page of the authorization
/// server, which redirects the browser to a port of this machine.
pub(crate) async fn list_tools(
    url: &Url,
    show_page: impl Fn(&Url) + Send + Sync + 'static,
) -> Result<Vec<String>, Box<dyn Error>> {
    // Another `TokenStore` keeps the login for the next run.
    let mut login = OAuthOptions::new(Arc::new(MemoryTokenStore::default()), "my program");
    login.user_agent = Some(Arc::new(LoopbackRedirect::new(show_page)));
    let mut options = DialOptions::default();
    options.authorization = Some(Arc::new(OAuth::new(url, login)?));

    let endpoint = Endpoint::Http(UrlEndpoint::new(url.clone()));
    let session = Session::connect(dialer(&endpoint, &options)?, SessionOptions::default()).await?;
    let tools = session.list_tools().await?;
    Ok(tools.items.iter().map(|tool| tool.name.to_string()).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: login URL")?;
    for tool in list_tools(&Url::parse(&url)?, |page| eprintln!("open {page}")).await? {
        println!("{tool}");
    }
    Ok(())
}
