//! The declarations of a program, from its syntax tree.

use mingle_lang::syntax::ast::{Enum, ItemKind, Object, Struct};
use mingle_lang::{Checked, Program};
use mingle_model::Name;
#[cfg(feature = "text")]
use mingle_model::Type;

/// The program data that the generators use.
pub(crate) struct Declared<'a> {
    /// The checked program.
    pub program: &'a Program,
    /// Objects as they are written, with their doc comments.
    pub objects: Vec<(&'a str, &'a Object)>,
    /// Structs as they are written, with their doc comments.
    pub structs: Vec<(&'a str, &'a Struct)>,
    /// Enumerations as they are written, with their doc comments.
    pub enums: Vec<(&'a str, &'a Enum)>,
}

impl<'a> Declared<'a> {
    /// Collects the declarations of a program; none if it has errors.
    pub(crate) fn of(checked: &'a Checked) -> Option<Self> {
        let program = checked.program.as_ref()?;
        let (mut objects, mut structs, mut enums) = (Vec::new(), Vec::new(), Vec::new());
        for item in &checked.syntax.items {
            match &item.kind {
                ItemKind::Object(object) => objects.push((item.docs.as_str(), object)),
                ItemKind::Struct(declared) => structs.push((item.docs.as_str(), declared)),
                ItemKind::Enum(declared) => enums.push((item.docs.as_str(), declared)),
                _ => {}
            }
        }
        Some(Self { program, objects, structs, enums })
    }

    /// Returns the labels of an enumeration, in order.
    #[cfg(feature = "text")]
    pub(crate) fn labels(&self, written: &Enum) -> Vec<Name> {
        let mut all = self.program.checked.enums.iter();
        let found = all.find(|known| known.name == written.name.name);
        let values = found.into_iter().flat_map(|found| &found.values);
        values.map(|value| value.label.clone()).collect()
    }

    /// True if an object's key is a string or a value of an enumeration, directly or as the key of another object: such keys
    /// stand in URL paths as they are, all others as JSON.
    #[cfg(feature = "text")]
    pub(crate) fn has_text_key(&self, object: &Name) -> bool {
        match &self.program.schema().objects[object].key_type {
            Type::String | Type::Enum(_) => true,
            Type::Ref(inner) => self.has_text_key(inner),
            _ => false,
        }
    }

    /// Returns the names of objects, structs and enumerations, which share one namespace.
    pub(crate) fn type_names(&self) -> impl Iterator<Item = &'a Name> + use<'a> {
        let objects: Vec<&Name> = self.objects.iter().map(|(_, it)| &it.name.name).collect();
        let structs: Vec<&Name> = self.structs.iter().map(|(_, it)| &it.name.name).collect();
        let enums: Vec<&Name> = self.enums.iter().map(|(_, it)| &it.name.name).collect();
        objects.into_iter().chain(structs).chain(enums)
    }
}
