//! A description of an existing keyspace, for writing a first mapping.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Type;
use scylla::client::session::Session;
use scylla::cluster::metadata::{ColumnKind, ColumnType, Keyspace, NativeType, Strategy, Table};
use scylla::value::{CqlValue, Row};

use crate::config::{CassandraConfig, OpenError};
use crate::cql_type;
use crate::link::connect;
use crate::scalar::Kind;
use crate::statement::tables;

/// An existing keyspace.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyspaceDescription {
    /// The data centers of the cluster that have copies of it. The first is the data center of the first
    /// configured node.
    pub datacenters: Vec<String>,
    /// The number of copies in each data center.
    pub replication: BTreeMap<String, u32>,
    /// Its tables, in order of their names.
    pub tables: Vec<TableDescription>,
    /// The names of its materialized views.
    pub views: Vec<String>,
}

/// An existing table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDescription {
    /// Its name, without the keyspace.
    pub name: String,
    /// Its partition key.
    pub partition_key: Vec<String>,
    /// Its clustering columns, in order.
    pub clustering_key: Vec<String>,
    /// Its columns: those of the primary key first, then the others in order of their names.
    pub columns: Vec<ColumnDescription>,
    /// The seconds after which rows vanish; 0 stands for never.
    pub time_to_live_s: i32,
    /// Its secondary indexes: the name, and the column with the kind of index, such as `values(mail)`.
    pub indexes: Vec<(String, String)>,
    /// The reason why no object can be in it, independent of its columns.
    pub obstacle: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDescription {
    /// Its name.
    pub name: String,
    /// Its type in CQL.
    pub cql_type: String,
    /// The type of its values in a program, without the `option` of a column that may be null; or the reason why
    /// there is none.
    pub fits: Result<Type, String>,
    /// The reason why it cannot be the key of an object, if it holds values of a type.
    pub key_obstacle: Option<String>,
}

impl TableDescription {
    /// Returns a column by its name.
    pub fn column(&self, name: &str) -> Option<&ColumnDescription> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Describes a keyspace. Reads the cluster's schema, and changes nothing.
///
/// # Errors
///
/// When the cluster cannot be reached, or has no such keyspace. Error messages call the store `store`.
///
/// # Examples
///
/// ```no_run
/// # async fn described() -> Result<(), mingle_store_cassandra::OpenError> {
/// use mingle_store_cassandra::{CassandraConfig, describe};
///
/// let config = CassandraConfig::at(["10.0.0.1:9042"], [""; 0]);
/// for table in describe("shop", &config, "shop").await?.tables {
///     println!("{} ({})", table.name, table.partition_key.join(", "));
/// }
/// # Ok(())
/// # }
/// ```
pub async fn describe(
    store: &str,
    config: &CassandraConfig,
    keyspace: &str,
) -> Result<KeyspaceDescription, OpenError> {
    let unavailable = |reason: String| OpenError::Unavailable { store: store.into(), reason };
    let refused = |reason: String| OpenError::Config { store: store.into(), reason };
    let cluster = connect(config).await.map_err(unavailable)?;
    agree(&cluster).await.map_err(unavailable)?;
    let state = cluster.get_cluster_state();
    let Some(found) = state.get_keyspace(keyspace) else {
        let all = state.keyspaces_iter().map(|(name, _)| name.to_owned());
        let mut others: Vec<String> = all.filter(|name| !is_of_system(name)).collect();
        others.sort_unstable();
        return Err(refused(format!(
            "the cluster has no keyspace {keyspace:?}; it has {}",
            if others.is_empty() { "none".to_owned() } else { others.join(", ") }
        )));
    };
    if is_of_system(keyspace) {
        return Err(refused(format!("the keyspace {keyspace} is Cassandra's own")));
    }
    let (datacenters, replication) = copies(&cluster, config, found);
    if datacenters.is_empty() {
        return Err(refused(format!(
            "no data center of the cluster has copies of the keyspace {keyspace} ({:?})",
            found.strategy
        )));
    }
    let settings = settings(&cluster, keyspace).await.map_err(unavailable)?;
    let mut indexes = indexes(&cluster, keyspace).await.map_err(unavailable)?;
    let own = own_tables(found);
    let mut described: Vec<TableDescription> = Vec::new();
    for (name, table) in &found.tables {
        let (time_to_live_s, flags) = settings.get(name).cloned().unwrap_or_default();
        let obstacle = if own.contains(name.as_str()) {
            Some("it is a table of our own, for what the runtime has to remember".to_owned())
        } else {
            obstacle(table, &flags)
        };
        described.push(TableDescription {
            name: name.clone(),
            partition_key: table.partition_key.clone(),
            clustering_key: table.clustering_key.clone(),
            columns: columns(table),
            time_to_live_s,
            indexes: indexes.remove(name).unwrap_or_default(),
            obstacle,
        });
    }
    described.sort_by(|a, b| a.name.cmp(&b.name));
    let mut views: Vec<String> = found.views.keys().cloned().collect();
    views.sort_unstable();
    Ok(KeyspaceDescription { datacenters, replication, tables: described, views })
}

/// Waits until all nodes agree on the schema: a node may not know the last tables yet.
async fn agree(cluster: &Session) -> Result<(), String> {
    cluster.await_schema_agreement().await.map_err(|error| error.to_string())?;
    cluster.refresh_metadata().await.map_err(|error| error.to_string())
}

fn is_of_system(keyspace: &str) -> bool {
    keyspace == "system" || keyspace.starts_with("system_")
}

/// Returns the names of the store's own tables, if all of them are in a keyspace.
fn own_tables(keyspace: &Keyspace) -> BTreeSet<&'static str> {
    let own: BTreeSet<&str> = tables("").iter().map(|(name, _)| *name).collect();
    let has_all = own.iter().all(|name| keyspace.tables.contains_key(*name));
    if has_all { own } else { BTreeSet::new() }
}

