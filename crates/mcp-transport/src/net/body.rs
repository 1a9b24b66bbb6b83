//! Bodies that are read for what they say about a failure, or only to their end.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::Response;

/// As much as is read of a body that holds no answer.
const BEGINNING: usize = 64 << 10;

/// The beginning of a body, as much as there is of it in time.
pub(crate) async fn beginning(response: &mut Response, patience: Duration) -> Bytes {
    let mut res = BytesMut::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = BEGINNING - res.len();
            res.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if res.len() == BEGINNING {
                break;
            }
        }
    };
    // What came in time is as good.
    let _ = tokio::time::timeout(patience, read).await;
    res.freeze()
}

/// Does the server call the body an event stream?
pub(crate) fn is_event_stream(response: &Response) -> bool {
    is_type(response, "text/event-stream")
}

/// Does the server say that its body is of this type, whatever its parameters?
pub(crate) fn is_type(response: &Response, want: &str) -> bool {
    let name = response.kind().split(|it| *it == b';').next().unwrap_or_default().trim_ascii();
    name.eq_ignore_ascii_case(want.as_bytes())
}
