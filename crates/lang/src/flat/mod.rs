//! The flattened transaction (MixT §5.1): each statement has at most one effect, operands are slots
//! or constants, and variables are tracked assignment by assignment.
//!
//! A slot is assigned by one statement, except where control flow merges: there each branch copies
//! into the same slot. Functions are inlined. Statements that nothing depends on are dropped.

mod answers;
mod bounded;
mod expr;
mod lazy;
mod live;
mod lower;
mod separate;
mod unique;

use std::collections::HashSet;

use mingle_model::{LevelId, Name, Type, Value};

use crate::hir::{CollectionRead, CollectionWrite, ObjectId, Policy, StoreId};
use crate::ops::Op;
use crate::syntax::Span;

pub(crate) use bounded::may_change;
pub(crate) use lazy::{Choice, Operators};
pub(crate) use lower::{INLINED_MAX, lower};
pub(crate) use separate::{Separated, separate};

/// A slot: index into [`Flat::slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// Returns the index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A statement: index into [`Flat::statements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StmtId(pub u32);

impl StmtId {
    /// Returns the index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operand of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The value in a slot.
    Slot(Slot),
    /// A constant.
    Const(Value),
}

impl Operand {
    /// Returns the slot, if it is one.
    pub fn slot(&self) -> Option<Slot> {
        match self {
            Self::Slot(slot) => Some(*slot),
            Self::Const(_) => None,
        }
    }
}

/// The facts about a slot.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// The variable whose value it holds; none for a part of an expression.
    pub name: Option<Name>,
    /// The place of that variable's assignment, if the program assigns it explicitly.
    pub assigned: Option<Span>,
    /// Its type.
    pub slot_type: Type,
}

/// A flattened transaction.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// Its slots; the parameters stand first.
    pub slots: Vec<SlotInfo>,
    /// The number of parameters.
    pub param_count: usize,
    /// All statements; inner ones stand after the ones around them.
    pub statements: Vec<Stmt>,
    /// The outermost statements.
    pub body: Vec<StmtId>,
    /// Its endorsements.
    pub endorsements: Vec<Endorsement>,
    /// The spans of the program's statements, by number.
    pub sources: Vec<Span>,
    /// The statements that something depends on, by id.
    pub live: Vec<bool>,
    /// Operators that stand as branches.
    pub(crate) choices: Vec<Choice>,
}

impl Flat {
    /// The statement with this id.
    pub fn get(&self, id: StmtId) -> &Stmt {
        &self.statements[id.index()]
    }

    /// Returns the statements around one, innermost first.
    pub fn ancestors(&self, id: StmtId) -> impl Iterator<Item = StmtId> + '_ {
        std::iter::successors(self.get(id).parent, |id| self.get(*id).parent)
    }

    /// Returns the slots into which branches and rounds copy: these copies are not in the program.
    pub fn merged_slots(&self) -> HashSet<Slot> {
        let merged = self.statements.iter().flat_map(|stmt| match &stmt.kind {
            Kind::If { merges: slots, .. }
            | Kind::While { carried: slots, .. }
            | Kind::For { carried: slots, .. } => slots.as_slice(),
            _ => &[],
        });
        merged.copied().collect()
    }

    /// Returns all live statements in program order.
    pub fn live_statements(&self) -> impl Iterator<Item = (StmtId, &Stmt)> {
        let all = self.statements.iter().enumerate();
        all.filter(|(index, _)| self.live[*index]).map(|(index, stmt)| (StmtId(index as u32), stmt))
    }
}

/// An endorsement.
#[derive(Clone, Debug)]
pub struct Endorsement {
    /// The span of the whole endorsement.
    pub span: Span,
    /// The level that the value gets.
    pub level: LevelId,
    /// The reason.
    pub reason: Name,
}

/// A flattened statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its kind.
    pub kind: Kind,
    /// The part of the program that it comes from.
    pub span: Span,
    /// The number of the program's statement that it comes from.
    pub source: u32,
    /// The outermost call whose inlining produced it.
    pub call: Option<Span>,
    /// The statement around it.
    pub parent: Option<StmtId>,
}

