//! Round trips of a phase, counted without running it.

use serde_json::{Value as Json, json};

use crate::code::{PREFETCH_ROUNDS, Phase};
use crate::flat::{Answering, Flat, Kind, ReadKind, StmtId, WriteKind};
use crate::hir::{CollectionRead, CollectionWrite, Policy};
use crate::split::Mode;
use crate::split::tree::Node;
use crate::syntax::token::TextPlaces;

/// The round trips of a phase: a fixed number, and more per round of some loops. Of several
/// branches the most expensive counts. Two reads with the same answer may make fewer round trips, and a write that
/// takes the values of a `unique` which the transaction itself has freed makes two more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// The round trips outside of loops, including the commit of a writing phase.
    pub fixed: u32,
    /// The round trips in loops.
    pub per_iteration: Vec<LoopCost>,
}

/// Round trips of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopCost {
    /// The line at which the loop starts.
    pub line: u32,
    /// The number of round trips.
    pub count: u32,
    /// The number of rounds that share these round trips, fewer at the end; 1 if each round has its
    /// own.
    pub iterations: u32,
}

impl RoundTrips {
    pub(super) fn to_json(&self) -> Json {
        let loops = self.per_iteration.iter().map(|cost| {
            json!({ "loop": format!("line {}", cost.line), "count": cost.count, "iterations": cost.iterations })
        });
        json!({ "fixed": self.fixed, "per_iteration": loops.collect::<Vec<_>>() })
    }
}

pub(super) fn round_trips(flat: &Flat, phase: &Phase, places: &TextPlaces<'_>) -> RoundTrips {
    let mut counting =
        Counting { flat, places, loops: Vec::new(), command_waits: false, written: Vec::new() };
    let fixed = counting.block(&phase.tree) + u32::from(phase.mode == Mode::Write);
    RoundTrips { fixed, per_iteration: counting.loops }
}

/// Returns the longest that a phase waits for reads `by` a bound whose answer may be late, in milliseconds:
/// outside of loops, and in the rounds of loops.
pub(super) fn waits(flat: &Flat, nodes: &[Node]) -> (u64, u64) {
    let (mut once, mut rounds) = (0, 0);
    for node in nodes {
        let (more, in_rounds) = match node {
            Node::Run(id) => match &flat.get(*id).kind {
                Kind::Read(access) => match access.answering {
                    Some(Answering { policy: Policy::By(bound), must_come: false }) => (bound, 0),
                    _ => (0, 0),
                },
                _ => (0, 0),
            },
            Node::If(_, then, otherwise) => {
                let (then, otherwise) = (waits(flat, then), waits(flat, otherwise));
                (then.0.max(otherwise.0), then.1.max(otherwise.1))
            }
            Node::While(_, head, body) => {
                let (head, body) = (waits(flat, head), waits(flat, body));
                (head.0, head.0 + head.1 + body.0 + body.1)
            }
            Node::For(_, _, _, body) => {
                let body = waits(flat, body);
                (0, body.0 + body.1)
            }
            _ => (0, 0),
        };
        once += more;
        rounds += in_rounds;
    }
    (once, rounds)
}

struct Counting<'a> {
    flat: &'a Flat,
    places: &'a TextPlaces<'a>,
    loops: Vec<LoopCost>,
    /// True if a command was issued and may not have been sent yet.
    command_waits: bool,
    /// The earlier writes.
    written: Vec<&'a WriteKind>,
}

impl<'a> Counting<'a> {
    fn block(&mut self, nodes: &[Node]) -> u32 {
        nodes.iter().map(|node| self.node(node)).sum()
    }

    fn fetch(&mut self) -> u32 {
        1 + u32::from(std::mem::take(&mut self.command_waits))
    }

