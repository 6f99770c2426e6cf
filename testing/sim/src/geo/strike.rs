//! The effects of faults.

use mingle_checker::geo::FaultKind;
use mingle_geo::flaw::Flaw;
use mingle_geo::{Alarm, DcId};
use mingle_geo_node::Kept as DiskKept;

use super::fault::{Event, Fault, Kept, Place, Shape};
use super::node::Node;
use super::reach::Seen;
use super::world::{Happening, UNDERSTOOD, World};

impl World<'_> {
    fn fault(&self, index: usize) -> Option<(u64, Fault)> {
        match self.plan.schedule.get(index)? {
            Event::Fault { lasts_us, fault, .. } => Some((*lasts_us, *fault)),
            Event::Act { .. } => None,
        }
    }

    /// Returns the replicas of a place, except lost ones.
    fn nodes_of(&self, place: Place) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        let of =
            nodes.filter(|(_, node)| place.has(node.dc, node.partition) && !self.is_gone(node.dc));
        of.map(|(index, _)| index).collect()
    }

    fn places(&self) -> Vec<(u8, u16)> {
        self.nodes.iter().map(|node| (node.dc, node.partition)).collect()
    }

    /// Begins a fault of the schedule.
    pub fn begin(&mut self, index: usize) {
        let Some((lasts_us, fault)) = self.fault(index) else { return };
        if self.is_healed {
            return;
        }
        self.struck += 1;
        self.tell(|| format!("{fault:?} begins"));
        let until_us = self.now_us + lasts_us;
        self.note(index, fault, until_us);
        match fault {
            Fault::Crash { place, kept } => {
                for node in self.nodes_of(place) {
                    self.nodes[node].down += 1;
                    self.stop(node, kept);
                }
            }
            Fault::FailedWrite { dc, partition } => {
                let node = self.index_of(dc, partition);
                self.nodes[node].fails_next = Some(lasts_us);
            }
            Fault::FullDisk { dc, partition } => {
                let node = self.index_of(dc, partition);
                self.nodes[node].full += 1;
            }
            Fault::Pause { place } => {
                self.reach.saw(Seen::Paused);
                for node in self.nodes_of(place) {
                    let paused_until_us = &mut self.nodes[node].paused_until_us;
                    *paused_until_us = until_us.max(*paused_until_us);
                }
            }
            Fault::Slow { dc, partition, by_us } => {
                self.reach.saw(Seen::Slowed);
                let node = self.index_of(dc, partition);
                self.nodes[node].slow_us += by_us;
            }
            Fault::Step { place, by_us } => {
                if by_us < 0 {
                    self.reach.saw(Seen::ClockSteppedBack);
                }
                self.stepped_most_us += by_us.unsigned_abs();
                for node in self.nodes_of(place) {
                    self.nodes[node].clock.stepped_us += by_us;
                }
            }
            Fault::Vanish { client } => self.vanish(client),
            Fault::Unplug { client } => {
                for node in 0..self.nodes.len() {
                    self.links.reconnect(node, self.nodes.len() + client);
                }
            }
            Fault::Lose { dc } => self.lose(dc),
            Fault::Fence { dc } => self.begin_fence(dc),
            Fault::LoseDisk { dc, partition } => self.lose_disk(dc, partition),
            Fault::Admit { dc, asked, is_early } => self.begin_admit(dc, asked, is_early),
            _ => self.begin_on_links(fault, until_us),
        }
        self.queue.push(until_us, Happening::End { fault: index });
    }

    fn begin_on_links(&mut self, fault: Fault, until_us: u64) {
        let places = self.places();
        match fault {
            Fault::Reconnect { a, b } => {
                for from in 0..places.len() {
                    for to in 0..from {
                        let dcs = (places[from].0, places[to].0);
                        if dcs == (a, b) || dcs == (b, a) {
                            self.connect(from, to);
                        }
                    }
                }
            }
            Fault::Cut { shape, is_held: false } => {
                self.reach.saw(Seen::Cut);
                if matches!(shape, Shape::Way(..)) {
                    self.reach.saw(Seen::WayCut);
                }
                self.links.cut(&places, shape, true);
            }
            Fault::Cut { shape, is_held: true } => {
                self.reach.saw(Seen::Held);
                self.links.hold(&places, shape, until_us);
            }
            Fault::Delay { a, b, by_us } => {
                self.reach.saw(Seen::Delayed);
                self.links.delay(&places, Shape::Pair(a, b), by_us as i64);
            }
            Fault::Lossy { one_in } => self.links.noise.push(one_in),
            _ => {}
        }
    }

    /// Ends a fault, unless all was healed meanwhile.
    pub fn end(&mut self, index: usize) {
        let Some((_, fault)) = self.fault(index) else { return };
        if self.is_healed {
            return;
        }
        if let Some(noted) = self.noted.remove(&index) {
            for fault in noted {
                self.recorder.put_right(fault, self.now_us);
            }
        }
        match fault {
            Fault::Crash { place, .. } => {
                for node in self.nodes_of(place) {
                    self.restart(node);
                }
            }
            Fault::FullDisk { dc, partition } => {
                let node = self.index_of(dc, partition);
                self.nodes[node].full = self.nodes[node].full.saturating_sub(1);
                self.free_disk(node);
            }
            Fault::FailedWrite { dc, partition } => {
                let node = self.index_of(dc, partition);
                self.nodes[node].fails_next = None;
            }
            Fault::Slow { dc, partition, by_us } => {
                let node = self.index_of(dc, partition);
                self.nodes[node].slow_us = self.nodes[node].slow_us.saturating_sub(by_us);
            }
            Fault::Cut { shape, is_held: false } => {
                let places = self.places();
                self.links.cut(&places, shape, false);
                self.connect_siblings(shape);
            }
            Fault::Delay { a, b, by_us } => {
                let places = self.places();
                self.links.delay(&places, Shape::Pair(a, b), -(by_us as i64));
            }
            Fault::Lossy { one_in } => {
                let noise = &mut self.links.noise;
                if let Some(place) = noise.iter().position(|other| *other == one_in) {
                    noise.swap_remove(place);
                }
            }
            _ => {}
        }
    }

    /// Ends a fault that keeps this disk full.
    fn free_disk(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if node.full == 0 && std::mem::take(&mut node.is_stalled) {
            let life = node.life;
            self.queue.push(self.now_us, Happening::Written { node: index, life });
        }
    }

    /// Stops a replica at once.
    pub fn stop(&mut self, index: usize, kept: Kept) {
        let node = &mut self.nodes[index];
        let Some(process) = node.process.take() else { return };
        node.life += 1;
        let (dc, partition) = (node.dc, node.partition);
        for replica in process.replicas() {
            self.recorder.claim(self.now_us, replica.replica());
            self.met.add(&replica.replica().counters());
            self.see_stop(replica);
        }
        self.tell(|| format!("d{dc} p{partition} stops"));
        if self.plan.flaw == Some(Flaw::IdentityShared) {
            self.nodes[index].keep_earlier(process);
        }
        self.nodes[index].is_stalled = false;
        let kept = match kept {
            Kept::Nothing => DiskKept::Nothing,
            Kept::Torn => DiskKept::Torn(self.draw_torn(index)),
            Kept::All => DiskKept::All,
        };
        let entries = self.nodes[index].disk.crash(kept);
        self.see_entries(index, &entries);
        if self.random.one_in(2) {
            // Messages from and to it are lost with its connections.
            for end in 0..self.nodes.len() + self.setup.clients {
                self.links.reconnect(index, end);
            }
        }
    }

    /// Draws the number of entries that a torn write leaves.
    fn draw_torn(&mut self, index: usize) -> usize {
        let most = self.nodes[index].disk.torn_most();
        if most == 0 {
            return 0;
        }
        let left = self.random.below(most + 1);
        if left > 0 && left < most {
            self.reach.saw(Seen::TornWrite);
        }
        left
    }

    /// Restarts a replica from its disk, if no other fault keeps it down.
    pub fn restart(&mut self, index: usize) {
        let is_gone = self.is_gone(self.nodes[index].dc);
        let node = &mut self.nodes[index];
        node.down = node.down.saturating_sub(1);
        if node.down > 0 || node.process.is_some() || is_gone {
            return;
        }
        let place = (node.dc, node.partition, node.incarnation);
        let recovered = match self.plan.flaw {
            Some(Flaw::MiddleSkipped) => Ok(node.disk.recover_skipping()),
            _ => node.disk.recover(),
        };
        let entries = match recovered {
            Ok(entries) => entries,
            Err(error) => return self.breaks(UNDERSTOOD, error.to_string()),
        };
        let entries = entries.iter().map(Vec::as_slice);
        let process = self.plan.process(place, entries, !node.has_lost_disk);
        if process.replicas().any(|replica| replica.replica().prepared_count() > 0) {
            self.reach.saw(Seen::PreparedTwice);
        }
        node.process = Some(process);
        node.started_us = self.now_us;
        let (dc, partition, life) = (node.dc, node.partition, node.life);
        self.tell(|| format!("d{dc} p{partition} starts"));
        self.reach.saw(Seen::Restarted);
        self.queue.push(self.now_us, Happening::Tick { node: index, life });
        for sibling in self.siblings(index) {
            self.connect(index, sibling);
        }
    }

    /// Returns the replicas of the same partition.
    fn siblings(&self, index: usize) -> Vec<usize> {
        let partition = self.nodes[index].partition;
        let nodes = self.nodes.iter().enumerate();
        let of = nodes.filter(|(other, node)| *other != index && node.partition == partition);
        of.map(|(other, _)| other).collect()
    }

    /// Reconnects two replicas: messages under way are lost, and siblings are notified.
    fn connect(&mut self, a: usize, b: usize) {
        self.links.reconnect(a, b);
        if self.nodes[a].partition == self.nodes[b].partition {
            for (at, of) in [(a, b), (b, a)] {
                let dc = DcId(self.nodes[of].dc);
                self.on_process(at, |process, machine| process.reconnected(dc, machine));
            }
        }
    }

    /// Reconnects all siblings whose links `shape` selects.
    fn connect_siblings(&mut self, shape: Shape) {
        for a in 0..self.nodes.len() {
            for b in self.siblings(a) {
                let place = |node: &Node| (node.dc, node.partition);
                let (from, to) = (place(&self.nodes[a]), place(&self.nodes[b]));
                if a < b && (shape.cuts(from, to) || shape.cuts(to, from)) {
                    self.connect(a, b);
                }
            }
        }
    }

    /// Loses a data center for good.
    fn lose(&mut self, dc: u8) {
        let lost = self.recorder.run.losses.len() + self.others_fencing(dc);
        let is_there = !self.is_lost(dc) && !self.is_coming(dc);
        if !is_there || lost >= usize::from(self.setup.config.f) {
            return;
        }
        self.reach.saw(Seen::Lost);
        for node in self.nodes_of(Place::Dc(dc)) {
            self.stop(node, Kept::Nothing);
            self.nodes[node].disk.clear();
        }
        self.lost |= 1 << dc;
        self.recorder.lose(self.incarnation_at(dc), self.now_us);
        self.see_second_loss();
    }

    /// Ends all faults except losses.
    pub fn heal(&mut self) {
        self.is_healed = true;
        self.tell(|| "all is put right".to_owned());
        self.links.heal();
        for noted in std::mem::take(&mut self.noted).into_values().flatten() {
            self.recorder.put_right(noted, self.now_us);
        }
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            (node.full, node.slow_us, node.paused_until_us) = (0, 0, 0);
            node.fails_next = None;
            node.down = 0;
            // The operator has set the clocks right.
            let by_us = node.clock.skew.by_us.clamp(-100_000, 100_000);
            (node.clock.skew.by_us, node.clock.skew.drift_us) = (by_us, 0);
            node.clock.stepped_us = 0;
            self.free_disk(index);
            self.restart(index);
        }
        for dc in 0..self.setup.config.dc_count {
            self.connect_siblings(Shape::Off(dc));
        }
        for client in &mut self.clients {
            let by_us = client.clock.skew.by_us.clamp(-100_000, 100_000);
            client.clock.skew.by_us = by_us;
        }
    }

    pub fn on_alarm(&mut self, index: usize, alarm: &Alarm) {
        match alarm {
            Alarm::ClockAhead { .. } => self.reach.saw(Seen::ClockAhead),
            Alarm::Lagging(_) => self.reach.saw(Seen::TransferServed),
            Alarm::Transfer { is_complete: false, .. } => self.reach.saw(Seen::TransferBegun),
            Alarm::Transfer { is_complete: true, .. } => self.reach.saw(Seen::TransferDone),
            // A planted mistake must be detected through the clients' answers.
            Alarm::AboveCut { .. } if self.plan.flaw.is_some() => {}
            Alarm::AboveCut { dc, found, cut } => {
                let how = format!("of {dc} up to {found} was uniform, and it is cut at {cut}");
                self.breaks("what is uniform is not cut off", how);
            }
            Alarm::Malformed(_) if self.plan.flaw.is_some() => {}
            Alarm::Malformed(what) => {
                let node = &self.nodes[index];
                let how = format!("d{} p{} was sent {what}", node.dc, node.partition);
                self.breaks("replicas understand each other", how);
            }
        }
    }

    /// Takes a periodic sample of the world.
    pub fn sample(&mut self) {
        for dc in self.living().collect::<Vec<u8>>() {
            let first = self.index_of(dc, 0);
            let count = usize::from(self.setup.config.partition_count);
            let replica = self.nodes[first..first + count].iter().find_map(Node::replica);
            if let Some(replica) = replica {
                self.recorder.sight(self.now_us, replica.replica());
            }
        }
        self.see_rejoined();
        self.check_progress();
        self.check_told();
    }

    /// Records the begin of a fault, which may be blamed until `until_us`.
    fn note(&mut self, index: usize, fault: Fault, until_us: u64) {
        let noted: Vec<usize> = self
            .kinds(fault)
            .into_iter()
            .map(|kind| self.recorder.wrong(kind, self.now_us))
            .collect();
        self.blame(fault, until_us);
        self.noted.insert(index, noted);
    }

    fn kinds(&self, fault: Fault) -> Vec<FaultKind> {
        let other =
            |name: &str, dc: u8| vec![FaultKind::Other { name: name.to_owned(), dcs: vec![dc] }];
        let each = |place: Place, kind: fn(u8, u16) -> FaultKind| {
            let nodes = self.nodes_of(place).into_iter().map(|index| &self.nodes[index]);
            nodes.map(|node| kind(node.dc, node.partition)).collect()
        };
        match fault {
            Fault::Crash { place, .. } => {
                each(place, |dc, partition| FaultKind::Down { dc, partition })
            }
            Fault::FullDisk { dc, partition } => vec![FaultKind::Disk { dc, partition }],
            Fault::Pause { place } => other("standing still", place.dc()),
            Fault::Slow { dc, .. } => other("slow", dc),
            Fault::Step { place, .. } => {
                each(place, |dc, partition| FaultKind::Clock { dc, partition })
            }
            Fault::Reconnect { a, b } | Fault::Delay { a, b, .. } => {
                vec![FaultKind::Link { from: a, to: b }, FaultKind::Link { from: b, to: a }]
            }
            Fault::Cut { shape, .. } => {
                let mut links = Vec::new();
                for from in self.places() {
                    for to in self.places() {
                        if from != to && shape.cuts(from, to) && !links.contains(&(from.0, to.0)) {
                            links.push((from.0, to.0));
                        }
                    }
                }
                links.into_iter().map(|(from, to)| FaultKind::Link { from, to }).collect()
            }
            Fault::Lossy { .. } => vec![FaultKind::Noise],
            Fault::FailedWrite { .. }
            | Fault::Vanish { .. }
            | Fault::Lose { .. }
            | Fault::Fence { .. }
            | Fault::Admit { .. }
            | Fault::LoseDisk { .. } => Vec::new(),
            Fault::Unplug { client } => {
                vec![FaultKind::Clients { dc: self.clients[client].dc() }]
            }
        }
    }
}