/// The kind of a flattened statement.
#[derive(Clone, Debug)]
pub enum Kind {
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
        /// The site.
        site: u32,
    },
    /// A read.
    Read(Access<ReadKind>),
    /// A write.
    Write(Access<WriteKind>),
    /// A take that runs ahead of the phase of its store: what it takes is held until that phase.
    Hold(Held),
    /// Aborts unless a condition holds.
    Require {
        /// The condition.
        condition: Operand,
        /// The span of the condition.
        condition_span: Span,
        /// The message.
        message: Operand,
        /// The span of the message.
        message_span: Span,
        /// The code.
        code: Option<Name>,
        /// The promise that it keeps, where the program has no `require` here.
        check: Option<Check>,
    },
    /// Branches.
    If {
        /// The condition.
        condition: Operand,
        /// The span of the condition.
        condition_span: Span,
        /// If it holds.
        then_block: Vec<StmtId>,
        /// If not.
        else_block: Vec<StmtId>,
        /// The slots into which both branches copy.
        merges: Vec<Slot>,
    },
    /// Loops while a condition holds.
    While {
        /// Computes the condition, before each round.
        head: Vec<StmtId>,
        /// The condition.
        condition: Operand,
        /// The span of the condition.
        condition_span: Span,
        /// The body.
        body: Vec<StmtId>,
        /// The slots that carry variables from round to round.
        carried: Vec<Slot>,
    },
    /// Loops over lists of one length.
    For {
        /// The number of rounds.
        count: Operand,
        /// The span of the iterated operand.
        iterated_span: Span,
        /// The lists, and the slots that hold their items.
        columns: Vec<(Operand, Slot)>,
        /// The body.
        body: Vec<StmtId>,
        /// The slots that carry variables from round to round.
        carried: Vec<Slot>,
    },
    /// Ends the transaction.
    Return {
        /// Its result.
        value: Option<Operand>,
    },
    /// Gives a value another level.
    Endorse {
        /// The slot of the result.
        dst: Slot,
        /// The value.
        src: Operand,
        /// Index into [`Flat::endorsements`].
        endorsement: u32,
    },
    /// Starts the transaction over unless the early and the late value are equal: a branch or loop
    /// around an endorsement is decided once for both.
    Agree {
        /// The value that was read early, for the endorsement.
        early: Operand,
        /// The value that the phase itself computes.
        late: Operand,
        /// The span of the value.
        value_span: Span,
    },
}

/// A promise that a statement keeps by failing.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// Of a `new`: this object does not exist yet.
    New(Operand),
    /// Of a `unique`: no other object has these values.
    Unique {
        /// The kind of object.
        kind: ObjectId,
        /// Index into the indexes of that kind.
        index: u32,
        /// The values of its fields that the object will have.
        values: Vec<Operand>,
    },
}

impl Check {
    fn operands(&self) -> &[Operand] {
        match self {
            Self::New(object) => std::slice::from_ref(object),
            Self::Unique { values, .. } => values,
        }
    }
}

/// A take from a bounded counter that runs ahead.
#[derive(Clone, Debug)]
pub struct Held {
    /// The slot of the result.
    pub dst: Slot,
    /// The store.
    pub store: StoreId,
    /// The kind of object.
    pub kind: ObjectId,
    /// The counter.
    pub field: u16,
    /// The object.
    pub object: (Operand, Span),
    /// The amount.
    pub amount: (Operand, Span),
}

/// An effect at a store.
#[derive(Clone, Debug)]
pub struct Access<K> {
    /// The store.
    pub store: StoreId,
    /// The kind of effect.
    pub kind: K,
    /// The object; none for operations of the store.
    pub object: Option<(Operand, Span)>,
    /// Arguments.
    pub args: Vec<(Operand, Span)>,
    /// The slots of the results: one, or two for the entries of a map.
    pub dsts: Vec<Slot>,
    /// The way in which a read is answered, if it has a policy.
    pub answering: Option<Answering>,
}

/// The policy of a read, and the need of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answering {
    /// The policy.
    pub policy: Policy,
    /// True if an answer must come, however late: some `match` over it has no `late` arm.
    pub must_come: bool,
}

/// The kind of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// The existence of an object.
    Exists(ObjectId),
    /// The same, as the check of a `new`.
    ExistsForNew(ObjectId),
    /// True if no other object has the values of a `unique` that the arguments are; also if one of them is `none`.
    Free {
        /// The kind of object.
        kind: ObjectId,
        /// Index into the indexes of that kind.
        index: u32,
        /// The fields of the `unique`.
        fields: Vec<u16>,
    },
    /// A register.
    Register(ObjectId, u16),
    /// A register as an index has it: an option, `none` if it was never written.
    Indexed(ObjectId, u16),
    /// A collection.
    Collection(ObjectId, u16, CollectionRead),
    /// The contents of a collection, for a `for`.
    Contents(ObjectId, u16),
    /// A query.
    Query(u32),
    /// The query that draws a key for an object of this kind.
    Draw(ObjectId, u32),
}

