//! Replacement of a lost incarnation of a data center in a group.
//!
//! All replicas of a group are told the wanted members. The group's leader proposes an
//! [`Entry::Stop`] until the log has it. A replica that follows the log to that entry continues in
//! the next configuration, from the state there. A replica that does not, because it was away or is
//! new, receives messages of a newer configuration, asks for its beginning, and starts there.

use std::collections::BTreeMap;

use super::configuration::{Configuration, Moved};
use super::entry::Entry;
use super::group::{Group, Wanted};
use super::message::{GroupEnvelope, GroupMessage};
use crate::limits::INCARNATION_MAX;
use crate::message::Address;
use crate::record::Alarm;
use crate::timestamp::{DcId, Now};

/// The wanted members of the group.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    wanted: BTreeMap<DcId, u32>,
    /// The time of the next proposal.
    again_us: u64,
}

impl Group {
    /// Requests a log entry about members.
    pub(super) fn on_members(&mut self, now: Now, entry: Entry) {
        let wanted = match entry {
            Entry::Fence { dc, incarnation, .. } => Wanted::Fence(dc, incarnation),
            Entry::Frozen { dc, incarnation, .. } => Wanted::Frozen(dc, incarnation),
            Entry::Admit { dc, incarnation } => Wanted::Admit(dc, incarnation),
            _ => return,
        };
        self.want(now, wanted, entry);
    }

    /// Requests that these incarnations become members; other data centers keep theirs. The call
    /// may be repeated, and is forgotten at a restart. Incarnations only rise, so earlier ones have
    /// no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::certify::{CertifierConfig, Conflicts, Group, GroupConfig};
    /// use mingle_geo::{DcId, Now, PartitionId, Timestamp};
    ///
    /// let certifier = CertifierConfig::new(PartitionId(0), Conflicts::default());
    /// let config = GroupConfig::new(DcId(0), 3, certifier);
    /// let mut group = Group::restore(config, [], Timestamp::ZERO)?;
    /// group.reconfigure(Now { wall_us: 0, mono_us: 0 }, &[(DcId(2), 1)]);
    /// // Only once the group has agreed on that.
    /// assert_eq!(group.configuration().incarnation(DcId(2)), Some(0));
    /// # Ok::<(), String>(())
    /// ```
    pub fn reconfigure(&mut self, now: Now, members: &[(DcId, u32)]) {
        for (dc, incarnation) in members {
            if dc.0 >= self.config.dc_count || *incarnation > INCARNATION_MAX {
                self.alarms.push(Alarm::Malformed("a member of a group"));
                continue;
            }
            let wanted = self.membership.wanted.entry(*dc).or_default();
            if *incarnation > *wanted {
                *wanted = *incarnation;
                self.membership.again_us = now.mono_us;
            }
        }
    }

    /// Returns its configuration, or the last one before it was replaced; the number is 0 before it
    /// knows one.
    pub fn configuration(&self) -> &Configuration {
        self.consensus.configuration()
    }

    /// True if it votes in its group.
    pub fn is_member(&self) -> bool {
        self.consensus.is_member()
    }

    /// True if a later incarnation has taken its place, so that it has stopped for good.
    pub fn is_replaced(&self) -> bool {
        self.consensus.is_replaced()
    }

    /// Proposes the next configuration, if this replica leads and other members are wanted.
    pub(super) fn propose_members(&mut self, now: Now) {
        if self.membership.wanted.is_empty() || now.mono_us < self.membership.again_us {
            return;
        }
        let wanted = self.membership.wanted.iter().map(|(dc, incarnation)| (*dc, *incarnation));
        let next = self.configuration().next(wanted);
        if let Some(next) = next.filter(|_| self.is_leader() && self.config.dc_count > 1) {
            let again_us = self.config.retry_ms.saturating_mul(1_000);
            self.membership.again_us = now.mono_us.saturating_add(again_us);
            self.append(vec![Entry::Stop(next)]);
        }
    }

    /// True if the entry would end a configuration that has already ended, or bring back an
    /// incarnation.
    pub(super) fn is_stale(&self, entry: &Entry) -> bool {
        let Entry::Stop(next) = entry else { return false };
        !next.follows(self.configuration()) || !next.is_sound(self.config.dc_count)
    }

    /// Asks for the group's configuration, if the group seems to have moved on without this
    /// replica.
    pub(super) fn ask(&mut self) {
        let Some(dc) = self.consensus.take_ask() else { return };
        let configuration = self.configuration().id();
        let message = GroupMessage::Ask { configuration, incarnation: self.config.incarnation };
        let to = Address::Replica(dc, self.config.certifier.partition);
        self.sends.push(GroupEnvelope { to, message });
    }

    pub(super) fn on_ask(&mut self, from: Address, known: u32, incarnation: u32) {
        let Some(dc) = self.sibling(from) else { return };
        let configuration = self.configuration();
        let Some(member) = configuration.incarnation(dc) else { return };
        // An asking replica that is not yet a member has to wait.
        if configuration.id() <= known || member < incarnation {
            return;
        }
        let base = self.consensus.log().base().filter(|_| member == incarnation);
        if member == incarnation && base.is_none() {
            return;
        }
        let moved = Moved { configuration: configuration.clone(), base };
        self.then.push(GroupEnvelope { to: from, message: GroupMessage::Moved(moved) });
    }

    pub(super) fn on_moved(&mut self, from: Address, moved: Moved) {
        let Moved { configuration, base } = moved;
        let own = self.configuration();
        let is_sound = self.config.dc_count > 1
            && self.sibling(from).is_some()
            && configuration.is_sound(self.config.dc_count);
        if !is_sound {
            return self.alarms.push(Alarm::Malformed("what has become of a group"));
        }
        if configuration.id() <= own.id() || !self.consensus.may_begin() {
            return;
        }
        if !configuration.has_risen_from(own) {
            return self.alarms.push(Alarm::Malformed("incarnations that were taken back"));
        }
        let member = configuration.incarnation(self.config.dc).unwrap_or_default();
        if member > self.config.incarnation {
            return self.consensus.replaced();
        }
        if member < self.config.incarnation {
            return;
        }
        // Without a base the message was for the previous incarnation.
        let Some(base) = base else { return };
        let (index, certifier) = (base.index, &base.certifier);
        let is_ours = certifier.config().partition == self.config.certifier.partition;
        if !is_ours || certifier.is_stopped() || index <= self.applied {
            let what = "the state with which a group goes on";
            return self.alarms.push(Alarm::Malformed(what));
        }
        // The base includes everything decided before.
        self.decided.clear();
        self.consensus.begin(configuration, *base);
    }

    /// Returns the data center of another replica of the same partition.
    fn sibling(&self, from: Address) -> Option<DcId> {
        match from {
            Address::Replica(dc, partition)
                if partition == self.config.certifier.partition && dc != self.config.dc =>
            {
                Some(dc)
            }
            _ => None,
        }
    }
}
