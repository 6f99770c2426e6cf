//! Numbers, timestamps and vectors as bytes.

use crate::timestamp::{DcId, PARTITION_BITS, PARTITIONS_MAX, Timestamp};
use crate::vector::{DCS_MAX, Vector};

/// An error: an encoder with the same state cannot have written this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Writes seven bits in each byte, the lowest first; the high bit says that more follow.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maps small differences of either sign to small numbers.
fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unzigzag(from: u64, number: u64) -> u64 {
    from.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg())
}

/// Writes a number as its difference to another.
pub fn put_near(out: &mut Vec<u8>, from: u64, to: u64) {
    put_number(out, zigzag(from, to));
}

const PARTITION: u64 = PARTITIONS_MAX as u64 - 1;

/// Writes a timestamp as its difference to another: the partition in its low bits is usually the
/// same.
pub fn put_timestamp(out: &mut Vec<u8>, from: Timestamp, to: Timestamp) {
    let is_other = from.0 & PARTITION != to.0 & PARTITION;
    put_number(out, zigzag(from.micros(), to.micros()) << 1 | u64::from(is_other));
    if is_other {
        put_number(out, to.0 & PARTITION);
    }
}

/// Writes a vector as its difference to another: the set of changed entries, then those entries.
pub fn put_vector(out: &mut Vec<u8>, from: &Vector, to: &Vector) {
    let columns = || from.iter().filter(|(dc, entry)| to[*dc] != *entry);
    out.push(columns().fold(0, |mask, (dc, _)| mask | 1 << dc.0));
    for (dc, entry) in columns() {
        put_timestamp(out, entry, to[dc]);
    }
}

/// The unread bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn bytes<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too large"))
    }

    pub fn near(&mut self, from: u64) -> Result<u64, Malformed> {
        Ok(unzigzag(from, self.number()?))
    }

    pub fn timestamp(&mut self, from: Timestamp) -> Result<Timestamp, Malformed> {
        let number = self.number()?;
        let micros = unzigzag(from.micros(), number >> 1);
        let partition = if number & 1 == 0 { from.0 & PARTITION } else { self.number()? };
        if micros > u64::MAX >> PARTITION_BITS || partition > PARTITION {
            return Err(Malformed("a timestamp is too large"));
        }
        Ok(Timestamp(micros << PARTITION_BITS | partition))
    }

    pub fn vector(&mut self, from: &Vector) -> Result<Vector, Malformed> {
        let (mask, mut vector) = (self.byte()?, *from);
        for dc in (0..=DCS_MAX as u8).map(DcId) {
            if mask & 1 << dc.0 != 0 {
                vector[dc] = self.timestamp(from[dc])?;
            }
        }
        Ok(vector)
    }

    /// Reads a value that serde has written, and advances past it.
    pub fn value<T: serde::Deserialize<'a>>(&mut self) -> Result<T, Malformed> {
        let read = postcard::take_from_bytes(self.0);
        let (value, rest) = read.map_err(|_| Malformed("a part does not decode"))?;
        self.0 = rest;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(from in any::<u64>(), to in any::<u64>()) {
            let mut out = Vec::new();
            put_number(&mut out, from);
            put_near(&mut out, from, to);
            put_timestamp(&mut out, Timestamp(from), Timestamp(to));
            let vectors = [from, to].map(|entry| Vector::ZERO.with(DcId::STRONG, Timestamp(entry)));
            put_vector(&mut out, &vectors[0], &vectors[1]);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.number(), Ok(from));
            prop_assert_eq!(reader.near(from), Ok(to));
            prop_assert_eq!(reader.timestamp(Timestamp(from)), Ok(Timestamp(to)));
            prop_assert_eq!(reader.vector(&vectors[0]), Ok(vectors[1]));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_refused() {
        assert!(Reader(&[0xff; 10]).number().is_err());
        assert!(
            Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number().is_err()
        );
        assert!(Reader(&[0x80]).number().is_err());
    }
}
