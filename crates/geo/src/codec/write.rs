//! The writing half of the encoding.
//!
//! Values are written field by field in the order of their declaration, without names. Integers take
//! seven bits in each byte; signed ones alternate between the signs, so that small numbers are short.
//! A variant is its number, counted from 0 in the order of declaration.

use serde::ser::{self, Serialize};

use super::error::Unwritable;
use crate::timestamp::{PARTITIONS_MAX, Timestamp};
use crate::vector::Vector;

/// Writes seven bits in each byte, the lowest first; the high bit says that more follow.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Does the same for numbers of 128 bits.
fn put_long(out: &mut Vec<u8>, mut number: u128) {
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

/// Appends a value of any type of the core.
///
/// # Panics
///
/// If the type has a sequence of unknown length, which no type of the core has.
pub fn put_value<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    value.serialize(&mut Writer(out)).expect("every type of the core has a form");
}

/// Returns the number of bytes of a value.
pub fn size_of_value<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut out = Vec::new();
    put_value(&mut out, value);
    out.len()
}

/// Appends to bytes.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn length(&mut self, length: Option<usize>) -> Result<(), Unwritable> {
        let length = length.ok_or_else(|| Unwritable("a sequence of unknown length".into()))?;
        put_number(self.0, length as u64);
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident: $type:ty => $as:ty,)*) => {
        $(fn $method(self, number: $type) -> Result<(), Unwritable> {
            put_number(self.0, <$as>::from(number));
            Ok(())
        })*
    };
}

impl ser::Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers! {
        serialize_u16: u16 => u64,
        serialize_u32: u32 => u64,
        serialize_u64: u64 => u64,
        serialize_char: char => u64,
    }

    fn serialize_bool(self, value: bool) -> Result<(), Unwritable> {
        self.serialize_u8(value.into())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Unwritable> {
        self.0.push(value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Unwritable> {
        self.0.extend(value.to_le_bytes());
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Unwritable> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Unwritable> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Unwritable> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Unwritable> {
        put_near(self.0, 0, value as u64);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Unwritable> {
        put_long(self.0, ((value << 1) ^ (value >> 127)) as u128);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unwritable> {
        self.0.extend(value.to_le_bytes());
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unwritable> {
        self.0.extend(value.to_le_bytes());
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), Unwritable> {
        self.serialize_bytes(text.as_bytes())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Unwritable> {
        put_number(self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Unwritable> {
        self.serialize_u8(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unwritable> {
        self.0.push(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unwritable> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        number: u32,
        _: &'static str,
    ) -> Result<(), Unwritable> {
        self.serialize_u32(number)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unwritable> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        number: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unwritable> {
        put_number(self.0, number.into());
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Unwritable> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unwritable> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unwritable> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        number: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unwritable> {
        put_number(self.0, number.into());
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, Unwritable> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unwritable> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        number: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unwritable> {
        put_number(self.0, number.into());
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! parts {
    ($($trait:ident: $method:ident($($name:ty)?),)*) => {
        $(impl ser::$trait for &mut Writer<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $(_: $name,)?
                value: &T,
            ) -> Result<(), Unwritable> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Unwritable> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(&'static str),
    SerializeStructVariant: serialize_field(&'static str),
}

impl ser::SerializeMap for &mut Writer<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwritable> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Unwritable> {
        Ok(())
    }
}
