//! Processes with several sessions, which see each other's acknowledged commits.

use mingle_checker::geo::{self, Call, What};
use mingle_geo::Event;

use super::reach::Seen;
use super::world::World;

impl World<'_> {
    /// Returns the process of a client, if clients share any. Those of a process begin at one data
    /// center.
    fn process_of(&self, slot: usize) -> Option<u64> {
        let count = 2 * usize::from(self.setup.config.dc_count);
        (self.plan.seed % 3 == 1).then_some((slot % count) as u64)
    }

    /// Lets the next transaction of a client begin above what its process has acknowledged.
    pub fn start_above(&mut self, slot: usize) {
        let Some(process) = self.process_of(slot) else { return };
        let session = &mut self.clients[slot].session;
        let Some(floor) = self.floors.get(&(process, self.recorder.dc_of(session))) else { return };
        let before = session.past_vec();
        session.start_above(floor);
        if before != session.past_vec() {
            self.reach.saw(Seen::FloorRaisedPast);
            let floor = self.recorder.of_floor(floor);
            let what = What::Raised { floor };
            let (begin_us, end_us) = (self.now_us, Some(self.now_us));
            self.clients[slot].record.calls.push(Call { begin_us, end_us, what });
        }
    }

    /// Raises the floor of a client's process to what it acknowledges.
    pub fn raise_floor(&mut self, slot: usize, event: &Event) {
        let Event::Committed { commit_vec, .. } = event else { return };
        let Some(process) = self.process_of(slot) else { return };
        let client = &self.clients[slot];
        // An outcome that was unknown may be found at another data center than the commit's.
        let unanswered = client.unanswered.map(|call| &client.record.calls[call].what);
        let dc = match unanswered {
            Some(What::Transaction(transaction)) => transaction.dc,
            _ => self.recorder.dc_of(&client.session),
        };
        self.floors.entry((process, dc)).or_default().raise(&client.session, commit_vec);
    }

    /// Records the session of a client.
    pub fn record_session(&mut self, slot: usize, session: geo::Session) {
        let process = self.process_of(slot);
        self.recorder.run.processes.extend(process.map(|process| (session.id, process)));
        self.recorder.session(session);
    }
}
