//! What a program declares, as it is written.

use mingle_lang::syntax::ast::{ItemKind, Object, Struct};
use mingle_lang::{Checked, Program};
use mingle_model::Name;

/// What the generators know of a program.
pub(crate) struct Declared<'a> {
    /// The program itself.
    pub program: &'a Program,
    /// Objects as they are written, with their doc comments.
    pub objects: Vec<(&'a str, &'a Object)>,
    /// Structs as they are written, with their doc comments.
    pub structs: Vec<(&'a str, &'a Struct)>,
}

impl<'a> Declared<'a> {
    /// What a program declares; none if it has errors.
    pub(crate) fn of(checked: &'a Checked) -> Option<Self> {
        let program = checked.program.as_ref()?;
        let (mut objects, mut structs) = (Vec::new(), Vec::new());
        for item in &checked.syntax.items {
            match &item.kind {
                ItemKind::Object(object) => objects.push((item.docs.as_str(), object)),
                ItemKind::Struct(declared) => structs.push((item.docs.as_str(), declared)),
                _ => {}
            }
        }
        Some(Self { program, objects, structs })
    }

    /// The names of objects and structs, which share one namespace.
    pub(crate) fn type_names(&self) -> impl Iterator<Item = &'a Name> + use<'a> {
        let objects: Vec<&Name> = self.objects.iter().map(|(_, it)| &it.name.name).collect();
        let structs: Vec<&Name> = self.structs.iter().map(|(_, it)| &it.name.name).collect();
        objects.into_iter().chain(structs)
    }
}
