//! Handles, the fields of objects, structs, and enumerations.

use mingle_lang::syntax::ast::{Enum, Object, Struct};
use mingle_model::Name;

use super::names::{CODEC, Names};
use super::{Context, comment, doc};
use crate::lines::literal;

/// A field: its name in the program, the name of its attribute, its type, and its codec.
type Attribute = (Name, String, String, String);

impl Context<'_> {
    /// Generates a kind of object: a handle that holds the key, and the fields that are read.
    pub(super) fn handle(&self, docs: &str, object: &Object) -> String {
        let name = &object.name.name;
        let declared = &self.declared.program.schema().objects[name];
        let (ident, fields) = (self.types.of(name), self.types.of_object_fields(name));
        let names = Names::of_fields(std::iter::once(&declared.key_name), &self.types);
        let key = names.of(&declared.key_name);
        let key_type = self.received(&declared.key_type);
        let codec = self.codec(&declared.key_type);
        let is_text = if self.declared.has_text_key(name) { "True" } else { "False" };
        let about =
            doc("    ", docs, &format!("The handle of a `{name}`, whether or not that exists."));
        let key_docs = comment("    ", &object.key.docs, "Its key.");
        let class = format!(
            "@dataclass(frozen=True)
class {ident}:
{about}
{key_docs}    {key}: {key_type}

    def _mingle_path(self) -> str:
        return _path(\"{name}\", self._mingle_key(), {is_text})

    def _mingle_key(self) -> Any:
        return _given(\"{key}\", {codec}, self.{key})

    def _mingle_fields(self, found: Any) -> {fields}:
        return {CODEC}{fields}.decode(found, \"{name}\")
"
        );
        let holds = doc("    ", "", &format!("What a `{name}` holds: collections, up to a limit."));
        let mut text = format!("{class}\n\n@dataclass(frozen=True)\nclass {fields}:\n{holds}\n");
        let docs = std::iter::once(&object.key.docs);
        let docs = docs.chain(object.fields.iter().map(|field| &field.docs));
        for (docs, (field, attribute, shown, _)) in docs.zip(self.attributes_of_object(name)) {
            text += &comment("    ", docs, &format!("The field `{field}`."));
            text.extend([format!("    {attribute}: {shown}\n")]);
        }
        text
    }

    /// Returns the attributes of an object: its key and fields.
    fn attributes_of_object(&self, object: &Name) -> Vec<Attribute> {
        let declared = &self.declared.program.schema().objects[object];
        let key = (self.received(&declared.key_type), self.codec(&declared.key_type));
        let fields = declared.fields.iter();
        let fields = fields.map(|field| (&field.name, self.field(&field.field_type)));
        self.attributes(std::iter::once((&declared.key_name, key)).chain(fields).collect())
    }

    /// Returns the attributes of a struct: its fields.
    fn attributes_of_struct(&self, name: &Name) -> Vec<Attribute> {
        let fields = self.declared.program.schema().structs[name].fields.iter();
        let fields = fields.map(|(field, it)| (field, (self.received(it), self.codec(it))));
        self.attributes(fields.collect())
    }

    fn attributes(&self, fields: Vec<(&Name, (String, String))>) -> Vec<Attribute> {
        let names = Names::of_fields(fields.iter().map(|(name, _)| *name), &self.types);
        let attribute = |(name, (shown, codec)): (&Name, (String, String))| {
            (name.clone(), names.of(name).to_owned(), shown, codec)
        };
        fields.into_iter().map(attribute).collect()
    }

    /// Generates a struct, with its fields in their order.
    pub(super) fn record(&self, docs: &str, written: &Struct) -> String {
        let name = &written.name.name;
        let about = doc("    ", docs, &format!("The struct `{name}`."));
        let mut text = format!("@dataclass(frozen=True)\nclass {}:\n{about}", self.types.of(name));
        let attributes = self.attributes_of_struct(name);
        for (at, (field, attribute, shown, _)) in attributes.iter().enumerate() {
            text += if at == 0 { "\n" } else { "" };
            text += &comment("    ", &written.fields[at].docs, &format!("The field `{field}`."));
            text.extend([format!("    {attribute}: {shown}\n")]);
        }
        text
    }

    /// Generates an enumeration: the type of its labels.
    pub(super) fn enumeration(&self, docs: &str, written: &Enum) -> String {
        let name = &written.name.name;
        let mut text = comment("", docs, &format!("The enum `{name}`."));
        text.extend([format!("{} = Literal[\n", self.types.of(name))]);
        for (value, label) in written.values.iter().zip(self.declared.labels(written)) {
            if !value.docs.is_empty() {
                text += &comment("    ", &value.docs, "");
            }
            text.extend([format!("    {},\n", literal(&label))]);
        }
        text + "]\n"
    }

    /// Generates the codecs of the handles, fields, structs and enumerations.
    pub(super) fn codecs(&self) -> String {
        let mut text = "# How the program's own types are written and read.\n\n".to_owned();
        for (_, object) in &self.declared.objects {
            let name = &object.name.name;
            let (ident, fields) = (self.types.of(name), self.types.of_object_fields(name));
            let key = self.codec(&self.declared.program.schema().objects[name].key_type);
            let written = "lambda handle: handle._mingle_key()";
            text.extend([format!(
                "{CODEC}{ident}: _Codec[{ident}, {ident}] = _handle({ident}, lambda: {key}, {written})\n"
            )]);
            text += &fields_of(&fields, &self.attributes_of_object(name));
        }
        for (_, written) in &self.declared.structs {
            let name = &written.name.name;
            text += &fields_of(self.types.of(name), &self.attributes_of_struct(name));
        }
        for (_, written) in &self.declared.enums {
            let (name, ident) = (&written.name.name, self.types.of(&written.name.name));
            let labels = self.declared.labels(written);
            let labels: Vec<String> =
                labels.iter().map(|label| format!("        {},\n", literal(label))).collect();
            let labels = labels.concat();
            text.extend([format!(
                "{CODEC}{ident}: _Codec[{ident}, {ident}] = _one_of(\n    \"{name}\",\n    (\n{labels}    ),\n)\n"
            )]);
        }
        text
    }
}

fn fields_of(class: &str, attributes: &[Attribute]) -> String {
    let fields = attributes.iter();
    let fields = fields.map(|(name, attribute, _, codec)| {
        format!("        (\"{attribute}\", \"{name}\", {codec}),\n")
    });
    let fields: String = fields.collect();
    let list = if fields.is_empty() { "()".to_owned() } else { format!("(\n{fields}    )") };
    format!(
        "{CODEC}{class}: _Codec[{class}, {class}] = _fields(\n    {class},\n    lambda: {list},\n)\n"
    )
}
