//! A minimal image and a minimal sound, embedded so that no files are needed.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// A PNG image of two by two pixels.
const PICTURE: [u8; 76] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0xfd, 0xd4, 0x9a, 0x73, 0x00,
    0x00, 0x00, 0x13, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xb8, 0xb7, 0xb4, 0x45, 0x4e, 0x4e, 0x8f,
    0x01, 0x88, 0x81, 0x2c, 0x00, 0x22, 0xd0, 0x04, 0xe3, 0xfc, 0x1e, 0x54, 0x39, 0x00, 0x00, 0x00, 0x00,
    0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

const RATE: u32 = 8000;
const SAMPLES: u32 = 80;

/// The PNG image in base64.
pub(crate) fn picture() -> String {
    BASE64_STANDARD.encode(PICTURE)
}

/// Ten milliseconds of a square wave: a WAV file in base64.
pub(crate) fn sound() -> String {
    BASE64_STANDARD.encode(wave())
}

fn wave() -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + SAMPLES).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    // PCM, one channel.
    file.extend([1, 0, 1, 0]);
    file.extend(RATE.to_le_bytes());
    // Bytes per second: one byte per sample.
    file.extend(RATE.to_le_bytes());
    // One byte per frame, eight bits per sample.
    file.extend([1, 0, 8, 0]);
    file.extend(b"data");
    file.extend(SAMPLES.to_le_bytes());
    file.extend((0..SAMPLES).map(|at| if at % 20 < 10 { 0x60 } else { 0xa0 }));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wav_header_has_the_length() {
        let wave = wave();
        assert_eq!(wave.len(), 44 + 80);
        assert_eq!(u32::from_le_bytes(wave[4..8].try_into().unwrap()) as usize, wave.len() - 8);
        assert_eq!(&wave[36..44], b"data\x50\0\0\0");
    }
}
