//! What is looked at, and made, before a store is opened.

use std::collections::BTreeSet;

use mingle_model::{Level, Name};
use mingle_store::StoreSchema;
use scylla::client::session::Session as Cluster;

use crate::config::{CassandraConfig, OpenError};
use crate::statement::tables;

/// Sees that a configuration makes sense for a store.
pub fn check(config: &CassandraConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let refuse = |reason: String| Err(OpenError::Config { store: schema.store.clone(), reason });
    if schema.level != Level::Eventual {
        return refuse(format!(
            "its level is {}, but Cassandra is eventual: it keeps no order that a stronger level \
             would need",
            schema.level
        ));
    }
    if config.nodes.is_empty() {
        return refuse("no node is named".into());
    }
    if config.datacenters.is_empty() {
        return refuse("no data center is named at which sessions could stay".into());
    }
    for (what, names) in [("data center", &config.datacenters[..]), ("replica", config.replicas())]
    {
        let distinct: BTreeSet<&String> = names.iter().collect();
        if distinct.len() < names.len() {
            return refuse(format!("a {what} is named twice among {}", names.join(", ")));
        }
    }
    if config.replicas().len() != config.datacenters.len() {
        let (found, wanted) = (config.replicas().len(), config.datacenters.len());
        return refuse(format!("it has {found} replicas, but {wanted} data centers"));
    }
    let keyspace = &config.keyspace;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if keyspace.is_empty() || keyspace.len() > 40 || !keyspace.chars().all(is_name) {
        return refuse(format!(
            "a keyspace is called by at most 40 letters, digits and _, not {keyspace:?}"
        ));
    }
    let area = config.area_of(&schema.store);
    if area.is_empty() || area.len() > 200 || area.chars().any(char::is_control) {
        return refuse(format!("it cannot be called {area:?} in its tables"));
    }
    if config.tls && !cfg!(feature = "tls") {
        return refuse("it wants TLS, which this build has not (feature `tls`)".into());
    }
    Ok(())
}

/// Sees that the cluster has the data centers that are named.
pub fn check_datacenters(
    config: &CassandraConfig,
    store: &Name,
    cluster: &Cluster,
) -> Result<(), OpenError> {
    let state = cluster.get_cluster_state();
    let mut found: Vec<String> =
        state.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()).collect();
    found.sort_unstable();
    found.dedup();
    for named in config.datacenters.iter().chain(config.replication.keys()) {
        if !found.contains(named) {
            let found = found.join(", ");
            let reason = format!("the cluster has no data center {named:?}; it has {found}");
            return Err(OpenError::Config { store: store.clone(), reason });
        }
    }
    Ok(())
}

/// A name as CQL reads it, whatever is in it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A piece of text as CQL reads it.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Makes the keyspace, where it is not there, and the tables.
pub async fn make(
    cluster: &Cluster,
    config: &CassandraConfig,
    store: &Name,
    keyspace: &str,
) -> Result<(), OpenError> {
    let unavailable = |reason: String| OpenError::Unavailable { store: store.clone(), reason };
    let refreshed = cluster.refresh_metadata().await;
    refreshed.map_err(|error| unavailable(error.to_string()))?;
    let state = cluster.get_cluster_state();
    let known = state.get_keyspace(keyspace);
    if known.is_none() {
        if config.replication.is_empty() {
            let reason = format!(
                "keyspace {keyspace} is not there, and `replication` does not say how many copies \
                 each data center is to have"
            );
            return Err(OpenError::Config { store: store.clone(), reason });
        }
        let copies =
            config.replication.iter().map(|(name, count)| format!("{}: {count}", literal(name)));
        let copies: Vec<String> = copies.collect();
        let create = format!(
            "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', {}}}",
            quoted(keyspace),
            copies.join(", ")
        );
        let made = cluster.query_unpaged(create, ()).await;
        made.map_err(|error| unavailable(error.to_string()))?;
    }
    if let Some(known) = known.and_then(|known| known.tables.get("rows"))
        && !known.columns.contains_key("block")
    {
        let reason = format!(
            "keyspace {keyspace} has the runtime's tables of an earlier version: finish what is open with \
             that version (`mingle recover`), stop its processes, and drop the tables {keyspace}.rows and \
             {keyspace}.records; all data is in other tables, and stays"
        );
        return Err(OpenError::Config { store: store.clone(), reason });
    }
    for (name, table) in tables(&quoted(keyspace)) {
        if known.is_some_and(|known| known.tables.contains_key(name)) {
            continue;
        }
        let made = cluster.query_unpaged(table, ()).await;
        made.map_err(|error| unavailable(error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{literal, quoted};

    #[test]
    fn names_and_texts_end_where_they_should() {
        assert_eq!(quoted(r#"a"; DROP KEYSPACE b; --"#), r#""a""; DROP KEYSPACE b; --""#);
        assert_eq!(literal("oslo': 1}; DROP TABLE a; --"), "'oslo'': 1}; DROP TABLE a; --'");
        for text in ["", "'", "''", "\"", "a'b\"c", "\n"] {
            let (name, text_there) = (quoted(text), literal(text));
            assert_eq!(name[1..name.len() - 1].replace("\"\"", "\""), text);
            assert_eq!(text_there[1..text_there.len() - 1].replace("''", "'"), text);
        }
    }
}
