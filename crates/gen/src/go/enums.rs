//! Enumerations: string types with a constant for each value.

use mingle_model::Name;

use super::names::{Names, STORE};
use super::types::CODEC;
use super::{Context, comment, quoted};

/// An enumeration of Go.
struct Enum<'a> {
    /// The doc comment.
    docs: &'a str,
    name: &'a Name,
    ident: String,
    values: Vec<Value<'a>>,
}

/// A value of an enumeration.
struct Value<'a> {
    docs: &'a str,
    /// The name of its constant.
    ident: String,
    label: Name,
}

impl Context<'_> {
    /// Generates the enumerations and their constants.
    pub(super) fn enums(&self) -> Vec<String> {
        let declared = self.named_enums();
        let texts = declared.iter().map(|Enum { docs, name, ident, values }| {
            let about = comment::top(&format!("{ident} is the enum {name}."), docs);
            // A blank line between the constants keeps `gofmt` from aligning them.
            let constants: Vec<String> = values
                .iter()
                .map(|value| {
                    let first = format!("{} is a value of {ident}.", value.ident);
                    let about = comment::inner(&first, value.docs);
                    format!("{about}\t{} {ident} = {}\n", value.ident, quoted(&value.label))
                })
                .collect();
            let constants = constants.join("\n");
            format!("{about}type {ident} string\n\n// Values of {ident}.\nconst (\n{constants})\n")
        });
        texts.collect()
    }

    /// Generates the codecs of the enumerations.
    pub(super) fn codecs_of_enums(&self) -> Vec<String> {
        let one_of = self.wire("NewOneOf");
        let declared = self.named_enums();
        let texts = declared.iter().map(|Enum { name, ident, values, .. }| {
            let values: Vec<&str> = values.iter().map(|value| &*value.ident).collect();
            let (name, values) = (quoted(name), values.join(", "));
            format!("var {CODEC}{ident} = {one_of}({name}, {values})\n")
        });
        texts.collect()
    }

    /// Assigns the constants of all enumerations their names.
    fn named_enums(&self) -> Vec<Enum<'_>> {
        let types = self.declared.type_names().map(|name| self.types.of(name).to_owned());
        let objects = self.declared.objects.iter();
        let fields = objects.map(|(_, it)| self.types.of_object_fields(&it.name.name));
        let mut taken: Vec<String> = types.chain(fields).collect();
        let stores: Vec<Name> =
            self.declared.program.checked.stores.iter().map(|store| store.name.clone()).collect();
        let names = Names::of_stores(stores.iter(), &taken);
        taken.extend(stores.iter().map(|store| format!("{STORE}{}", names.of(store))));
        let enums = self.declared.enums.iter().map(|(docs, written)| {
            let name = &written.name.name;
            let ident = self.types.of(name).to_owned();
            let names =
                Names::of_enum(written.values.iter().map(|value| &value.name.name), &ident, &taken);
            let labels = self.declared.labels(written);
            let values = written.values.iter().zip(labels).map(|(value, label)| Value {
                docs: &value.docs,
                ident: format!("{ident}{}", names.of(&value.name.name)),
                label,
            });
            let values: Vec<Value<'_>> = values.collect();
            taken.extend(values.iter().map(|value| value.ident.clone()));
            Enum { docs, name, ident, values }
        });
        enums.collect()
    }
}
