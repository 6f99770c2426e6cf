//! Lists of a store's objects, for the eyes of operators and developers: no transaction depends on one.

use mingle_model::{Name, Ref, Schema, Type, json};

/// A page of a list that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The kind of object.
    pub kind: Name,
    /// The cursor that the page before gave; none for the first page.
    pub after: Option<String>,
    /// The maximum number of objects.
    pub most: usize,
}

/// Writes a place among a store's rows as a cursor.
pub fn cursor(place: &[u8]) -> String {
    place.iter().fold(String::new(), |mut text, byte| {
        let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
        text.extend([digit(byte >> 4), digit(byte & 15)]);
        text
    })
}

/// A page of the objects that exist, in an order of the store's choosing. An object that comes or goes while the pages are
/// read may be in one of them or not; every other object is in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The objects.
    pub objects: Vec<Ref>,
    /// The cursor of the next page, a text that only this store understands; none after the last page.
    pub next: Option<String>,
}

impl Listing {
    /// Reads a cursor that is a place among a store's rows.
    ///
    /// # Errors
    ///
    /// When no page of such a store has given it.
    pub fn place(&self) -> Result<Option<Vec<u8>>, String> {
        let Some(text) = &self.after else { return Ok(None) };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let pair = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        bytes.map(Some).ok_or_else(|| format!("{text:?} is no cursor of a page"))
    }

    /// Reads the cursor of a store that lists objects in the order of their keys.
    ///
    /// # Errors
    ///
    /// When no page of such a store has given it.
    pub fn after(&self, schema: &Schema, key_type: &Type) -> Result<Option<Ref>, String> {
        let read = |text: &String| {
            let key = json::from_text(schema, text.as_bytes(), key_type);
            let key = key.map_err(|why| format!("{text:?} is no cursor of a page: {why}"))?;
            Ok(Ref::new(self.kind.clone(), key))
        };
        self.after.as_ref().map(read).transpose()
    }

    /// Returns the page of a store that lists objects in the order of their keys, from one object more than fit it, if
    /// there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_model::{Ref, Schema, Type, Value};
    /// use mingle_store::Listing;
    ///
    /// let listing = Listing { kind: "Item".into(), after: None, most: 1 };
    /// let found = vec![Ref::new("Item", Value::from("pot")), Ref::new("Item", Value::from("tea"))];
    /// let page = listing.page(&Schema::default(), &Type::String, found);
    /// assert_eq!(page.next.as_deref(), Some("\"pot\""));
    /// let next = Listing { after: page.next, ..listing };
    /// assert_eq!(next.after(&Schema::default(), &Type::String), Ok(page.objects.last().cloned()));
    /// ```
    pub fn page(&self, schema: &Schema, key_type: &Type, mut found: Vec<Ref>) -> Listed {
        let has_more = found.len() > self.most;
        found.truncate(self.most);
        let last = found.last().filter(|_| has_more);
        let next = last.map(|last| json::to_text(schema, last.key(), key_type));
        Listed { objects: found, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_cursors_and_other_texts_are_refused() {
        let listing =
            |after: &str| Listing { kind: "Item".into(), after: Some(after.to_owned()), most: 1 };
        for place in [&[][..], &[0], &[255, 16, 7]] {
            assert_eq!(listing(&cursor(place)).place(), Ok(Some(place.to_vec())));
        }
        for wrong in ["0", "zz", "0é", "00 "] {
            let found = listing(wrong).place();
            assert!(found.is_err_and(|why| why.contains("no cursor")), "{wrong}");
        }
    }
}
