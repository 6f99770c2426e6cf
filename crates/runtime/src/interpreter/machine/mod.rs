//! The interpreter of one phase.
//!
//! It does no I/O. [`Machine::resume`] computes until it needs something of the store, and returns
//! this need; the driver hands in the answers and resumes the machine.

pub(crate) mod answer;
pub(crate) mod hold;
mod labels;
mod map_slice;
mod read;
mod recorded;
mod refuse;
mod register;
mod slice;
mod unique;
mod write;

pub use recorded::Recorded;

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_lang::code::{Instr, PREFETCH_ROUNDS, ReadSpec};
use mingle_lang::flat::{Operand, Slot};
use mingle_lang::hir;
use mingle_lang::ops::{self, TooLarge};
use mingle_lang::split::Mutation;
use mingle_lang::{Phase, Plan, Program};
use mingle_model::{Time, Value};
use mingle_store::{Data, Read, Write};
use rustc_hash::FxHashMap;

use crate::api::error::Error;
use crate::api::settings::Settings;
use crate::interpreter::machine::answer::{Answered, Asked};
use crate::interpreter::machine::hold::{HoldAnswers, HoldAsked};
use crate::interpreter::machine::slice::{Slice, weight};
use crate::interpreter::write_buffer::WriteBuffer;

/// The values that are the same in all phases of one transaction, however often they are tried.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `now()`.
    pub now: Time,
    /// The seed from which `unique()` draws.
    pub seed: u128,
}

/// The next need of a phase.
#[derive(Debug)]
pub enum Need {
    /// Answers to these reads, in one round trip, through [`Machine::supply`].
    Read(Vec<Read>),
    /// The answer to a read with a policy, through [`Machine::supply_answer`].
    Answer(Asked),
    /// The result of a take that runs ahead; the next machine of the phase has it.
    Hold(HoldAsked),
    /// These writes sent before the commit, in one round trip.
    Flush(Vec<Write>),
    /// A turn to compute: other tasks had none for a whole slice.
    Turn,
    /// Nothing: the phase is done.
    Done,
    /// Nothing that can be supplied: data that was read early for an endorsement has changed since,
    /// so the transaction starts over.
    StartOver,
}

/// The results of a phase.
#[derive(Debug)]
pub struct Finished {
    /// Its writes.
    pub writes: Vec<Write>,
    /// The values that it recorded.
    pub recorded: Recorded,
    /// The transaction's result, if this phase computed it.
    pub result: Option<Value>,
}

/// A loop that is running.
#[derive(Debug)]
struct Loop {
    round: u64,
    rounds: u64,
    columns: Vec<(Arc<[Value]>, Slot)>,
    /// The reads that were fetched in advance for the current chunk of rounds.
    chunk: Vec<Read>,
}

/// The interpreter of one phase.
#[derive(Debug)]
pub struct Machine<'a> {
    program: &'a hir::Program,
    store: Option<hir::StoreId>,
    code: &'a [Instr],
    facts: &'a Facts,
    /// The values that earlier phases recorded.
    earlier: &'a Recorded,
    cursors: Vec<usize>,
    slots: Vec<Value>,
    loops: Vec<Loop>,
    at: usize,
    /// The instruction that runs.
    running: usize,
    last_reads: &'a BTreeSet<usize>,
    /// The fetched data, as the store has it.
    fetched: FxHashMap<Read, Data>,
    /// The reads whose answers are awaited.
    awaited: Vec<Read>,
    /// The answer to the read with a policy that comes next.
    answered: Option<Answered>,
    write_buffer: WriteBuffer,
    /// The values of `unique`s that this phase gave objects.
    claims: unique::Claims,
    /// The results of takes that run ahead.
    holds: Option<&'a HoldAnswers>,
    /// Commands that wait to be sent, so fetched data may be out of date.
    commands: Vec<Write>,
    recorded: Recorded,
    result: Option<Value>,
    steps_left: u64,
    slice: Slice,
    bytes_left: usize,
    unbounded: bool,
    mutation: Mutation,
}

