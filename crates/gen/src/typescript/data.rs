//! Handles, the fields of objects, structs, and enumerations.

use mingle_lang::syntax::ast::{Enum, Object, Struct};
use mingle_model::Name;

use super::names::Names;
use super::{Context, doc};
use crate::lines::literal;

/// The runtime's declarations that not every program uses.
const IN_USE: [&str; 22] = [
    "$bool",
    "$bytes",
    "$day",
    "$decimal",
    "$float",
    "$int",
    "$json",
    "$key",
    "$list",
    "$map",
    "$named",
    "$none",
    "$oneOf",
    "$option",
    "$pairs",
    "$pathOfJson",
    "$pathOfText",
    "$rushed",
    "$some",
    "$someJson",
    "$struct",
    "$time",
];

impl Context<'_> {
    /// Generates a kind of object: a handle that holds the key, and the fields that are read.
    pub(super) fn handle(&self, docs: &str, object: &Object) -> String {
        let name = &object.name.name;
        let declared = &self.declared.program.schema().objects[name];
        let (ident, fields) = (self.types.of(name), self.types.of_fields(name));
        let names = Names::of_properties(std::iter::once(&declared.key_name));
        let key = names.of(&declared.key_name);
        let (received, taken) = (self.received(&declared.key_type), self.taken(&declared.key_type));
        let codec = self.codec(&declared.key_type);
        let value = if self.has_int(&declared.key_type) {
            format!("$key({codec}, key)")
        } else {
            "key".to_owned()
        };
        let is_text = self.declared.has_text_key(name);
        let path = if is_text { "$pathOfText" } else { "$pathOfJson" };
        let about =
            doc("", docs, &format!("The handle of a `{name}`, whether or not that exists."));
        let key_doc = doc("  ", &object.key.docs, "Its key.");
        let class = format!(
            "{about}export class {ident} implements Handle<{fields}> {{
  readonly $kind = \"{name}\";
{key_doc}  readonly {key}: {received};

  /** The `{name}` with this key. */
  constructor(key: {taken}) {{
    this.{key} = {value};
  }}

  get $path(): string {{
    return {path}(\"{name}\", this.toJSON());
  }}

  get $fields(): $Codec<{fields}, never> {{
    return $${fields};
  }}

  /** Whether both name one object. */
  equals(other: Handle<unknown>): boolean {{
    return $same(this, other);
  }}

  toJSON(): $Json {{
    return $given(\"{key}\", {codec}, this.{key});
  }}

  toString(): string {{
    return `{name}[${{JSON.stringify(this)}}]`;
  }}
}}
"
        );
        format!("{class}\n{}", self.fields(object, &fields))
    }

    /// Generates the type of an object's fields.
    fn fields(&self, object: &Object, ident: &str) -> String {
        let name = &object.name.name;
        let mut text = doc("", "", &format!("What a `{name}` holds: collections, up to a limit."));
        text.extend([format!("export interface {ident} {{\n")]);
        let docs = std::iter::once(&object.key.docs);
        let docs = docs.chain(object.fields.iter().map(|field| &field.docs));
        for (docs, (field, property, shown, _)) in docs.zip(self.properties_of(name)) {
            let otherwise = format!("The field `{field}`.");
            text += &doc("  ", docs, &otherwise);
            text.extend([format!("  readonly {property}: {shown};\n")]);
        }
        text + "}\n"
    }

    /// Returns the name, property name, type and codec of an object's key and of each field.
    fn properties_of(&self, object: &Name) -> Vec<(Name, String, String, String)> {
        let declared = &self.declared.program.schema().objects[object];
        let key = (
            declared.key_name.clone(),
            (self.received(&declared.key_type), self.codec(&declared.key_type)),
        );
        let fields = declared.fields.iter();
        let fields = fields.map(|field| (field.name.clone(), self.field(&field.field_type)));
        let all: Vec<_> = std::iter::once(key).chain(fields).collect();
        let names = Names::of_properties(all.iter().map(|(name, _)| name));
        let property = |(name, (shown, codec)): (Name, (String, String))| {
            let property = names.of(&name).to_owned();
            (name, property, shown, codec)
        };
        all.into_iter().map(property).collect()
    }

    /// Generates a struct, with its fields in their order.
    pub(super) fn record(&self, docs: &str, written: &Struct) -> String {
        let name = &written.name.name;
        let declared = &self.declared.program.schema().structs[name];
        let names = Names::of_properties(declared.fields.iter().map(|(field, _)| field));
        let mut text = doc("", docs, &format!("The struct `{name}`."));
        text.extend([format!("export interface {} {{\n", self.types.of(name))]);
        for (written, (field, inner)) in written.fields.iter().zip(&declared.fields) {
            text += &doc("  ", &written.docs, &format!("The field `{field}`."));
            text.extend([format!("  readonly {}: {};\n", names.of(field), self.received(inner))]);
        }
        text + "}\n"
    }

    /// Generates an enumeration: the union of its labels.
    pub(super) fn enumeration(&self, docs: &str, written: &Enum) -> String {
        let name = &written.name.name;
        let mut text = doc("", docs, &format!("The enum `{name}`."));
        text.extend([format!("export type {} =", self.types.of(name))]);
        for (value, label) in written.values.iter().zip(self.declared.labels(written)) {
            text.push('\n');
            if !value.docs.is_empty() {
                text += &doc("  ", &value.docs, "");
            }
            text.extend([format!("  | {}", literal(&label))]);
        }
        text + ";\n"
    }

    /// Generates the codecs of the handles, fields, structs and enumerations.
    pub(super) fn codecs(&self) -> String {
        let mut text = "// How the program's own types are written and read.\n\n".to_owned();
        for (_, object) in &self.declared.objects {
            let name = &object.name.name;
            let (ident, fields) = (self.types.of(name), self.types.of_fields(name));
            let key = self.codec(&self.declared.program.schema().objects[name].key_type);
            text.extend([format!(
                "const $${ident}: $Codec<{ident}> = $handle(\"{name}\", () => {key}, (key) => new {ident}(key));\n"
            )]);
            let members = self.properties_of(name).into_iter();
            let members =
                members.map(|(name, property, _, codec)| member(&name, &property, &codec));
            text += &members_of(&format!("$${fields}: $Codec<{fields}, never> = $fields"), members);
        }
        for (_, written) in &self.declared.structs {
            let name = &written.name.name;
            let declared = &self.declared.program.schema().structs[name];
            let names = Names::of_properties(declared.fields.iter().map(|(field, _)| field));
            let ident = self.types.of(name);
            let members = declared.fields.iter();
            let members =
                members.map(|(field, inner)| member(field, names.of(field), &self.codec(inner)));
            text += &members_of(
                &format!("$${ident}: $Codec<{ident}, Input<{ident}>> = $struct"),
                members,
            );
        }
        for (_, written) in &self.declared.enums {
            let (name, ident) = (&written.name.name, self.types.of(&written.name.name));
            let labels: Vec<String> =
                self.declared.labels(written).iter().map(|label| literal(label)).collect();
            let labels = labels.join(", ");
            text.extend([format!(
                "const $${ident}: $Codec<{ident}> = $oneOf<{ident}>(\"{name}\", [{labels}]);\n"
            )]);
        }
        text
    }

    /// Generates uses of the declarations that not every program uses, so that no tool complains.
    /// Those of the runtime are included if it is in this file.
    pub(super) fn all_used(&self, has_runtime: bool) -> String {
        let mut all = Vec::new();
        for (_, object) in &self.declared.objects {
            let name = &object.name.name;
            let (ident, fields) = (self.types.of(name), self.types.of_fields(name));
            all.extend([format!("$${ident}"), format!("$${fields}")]);
        }
        let structs = self.declared.structs.iter();
        all.extend(structs.map(|(_, it)| format!("$${}", self.types.of(&it.name.name))));
        let enums = self.declared.enums.iter();
        all.extend(enums.map(|(_, it)| format!("$${}", self.types.of(&it.name.name))));
        if has_runtime {
            all.extend(IN_USE.map(str::to_owned));
        }
        let all = all.join(", ");
        format!("// Not every program has a use for each of them.\nvoid [{all}];\n")
    }
}

fn member(name: &Name, property: &str, codec: &str) -> String {
    format!("  {property}: [\"{name}\", {codec}],\n")
}

fn members_of(before: &str, members: impl Iterator<Item = String>) -> String {
    let members: String = members.collect();
    format!("const {before}(() => ({{\n{members}}}));\n")
}
