//! The driver's part for the clients of Mingle's stores, and the settings of partitions, which have the
//! stores' conflicts.

use std::sync::Arc;

use mingle_geo::certify::{CertifierConfig, Conflicts, GroupConfig};
use mingle_geo::wire::Parcel;
use mingle_geo::{Address, Config, DcId, PartitionId, Replica, StrongReplica, Vector};
use mingle_geo_node::{Node, Setup, Time as _};
use mingle_store_embedded::{Hosted, cluster};

use super::super::Settings;
use super::super::cluster::{Asked, Place, Shared, View};
use super::Driver;

/// The time for which partitions tick often after a client has asked for it, in microseconds.
const BUSY_US: u64 = 200_000;

/// Returns the state to share with stores, of a process that starts with this node.
pub fn shared(settings: &Settings, node: &Node) -> Shared {
    let Settings { dc, incarnation, dc_count, partition_count, .. } = *settings;
    let mut ready = Vector::ZERO;
    for replica in replicas(node) {
        ready.join(&replica.uniform_vec().with(dc, replica.known_vec()[dc]));
    }
    let f = replicas(node).next().map_or(0, |replica| replica.config().f);
    Shared::new(Place { dc, incarnation, dc_count, partition_count, f }, ready)
}

fn replicas(node: &Node) -> impl Iterator<Item = &Replica> + Clone {
    node.replicas().map(StrongReplica::replica)
}

impl Driver {
    /// Returns the state shared with Mingle's stores.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Handles a message or a question of a client.
    pub(super) fn on_asked(&mut self, asked: Asked) {
        let dc = self.settings.dc;
        // Callers may have gone away.
        match asked {
            Asked::Send(client, envelope) => {
                if self.links.suspended().is_none() && !self.is_over() {
                    let (from, to) = (Address::Client(client), envelope.to);
                    let parcel = Parcel { from, to, message: envelope.message };
                    self.node.receive(parcel, &mut self.machine);
                }
            }
            Asked::Items(first, prefix, most, answer) => {
                _ = answer.send(cluster::items(replicas(&self.node), &first, &prefix, most));
            }
            Asked::Derive(by) => self.node.derive(&by),
            Asked::Entries(span, snapshot, answer) => {
                _ = answer.send(cluster::entries(replicas(&self.node), &span, &snapshot));
            }
            Asked::Ended(id, answer) => _ = answer.send(cluster::ended(replicas(&self.node), &id)),
            Asked::Acknowledged(answer) => {
                _ = answer.send(cluster::acknowledged(dc, replicas(&self.node)));
            }
        }
    }

    /// True while the clients of stores have asked for ticks.
    pub(super) fn is_busy(&self) -> bool {
        self.machine.now().mono_us < self.busy_until_us
    }

    /// Publishes the progress of the partitions, if a store uses it.
    pub(super) fn publish(&mut self) {
        if self.shared.take_hurry() {
            self.busy_until_us = self.machine.now().mono_us + BUSY_US;
        }
        if self.shared.is_used() {
            self.shared.publish(self.view());
        }
    }

    /// Returns the progress of the partitions.
    pub(super) fn view(&self) -> View {
        let Settings { dc, dc_count, .. } = self.settings;
        let connected = self.links.connected();
        let others = (0..dc_count).map(DcId).filter(|other| *other != dc);
        let members = replicas(&self.node).map(Replica::members).max_by_key(|it| it.epoch());
        let come_up = self.node.replicas();
        let come_up = come_up.filter(|it| it.group().is_member() && !it.replica().is_coming_up());
        View {
            is_up: self.links.suspended().is_none() && !self.is_over() && self.stopped.is_none(),
            visible: cluster::visible(dc, replicas(&self.node)),
            strongly_visible: cluster::strongly_visible(replicas(&self.node)),
            members: members.cloned().unwrap_or_default(),
            come_up: come_up.count() as u16,
            away: others.filter(|other| !connected.contains(other)).collect(),
        }
    }
}

/// Returns the settings of a partition.
pub fn setup(settings: &Settings, number: u16) -> Setup {
    let Settings { dc, incarnation, dc_count, partition_count, .. } = *settings;
    let partition = PartitionId(number);
    // Mingle's stores certify with labels of their own.
    let own = Hosted::conflicts();
    let pairs = settings.conflicts.pairs().chain(own.pairs()).cloned();
    let certifier = CertifierConfig::new(partition, Conflicts::new(pairs));
    let config = Config {
        incarnation,
        strong_only: settings.strong_only.clone(),
        ..Config::new(dc, dc_count, partition, partition_count)
    };
    let group = GroupConfig { incarnation, ..GroupConfig::new(dc, dc_count, certifier) };
    Setup { config, group }
}
