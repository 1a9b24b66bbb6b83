//! What must hold of any bytes that answer the opening of a WebSocket, for the fuzz target of that name.

use bytes::BytesMut;
use mcp_model::Secret;

use super::upgrade::judge;
use crate::net::{error_body, head};
use crate::redact::Redactor;

/// What such a server says is a secret of ours.
const SECRET: &str = "hunter2-hunter2";

/// A head is read whole or not at all, and what is said of it is a line without secrets.
pub(crate) fn answer_head(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        let mut input = BytesMut::from(bytes);
        head::take(&mut input, 0).map(|it| it.map(|head| (head, input)))
    };
    let Ok(Some((head, rest))) = read(bytes) else { return };
    assert!(bytes.ends_with(&rest) && rest.len() < bytes.len());
    // No shorter text is a whole head, and what follows changes nothing.
    let length = bytes.len() - rest.len();
    assert!(!matches!(read(&bytes[..length - 1]), Ok(Some(_))));
    assert_eq!(read(&bytes[..length]), Ok(Some((head.clone(), BytesMut::new()))));
    // Whose answer it is was not said by this head alone.
    assert!(judge(&head, "no answer has this").is_err());
    let body = rest.freeze();
    let redactor = Redactor::new([Secret::from(SECRET)].iter());
    let said = error_body::read(&body, Some(7), &redactor);
    let words = error_body::words(head.status.as_u16(), head.headers(), &said, &redactor);
    assert!(!words.contains(SECRET) && words.len() < 4096, "{words:?}");
    assert!(!words.contains(|it: char| it.is_control()), "{words:?}");
    let length = body.len();
    assert!(head::first_chunk(body).len() <= length);
}
