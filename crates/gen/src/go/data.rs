//! Handles, the fields of objects, and structs.

use mingle_lang::syntax::ast::{Object, Struct};
use mingle_model::Name;

use super::names::Names;
use super::types::CODEC;
use super::{Context, comment, quoted};

/// A field of a struct of Go.
struct Field {
    /// The name in the program.
    name: Name,
    ident: String,
    /// The type.
    shown: String,
    codec: String,
}

impl Context<'_> {
    /// Generates a kind of object: a handle that holds the key, and the fields that are read.
    pub(super) fn handle(&self, docs: &str, object: &Object) -> Vec<String> {
        let name = &object.name.name;
        let (ident, fields) = (self.types.of(name), self.types.of_object_fields(name));
        let first =
            format!("{ident} is the handle of an object {name}, whether or not that exists.");
        let about = comment::top(&first, docs);
        let key = self.key_of(name);
        let of_key = comment::inner(&format!("{} is the key.", key.ident), &object.key.docs);
        let (path, of_fields) = (self.method_of_runtime("Path"), self.method_of_runtime("Fields"));
        let (object_path, reads) = (self.wire("ObjectPath"), self.wire("Reads"));
        let is_text = self.declared.has_text_key(name);
        let codec = format!("{CODEC}{ident}{{}}");
        let handle =
            format!("{about}type {ident} struct {{\n{of_key}\t{} {}\n}}\n", key.ident, key.shown);
        let methods = format!(
            "// {path} returns the path of the object.\nfunc (h {ident}) {path}() (string, error) {{
\treturn {object_path}({}, {is_text}, {codec}, h)
}}

// {of_fields} returns the type of the object's fields.\nfunc ({ident}) {of_fields}() {reads}[{fields}] {{
\treturn {CODEC}{fields}{{}}
}}
",
            quoted(name)
        );
        vec![handle, methods, self.fields(object, &fields)]
    }

    /// Generates the type of an object's fields.
    fn fields(&self, object: &Object, ident: &str) -> String {
        let name = &object.name.name;
        let first =
            format!("{ident} is the content of an object {name}: collections, up to a limit.");
        let docs = std::iter::once(&*object.key.docs);
        let docs = docs.chain(object.fields.iter().map(|field| &*field.docs));
        comment::top(&first, "") + &structure(ident, docs.zip(&self.fields_of_object(name)))
    }

    /// Generates a struct, with its fields in their order.
    pub(super) fn record(&self, docs: &str, written: &Struct) -> String {
        let name = &written.name.name;
        let ident = self.types.of(name);
        let about = comment::top(&format!("{ident} is the struct {name}."), docs);
        let docs = written.fields.iter().map(|field| &*field.docs);
        about + &structure(ident, docs.zip(&self.fields_of_struct(name)))
    }

    fn key_of(&self, object: &Name) -> Field {
        let declared = &self.declared.program.schema().objects[object];
        let names = Names::of_fields(std::iter::once(&declared.key_name));
        Field {
            name: declared.key_name.clone(),
            ident: names.of(&declared.key_name).to_owned(),
            shown: self.shown(&declared.key_type),
            codec: self.codec(&declared.key_type),
        }
    }

    /// Returns the key and fields of an object.
    fn fields_of_object(&self, object: &Name) -> Vec<Field> {
        let declared = &self.declared.program.schema().objects[object];
        let key = (self.shown(&declared.key_type), self.codec(&declared.key_type));
        let fields = declared.fields.iter();
        let fields = fields.map(|field| (&field.name, self.field(&field.field_type)));
        named(std::iter::once((&declared.key_name, key)).chain(fields).collect())
    }

    fn fields_of_struct(&self, name: &Name) -> Vec<Field> {
        let fields = self.declared.program.schema().structs[name].fields.iter();
        named(fields.map(|(field, it)| (field, (self.shown(it), self.codec(it)))).collect())
    }

    /// Generates the codecs of the handles, fields and structs.
    pub(super) fn codecs(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for (_, object) in &self.declared.objects {
            let name = &object.name.name;
            parts.push(self.codec_of_handle(name));
            let (ident, fields) = (self.types.of_object_fields(name), self.fields_of_object(name));
            parts.push(format!("type {CODEC}{ident} struct{{}}\n"));
            parts.push(self.reading(&ident, &fields));
        }
        for (_, written) in &self.declared.structs {
            let (ident, fields) =
                (self.types.of(&written.name.name), self.fields_of_struct(&written.name.name));
            parts.push(format!("type {CODEC}{ident} struct{{}}\n"));
            parts.push(self.writing(ident, &fields));
            parts.push(self.reading(ident, &fields));
        }
        parts.extend(self.codecs_of_enums());
        parts
    }

    fn codec_of_handle(&self, object: &Name) -> String {
        let (ident, key) = (self.types.of(object), self.key_of(object));
        let (write, read) = (self.method_of_runtime("Write"), self.method_of_runtime("Read"));
        let (writer, reader, of_key) = (self.wire("Writer"), self.wire("Reader"), self.wire("Key"));
        let at = self.wire("At");
        let Field { ident: field, codec, .. } = &key;
        let name = quoted(field);
        format!(
            "type {CODEC}{ident} struct{{}}

// {write} writes the key.\nfunc ({CODEC}{ident}) {write}(w *{writer}, value {ident}) {{
\t{of_key}(w, {name}, {codec}, value.{field})
}}