/// The starting point of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The program.
    pub program: &'a Program,
    /// The transaction.
    pub plan: &'a Plan,
    /// The transaction's phase to run.
    pub phase: &'a Phase,
    /// The values that are the same in all phases.
    pub facts: &'a Facts,
    /// The values that earlier phases recorded.
    pub earlier: &'a Recorded,
    /// True if bounds on steps and memory are off: after the first phase that writes.
    pub unbounded: bool,
}

impl<'a> Machine<'a> {
    /// Creates a machine at the start of a phase.
    pub fn new(start: Start<'a>, arguments: &[Value], settings: &Settings) -> Self {
        let Start { program, plan, phase, facts, earlier, unbounded } = start;
        let mut slots = vec![Value::Bool(false); plan.slot_count];
        slots[..arguments.len()].clone_from_slice(arguments);
        Self {
            program: &program.checked,
            store: phase.store,
            code: &phase.code,
            facts,
            earlier,
            cursors: vec![0; plan.queue_count],
            slots,
            loops: Vec::new(),
            at: 0,
            running: 0,
            last_reads: &phase.last_reads,
            fetched: FxHashMap::default(),
            awaited: Vec::new(),
            answered: None,
            write_buffer: hold::given_back(earlier, plan, phase.store),
            claims: unique::Claims::default(),
            holds: None,
            commands: Vec::new(),
            recorded: Recorded::new(plan),
            result: None,
            steps_left: settings.steps_max,
            slice: Slice::default(),
            bytes_left: settings.memory_bytes_max,
            unbounded,
            mutation: Mutation::None,
        }
    }

    /// Breaks a part of the interpreter, for tests that check which test notices it.
    #[doc(hidden)]
    pub fn mutate(&mut self, mutation: Mutation) {
        self.mutation = mutation;
    }

    /// Computes until it needs something of the store, or has used up its slice.
    ///
    /// # Errors
    ///
    /// If a `require` fails or a bound is reached.
    pub fn resume(&mut self) -> Result<Need, Error> {
        let code = self.code;
        while let Some(instr) = code.get(self.at) {
            if self.slice.is_used_up() {
                return Ok(Need::Turn);
            }
            self.take_steps(1)?;
            self.running = self.at;
            if let Some(need) = self.step(instr)? {
                return Ok(need);
            }
        }
        Ok(Need::Done)
    }

    /// True if the phase needs nothing more of its store after the reads that it has just asked
    /// for.
    pub fn reads_last(&self) -> bool {
        let fetches_all = match (&self.code.get(self.running), self.loops.last()) {
            (Some(Instr::ForStart { .. }), Some(running)) => {
                running.rounds <= PREFETCH_ROUNDS as u64
            }
            _ => true,
        };
        fetches_all && self.last_reads.contains(&self.running)
    }

    /// Hands in the answers to the awaited reads.
    ///
    /// # Errors
    ///
    /// If they hold more than the transaction may use, or a label that the program does not declare.
    pub fn supply(&mut self, answers: Vec<Data>) -> Result<(), Error> {
        for (read, data) in std::mem::take(&mut self.awaited).into_iter().zip(answers) {
            self.spend(weight(&data))?;
            self.check_labels(&read, &data)?;
            self.fetched.insert(read, data);
        }
        Ok(())
    }

    /// Returns the results of the phase, once it is done.
    pub fn finish(mut self) -> Finished {
        let mut writes = std::mem::take(&mut self.commands);
        writes.extend(self.write_buffer.take_writes());
        Finished { writes, recorded: self.recorded, result: self.result }
    }

