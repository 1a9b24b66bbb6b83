//! Stream encodings other than UTF-8 (HD-020, HD-106).
//!
//! Decoding is incremental, so a character may be split between two reads. Writing needs no encoder: JSON can express
//! every character in ASCII, and every supported encoding contains ASCII.

use bytes::{Bytes, BytesMut};
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The encoding of a process's standard streams.
#[derive(Clone, Copy)]
pub(crate) struct StreamEncoding(&'static Encoding);

impl StreamEncoding {
    /// Parses a WHATWG label. `None` for an unknown label, and for UTF-16, in which a line end is not one byte.
    pub(crate) fn for_label(label: &str) -> Option<StreamEncoding> {
        // Excludes labels of the replacement encoding.
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
        (encoding != UTF_16LE && encoding != UTF_16BE).then_some(StreamEncoding(encoding))
    }

    /// Creates a decoder for the output; `None` for UTF-8, which is passed through.
    pub(crate) fn decoder(self) -> Option<StreamDecoder> {
        (self.0 != UTF_8).then(|| StreamDecoder(self.0.new_decoder_without_bom_handling()))
    }

    /// Encodes a message for the process: characters beyond ASCII become escapes, unless it reads UTF-8.
    pub(crate) fn encode(self, body: Bytes) -> Bytes {
        if self.0 == UTF_8 || body.is_ascii() {
            return body;
        }
        let text = String::from_utf8_lossy(&body);
        let mut escaped = String::with_capacity(text.len() * 2);
        for character in text.chars() {
            if character.is_ascii() {
                escaped.push(character);
                continue;
            }
            // Outside of strings JSON is ASCII, so an escape is valid here.
            for unit in character.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
        escaped.into()
    }
}

/// An incremental decoder.
pub(crate) struct StreamDecoder(Decoder);

impl StreamDecoder {
    /// Decodes `bytes` into `into`. Invalid sequences become U+FFFD.
    pub(crate) fn decode(&mut self, bytes: &[u8], into: &mut BytesMut) {
        let room = self.0.max_utf8_buffer_length(bytes.len()).expect("a read is far below the address space");
        let mut text = String::with_capacity(room);
        let _ = self.0.decode_to_string(bytes, &mut text, false);
        into.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_106_split_character_is_decoded() {
        let mut decoder = StreamEncoding::for_label("shift_jis").unwrap().decoder().unwrap();
        let mut text = BytesMut::new();
        for byte in b"\x93\xfa\x96{" {
            decoder.decode(&[*byte], &mut text);
        }
        assert_eq!(str::from_utf8(&text).unwrap(), "\u{65e5}\u{672c}");
    }

    #[test]
    fn encoded_message_is_ascii_and_the_same_json() {
        let encoding = StreamEncoding::for_label("latin1").unwrap();
        let encoded = encoding.encode(Bytes::from_static("{\"a\":\"\u{e9}\u{1f600}\"}".as_bytes()));
        assert_eq!(encoded, "{\"a\":\"\\u00e9\\ud83d\\ude00\"}");
        let value: serde_json::Value = serde_json::from_slice(&encoded).unwrap();
        assert_eq!(value["a"], "\u{e9}\u{1f600}");
    }

    #[test]
    fn unsupported_labels_are_rejected() {
        for label in ["utf-16", "utf-16le", "iso-2022-kr", "nope", ""] {
            assert!(StreamEncoding::for_label(label).is_none(), "{label}");
        }
    }
}
