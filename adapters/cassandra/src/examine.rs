//! The examination of a store's cluster, for an operator. It changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mingle_store::{Finding, StoreSchema};
use scylla::client::session::Session as Cluster;
use scylla::cluster::metadata::Strategy;
use scylla::value::CqlTimestamp;

use crate::config::CassandraConfig;
use crate::link::connect;
use crate::mapping;
use crate::open::{check, check_datacenters};
use crate::statement::tables;

/// Examines the cluster of a store: its nodes and data centers, their versions and clock, the number of copies, and
/// the tables. Changes nothing.
pub async fn examine(config: CassandraConfig, schema: StoreSchema) -> Vec<Finding> {
    if let Err(error) = check(&config, &schema) {
        return vec![Finding::wrong("binding", error.to_string())];
    }
    let begin = Instant::now();
    let cluster = match connect(&config).await {
        Ok(cluster) => cluster,
        Err(reason) => {
            let text = format!("none of {} answers: {reason}", config.nodes.join(", "));
            return vec![Finding::wrong("connection", text)];
        }
    };
    let took = begin.elapsed().as_millis();
    let mut findings = vec![Finding::good("connection", format!("connected in {took} ms"))];
    findings.extend(nodes(&cluster));
    if let Err(error) = check_datacenters(&config, &schema.store, &cluster) {
        findings.push(Finding::wrong("data centers", error.to_string()));
        return findings;
    }
    findings.extend(server(&cluster).await);
    findings.extend(keyspace(&cluster, &config));
    match mapping::mapped(&cluster, &config, &schema).await {
        Ok((_, warnings)) => {
            findings.extend(warnings.into_iter().map(|text| Finding::warning("tables", text)));
        }
        Err(error) => findings.push(Finding::wrong("tables", error.to_string())),
    }
    findings
}

/// Counts the nodes of each data center, and those without a connection.
fn nodes(cluster: &Cluster) -> Vec<Finding> {
    let state = cluster.get_cluster_state();
    let mut centers: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for node in state.get_nodes_info() {
        let center = node.datacenter.clone().unwrap_or_else(|| "(none)".into());
        let (count, away) = centers.entry(center).or_default();
        *count += 1;
        if !node.is_connected() {
            away.insert(node.address.to_string());
        }
    }
    let finding = |(center, (count, away)): (String, (usize, BTreeSet<String>))| {
        let text = format!("data center {center} has {count} nodes");
        if away.is_empty() {
            return Finding::good("nodes", text);
        }
        let away = away.into_iter().collect::<Vec<_>>().join(", ");
        Finding::warning("nodes", format!("{text}; without a connection: {away}"))
    };
    centers.into_iter().map(finding).collect()
}

/// Asks one node for its version and its clock.
async fn server(cluster: &Cluster) -> Vec<Finding> {
    let sql = "SELECT release_version, toTimestamp(now()) FROM system.local";
    let (begin, now) = (Instant::now(), SystemTime::now());
    let answer = cluster.query_unpaged(sql, ()).await.map_err(|error| error.to_string());
    let took = i64::try_from(begin.elapsed().as_millis()).unwrap_or(i64::MAX);
    let row = answer.and_then(|answer| {
        let rows = answer.into_rows_result().map_err(|error| error.to_string())?;
        rows.single_row::<(String, CqlTimestamp)>().map_err(|error| error.to_string())
    });
    match row {
        Ok((version, CqlTimestamp(shown))) => {
            let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let now = i64::try_from(now).unwrap_or(i64::MAX);
            let clock = Finding::clock(shown - now - took / 2, took);
            vec![Finding::good("version", format!("Cassandra {version}")), clock]
        }
        Err(reason) => vec![Finding::wrong("version", reason)],
    }
}

/// Looks for the keyspace, the number of its copies, and the tables of the store.
fn keyspace(cluster: &Cluster, config: &CassandraConfig) -> Vec<Finding> {
    let (state, name) = (cluster.get_cluster_state(), &config.keyspace);
    let Some(known) = state.get_keyspace(name) else {
        let finding = if config.replication.is_empty() {
            let remedy = "`replication` does not say how many copies each data center is to have";
            Finding::wrong("keyspace", format!("there is no keyspace {name}, and {remedy}"))
        } else {
            Finding::good(
                "keyspace",
                format!("there is no keyspace {name}; the first start creates it"),
            )
        };
        return vec![finding];
    };
    let missing = tables("").iter().filter(|(table, _)| !known.tables.contains_key(*table)).count();
    let text = match missing {
        0 => "all tables are there".to_owned(),
        missing => format!("{missing} tables are missing; the first start creates them"),
    };
    let mut findings = vec![Finding::good("tables", text)];
    let copies = match &known.strategy {
        Strategy::NetworkTopologyStrategy { datacenter_repfactors } => datacenter_repfactors,
        other => {
            let text = format!("keyspace {name} is not replicated by data center ({other:?})");
            findings.push(Finding::warning("copies", text));
            return findings;
        }
    };
    for center in &config.datacenters {
        findings.push(match copies.get(center) {
            None | Some(0) => Finding::wrong(
                "copies",
                format!("keyspace {name} has no copies in data center {center}"),
            ),
            Some(count @ (1 | 2)) => Finding::warning(
                "copies",
                format!("{count} in data center {center}: calls there fail while one node is away; use 3"),
            ),
            Some(count) => Finding::good("copies", format!("{count} in data center {center}")),
        });
    }
    findings
}
