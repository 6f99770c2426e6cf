//! The instruction list of a split program, and its generation from a phase's tree.
//!
//! All runtimes use one interpreter for it. Jumps are absolute; a phase ends at `Return` or at the
//! end of its code.

mod holds;
mod program;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use mingle_model::{LevelId, Name, Type};

pub use holds::HoldPlan;
pub use program::Program;

use crate::flat::{Access, Answering, Flat, Kind, Operand, ReadKind, Slot, StmtId, WriteKind};
use crate::flow::Flow;
use crate::hir::{self, StoreId};
use crate::last::last_reads;
use crate::ops::Op;
use crate::split::Mutation;
use crate::split::keep::keep;
use crate::split::phases::{Mode, Phases};
use crate::split::schedule::schedule;
use crate::split::tree::{Node, project};

/// The number of a loop's rounds that one fetch reads for.
pub const PREFETCH_ROUNDS: usize = 1_000;

/// A split transaction.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name.
    pub name: Name,
    /// Its doc comment.
    pub docs: String,
    /// Names and types of the parameters.
    pub params: Vec<(Name, Type)>,
    /// The type of its result.
    pub result: Option<Type>,
    /// True if it is `isolated`.
    pub isolated: bool,
    /// The number of slots; the parameters stand first.
    pub slot_count: usize,
    /// The number of queues of recorded values.
    pub queue_count: usize,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
    /// The first phase that writes.
    pub first_write: Option<usize>,
    /// The counters from which it takes ahead.
    pub holds: Vec<HoldPlan>,
    pub(crate) flat: Arc<Flat>,
}

impl Plan {
    /// Returns the queue of the values that are held, which follows those of the recorded values.
    pub fn held_queue(&self) -> Option<usize> {
        (!self.holds.is_empty()).then(|| self.queue_count - 1)
    }

    /// True if some phase of it needs its origin: a read has a policy, or a take runs ahead.
    pub fn needs_origin(&self) -> bool {
        self.has_policies() || !self.holds.is_empty()
    }

    /// True if a read of it has a policy.
    pub fn has_policies(&self) -> bool {
        let code = self.phases.iter().flat_map(|phase| &phase.code);
        code.into_iter()
            .any(|instr| matches!(instr, Instr::Read { read, .. } if read.answering.is_some()))
    }

    /// Returns the bounded counters that it changes.
    pub fn bounded_writes(&self, program: &hir::Program) -> BTreeSet<(hir::ObjectId, u16)> {
        let code = self.phases.iter().flat_map(|phase| &phase.code);
        let written = code.filter_map(|instr| match instr {
            Instr::Write { write, .. } => match write.kind {
                WriteKind::Collection(kind, field, _) => Some((kind, field)),
                _ => None,
            },
            _ => None,
        });
        let held = self.holds.iter().map(|hold| (hold.kind, hold.field));
        let is_bounded = |(kind, field): &(hir::ObjectId, u16)| {
            program.objects[kind.index()].bounds_of(*field).is_some()
        };
        written.filter(is_bounded).chain(held).collect()
    }

    /// True if it reads before an endorsement.
    pub fn endorses(&self) -> bool {
        self.phases.iter().any(|phase| phase.before_endorsement)
    }
}

/// A phase of a split transaction.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The store that it visits; none for a transaction that visits no store.
    pub store: Option<StoreId>,
    /// The store's level.
    pub level: Option<LevelId>,
    /// Read-only or writing.
    pub mode: Mode,
    /// True if it only serves an endorsement.
    pub before_endorsement: bool,
    /// Its instructions.
    pub code: Vec<Instr>,
    /// The instructions whose reads are the phase's last use of its store: no read or write
    /// follows. A loop is among them if that holds once all of its rounds were prefetched.
    pub last_reads: BTreeSet<usize>,
    pub(crate) tree: Vec<Node>,
}

/// A read as an instruction.
#[derive(Clone, Debug)]
pub struct ReadSpec {
    /// The kind of read.
    pub kind: ReadKind,
    /// The object.
    pub object: Option<Operand>,
    /// Arguments.
    pub args: Vec<Operand>,
    /// The policy of the answer, if it has one.
    pub answering: Option<Answering>,
}