    fn take_steps(&mut self, steps: u64) -> Result<(), Error> {
        self.slice.take(steps);
        if self.unbounded {
            return Ok(());
        }
        self.steps_left = self.steps_left.checked_sub(steps).ok_or_else(|| {
            Error::Limit(
                "the transaction took more steps than it may before its first commit".into(),
            )
        })?;
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        self.slice.take_bytes(bytes);
        if self.unbounded {
            return Ok(());
        }
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            Error::Limit(
                "the transaction used more memory than it may before its first commit".into(),
            )
        })?;
        Ok(())
    }

    fn value(&self, operand: &Operand) -> Value {
        match operand {
            Operand::Slot(slot) => self.slots[slot.index()].clone(),
            Operand::Const(value) => value.clone(),
        }
    }

    fn is_true(&self, operand: &Operand) -> bool {
        let value = match operand {
            Operand::Slot(slot) => &self.slots[slot.index()],
            Operand::Const(value) => value,
        };
        value.as_bool().expect("a condition is a bool")
    }

    fn local(&mut self, dst: Slot, op: &ops::Op, args: &[Operand]) -> Result<(), Error> {
        match args {
            [a] => self.compute(dst, op, &[self.value(a)]),
            [a, b] => self.compute(dst, op, &[self.value(a), self.value(b)]),
            _ => {
                let values: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect();
                self.compute(dst, op, &values)
            }
        }
    }

    fn compute(&mut self, dst: Slot, op: &ops::Op, args: &[Value]) -> Result<(), Error> {
        self.take_steps(ops::extra_steps(op, args))?;
        self.slots[dst.index()] = ops::apply(op, args).map_err(too_large)?;
        Ok(())
    }

    fn step(&mut self, instr: &'a Instr) -> Result<Option<Need>, Error> {
        self.at += 1;
        match instr {
            Instr::Local { dst, op, args } => self.local(*dst, op, args)?,
            Instr::Copy { dst, src } => self.slots[dst.index()] = self.value(src),
            Instr::Now { dst } => self.slots[dst.index()] = Value::Time(self.facts.now),
            Instr::Unique { dst, site } => {
                let rounds: Vec<u64> = self.loops.iter().map(|running| running.round).collect();
                self.slots[dst.index()] = ops::unique(self.facts.seed, *site, &rounds);
            }
            Instr::Record { queue, slot } => {
                let value = self.slots[slot.index()].clone();
                // Lists share their items with the data that was read, so only the handle counts.
                self.spend(size_of::<Value>())?;
                self.recorded.queues[*queue as usize].push(value);
            }
            Instr::Replay { queue, dst } => self.replay(*queue, *dst),
            Instr::Fetch(reads) => return Ok(self.fetch(reads)),
            Instr::Read { read, dsts } => return self.read(read, dsts),
            Instr::Write { write, dst } => return self.write(write, *dst),
            Instr::Hold { .. } => return Ok(self.hold(instr)),
            Instr::Require { condition, message, code, check } => {
                if !self.is_true(condition) {
                    return Err(self.refused(message, code.as_ref(), check.as_ref()));
                }
            }
            Instr::Agree(early, late) => {
                if !self.agree(early, late) {
                    return Ok(Some(Need::StartOver));
                }
            }
            Instr::Jump(target) => self.at = *target,
            Instr::JumpUnless(condition, target) => {
                if !self.is_true(condition) {
                    self.at = *target;
                }
            }
            Instr::WhileStart => self.loops.push(Loop {
                round: 0,
                rounds: 0,
                columns: Vec::new(),
                chunk: Vec::new(),
            }),
            Instr::WhileNext(target) => {
                self.current_loop().round += 1;
                self.at = *target;
            }
            Instr::WhileEnd => drop(self.loops.pop()),
            Instr::ForStart { rounds, columns, body, prefetch, end } => {
                if !prefetch.is_empty()
                    && let Some(flush) = self.flush_commands()
                {
                    self.at -= 1;
                    return Ok(Some(flush));
                }
                self.start_loop(rounds, columns);
                return self.round(*body, prefetch, *end);
            }
            Instr::ForNext(start) => {
                let Some(Instr::ForStart { body, prefetch, end, .. }) = self.code.get(*start)
                else {
                    unreachable!("a loop goes back to its start")
                };
                self.current_loop().round += 1;
                // The steps of the next chunk stand behind the loop's start.
                self.at = *start + 1;
                return self.round(*body, prefetch, *end);
            }
            Instr::Return { value } => {
                if let Some(value) = value {
                    self.result = Some(self.value(value));
                }
                self.at = self.code.len();
            }
        }
        Ok(None)
    }

    fn current_loop(&mut self) -> &mut Loop {
        self.loops.last_mut().expect("a loop is running")
    }

    fn replay(&mut self, queue: u32, dst: Slot) {
        let values = &self.earlier.queues[queue as usize];
        let cursor = &mut self.cursors[queue as usize];
        let at = if self.mutation == Mutation::LoopReplaysFirst { 0 } else { *cursor };
        self.slots[dst.index()] = values.get(at).expect("an earlier phase recorded this").clone();
        *cursor += 1;
    }

    fn start_loop(&mut self, rounds: &Operand, columns: &[(Operand, Slot)]) {
        let columns: Vec<(Arc<[Value]>, Slot)> = columns
            .iter()
            .map(|(list, item)| {
                let list = self.value(list);
                (list.as_list().expect("a loop runs over lists").clone(), *item)
            })
            .collect();
        let rounds = match columns.first() {
            Some((list, _)) => list.len() as u64,
            None => self.value(rounds).as_int().expect("a number of rounds is an int") as u64,
        };
        self.loops.push(Loop { round: 0, rounds, columns, chunk: Vec::new() });
    }

    /// Starts a round of the innermost `for`, or leaves it; `at` stands behind its start.
    fn round(
        &mut self,
        body: usize,
        prefetch: &'a [ReadSpec],
        end: usize,
    ) -> Result<Option<Need>, Error> {
        let running = self.current_loop();
        let (round, rounds) = (running.round, running.rounds);
        if round >= rounds {
            self.loops.pop();
            self.at = end;
            return Ok(None);
        }
        let need = if prefetch.is_empty() || round % PREFETCH_ROUNDS as u64 != 0 {
            None
        } else {
            self.prefetch(self.at, body, prefetch)?
        };
        self.bind_items();
        self.at = body;
        Ok(need)
    }

    fn bind_items(&mut self) {
        let Some(running) = self.loops.last() else { return };
        let round = running.round as usize;
        for (list, item) in &running.columns {
            self.slots[item.index()] = list[round].clone();
        }
    }

    /// Computes the refs for the next chunk of rounds, and asks for all of them at once.
    fn prefetch(
        &mut self,
        steps: usize,
        body: usize,
        prefetch: &'a [ReadSpec],
    ) -> Result<Option<Need>, Error> {
        let old = std::mem::take(&mut self.current_loop().chunk);
        for read in old {
            self.fetched.remove(&read);
        }
        let (first, rounds) = (self.current_loop().round, self.current_loop().rounds);
        let last = rounds.min(first + PREFETCH_ROUNDS as u64);
        let cursors = self.cursors.clone();
        let mut reads = Vec::new();
        for round in first..last {
            self.current_loop().round = round;
            self.bind_items();
            for instr in &self.code[steps..body] {
                self.slice.take(1);
                self.step(instr)?;
            }
            for read in prefetch {
                self.requests(read, &mut reads);
            }
        }
        self.current_loop().round = first;
        self.cursors = cursors;
        let need = self.ask(reads);
        if let Some(Need::Read(reads)) = &need {
            let asked = reads.clone();
            self.current_loop().chunk = asked;
        }
        Ok(need)
    }
}

fn too_large(error: TooLarge) -> Error {
    Error::Limit(error.to_string())
}
