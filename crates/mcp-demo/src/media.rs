//! The smallest picture and sound that decoders take, made here so that no file has to be shipped.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// A PNG of two by two pixels: a header, one compressed block of pixels, an end.
const PICTURE: [u8; 76] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0xfd, 0xd4, 0x9a, 0x73, 0x00,
    0x00, 0x00, 0x13, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xb8, 0xb7, 0xb4, 0x45, 0x4e, 0x4e, 0x8f,
    0x01, 0x88, 0x81, 0x2c, 0x00, 0x22, 0xd0, 0x04, 0xe3, 0xfc, 0x1e, 0x54, 0x39, 0x00, 0x00, 0x00, 0x00,
    0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

const RATE: u32 = 8000;
const SAMPLES: u32 = 80;

/// The picture, in base64.
pub(crate) fn picture() -> String {
    BASE64_STANDARD.encode(PICTURE)
}

/// Ten milliseconds of a square wave as a WAV file, in base64.
pub(crate) fn sound() -> String {
    BASE64_STANDARD.encode(wave())
}

fn wave() -> Vec<u8> {
    let mut res = Vec::new();
    res.extend(b"RIFF");
    res.extend((36 + SAMPLES).to_le_bytes());
    res.extend(b"WAVEfmt ");
    res.extend(16u32.to_le_bytes());
    // Plain samples, one channel.
    res.extend([1, 0, 1, 0]);
    res.extend(RATE.to_le_bytes());
    // At one byte a sample, the rate is also the number of bytes in a second.
    res.extend(RATE.to_le_bytes());
    // One byte a frame, eight bits a sample.
    res.extend([1, 0, 8, 0]);
    res.extend(b"data");
    res.extend(SAMPLES.to_le_bytes());
    res.extend((0..SAMPLES).map(|at| if at % 20 < 10 { 0x60 } else { 0xa0 }));
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_says_how_long_it_is() {
        let wave = wave();
        assert_eq!(wave.len(), 44 + 80);
        assert_eq!(u32::from_le_bytes(wave[4..8].try_into().unwrap()) as usize, wave.len() - 8);
        assert_eq!(&wave[36..44], b"data\x50\0\0\0");
    }
}