/// A write as an instruction.
#[derive(Clone, Debug)]
pub struct WriteSpec {
    /// The kind of write.
    pub kind: WriteKind,
    /// The object.
    pub object: Option<Operand>,
    /// Arguments.
    pub args: Vec<Operand>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub enum Instr {
    /// A local operation.
    Local {
        /// The slot of the result.
        dst: Slot,
        /// The operation.
        op: Op,
        /// Its operands.
        args: Vec<Operand>,
    },
    /// A copy.
    Copy {
        /// The destination.
        dst: Slot,
        /// The copied value.
        src: Operand,
    },
    /// The time at which the transaction started.
    Now {
        /// The slot of the result.
        dst: Slot,
    },
    /// A fresh id.
    Unique {
        /// The slot of the result.
        dst: Slot,
        /// The site of the call in the program.
        site: u32,
    },
    /// Keeps a value for later phases.
    Record {
        /// The queue.
        queue: u32,
        /// The slot whose value is recorded.
        slot: Slot,
    },
    /// Takes the next value that an earlier phase recorded.
    Replay {
        /// The queue.
        queue: u32,
        /// The slot that receives the value.
        dst: Slot,
    },
    /// Reads sent together in one round trip.
    Fetch(Vec<ReadSpec>),
    /// A read whose answer was fetched before, combined with the transaction's own writes.
    Read {
        /// The read.
        read: ReadSpec,
        /// The slots of the results.
        dsts: Vec<Slot>,
    },
    /// A write.
    Write {
        /// The write.
        write: WriteSpec,
        /// The slot of a command's result.
        dst: Option<Slot>,
    },
    /// A take that runs ahead of the phase of its store.
    Hold {
        /// The slot of the result.
        dst: Slot,
        /// The object.
        object: Operand,
        /// The amount.
        amount: Operand,
        /// Index into [`Plan::holds`].
        hold: u32,
    },
    /// Aborts unless a condition holds.
    Require {
        /// The condition.
        condition: Operand,
        /// The message.
        message: Operand,
        /// The code.
        code: Option<Name>,
        /// The promise that it keeps.
        check: Option<crate::flat::Check>,
    },
    /// Starts the transaction over unless these are equal.
    Agree(Operand, Operand),
    /// Jumps to an instruction.
    Jump(usize),
    /// Jumps to an instruction unless a condition holds.
    JumpUnless(Operand, usize),
    /// Starts counting rounds.
    WhileStart,
    /// Counts a round and jumps back.
    WhileNext(usize),
    /// Ends the innermost `while`.
    WhileEnd,
    /// Starts a loop over lists; without columns it runs `rounds` times.
    ForStart {
        /// The number of rounds of a loop without columns.
        rounds: Operand,
        /// Lists and the slots of their items.
        columns: Vec<(Operand, Slot)>,
        /// The instruction at which the body starts. The code from the next instruction up to it
        /// computes the refs of the prefetched reads.
        body: usize,
        /// The reads fetched in advance, for each chunk of rounds.
        prefetch: Vec<ReadSpec>,
        /// The instruction at which the loop ends.
        end: usize,
    },
    /// Goes to the next round of the innermost `for`, or leaves it.
    ForNext(usize),
    /// Ends the phase.
    Return {
        /// The transaction's result, if this phase computes it.
        value: Option<Operand>,
    },
}

pub(crate) fn plan(
    program: &hir::Program,
    transaction: &hir::Transaction,
    flat: Flat,
    flow: &Flow,
    mutation: Mutation,
) -> Plan {
    let phases = Phases::new(&flat, flow, mutation);
    let kept = keep(&flat, &phases, mutation);
    let mut queues = Queues::default();
    let mut holds = Vec::new();
    let mut built = Vec::new();
    for (index, (phase, kept)) in phases.phases.iter().zip(kept).enumerate() {
        let tree = project(&flat, &phases, &kept, index);
        let tree = schedule(&flat, mutation, tree);
        let mut emit = Emit {
            flat: &flat,
            queues: &mut queues,
            holds: &mut holds,
            code: Vec::new(),
            fetched: HashSet::new(),
            loose: BTreeSet::new(),
        };
        emit.block(&tree);
        let Emit { code, loose, .. } = emit;
        built.push(Phase {
            store: phase.store,
            level: phase.store.map(|store| program.level_of(store)),
            mode: phase.mode,
            before_endorsement: phase.before_endorsement,
            last_reads: last_reads(phase.mode, &code, &loose),
            code,
            tree,
        });
    }
    Plan {
        name: transaction.name.clone(),
        docs: transaction.docs.clone(),
        params: transaction.params().map(|(name, found)| (name.clone(), found.clone())).collect(),
        result: transaction.result.clone(),
        isolated: transaction.isolated.is_some(),
        slot_count: flat.slots.len(),
        queue_count: queues.ids.len() + usize::from(!holds.is_empty()),
        holds: holds::plans(program, transaction, holds),
        first_write: phases.first_write(),
        phases: built,
        flat: Arc::new(flat),
    }
}

/// Numbers the queues of recorded values.
#[derive(Default)]
struct Queues {
    ids: HashMap<(StmtId, Slot), u32>,
}

impl Queues {
    fn id(&mut self, stmt: StmtId, slot: Slot) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry((stmt, slot)).or_insert(next)
    }
}

struct Emit<'a> {
    flat: &'a Flat,
    queues: &'a mut Queues,
    holds: &'a mut Vec<holds::Counter>,
    code: Vec<Instr>,
    /// Reads with a fetch before them.
    fetched: HashSet<StmtId>,
    /// The instructions of the reads without one.
    loose: BTreeSet<usize>,
}