/// The kind of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// A register.
    Assign(ObjectId, u16),
    /// A collection.
    Collection(ObjectId, u16, CollectionWrite),
    /// All fields of an object.
    Delete(ObjectId),
    /// An object and some of its registers.
    Create(ObjectId, Vec<u16>),
    /// A command.
    Command(u32),
}

impl ReadKind {
    /// Returns the kind of object and the field, if there is one.
    pub fn place(&self) -> Option<(ObjectId, Option<u16>)> {
        match self {
            Self::Exists(kind) | Self::ExistsForNew(kind) => Some((*kind, None)),
            Self::Register(kind, field)
            | Self::Indexed(kind, field)
            | Self::Collection(kind, field, _)
            | Self::Contents(kind, field) => Some((*kind, Some(*field))),
            Self::Free { .. } | Self::Query(_) | Self::Draw(..) => None,
        }
    }
}

impl WriteKind {
    /// True if the result of `read` may depend on this write, at the same store.
    ///
    /// No write changes a drawn key: it is new to the store.
    pub fn may_change(&self, read: &ReadKind) -> bool {
        if matches!(read, ReadKind::Draw(..)) {
            return false;
        }
        if let ReadKind::Free { kind, fields, .. } = read {
            return match self {
                Self::Assign(written, register) => written == kind && fields.contains(register),
                Self::Delete(written) | Self::Create(written, _) => written == kind,
                Self::Collection(..) => false,
                Self::Command(_) => true,
            };
        }
        let Some((kind, field)) = read.place() else { return true };
        match self {
            Self::Assign(written, register) | Self::Collection(written, register, _) => {
                *written == kind && field.is_none_or(|field| field == *register)
            }
            Self::Delete(written) | Self::Create(written, _) => *written == kind,
            Self::Command(_) => true,
        }
    }
}

impl Stmt {
    /// Returns every operand once.
    pub fn operands(&self) -> Vec<&Operand> {
        match &self.kind {
            Kind::Local { args, .. } => args.iter().collect(),
            Kind::Copy { src, .. } | Kind::Endorse { src, .. } => vec![src],
            Kind::Now { .. } | Kind::Unique { .. } => Vec::new(),
            Kind::Read(access) => access.operands(),
            Kind::Hold(held) => vec![&held.object.0, &held.amount.0],
            Kind::Write(access) => access.operands(),
            Kind::Require { condition, message, check, .. } => {
                let checked = check.iter().flat_map(Check::operands);
                [condition, message].into_iter().chain(checked).collect()
            }
            Kind::If { condition, .. } | Kind::While { condition, .. } => vec![condition],
            Kind::For { count, columns, .. } => {
                std::iter::once(count).chain(columns.iter().map(|(list, _)| list)).collect()
            }
            Kind::Return { value } => value.iter().collect(),
            Kind::Agree { early, late, .. } => vec![early, late],
        }
    }

    /// Returns the slots that it assigns.
    pub fn dsts(&self) -> Vec<Slot> {
        match &self.kind {
            Kind::Local { dst, .. }
            | Kind::Copy { dst, .. }
            | Kind::Now { dst }
            | Kind::Unique { dst, .. }
            | Kind::Endorse { dst, .. } => vec![*dst],
            Kind::Read(access) => access.dsts.clone(),
            Kind::Hold(held) => vec![held.dst],
            Kind::Write(access) => access.dsts.clone(),
            Kind::For { columns, .. } => columns.iter().map(|(_, item)| *item).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the blocks that it contains, in program order.
    pub fn blocks(&self) -> Vec<&[StmtId]> {
        match &self.kind {
            Kind::If { then_block, else_block, .. } => vec![then_block, else_block],
            Kind::While { head, body, .. } => vec![head, body],
            Kind::For { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }

    /// Returns the store at which it has an effect.
    pub fn store(&self) -> Option<StoreId> {
        match &self.kind {
            Kind::Read(access) => Some(access.store),
            Kind::Write(access) => Some(access.store),
            _ => None,
        }
    }
}

impl<K> Access<K> {
    fn operands(&self) -> Vec<&Operand> {
        let object = self.object.iter().map(|(operand, _)| operand);
        object.chain(self.args.iter().map(|(operand, _)| operand)).collect()
    }
}
