//! The options of `serve --auth`: the authorization server and the scopes of its access tokens.

use mcp_host_gateway::{ResourceServer, ScopeMap};

use crate::args::ServeArgs;
use crate::output::failure::Failure;
use crate::runtime::bounded_read::read_file;
use crate::runtime::run_blocking;

/// Maximum size of a file of scopes in bytes.
const MAX_SCOPE_MAP: u64 = 1024 * 1024;

/// Builds the resource server that accepts the access tokens of `--auth`; `None` without that option.
pub(super) async fn build_resource_server(args: &ServeArgs) -> Result<Option<ResourceServer>, Failure> {
    let Some(issuer) = &args.auth else { return Ok(None) };
    let mut resource_server = ResourceServer::new(issuer, args.resource.as_deref())
        .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(path) = args.scope_map.clone() {
        let shown = path.display().to_string();
        let failed = |reason: String| Failure::new(format!("{shown}: {reason}"));
        let text = run_blocking(move || read_file(&path, MAX_SCOPE_MAP)).await;
        let text = text.map_err(|error| failed(error.to_string()))?;
        resource_server.scopes = ScopeMap::read(&text).map_err(|error| failed(error.to_string()))?;
    }
    Ok(Some(resource_server))
}