impl Emit<'_> {
    fn block(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Run(id) => self.run(*id),
            Node::Record(id, slot) => {
                let queue = self.queues.id(*id, *slot);
                self.code.push(Instr::Record { queue, slot: *slot });
            }
            Node::Replay(id, slot) => {
                let queue = self.queues.id(*id, *slot);
                self.code.push(Instr::Replay { queue, dst: *slot });
            }
            Node::Fetch(reads) => {
                self.fetched.extend(reads);
                let reads = reads.iter().filter_map(|id| self.read_spec(*id)).collect();
                self.code.push(Instr::Fetch(reads));
            }
            Node::If(id, then, otherwise) => self.branch(*id, then, otherwise),
            Node::While(id, head, body) => {
                let Kind::While { condition, .. } = &self.flat.get(*id).kind else { return };
                self.code.push(Instr::WhileStart);
                let start = self.code.len();
                self.block(head);
                let exit = self.code.len();
                self.code.push(Instr::JumpUnless(condition.clone(), 0));
                self.block(body);
                self.code.push(Instr::WhileNext(start));
                self.code[exit] = Instr::JumpUnless(condition.clone(), self.code.len());
                self.code.push(Instr::WhileEnd);
            }
            Node::For(id, used, prefetch, body) => {
                let Kind::For { count, columns, .. } = &self.flat.get(*id).kind else { return };
                let columns: Vec<(Operand, Slot)> =
                    used.iter().map(|index| columns[*index].clone()).collect();
                let start = self.code.len();
                self.code.push(Instr::Jump(0));
                let mut reads = Vec::new();
                if let Some(prefetch) = prefetch {
                    self.block(&prefetch.steps);
                    self.fetched.extend(&prefetch.reads);
                    reads = prefetch.reads.iter().filter_map(|id| self.read_spec(*id)).collect();
                }
                let body_start = self.code.len();
                self.block(body);
                self.code.push(Instr::ForNext(start));
                let end = self.code.len();
                let rounds = count.clone();
                self.code[start] =
                    Instr::ForStart { rounds, columns, body: body_start, prefetch: reads, end };
            }
            Node::Return(id, is_result) => {
                let Kind::Return { value } = &self.flat.get(*id).kind else { return };
                let value = value.clone().filter(|_| *is_result);
                self.code.push(Instr::Return { value });
            }
        }
    }

    fn branch(&mut self, id: StmtId, then: &[Node], otherwise: &[Node]) {
        let Kind::If { condition, .. } = &self.flat.get(id).kind else { return };
        let test = self.code.len();
        self.code.push(Instr::Jump(0));
        self.block(then);
        if otherwise.is_empty() {
            self.code[test] = Instr::JumpUnless(condition.clone(), self.code.len());
            return;
        }
        let skip = self.code.len();
        self.code.push(Instr::Jump(0));
        self.code[test] = Instr::JumpUnless(condition.clone(), self.code.len());
        self.block(otherwise);
        self.code[skip] = Instr::Jump(self.code.len());
    }

    fn run(&mut self, id: StmtId) {
        let instr = match &self.flat.get(id).kind {
            Kind::Local { dst, op, args } => {
                Instr::Local { dst: *dst, op: op.clone(), args: args.clone() }
            }
            Kind::Copy { dst, src } | Kind::Endorse { dst, src, .. } => {
                Instr::Copy { dst: *dst, src: src.clone() }
            }
            Kind::Now { dst } => Instr::Now { dst: *dst },
            Kind::Unique { dst, site } => Instr::Unique { dst: *dst, site: *site },
            Kind::Read(access) => {
                if !self.fetched.contains(&id) {
                    self.loose.insert(self.code.len());
                }
                Instr::Read { read: read_spec(access), dsts: access.dsts.clone() }
            }
            Kind::Write(access) => {
                let write = WriteSpec {
                    kind: access.kind.clone(),
                    object: object(access),
                    args: args(access),
                };
                Instr::Write { write, dst: access.dsts.first().copied() }
            }
            Kind::Hold(held) => Instr::Hold {
                dst: held.dst,
                object: held.object.0.clone(),
                amount: held.amount.0.clone(),
                hold: holds::index_of(self.holds, held),
            },
            Kind::Require { condition, message, code, check, .. } => Instr::Require {
                condition: condition.clone(),
                message: message.clone(),
                code: code.clone(),
                check: check.clone(),
            },
            Kind::Agree { early, late, .. } => Instr::Agree(early.clone(), late.clone()),
            Kind::If { .. } | Kind::While { .. } | Kind::For { .. } | Kind::Return { .. } => return,
        };
        self.code.push(instr);
    }

    fn read_spec(&self, id: StmtId) -> Option<ReadSpec> {
        match &self.flat.get(id).kind {
            Kind::Read(access) => Some(read_spec(access)),
            _ => None,
        }
    }
}

fn object<K>(access: &Access<K>) -> Option<Operand> {
    access.object.as_ref().map(|(operand, _)| operand.clone())
}

fn args<K>(access: &Access<K>) -> Vec<Operand> {
    access.args.iter().map(|(operand, _)| operand.clone()).collect()
}

fn read_spec(access: &Access<ReadKind>) -> ReadSpec {
    ReadSpec {
        kind: access.kind.clone(),
        object: object(access),
        args: args(access),
        answering: access.answering,
    }
}
