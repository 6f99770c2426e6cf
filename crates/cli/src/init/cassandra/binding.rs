//! The binding of a store in Cassandra.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Address;
use crate::init::design::{Collection, Design, Object};
use crate::init::text::toml_string;

/// A cluster, as a binding says it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Its address.
    pub address: Address,
    /// The data centers at which sessions stay.
    pub datacenters: Vec<String>,
    /// The number of copies of the runtime's own keyspace.
    pub replication: BTreeMap<String, u32>,
}

/// The greatest length of a keyspace's name.
const KEYSPACE_CHARS_MAX: usize = 40;

/// Returns the keyspace of the runtime's own tables.
pub fn own_keyspace(design: &Design) -> String {
    if design.schema == "mingle" {
        format!("mingle_{}", design.store).chars().take(KEYSPACE_CHARS_MAX).collect()
    } else {
        "mingle".to_owned()
    }
}

/// Returns the binding.
pub fn binding(design: &Design, cluster: &Cluster) -> String {
    let (store, address) = (&design.store, &cluster.address);
    let mut text = format!(
        "[stores.{store}]\nengine = \"cassandra\"\nnodes = {}\ndatacenters = {}\n",
        list(&address.nodes),
        list(&cluster.datacenters)
    );
    let mut line = |text_of: String| {
        text += &text_of;
        text.push('\n');
    };
    let own = own_keyspace(design);
    if own != "mingle" {
        line(format!("keyspace = {}", toml_string(&own)));
    }
    if !cluster.replication.is_empty() {
        let copies = cluster.replication.iter();
        let copies: Vec<String> =
            copies.map(|(center, copies)| format!("{} = {copies}", toml_key(center))).collect();
        line(format!("# The copies of the keyspace {own}, which the first call makes."));
        line(format!("replication = {{ {} }}", copies.join(", ")));
    }
    if let Some((user, password)) = &address.credentials {
        line(format!("user = {}\npassword = {}", toml_string(user), toml_string(password)));
    }
    if address.is_encrypted {
        line("tls = true".to_owned());
    }
    for object in &design.objects {
        text += &of_object(design, object);
    }
    text
}

fn of_object(design: &Design, object: &Object) -> String {
    let placed = |table: &str| toml_string(&format!("{}.{table}", design.schema));
    let key = object.key.parts.first().expect("its key is a column");
    let mut text = format!(
        "\n[stores.{}.objects.{}]\ntable = {}\nkey = {}\n",
        design.store,
        object.name,
        placed(&object.table),
        toml_string(&key.column)
    );
    let renamed = object.fields.iter().filter(|field| field.name != field.column);
    let renamed: Vec<String> =
        renamed.map(|field| format!("{} = {}", field.name, toml_string(&field.column))).collect();
    if !renamed.is_empty() {
        writeln!(text, "columns = {{ {} }}", renamed.join(", ")).expect("a string takes all");
    }
    for Collection { name, table, key, entry, order, value, .. } in &object.collections {
        let part = |name: &str, column: &Option<String>| {
            let column = column.as_ref().map(|column| toml_string(column));
            column.map(|column| format!(", {name} = {column}")).unwrap_or_default()
        };
        writeln!(
            text,
            "fields.{name} = {{ table = {}, key = {}{}{}, value = {} }}",
            placed(table),
            toml_string(key),
            part("entry", entry),
            part("order", order),
            toml_string(value)
        )
        .expect("a string takes all");
    }
    text
}

/// Returns a text as a key of TOML, which has one line.
fn toml_key(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| toml_string(one)).collect();
    format!("[{}]", all.join(", "))
}
