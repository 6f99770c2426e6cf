//! The reading half of the encoding. It trusts no byte: a length is checked against the bytes that
//! are left, so that no memory is reserved for elements that are not there, and a variant against
//! the number of variants.

use serde::de::{self, DeserializeSeed, Visitor};
use serde::forward_to_deserialize_any;

use super::error::WireError;
use crate::timestamp::{DcId, PARTITION_BITS, PARTITIONS_MAX, Timestamp};
use crate::vector::{DCS_MAX, Vector};

const PARTITION: u64 = PARTITIONS_MAX as u64 - 1;

const TOO_EARLY: WireError = WireError::Malformed("they end too early");
const TOO_LARGE: WireError = WireError::Malformed("a number is too large");

fn unzigzag(from: u64, number: u64) -> u64 {
    from.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg())
}

/// The unread bytes, written in one version of the encoding.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    version: u16,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], version: u16) -> Self {
        Self { bytes, version }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of unread bytes.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Checks that nothing follows.
    pub fn end(&self) -> Result<(), WireError> {
        self.is_empty().then_some(()).ok_or(WireError::Malformed("more follows than belongs to it"))
    }

    pub fn byte(&mut self) -> Result<u8, WireError> {
        let (first, rest) = self.bytes.split_first().ok_or(TOO_EARLY)?;
        self.bytes = rest;
        Ok(*first)
    }

    pub fn bytes<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], WireError> {
        let (bytes, rest) = self.bytes.split_first_chunk().ok_or(TOO_EARLY)?;
        self.bytes = rest;
        Ok(*bytes)
    }

    pub fn number(&mut self) -> Result<u64, WireError> {
        u64::try_from(self.long(64)?).map_err(|_| TOO_LARGE)
    }

    /// Reads a number of at most this many bits.
    fn long(&mut self, bits: u32) -> Result<u128, WireError> {
        let mut number = 0;
        for shift in (0..bits).step_by(7) {
            let byte = self.byte()?;
            let part = u128::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(TOO_LARGE)
    }

    pub fn near(&mut self, from: u64) -> Result<u64, WireError> {
        Ok(unzigzag(from, self.number()?))
    }

    /// Reads the number of elements that follow; each takes at least a byte.
    pub fn length(&mut self) -> Result<usize, WireError> {
        let length = usize::try_from(self.number()?).map_err(|_| TOO_LARGE)?;
        let refused = WireError::Malformed("a length reaches beyond the end");
        (length <= self.left()).then_some(length).ok_or(refused)
    }

    pub fn timestamp(&mut self, from: Timestamp) -> Result<Timestamp, WireError> {
        let number = self.number()?;
        let micros = unzigzag(from.micros(), number >> 1);
        let partition = if number & 1 == 0 { from.0 & PARTITION } else { self.number()? };
        if micros > u64::MAX >> PARTITION_BITS || partition > PARTITION {
            return Err(WireError::Malformed("a timestamp is too large"));
        }
        Ok(Timestamp(micros << PARTITION_BITS | partition))
    }

    pub fn vector(&mut self, from: &Vector) -> Result<Vector, WireError> {
        let (mask, mut vector) = (self.byte()?, *from);
        for dc in (0..=DCS_MAX as u8).map(DcId) {
            if mask & 1 << dc.0 != 0 {
                vector[dc] = self.timestamp(from[dc])?;
            }
        }
        Ok(vector)
    }

    /// Reads a value, and advances past it.
    pub fn value<T: de::Deserialize<'a>>(&mut self) -> Result<T, WireError> {
        T::deserialize(self)
    }

    /// Reads the rest.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    fn slice(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        let (slice, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(slice)
    }

    fn text(&mut self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.slice()?).map_err(|_| WireError::Malformed("a text is not UTF-8"))
    }
}

macro_rules! numbers {
    ($($method:ident => $visit:ident: $type:ty,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
            let number = <$type>::try_from(self.number()?).map_err(|_| TOO_LARGE)?;
            visitor.$visit(number)
        })*
    };
}