// {read} reads the key.\nfunc ({CODEC}{ident}) {read}(r *{reader}, found any) {ident} {{
\treturn {ident}{{{field}: {at}(r, \"\", {codec}, found)}}
}}
"
        )
    }

    /// Generates the method that writes a struct.
    fn writing(&self, ident: &str, fields: &[Field]) -> String {
        let (write, writer) = (self.method_of_runtime("Write"), self.wire("Writer"));
        let (begin, end) = (self.method_of_runtime("Begin"), self.method_of_runtime("End"));
        let member = self.wire("Member");
        let members = fields.iter().map(|Field { name, ident, codec, .. }| {
            let (name, quoted_ident) = (quoted(name), quoted(ident));
            format!("\t{member}(w, {name}, {quoted_ident}, {codec}, value.{ident})\n")
        });
        let members: String = members.collect();
        format!(
            "// {write} writes the fields.\nfunc ({CODEC}{ident}) {write}(w *{writer}, value {ident}) {{
\tw.{begin}()\n{members}\tw.{end}()\n}}
"
        )
    }

    /// Generates the method that reads fields.
    fn reading(&self, ident: &str, fields: &[Field]) -> String {
        let (read, reader) = (self.method_of_runtime("Read"), self.wire("Reader"));
        let (object, field) = (self.method_of_runtime("Object"), self.wire("Field"));
        let head = format!(
            "// {read} reads the fields.\nfunc ({CODEC}{ident}) {read}(r *{reader}, found any) (value {ident}) {{\n"
        );
        if fields.is_empty() {
            return format!("{head}\tr.{object}(found)\n\treturn value\n}}\n");
        }
        let members = fields.iter().map(|Field { name, ident, codec, .. }| {
            format!("\tvalue.{ident} = {field}(r, members, {}, {codec})\n", quoted(name))
        });
        let members: String = members.collect();
        format!("{head}\tmembers := r.{object}(found)\n{members}\treturn value\n}}\n")
    }
}

/// Assigns the fields their names in Go.
fn named(fields: Vec<(&Name, (String, String))>) -> Vec<Field> {
    let names = Names::of_fields(fields.iter().map(|(name, _)| *name));
    let field = |(name, (shown, codec)): (&Name, (String, String))| Field {
        name: name.clone(),
        ident: names.of(name).to_owned(),
        shown,
        codec,
    };
    fields.into_iter().map(field).collect()
}

/// Generates a struct of Go. A blank line between the fields keeps `gofmt` from aligning their types.
fn structure<'a>(ident: &str, fields: impl Iterator<Item = (&'a str, &'a Field)>) -> String {
    let fields = fields.map(|(docs, field)| {
        let about = format!("{} is the field {}.", field.ident, field.name);
        format!("{}\t{} {}\n", comment::inner(&about, docs), field.ident, field.shown)
    });
    let fields: Vec<String> = fields.collect();
    if fields.is_empty() {
        return format!("type {ident} struct{{}}\n");
    }
    format!("type {ident} struct {{\n{}}}\n", fields.join("\n"))
}
