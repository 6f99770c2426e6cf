//! Checks, and creation of tables, before a store is opened.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::future::join_all;
use mingle_model::{Level, Name};
use mingle_store::StoreSchema;
use scylla::client::session::Session as Cluster;
use scylla::cluster::Node;
use scylla::errors::ExecutionError;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::unprepared::Statement;
use scylla::value::CqlValue;

use crate::config::{CassandraConfig, OpenError};
use crate::statement::tables;

/// Checks that a configuration is valid for a store.
pub fn check(config: &CassandraConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let refuse = |reason: String| Err(OpenError::Config { store: schema.store.clone(), reason });
    if schema.level != Level::Eventual {
        return refuse(format!(
            "its level is {}, but Cassandra is eventual: it keeps no order that a stronger level \
             would need",
            schema.level
        ));
    }
    if let Err(reason) = schema.refuse_builtins("a store of Cassandra") {
        return refuse(reason);
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

/// Checks that the cluster has the configured data centers.
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

/// Quotes any name for CQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a piece of text for CQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Creates the keyspace, if it does not exist, and the tables.
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
        change(cluster, create).await.map_err(unavailable)?;
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
        change(cluster, table).await.map_err(unavailable)?;
    }
    Ok(())
}

/// Changes the schema. If the nodes do not agree on it in time, the reason names each node and its
/// version.
async fn change(cluster: &Cluster, statement: impl Into<Statement>) -> Result<(), String> {
    let Err(error) = cluster.query_unpaged(statement, ()).await else { return Ok(()) };
    let mut reason = error.to_string();
    if matches!(error, ExecutionError::SchemaAgreementError(_)) {
        let _ = write!(reason, " ({})", versions(cluster).await);
    }
    Err(reason)
}

/// Returns each node's version of the schema, or the reason why it cannot be read.
async fn versions(cluster: &Cluster) -> String {
    let state = cluster.get_cluster_state();
    let asked = state.get_nodes_info().iter().map(|node| async move {
        let version = version(cluster, node).await;
        let told = version.map_or_else(|why| why, |version| format!("has version {version}"));
        format!("{} {told}", node.address.ip())
    });
    join_all(asked).await.join(", ")
}

/// Returns one node's version of the schema.
async fn version(cluster: &Cluster, node: &Arc<Node>) -> Result<String, String> {
    let mut query = Statement::new("SELECT schema_version FROM system.local");
    let node = NodeIdentifier::Node(Arc::clone(node));
    query.set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(node, None)));
    let found = cluster.query_unpaged(query, ()).await.map_err(|error| error.to_string())?;
    let found = found.into_rows_result().map_err(|error| error.to_string())?;
    let (version,) = found.single_row::<(CqlValue,)>().map_err(|error| error.to_string())?;
    version.as_uuid().map(|version| version.to_string()).ok_or_else(|| "has no version".into())
}

#[cfg(test)]
mod tests {
    use mingle_services::Engine;

    use super::{literal, quoted, versions};
    use crate::config::CassandraConfig;
    use crate::link;

    #[tokio::test(flavor = "multi_thread")]
    async fn each_node_is_named_with_its_version_of_the_schema() {
        let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
        let config = CassandraConfig::at(server.url().split(','), ["dc1"]);
        let cluster = link::connect(&config).await.expect("nodes that are reached");
        let versions = versions(&cluster).await;
        for node in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
            assert!(versions.contains(&format!("{node} has version ")), "{versions}");
        }
    }

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
