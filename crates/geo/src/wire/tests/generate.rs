//! Values of any type, drawn at random. A type says through its decoder which parts it has, so the
//! private parts of states and logs are drawn as well, and no type is forgotten.

use mingle_model::random::Random;
use serde::de::{self, DeserializeSeed, Visitor};
use serde::forward_to_deserialize_any;

use crate::codec::WireError;

/// Fields that are 0 in this version.
const RESERVED: [&str; 5] = ["node", "boot", "placement_epoch", "partitions_covered", "planted"];

/// The depth from which values have no further parts where they may have none.
const DEPTH_MAX: u32 = 14;

/// Draws a value; `None` if the drawn parts do not fit together.
pub fn generate<T: de::DeserializeOwned>(random: &mut Random) -> Option<T> {
    T::deserialize(&mut Generator::new(random, None)).ok()
}

/// Draws a value of an enumeration; the outermost variant is the one with this number.
pub fn generate_variant<T: de::DeserializeOwned>(random: &mut Random, number: u32) -> Option<T> {
    T::deserialize(&mut Generator::new(random, Some(number))).ok()
}

struct Generator<'a> {
    random: &'a mut Random,
    depth: u32,
    /// True if the next value belongs to a reserved field.
    is_reserved: bool,
    /// The variant of a value whose text must have its form.
    checked: Option<&'static str>,
    /// The outermost variant, until it is chosen.
    first: Option<u32>,
}

impl<'a> Generator<'a> {
    fn new(random: &'a mut Random, first: Option<u32>) -> Self {
        Self { random, depth: 0, is_reserved: false, checked: None, first }
    }
}

impl Generator<'_> {
    /// Draws a number: usually a small or a typical one, sometimes any.
    fn number(&mut self, bits: u32) -> u128 {
        let any = u128::from(self.random.bits()) << 64 | u128::from(self.random.bits());
        let any = any >> (128 - bits);
        match self.random.below(8) {
            _ if self.is_reserved => 0,
            0 => any,
            1 => u128::MAX >> (128 - bits),
            2 => 0,
            3 | 4 => any >> (bits / 2),
            _ => any & 7,
        }
    }

    fn length(&mut self) -> usize {
        if self.depth > DEPTH_MAX { 0 } else { self.random.below(4) }
    }
}

macro_rules! numbers {
    ($($method:ident => $visit:ident: $type:ty,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
            visitor.$visit(self.number(<$type>::BITS) as $type)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Generator<'_> {
    type Error = WireError;

    numbers! {
        deserialize_u8 => visit_u8: u8,
        deserialize_u16 => visit_u16: u16,
        deserialize_u32 => visit_u32: u32,
        deserialize_u64 => visit_u64: u64,
        deserialize_u128 => visit_u128: u128,
        deserialize_i8 => visit_i8: i8,
        deserialize_i16 => visit_i16: i16,
        deserialize_i32 => visit_i32: i32,
        deserialize_i64 => visit_i64: i64,
        deserialize_i128 => visit_i128: i128,
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, WireError> {
        Err(WireError::Malformed("a part without a type"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_bool(self.random.one_in(2))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_f32(self.random.below(1_000) as f32 / 4.0)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_f64(self.random.below(1_000) as f64 / 4.0)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_char(*self.random.pick(&['a', 'é', '\u{1f600}']))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let texts = match self.checked.take() {
            Some("Decimal") => ["0", "-19.90", "0.001", "99999999999999999999999999999999999999"],
            Some(_) => ["null", "-1.5", r#""Zürich""#, r#"{"a":[true,{}]}"#],
            None => ["", "withdraw", "Zürich", "a:{b}"],
        };
        visitor.visit_str(texts[self.random.below(4)])
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_bytes([&b""[..], b"\0\xff", b"key:7"][self.random.below(3)])
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        if self.length() > 1 { visitor.visit_some(self) } else { visitor.visit_none() }
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
        let left = self.length();
        visitor.visit_seq(Parts { generator: self, left, fields: &[] })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { generator: self, left, fields: &[] })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        self.deserialize_tuple(left, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let left = self.length();
        visitor.visit_map(Parts { generator: self, left, fields: &[] })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Parts { generator: self, left: fields.len(), fields })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        let number = self.first.take();
        let number = number.unwrap_or_else(|| self.random.below(variants.len()) as u32);
        let name = variants.get(number as usize).copied();
        self.checked = name.filter(|name| matches!(*name, "Decimal" | "Json"));
        visitor.visit_enum(Chosen { generator: self, number })
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! { identifier ignored_any }
}

struct Parts<'a, 'b> {
    generator: &'a mut Generator<'b>,
    left: usize,
    /// The names of the fields of a struct.
    fields: &'static [&'static str],
}

impl Parts<'_, '_> {
    fn next<'de, S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, WireError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let place = self.fields.len().checked_sub(self.left);
        let field = place.and_then(|place| self.fields.get(place));
        self.left = left;
        self.generator.is_reserved = field.is_some_and(|field| RESERVED.contains(field));
        self.generator.depth += 1;
        let part = seed.deserialize(&mut *self.generator);
        self.generator.depth -= 1;
        self.generator.is_reserved = false;
        part.map(Some)
    }
}

impl<'de> de::SeqAccess<'de> for Parts<'_, '_> {
    type Error = WireError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, WireError> {
        self.next(seed)
    }
}

impl<'de> de::MapAccess<'de> for Parts<'_, '_> {
    type Error = WireError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, WireError> {
        self.next(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, WireError> {
        seed.deserialize(&mut *self.generator)
    }
}

struct Chosen<'a, 'b> {
    generator: &'a mut Generator<'b>,
    number: u32,
}

impl<'a, 'b, 'de> de::EnumAccess<'de> for Chosen<'a, 'b> {
    type Error = WireError;
    type Variant = Parts<'a, 'b>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Parts<'a, 'b>), WireError> {
        let number = de::IntoDeserializer::<WireError>::into_deserializer(self.number);
        let parts = Parts { generator: self.generator, left: 0, fields: &[] };
        Ok((seed.deserialize(number)?, parts))
    }
}

impl<'de> de::VariantAccess<'de> for Parts<'_, '_> {
    type Error = WireError;

    fn unit_variant(self) -> Result<(), WireError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        mut self,
        seed: S,
    ) -> Result<S::Value, WireError> {
        self.left = 1;
        self.next(seed)?.ok_or(WireError::Malformed("a part is missing"))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Self { left, ..self })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_seq(Self { left: fields.len(), fields, ..self })
    }
}