    fn node(&mut self, node: &Node) -> u32 {
        match node {
            Node::Fetch(_) => self.fetch(),
            Node::Run(id) => self.run(*id),
            Node::If(_, then, otherwise) => {
                let (waits, written) = (self.command_waits, self.written.clone());
                let then = self.block(then);
                let waits_then = std::mem::replace(&mut self.command_waits, waits);
                let written_then = std::mem::replace(&mut self.written, written);
                let otherwise = self.block(otherwise);
                self.command_waits |= waits_then;
                for write in written_then {
                    self.note_write(write);
                }
                then.max(otherwise)
            }
            Node::While(id, head, body) => {
                self.note_writes(body);
                let head = self.block(head);
                let body = self.block(body);
                self.add(*id, head + body, 1);
                head
            }
            Node::For(id, _, prefetch, body) => {
                let mut fixed = 0;
                if prefetch.is_some() {
                    fixed += u32::from(std::mem::take(&mut self.command_waits));
                    self.add(*id, 1, PREFETCH_ROUNDS as u32);
                }
                self.note_writes(body);
                let body = self.block(body);
                self.add(*id, body, 1);
                fixed
            }
            Node::Record(..) | Node::Replay(..) | Node::Return(..) => 0,
        }
    }

    /// Records a write, each kind of write once.
    fn note_write(&mut self, write: &'a WriteKind) {
        if !self.written.contains(&write) {
            self.written.push(write);
        }
    }

    /// Records a loop body's writes: the next round may read them.
    fn note_writes(&mut self, body: &[Node]) {
        for node in body {
            match node {
                Node::Run(id) => {
                    if let Kind::Write(access) = &self.flat.get(*id).kind {
                        self.note_write(&access.kind);
                        self.command_waits |=
                            matches!(access.kind, WriteKind::Command(_)) && access.dsts.is_empty();
                    }
                }
                Node::If(_, a, b) | Node::While(_, a, b) => {
                    self.note_writes(a);
                    self.note_writes(b);
                }
                Node::For(_, _, _, body) => self.note_writes(body),
                _ => {}
            }
        }
    }

    fn run(&mut self, id: StmtId) -> u32 {
        match &self.flat.get(id).kind {
            Kind::Read(access) => {
                // A read with a policy is asked alone.
                if access.answering.is_some() {
                    return self.fetch();
                }
                let after_write = self.written.iter().any(|write| write.may_change(&access.kind));
                match &access.kind {
                    // Earlier writes are sent before the query.
                    ReadKind::Query(_) if after_write => 2,
                    // The store has to say which of the transaction's own elements are new.
                    ReadKind::Collection(
                        _,
                        _,
                        CollectionRead::SetSize | CollectionRead::MapSize,
                    ) if after_write => 1,
                    // Entries that come after those that were removed are needed in their place.
                    ReadKind::Collection(_, _, read) if read.is_map_slice() => {
                        let is_removed = |write: &&WriteKind| {
                            let erases =
                                matches!(write, WriteKind::Collection(.., CollectionWrite::Erase));
                            erases && write.may_change(&access.kind)
                        };
                        u32::from(self.written.iter().any(is_removed))
                    }
                    _ => 0,
                }
            }
            Kind::Write(access) => {
                let cost = match &access.kind {
                    WriteKind::Command(_) if !access.dsts.is_empty() => {
                        1 + u32::from(!self.written.is_empty() || self.command_waits)
                    }
                    WriteKind::Command(_) => {
                        self.command_waits = true;
                        0
                    }
                    _ => 0,
                };
                self.note_write(&access.kind);
                cost
            }
            // A read and a commit at the store of the counter, and the reads of this phase again.
            Kind::Hold(_) => 3,
            _ => 0,
        }
    }

    fn add(&mut self, id: StmtId, count: u32, iterations: u32) {
        if count > 0 {
            let stmt = self.flat.get(id);
            let span = self.flat.sources[stmt.source as usize];
            let line = self.places.position(self.places_start(span)).line;
            self.loops.push(LoopCost { line, count, iterations });
        }
    }

    fn places_start(&self, span: crate::syntax::Span) -> usize {
        self.places.source().bytes(span).start
    }
}
