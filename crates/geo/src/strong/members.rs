//! Membership, as decided by the first partition's group.

use super::StrongReplica;
use crate::central::SERVICE;
use crate::certify::{Entry, GroupInput};
use crate::error::Refusal;
use crate::limits::INCARNATION_MAX;
use crate::members::{Member, Quorum, Standing};
use crate::message::{Address, Admit, Envelope, Fence, MembersReply, Message};
use crate::record::Output;
use crate::replica::Input;
use crate::timestamp::Now;

impl StrongReplica {
    /// True if its group decides membership, as the first partition's does.
    fn decides_members(&self) -> bool {
        self.replica.config().partition == SERVICE
    }

    pub(super) fn on_fence(
        &mut self,
        now: Now,
        from: Address,
        fence: Fence,
        out: &mut Vec<Output>,
    ) {
        let Fence { request, dc, incarnation } = fence;
        let (dc_count, f) = (self.replica.config().dc_count, self.replica.config().f);
        let is_known = dc.0 < dc_count && dc_count > 1 && self.decides_members();
        let members = self.group.certifier().membership().members();
        let member = members.of(dc);
        let result = if !is_known || incarnation > member.incarnation {
            Err(Refusal::NotMember { dc, incarnation })
        } else {
            Ok(members.clone())
        };
        let is_new = member == Member { incarnation, standing: Standing::In };
        if result.is_ok() && is_new {
            let entry = Entry::Fence { dc, incarnation, quorum: Quorum::of(dc_count, f) };
            self.give_group(now, GroupInput::Members(entry), out);
        }
        let message = Message::MembersReply(MembersReply { request, result });
        out.push(Output::Send(Envelope { to: from, message }));
    }

    pub(super) fn on_admit(
        &mut self,
        now: Now,
        from: Address,
        admit: Admit,
        out: &mut Vec<Output>,
    ) {
        let Admit { request, dc, incarnation } = admit;
        let members = self.group.certifier().membership().members();
        let member = members.of(dc);
        let is_next = member.standing == Standing::Fenced && incarnation == member.incarnation + 1;
        let is_known = self.decides_members() && incarnation <= INCARNATION_MAX;
        let result = if is_known && (is_next || incarnation <= member.incarnation) {
            Ok(members.clone())
        } else {
            Err(Refusal::NotMember { dc, incarnation })
        };
        if result.is_ok() && is_next {
            let entry = Entry::Admit { dc, incarnation };
            self.give_group(now, GroupInput::Members(entry), out);
        }
        let message = Message::MembersReply(MembersReply { request, result });
        out.push(Output::Send(Envelope { to: from, message }));
    }

    /// Passes the group's membership decisions to the replica.
    pub(super) fn follow_members(&mut self, now: Now, out: &mut Vec<Output>) {
        let members = self.group.certifier().membership().members();
        if members.epoch() > self.replica.members().epoch() {
            let members = members.clone();
            self.give_replica(now, Input::Members(members), out);
        }
    }

    /// Reports on incarnations being given up, once no partition here accepts more of them.
    pub(super) fn report(&mut self, now: Now, out: &mut Vec<Output>) {
        if !self.decides_members() {
            return;
        }
        let (by, epoch) = (self.replica.config().dc, self.replica.members().epoch());
        for (dc, incarnation, known) in self.replica.frozen() {
            let entry = Entry::Frozen { dc, incarnation, by, known, epoch };
            self.give_group(now, GroupInput::Members(entry), out);
        }
    }
}