macro_rules! signed {
    ($($method:ident => $visit:ident: $type:ty,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
            let number = self.near(0)? as i64;
            visitor.$visit(<$type>::try_from(number).map_err(|_| TOO_LARGE)?)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = WireError;

    numbers! {
        deserialize_u16 => visit_u16: u16,
        deserialize_u32 => visit_u32: u32,
        deserialize_u64 => visit_u64: u64,
    }

    signed! {
        deserialize_i8 => visit_i8: i8,
        deserialize_i16 => visit_i16: i16,
        deserialize_i32 => visit_i32: i32,
        deserialize_i64 => visit_i64: i64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, WireError> {
        Err(WireError::Malformed("a part without a type"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.byte()? {
            0 => visitor.visit_bool(false),
            1 => visitor.visit_bool(true),
            _ => Err(WireError::Malformed("a truth value is 0 or 1")),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_u8(self.byte()?)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_u128(u128::from_le_bytes(self.bytes()?))
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let number = self.long(128)?;
        visitor.visit_i128(((number >> 1) ^ (number & 1).wrapping_neg()) as i128)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_f32(f32::from_le_bytes(self.bytes()?))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_f64(f64::from_le_bytes(self.bytes()?))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let number = u32::try_from(self.number()?).map_err(|_| TOO_LARGE)?;
        let refused = WireError::Malformed("a character that there is not");
        visitor.visit_char(char::from_u32(number).ok_or(refused)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_borrowed_bytes(self.slice()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_borrowed_bytes(self.slice()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.byte()? {
            0 => visitor.visit_none(),
            1 => visitor.visit_some(self),
            _ => Err(WireError::Malformed("an option is 0 or 1")),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let left = self.length()?;
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let left = self.length()?;
        visitor.visit_map(Parts { reader: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { reader: self, left: fields.len() })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        of: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        let (found, known) = (self.number()?, variants.len() as u64);
        if found >= known {
            return Err(WireError::Variant { of, found, known, version: self.version });
        }
        #[cfg(test)]
        super::trace::note(of, variants, found as usize);
        visitor.visit_enum(Chosen { reader: self, number: found as u32 })
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! { identifier ignored_any }
}

/// The elements of a sequence or map, or the fields of a struct.
struct Parts<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
}

impl<'de> Parts<'_, 'de> {
    fn next<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, WireError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> de::SeqAccess<'de> for Parts<'_, 'de> {
    type Error = WireError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, WireError> {
        self.next(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Parts<'_, 'de> {
    type Error = WireError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, WireError> {
        self.next(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, WireError> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A variant with a known number.
struct Chosen<'a, 'de> {
    reader: &'a mut Reader<'de>,
    number: u32,
}

impl<'de> de::EnumAccess<'de> for Chosen<'_, 'de> {
    type Error = WireError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), WireError> {
        let number = de::IntoDeserializer::<WireError>::into_deserializer(self.number);
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Chosen<'_, 'de> {
    type Error = WireError;

    fn unit_variant(self) -> Result<(), WireError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, WireError> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { reader: self.reader, left })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { reader: self.reader, left: fields.len() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::write::{put_near, put_number, put_timestamp, put_value, put_vector};
    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(from in any::<u64>(), to in any::<u64>(), long in any::<i128>()) {
            let mut out = Vec::new();
            put_number(&mut out, from);
            put_near(&mut out, from, to);
            put_timestamp(&mut out, Timestamp(from), Timestamp(to));
            let vectors = [from, to].map(|entry| Vector::ZERO.with(DcId::STRONG, Timestamp(entry)));
            put_vector(&mut out, &vectors[0], &vectors[1]);
            put_value(&mut out, &long);
            let mut reader = Reader::new(&out, 1);
            prop_assert_eq!(reader.number(), Ok(from));
            prop_assert_eq!(reader.near(from), Ok(to));
            prop_assert_eq!(reader.timestamp(Timestamp(from)), Ok(Timestamp(to)));
            prop_assert_eq!(reader.vector(&vectors[0]), Ok(vectors[1]));
            prop_assert_eq!(reader.value(), Ok(long));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_number_beyond_its_bits_is_refused() {
        let number = |bytes: &[u8]| Reader::new(bytes, 1).number();
        assert!(number(&[0xff; 10]).is_err());
        assert!(number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).is_err());
        assert!(number(&[0x80]).is_err());
        assert_eq!(
            number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            Ok(u64::MAX)
        );
        assert_eq!(Reader::new(&[0x80, 2], 1).value::<u8>(), Ok(0x80), "a byte stands for itself");
        assert_eq!(Reader::new(&[0xff, 0xff, 4], 1).value::<u16>(), Err(TOO_LARGE));
        assert_eq!(Reader::new(&[0xff; 19], 1).value::<i128>(), Err(TOO_LARGE));
    }
}
