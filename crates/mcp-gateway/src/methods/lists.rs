//! The list methods. Their results are prepared in advance.

use bytes::Bytes;
use mcp_model::{Era, RpcError, code};

use super::{LIST_TTL_MS, RequestContext};
use crate::lists::listing::ListKind;

impl RequestContext<'_> {
    /// A page of a list.
    pub(super) fn list(&self, kind: ListKind) -> Result<Bytes, RpcError> {
        let cursor = match self.request.params.get("cursor").filter(|it| it.as_str() != "null") {
            Some(_) => Some(self.text("cursor")?),
            None => None,
        };
        let listing = self.listing();
        let mut res = Vec::new();
        match self.caller.era() {
            Era::Legacy => res.push(b'{'),
            Era::Modern => {
                let head =
                    format!(r#"{{"resultType":"complete","ttlMs":{LIST_TTL_MS},"cacheScope":"private","#);
                res.extend_from_slice(head.as_bytes());
            }
        }
        listing.write(kind, cursor.as_deref(), &mut res).map_err(|_| {
            let message =
                "the cursor is not one of this list, which may have changed since: begin without one";
            RpcError::new(code::INVALID_PARAMS, message)
        })?;
        res.push(b'}');
        Ok(res.into())
    }
}
