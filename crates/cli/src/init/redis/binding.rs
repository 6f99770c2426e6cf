//! The binding of a store in Redis.

use std::fmt::Write as _;

use crate::init::design::{Collection, Design, Object};
use crate::init::text::toml_string;

/// Returns the binding.
pub fn binding(design: &Design, address: &str) -> String {
    let store = &design.store;
    let mut text =
        format!("[stores.{store}]\nengine = \"redis\"\nurl = {}\n", toml_string(address));
    for object in &design.objects {
        text += &of_object(store, object);
    }
    text
}

fn of_object(store: &str, object: &Object) -> String {
    let mut text = format!("\n[stores.{store}.objects.{}]\n", object.name);
    if !object.fields.is_empty() {
        writeln!(text, "key = {}", toml_string(&object.table)).expect("a string takes all");
    }
    let renamed = object.fields.iter().filter(|field| field.name != field.column);
    let renamed: Vec<String> =
        renamed.map(|field| format!("{} = {}", field.name, toml_string(&field.column))).collect();
    if !renamed.is_empty() {
        writeln!(text, "columns = {{ {} }}", renamed.join(", ")).expect("a string takes all");
    }
    for Collection { name, table, value, .. } in &object.collections {
        let (key, key_type) = (toml_string(table), toml_string(value));
        writeln!(text, "fields.{name} = {{ key = {key}, type = {key_type} }}")
            .expect("a string takes all");
    }
    text
}
