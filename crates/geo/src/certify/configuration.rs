//! The set of replicas that agree on a log: one incarnation of each data center (a replica that
//! lost its disk ends its incarnation). A group begins with the first incarnations of all data
//! centers. An [`Entry::Stop`](super::Entry::Stop) ends a configuration and names the next.
//!
//! Incarnations only rise. So an outdated replica cannot bring back an earlier one, and a replica
//! that has been replaced never votes again.

use omnipaxos::util::NodeId;
use serde::{Deserialize, Serialize};

use super::certifier::Certifier;
use crate::limits::INCARNATION_MAX;
use crate::timestamp::DcId;
use crate::vector::DCS_MAX;

/// The distance between the node numbers of one data center's successive incarnations.
const NODES: NodeId = DCS_MAX as NodeId + 1;

/// The set of replicas that agree on a log, until the next configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// The number of this configuration, from 1; 0 if the replica knows of none.
    id: u32,
    /// By data center.
    incarnations: Vec<u32>,
}

impl Configuration {
    /// Returns the first configuration of a system of `dc_count` data centers.
    pub fn founding(dc_count: u8) -> Self {
        Self { id: 1, incarnations: vec![0; usize::from(dc_count)] }
    }

    /// Returns the number of this configuration, from 1; 0 if the replica knows of none.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the incarnation of a data center that is a member; `None` if the replica knows of no
    /// configuration.
    pub fn incarnation(&self, dc: DcId) -> Option<u32> {
        self.incarnations.get(usize::from(dc.0)).copied()
    }

    /// Returns the next configuration, with at least these incarnations; `None` if they are members
    /// already.
    pub(super) fn next(&self, members: impl IntoIterator<Item = (DcId, u32)>) -> Option<Self> {
        let mut incarnations = self.incarnations.clone();
        for (dc, incarnation) in members {
            let known = incarnations.get_mut(usize::from(dc.0))?;
            *known = incarnation.max(*known);
        }
        let is_new = incarnations != self.incarnations;
        is_new.then_some(Self { id: self.id + 1, incarnations })
    }

    /// True if this may be the configuration directly after `before`.
    pub(super) fn follows(&self, before: &Self) -> bool {
        self.id == before.id + 1 && self.has_risen_from(before)
    }

    /// True if no data center has an earlier incarnation than in `before`.
    pub(super) fn has_risen_from(&self, before: &Self) -> bool {
        let mut pairs = self.incarnations.iter().zip(&before.incarnations);
        self.incarnations.len() >= before.incarnations.len() && pairs.all(|(new, old)| new >= old)
    }

    /// True if this can be a configuration of `dc_count` data centers.
    pub(super) fn is_sound(&self, dc_count: u8) -> bool {
        let are_bounded = self.incarnations.iter().all(|number| *number <= INCARNATION_MAX);
        self.id > 0 && self.incarnations.len() == usize::from(dc_count) && are_bounded
    }

    /// Returns the node number of a data center's member.
    pub(super) fn node(&self, dc: DcId) -> NodeId {
        let incarnation = self.incarnation(dc).unwrap_or_default();
        NodeId::from(incarnation) * NODES + NodeId::from(dc.0) + 1
    }

    /// Returns the node numbers of all members.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        (0..self.incarnations.len() as u8).map(|dc| self.node(DcId(dc))).collect()
    }
}

/// Returns the data center of a node number.
pub(super) fn dc_of(node: NodeId) -> DcId {
    DcId((node.saturating_sub(1) % NODES) as u8)
}

/// The state of a log at the beginning of a configuration, the same at all its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The number of earlier entries.
    pub(super) index: usize,
    /// The state after these entries.
    pub(super) certifier: Certifier,
}

/// See [`GroupMessage::Moved`](super::GroupMessage::Moved).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The new configuration of the sender's group.
    pub(super) configuration: Configuration,
    /// Its beginning; `None` for a receiver that is no longer a member.
    pub(super) base: Option<Box<Base>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certify::{CertifierConfig, Conflicts, Entry};
    use crate::timestamp::{PartitionId, Timestamp};

    #[test]
    fn numbers_tell_incarnations_apart_and_name_the_data_center() {
        let first = Configuration::founding(DCS_MAX as u8);
        let second = first.next([(DcId(2), 1), (DcId(6), 3)]).expect("two are new");
        assert_eq!(first.nodes(), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(second.nodes(), [1, 2, 11, 4, 5, 6, 31]);
        for dc in (0..DCS_MAX as u8).map(DcId) {
            assert_eq!((dc_of(first.node(dc)), dc_of(second.node(dc))), (dc, dc));
        }
    }

    #[test]
    fn what_comes_after_the_end_has_no_effect_and_is_counted() {
        let config = CertifierConfig::new(PartitionId(0), Conflicts::default());
        let mut certifier = Certifier::new(config);
        let advance = |at| Entry::Advance { to: Timestamp(at) };
        let first = Configuration::founding(3);
        let second = first.next([(DcId(0), 1)]).expect("one is new");
        let other = first.next([(DcId(1), 1)]).expect("one is new");
        certifier.apply(&advance(5));
        assert_eq!(certifier.go_on(), None);
        for entry in [Entry::Stop(second.clone()), advance(9), Entry::Stop(other)] {
            certifier.apply(&entry);
        }
        assert_eq!(certifier.go_on(), Some((second, 2)));
        assert_eq!((certifier.last(), certifier.is_stopped()), (Timestamp(5), false));
        certifier.apply(&advance(7));
        assert_eq!(certifier.last(), Timestamp(7));
    }

    #[test]
    fn nothing_is_taken_back() {
        let first = Configuration::founding(3);
        let second = first.next([(DcId(1), 2)]).expect("one is new");
        assert!(second.follows(&first) && !first.follows(&second));
        assert_eq!(second.next([(DcId(1), 1), (DcId(0), 0)]), None);
        assert_eq!(first.next([(DcId(3), 1)]), None, "there is no such data center");
        let stale = first.next([(DcId(0), 1)]).expect("one is new");
        let third = second.next([(DcId(0), 1)]).expect("one is new");
        assert!(third.follows(&second) && !third.follows(&first) && !stale.follows(&second));
        assert!(!Configuration { id: 3, ..stale }.follows(&second));
    }

    #[test]
    fn what_cannot_be_a_configuration_is_known() {
        assert!(Configuration::founding(3).is_sound(3));
        assert!(!Configuration::founding(3).is_sound(5));
        assert!(!Configuration::default().is_sound(3));
        let most = Configuration { id: 2, incarnations: vec![0, 0, INCARNATION_MAX] };
        assert!(most.is_sound(3));
        let more = Configuration { id: 2, incarnations: vec![0, 0, INCARNATION_MAX + 1] };
        assert!(!more.is_sound(3));
    }
}