/// Returns the data centers that have copies of a keyspace, and their number in each.
fn copies(
    cluster: &Session,
    config: &CassandraConfig,
    keyspace: &Keyspace,
) -> (Vec<String>, BTreeMap<String, u32>) {
    let state = cluster.get_cluster_state();
    let mut nodes: BTreeMap<String, u32> = BTreeMap::new();
    for center in state.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()) {
        *nodes.entry(center).or_default() += 1;
    }
    let count = |copies: usize| u32::try_from(copies).unwrap_or(u32::MAX);
    let replication: BTreeMap<String, u32> = match &keyspace.strategy {
        Strategy::NetworkTopologyStrategy { datacenter_repfactors } => datacenter_repfactors
            .iter()
            .filter(|(center, copies)| nodes.contains_key(*center) && **copies > 0)
            .map(|(center, copies)| (center.clone(), count(*copies)))
            .collect(),
        // Its copies are on any nodes, so no data center is sure to have more than one.
        Strategy::SimpleStrategy { replication_factor } => nodes
            .iter()
            .map(|(center, nodes)| (center.clone(), count(*replication_factor).min(*nodes)))
            .collect(),
        _ => BTreeMap::new(),
    };
    let first = config.nodes.first().map_or("", String::as_str);
    let is_first = |address: String| first == address || first.starts_with(&format!("{address}:"));
    let contact =
        state.get_nodes_info().iter().find(|node| is_first(node.address.ip().to_string()));
    let contact = contact.and_then(|node| node.datacenter.clone());
    let mut datacenters: Vec<String> = replication.keys().cloned().collect();
    datacenters.sort_by_key(|center| Some(center) != contact.as_ref());
    (datacenters, replication)
}

