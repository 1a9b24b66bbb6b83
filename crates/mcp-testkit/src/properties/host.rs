//! Properties of mcp-host.

use mcp_host_runtime::internal::{parse_token_file, token_file_text};

/// A login file: parsing and writing round-trips, and the printed form contains no token.
pub fn login(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Some((saved, grant)) = parse_token_file(text) else { return };
    assert_eq!(parse_token_file(&token_file_text(saved, &grant)), Some((saved, grant.clone())));
    let printed = format!("{grant:?}");
    let token = grant.access_token.expose();
    let is_public = grant.issuer.contains(token) || grant.scopes.iter().any(|it| it.contains(token));
    assert!(token.len() < 20 || is_public || !printed.contains(token), "{printed}");
}
