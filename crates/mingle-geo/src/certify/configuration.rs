//! Who agrees on a log: one incarnation of each data center (a replica that lost its disk ends its
//! own). A group begins with all data centers' first ones; an [`Entry::Stop`](super::Entry::Stop) ends
//! a configuration and names the next.
//!
//! Incarnations only rise. So a replica that is behind the times takes nothing back, and one that
//! has been replaced never votes again.

use omnipaxos::util::NodeId;
use serde::{Deserialize, Serialize};

use super::certifier::Certifier;
use crate::limits::INCARNATION_MAX;
use crate::timestamp::DcId;
use crate::vector::DCS_MAX;

/// The numbers of one data center's incarnations lie so far apart.
const NODES: NodeId = DCS_MAX as NodeId + 1;

/// Who agrees on a log, for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Counts them, from 1; 0 of a replica that knows of none.
    id: u32,
    /// By data center.
    incarnations: Vec<u32>,
}

impl Configuration {
    /// That with which a system of so many data centers begins.
    pub fn founding(dc_count: u8) -> Self {
        Self { id: 1, incarnations: vec![0; usize::from(dc_count)] }
    }

    /// Counts the configurations of a group, from 1; 0 of a replica that knows of none.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Which incarnation of a data center is a member; none of a replica that knows of none.
    pub fn incarnation(&self, dc: DcId) -> Option<u32> {
        self.incarnations.get(usize::from(dc.0)).copied()
    }

    /// The next, in which at least these are members; none if they are.
    pub(super) fn next(&self, members: impl IntoIterator<Item = (DcId, u32)>) -> Option<Self> {
        let mut incarnations = self.incarnations.clone();
        for (dc, incarnation) in members {
            let known = incarnations.get_mut(usize::from(dc.0))?;
            *known = incarnation.max(*known);
        }
        let is_new = incarnations != self.incarnations;
        is_new.then_some(Self { id: self.id + 1, incarnations })
    }

    /// Whether this may be the configuration after that one.
    pub(super) fn follows(&self, before: &Self) -> bool {
        self.id == before.id + 1 && self.has_risen_from(before)
    }

    /// Whether no data center is taken back to an earlier incarnation than it has in that one.
    pub(super) fn has_risen_from(&self, before: &Self) -> bool {
        let mut pairs = self.incarnations.iter().zip(&before.incarnations);
        self.incarnations.len() >= before.incarnations.len() && pairs.all(|(new, old)| new >= old)
    }

    /// Whether this can be a configuration of so many data centers.
    pub(super) fn is_sound(&self, dc_count: u8) -> bool {
        let are_bounded = self.incarnations.iter().all(|number| *number <= INCARNATION_MAX);
        self.id > 0 && self.incarnations.len() == usize::from(dc_count) && are_bounded
    }

    /// The number of a data center's member.
    pub(super) fn node(&self, dc: DcId) -> NodeId {
        let incarnation = self.incarnation(dc).unwrap_or_default();
        NodeId::from(incarnation) * NODES + NodeId::from(dc.0) + 1
    }

    /// The numbers of all members.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        (0..self.incarnations.len() as u8).map(|dc| self.node(DcId(dc))).collect()
    }
}

/// The data center of a member.
pub(super) fn dc_of(node: NodeId) -> DcId {
    DcId((node.saturating_sub(1) % NODES) as u8)
}

/// What a log comes to where a configuration begins: the same at all its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// How many entries came before.
    pub(super) index: usize,
    /// What they come to.
    pub(super) certifier: Certifier,
}

/// See [`GroupMessage::Moved`](super::GroupMessage::Moved).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// What the sender's group has come to.
    pub(super) configuration: Configuration,
    /// Where it begins; none for who is not a member any more.
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
