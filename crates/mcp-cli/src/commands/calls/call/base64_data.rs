//! Decodes the binary data of blocks.

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};

/// The standard alphabet, with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes base64 as servers send it: also without padding, with the characters for URLs, with line breaks, and as a
/// `data:` URL.
pub(super) fn decode(data: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let data = match data.trim_start().strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map_or(data, |(_, data)| data),
        None => data,
    };
    let characters = data.bytes().filter(|it| !it.is_ascii_whitespace()).map(|it| match it {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    });
    LENIENT.decode(characters.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-039
    #[test]
    fn base64_of_odd_servers_is_decoded() {
        for data in ["+/8=", "+/8", "-_8", "-_8=", "+/\r\n8=\n", "data:image/png;base64,+/8="] {
            assert_eq!(decode(data).unwrap(), [0xFB, 0xFF], "{data}");
        }
        for data in ["%%%%", "data:image/png,+/8=", "+"] {
            assert!(decode(data).is_err(), "{data}");
        }
    }
}
