//! The end of a chunked body (RFC 9112, section 7.1).

/// The place in a chunked body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the digits of a size.
    #[default]
    Start,
    /// Within the digits of a size.
    Size,
    /// After the digits, up to the end of the line.
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a line of trailers.
    Trailer,
    /// Within a line of trailers.
    InTrailer,
    LastLf,
    End,
}

/// A chunked body that is being read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunks {
    place: Place,
    /// The size that is being read, or the number of bytes left of the chunk.
    left: u64,
}

/// The error for bytes that are not a valid chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Chunks {
    /// True once the body has ended.
    pub(super) fn has_ended(self) -> bool {
        self.place == Place::End
    }

    /// Reads on, up to the end of the body; returns the number of bytes that belong to it.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < bytes.len() && !self.has_ended() {
            if self.place == Place::Data {
                let rest = (bytes.len() - at) as u64;
                let count = self.left.min(rest);
                self.left -= count;
                at += count as usize;
                if self.left == 0 {
                    self.place = Place::DataCr;
                }
                continue;
            }
            self.place = self.next(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    fn next(&mut self, byte: u8) -> Result<Place, Malformed> {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        Ok(match (self.place, byte) {
            (Place::Start | Place::Size, _) if digit.is_some() => {
                let size = self.left.checked_mul(16).ok_or(Malformed)?;
                self.left = size + digit.unwrap_or_default();
                Place::Size
            }
            (Place::Size | Place::Extension, b'\r') => Place::SizeLf,
            (Place::Size, b';' | b' ' | b'\t') => Place::Extension,
            (Place::Extension, byte) if byte != b'\n' => Place::Extension,
            (Place::SizeLf, b'\n') if self.left == 0 => Place::Trailer,
            (Place::SizeLf, b'\n') => Place::Data,
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::Start,
            (Place::Trailer, b'\r') => Place::LastLf,
            (Place::InTrailer, b'\n') => Place::Trailer,
            (Place::Trailer | Place::InTrailer, _) => Place::InTrailer,
            (Place::LastLf, b'\n') => Place::End,
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunks, Malformed};

    #[track_caller]
    fn check(bytes: &str, expected: Result<Option<usize>, Malformed>) {
        // The whole text in one step, and byte by byte.
        for step in [bytes.len(), 1] {
            let (mut chunks, mut count, mut found) = (Chunks::default(), 0, Ok(()));
            for part in bytes.as_bytes().chunks(step) {
                match chunks.read(part) {
                    Ok(read) => count += read,
                    Err(malformed) => found = Err(malformed),
                }
            }
            let found = found.map(|()| chunks.has_ended().then_some(count));
            assert_eq!(found, expected, "{bytes:?} by {step}");
        }
    }

    #[test]
    fn the_end_of_a_body_is_found() {
        check("0\r\n\r\n", Ok(Some(5)));
        check("3\r\nabc\r\n0\r\n\r\nGET", Ok(Some(13)));
        check("3;a=b\r\n\r\n0\r\n0\r\nx: y\r\n\r\n", Ok(Some(23)));
        check("A\r\n0123456789\r\n0\r\n\r\n", Ok(Some(20)));
        check("3\r\nab", Ok(None));
        check("3\r\nabcd", Err(Malformed));
        check("x\r\n", Err(Malformed));
        check("\r\n", Err(Malformed));
        check("fffffffffffffffff\r\n", Err(Malformed));
    }
}
