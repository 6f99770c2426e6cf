//! SHA-256 (FIPS 180-4), for the file of checksums and the record of a wheel.

/// Returns the digest of some bytes.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    let mut state = INITIAL;
    for block in padded.as_chunks::<64>().0 {
        compress(&mut state, block);
    }
    let mut digest = [0; 32];
    for (place, word) in digest.chunks_mut(4).zip(state) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// Returns a digest as hexadecimal digits.
pub fn hex(digest: &[u8]) -> String {
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// Encodes bytes in the URL-safe alphabet of base64, without padding.
pub fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..=chunk.len() {
            let index = group >> (18 - 6 * digit) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..64 {
        let (x, y) = (words[at - 15], words[at - 2]);
        let small0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
        let small1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
        let parts = [words[at - 16], small0, words[at - 7], small1];
        words[at] = parts.into_iter().fold(0, u32::wrapping_add);
    }
    let mut now = *state;
    for (word, constant) in words.into_iter().zip(CONSTANTS) {
        now = round(now, word.wrapping_add(constant));
    }
    for (word, added) in state.iter_mut().zip(now) {
        *word = word.wrapping_add(added);
    }
}

/// Computes one round. The standard calls the state's words `a` to `h`, and the two sums `T1` and
/// `T2`.
fn round(state: [u32; 8], added: u32) -> [u32; 8] {
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = state;
    let big1 = fifth.rotate_right(6) ^ fifth.rotate_right(11) ^ fifth.rotate_right(25);
    let choice = (fifth & sixth) ^ (!fifth & seventh);
    let sum1 = eighth.wrapping_add(big1).wrapping_add(choice).wrapping_add(added);
    let big0 = first.rotate_right(2) ^ first.rotate_right(13) ^ first.rotate_right(22);
    let majority = (first & second) ^ (first & third) ^ (second & third);
    let sum2 = big0.wrapping_add(majority);
    let (next_first, next_fifth) = (sum1.wrapping_add(sum2), fourth.wrapping_add(sum1));
    [next_first, first, second, third, next_fifth, fifth, sixth, seventh]
}

const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

const CONSTANTS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_has_these_digests() {
        for (text, expected) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex(&digest(text.as_bytes())), expected, "{text}");
        }
        let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(hex(&digest(&vec![b'a'; 1_000_000])), expected);
    }

    #[test]
    fn base64_has_no_padding() {
        for (bytes, expected) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")]
        {
            assert_eq!(base64_url(bytes.as_bytes()), expected);
        }
        assert_eq!(base64_url(&[0xff, 0xef]), "_-8");
    }
}