async fn rows(cluster: &Session, query: &str, keyspace: &str) -> Result<Vec<Row>, String> {
    let found = cluster.query_unpaged(query, (keyspace,)).await;
    let found = found.map_err(|error| error.to_string())?;
    let found = found.into_rows_result().map_err(|error| error.to_string())?;
    let rows = found.rows::<Row>().map_err(|error| error.to_string())?;
    rows.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn text(column: Option<CqlValue>) -> String {
    column.and_then(CqlValue::into_string).unwrap_or_default()
}

/// The seconds after which rows of a table vanish, and its flags.
type Settings = (i32, Vec<String>);

async fn settings(cluster: &Session, keyspace: &str) -> Result<BTreeMap<String, Settings>, String> {
    let query = "SELECT table_name, default_time_to_live, flags FROM system_schema.tables \
                 WHERE keyspace_name = ?";
    let found = rows(cluster, query, keyspace).await?.into_iter().map(|row| {
        let mut columns = row.columns.into_iter();
        let mut next = || columns.next().flatten();
        let (name, ttl, flags) = (text(next()), next(), next());
        let flags = flags.and_then(CqlValue::into_vec).unwrap_or_default();
        let flags = flags.into_iter().filter_map(CqlValue::into_string).collect();
        (name, (ttl.and_then(|ttl| ttl.as_int()).unwrap_or(0), flags))
    });
    Ok(found.collect())
}

/// Returns the secondary indexes of each table.
async fn indexes(
    cluster: &Session,
    keyspace: &str,
) -> Result<BTreeMap<String, Vec<(String, String)>>, String> {
    let query = "SELECT table_name, index_name, options FROM system_schema.indexes \
                 WHERE keyspace_name = ?";
    let mut found: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in rows(cluster, query, keyspace).await? {
        let mut columns = row.columns.into_iter();
        let mut next = || columns.next().flatten();
        let (table, index) = (text(next()), text(next()));
        let target = match next() {
            Some(CqlValue::Map(options)) => options
                .into_iter()
                .find(|(name, _)| name.as_text().is_some_and(|name| name == "target"))
                .map(|(_, target)| text(Some(target))),
            _ => None,
        };
        found.entry(table).or_default().push((index, target.unwrap_or_default()));
    }
    Ok(found)
}

/// Returns the reason why no object can be in a table; none if there is none.
fn obstacle(table: &Table, flags: &[String]) -> Option<String> {
    let is_counter = |of: &ColumnType<'_>| *of == ColumnType::Native(NativeType::Counter);
    if table.columns.values().any(|column| is_counter(&column.typ)) {
        return Some(
            "it has native counters, which count again what is sent again; a declared `query` can read it, and \
             a field of type `counter` is kept in a table of our own"
                .into(),
        );
    }
    let is_compact = !flags.is_empty() && !flags.iter().any(|flag| flag == "compound");
    is_compact.then(|| "it has compact storage, whose rows exist only with their values".into())
}

fn columns(table: &Table) -> Vec<ColumnDescription> {
    let place = |name: &String| {
        let keys = table.partition_key.iter().chain(&table.clustering_key);
        keys.into_iter().position(|key| key == name).unwrap_or(usize::MAX)
    };
    let mut names: Vec<&String> = table.columns.keys().collect();
    names.sort_by_key(|name| (place(name), *name));
    let described = names.into_iter().map(|name| {
        let column = &table.columns[name];
        let fits = if column.kind == ColumnKind::Static {
            Err("it is static: one for a whole partition, not for a row".to_owned())
        } else {
            Kind::of(&column.typ).map(Kind::declared).ok_or_else(|| reason(&column.typ))
        };
        let is_decimal = column.typ == ColumnType::Native(NativeType::Decimal);
        let key_obstacle = match column.typ {
            _ if is_decimal => Some("Cassandra would take 1.5 and 1.50 for two keys".to_owned()),
            ColumnType::Native(NativeType::Double) => Some("a key is no float".to_owned()),
            _ => None,
        };
        let cql_type = cql_type::name(&column.typ);
        ColumnDescription { name: name.clone(), cql_type, fits, key_obstacle }
    });
    described.collect()
}

/// Returns the reason why values of a column have no form in a program.
fn reason(of: &ColumnType<'_>) -> String {
    let reason = match of {
        ColumnType::Collection { frozen: false, .. } => {
            "elements of a native collection do not say when they were written; a table of its own with a clustering \
             column could hold them"
        }
        ColumnType::Native(NativeType::Float) => {
            "it has 32 bits and would round a float; a column of type double would fit"
        }
        ColumnType::Native(NativeType::Varint) => {
            "an int has 64 bits; a column of type bigint would fit"
        }
        ColumnType::Native(_) => {
            "no type of a program has its values; a column of type text would fit"
        }
        _ => "no type of a program has its form; a column of type text, with JSON, would fit",
    };
    reason.to_owned()
}
