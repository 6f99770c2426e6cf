//! A writer of zip archives for wheels: files in order, stored without compression.

/// The first of January 1980 in the format of archives: the date is fixed, so that the same files
/// make the same archive.
const DATE: u16 = 1 << 5 | 1;

/// An archive that is being written.
#[derive(Default)]
pub struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    /// Adds a file. Names have `/` between folders.
    ///
    /// # Errors
    ///
    /// If the archive outgrows its 32-bit format.
    pub fn add(&mut self, name: &str, content: &[u8]) -> Result<(), String> {
        let too_large = |_| format!("{name}: the archive has more than 4 GiB");
        let size = u32::try_from(content.len()).map_err(too_large)?;
        let offset = u32::try_from(self.bytes.len()).map_err(too_large)?;
        let name_length =
            u16::try_from(name.len()).map_err(|_| format!("{name}: too long a name"))?;
        // Version 2.0, names in UTF-8, stored, time and date; the check sum and both sizes.
        let mut common = Vec::new();
        for field in [20, 1 << 11, 0, 0, DATE] {
            common.extend(u16::to_le_bytes(field));
        }
        for field in [crc32(content), size, size] {
            common.extend(field.to_le_bytes());
        }
        common.extend(name_length.to_le_bytes());
        common.extend([0, 0]);
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(content);
        // Made on Unix by version 2.0; no comment, disk 0, no internal attributes, readable by all
        // users.
        self.directory.extend(b"PK\x01\x02\x14\x03");
        self.directory.extend(&common);
        self.directory.extend([0; 6]);
        self.directory.extend((0o100_644_u32 << 16).to_le_bytes());
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
        Ok(())
    }

    /// Returns the archive as bytes.
    ///
    /// # Errors
    ///
    /// If the archive outgrows its 32-bit format.
    pub fn finish(mut self) -> Result<Vec<u8>, String> {
        let too_large = |_| "the archive has more than 4 GiB".to_owned();
        let offset = u32::try_from(self.bytes.len()).map_err(too_large)?;
        let size = u32::try_from(self.directory.len()).map_err(too_large)?;
        self.bytes.append(&mut self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        for count in [self.count, self.count] {
            self.bytes.extend(count.to_le_bytes());
        }
        for field in [size, offset] {
            self.bytes.extend(field.to_le_bytes());
        }
        self.bytes.extend([0, 0]);
        Ok(self.bytes)
    }
}

/// Returns the checksum of archives (CRC-32).
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_sums_are_those_of_the_format() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn an_archive_has_its_parts() {
        let mut zip = Zip::default();
        zip.add("a/b.txt", b"hello").expect("it is small");
        let bytes = zip.finish().expect("it is small");
        // Header, name and content; then the directory's entry with the name; then its end.
        assert_eq!(bytes.len(), 30 + 7 + 5 + 46 + 7 + 22);
        assert_eq!(&bytes[..4], b"PK\x03\x04");
        assert_eq!(&bytes[42..46], b"PK\x01\x02");
        assert_eq!(&bytes[95..99], b"PK\x05\x06");
    }
}
