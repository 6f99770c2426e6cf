//! The changes that a transaction makes at a store, and the check whether two transactions can
//! commit without seeing each other.
//!
//! If a store lets two transactions commit and neither has seen the other, their writes to one
//! field must give the same result in either order (Li et al., `RedBlue` consistency: operations
//! commute). Additions to a counter commute, and so do insertions into a set, removals from a set,
//! and appends to a log. If both assign one register, one value is lost. An addition that was
//! computed from the counter's value is wrong once the other transaction has added too.
//!
//! The comparison is between kinds of objects: any two refs may name the same object, unless a ref
//! is made from a fresh id. Conditions are ignored: a decision that a transaction bases on its
//! reads is its own concern.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mingle_model::Name;

use crate::code::Plan;
use crate::flat::{Access, Check, Flat, Kind, Operand, Slot, WriteKind};
use crate::hir::{self, CollectionWrite, ObjectId, StoreId};
use crate::ops::Op;

/// A field of a kind of objects; without a field, the existence of the object.
type Place = (ObjectId, Option<u16>);

/// The kind of change to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Exist,
    MakeNew,
    Assign,
    Add,
    Insert,
    Remove,
    Put,
    Append,
    Clear,
    Delete,
}

impl How {
    fn of(write: CollectionWrite) -> Self {
        match write {
            CollectionWrite::Add => Self::Add,
            CollectionWrite::Insert => Self::Insert,
            CollectionWrite::Remove => Self::Remove,
            CollectionWrite::Put | CollectionWrite::Erase => Self::Put,
            CollectionWrite::Append => Self::Append,
            CollectionWrite::Clear => Self::Clear,
        }
    }

    /// True if both orders give the same result.
    fn commutes_with(self, other: Self) -> bool {
        let alike = [Self::Exist, Self::Add, Self::Insert, Self::Remove, Self::Append, Self::Clear];
        match (self.min(other), self.max(other)) {
            (Self::Exist, Self::MakeNew) => true,
            (one, other) => one == other && alike.contains(&one),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Exist => "writes",
            Self::MakeNew => "makes, if it does not exist,",
            Self::Assign => "assigns",
            Self::Add => "adds to",
            Self::Insert => "inserts into",
            Self::Remove => "removes from",
            Self::Put => "puts or removes an entry of",
            Self::Append => "appends to",
            Self::Clear => "clears",
            Self::Delete => "deletes, with all else of the object,",
        }
    }
}

/// All that a transaction changes at one store.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// For each place, its changes, and whether the written value is computed from the field's old
    /// value.
    fields: BTreeMap<Place, BTreeSet<(How, bool)>>,
    commands: BTreeSet<Name>,
}

/// The reason why two transactions must see each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Their changes to one field do not commute.
    Field {
        /// The field, such as `Account.balance`; the kind alone if the clash is about the object's
        /// existence.
        field: String,
        /// The first transaction's change.
        one: &'static str,
        /// The second transaction's change.
        other: &'static str,
    },
    /// One of them adds, inserts, removes or appends a value computed from the field, and the other
    /// changes the field.
    Computed {
        /// The field.
        field: String,
        /// The change.
        how: &'static str,
        /// True if the first transaction computes its value.
        is_first: bool,
    },
    /// One of them calls a command; the program does not declare its writes.
    Command(Name),
}

impl fmt::Display for Clash {
    /// The reason, without the names of the transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { field, one, other } => {
                write!(f, "the one {one} {field}, and the other {other} it")
            }
            Self::Computed { field, how, is_first } => {
                let which = if *is_first { "first" } else { "second" };
                write!(f, "the {which} one {how} {field} what it has computed from it")
            }
            Self::Command(name) => {
                write!(f, "the program does not say what the command {name} writes")
            }
        }
    }
}

impl Changes {
    /// Collects the changes that a transaction makes at a store.
    pub fn of(program: &hir::Program, plan: &Plan, store: StoreId) -> Self {
        let flat = &plan.flat;
        let sources = Sources::of(flat);
        let mut changes = Self::default();
        for (_, stmt) in flat.live_statements() {
            let Kind::Write(access) = &stmt.kind else { continue };
            if access.store == store {
                changes.add(program, access, &sources);
            }
        }
        changes
    }

    fn add(&mut self, program: &hir::Program, access: &Access<WriteKind>, sources: &Sources) {
        if let WriteKind::Command(operation) = access.kind {
            let declared = &program.stores[access.store.index()].operations;
            self.commands.insert(declared[operation as usize].name.clone());
            return;
        }
        let object = access.object.as_ref().map(|(operand, _)| operand);
        if object.and_then(Operand::slot).is_some_and(|slot| sources.fresh.contains(&slot)) {
            return;
        }
        let is_new = object.is_some_and(|object| sources.new.iter().any(|new| new == object));
        let read: BTreeSet<Place> =
            access.args.iter().flat_map(|(operand, _)| sources.places(operand)).collect();
        let mut note = |kind: ObjectId, field: Option<u16>, how: How| {
            let place = (kind, field);
            let is_computed = field.is_some() && read.contains(&place);
            self.fields.entry(place).or_default().insert((how, is_computed));
        };
        match &access.kind {
            WriteKind::Assign(kind, field) => {
                note(*kind, Some(*field), How::Assign);
                note(*kind, None, How::Exist);
            }
            WriteKind::Collection(kind, field, write) => {
                note(*kind, Some(*field), How::of(*write));
                note(*kind, None, How::Exist);
            }
            WriteKind::Create(kind, fields) => {
                for field in fields {
                    note(*kind, Some(*field), How::Assign);
                }
                note(*kind, None, if is_new { How::MakeNew } else { How::Exist });
            }
            WriteKind::Delete(kind) => {
                let count = program.objects[kind.index()].declared.fields.len() as u16;
                for field in 0..count {
                    note(*kind, Some(field), How::Delete);
                }
                note(*kind, None, How::Delete);
            }
            WriteKind::Command(_) => {}
        }
    }

    /// True if the transaction may change a place whose name `is_named` accepts: `Account.balance`, or
    /// `Account` for the existence of an object. A command may change any.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_lang::changes::Changes;
    /// use mingle_lang::hir::StoreId;
    ///
    /// let text = "store accounts: causal;
    ///     object Account in accounts { key number: string; balance: counter; owner: string; }
    ///     transaction rename(account: ref Account, owner: string) { account.owner = owner; }";
    /// let program = mingle_lang::check(text).program.unwrap();
    /// let rename = program.plan("rename").unwrap();
    /// let changes = Changes::of(&program.checked, rename, StoreId(0));
    /// assert!(changes.changes(&program.checked, |name| name == "Account.owner"));
    /// assert!(!changes.changes(&program.checked, |name| name == "Account.balance"));
    /// ```
    pub fn changes(&self, program: &hir::Program, is_named: impl Fn(&str) -> bool) -> bool {
        let mut places = self.fields.keys();
        !self.commands.is_empty() || places.any(|place| is_named(&shown(program, *place)))
    }

    fn writes(&self) -> bool {
        !self.fields.is_empty() || !self.commands.is_empty()
    }

    /// Returns why two transactions with these changes may not both commit unless one has seen the
    /// other; none if they may. Fields are compared in the order of their declaration.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_lang::changes::Changes;
    /// use mingle_lang::hir::StoreId;
    ///
    /// let text = "store accounts: linearizable;
    ///     object Account in accounts { key number: string; balance: counter; owner: string; }
    ///     transaction deposit(account: ref Account, amount: int) { account.balance.add(amount); }
    ///     transaction rename(account: ref Account, owner: string) { account.owner = owner; }";
    /// let program = mingle_lang::check(text).program.unwrap();
    /// let changes = |name| Changes::of(&program.checked, program.plan(name).unwrap(), StoreId(0));
    /// let [deposit, rename] = ["deposit", "rename"].map(changes);
    /// assert_eq!(deposit.clash(&deposit, &program.checked), None);
    /// assert_eq!(deposit.clash(&rename, &program.checked), None);
    /// let clash = rename.clash(&rename, &program.checked).unwrap().to_string();
    /// assert_eq!(clash, "the one assigns Account.owner, and the other assigns it");
    /// ```
    pub fn clash(&self, other: &Self, program: &hir::Program) -> Option<Clash> {
        let command = self.commands.first().filter(|_| other.writes());
        let command = command.or(other.commands.first().filter(|_| self.writes()));
        if let Some(command) = command {
            return Some(Clash::Command(command.clone()));
        }
        let common = self.fields.iter().filter_map(|(place, ours)| {
            other.fields.get(place).map(|theirs| (*place, ours, theirs))
        });
        // A clash on a field says more than a clash on the object's existence.
        let mut common: Vec<_> = common.collect();
        common.sort_by_key(|((_, field), ..)| field.is_none());
        common.into_iter().find_map(|(place, ours, theirs)| {
            let field = shown(program, place);
            ours.iter().flat_map(|ours| theirs.iter().map(move |theirs| (ours, theirs))).find_map(
                |((one, one_computed), (other, other_computed))| {
                    if !one.commutes_with(*other) {
                        let (one, other) = (one.words(), other.words());
                        return Some(Clash::Field { field: field.clone(), one, other });
                    }
                    let how = if *one_computed { one } else { other };
                    (*one_computed || *other_computed).then(|| Clash::Computed {
                        field: field.clone(),
                        how: how.words(),
                        is_first: *one_computed,
                    })
                },
            )
        })
    }
}

fn shown(program: &hir::Program, (kind, field): Place) -> String {
    let declared = &program.objects[kind.index()].declared;
    match field {
        Some(field) => format!("{}.{}", declared.name, declared.fields[usize::from(field)].name),
        None => declared.name.to_string(),
    }
}

/// The origins of values.
struct Sources {
    /// For each slot, the fields from which its value is computed.
    read: BTreeMap<Slot, BTreeSet<Place>>,
    /// Refs made from a fresh id: no other transaction has them.
    fresh: BTreeSet<Slot>,
    /// Objects that must not exist.
    new: Vec<Operand>,
}

impl Sources {
    fn of(flat: &Flat) -> Self {
        let (mut new, mut unique) = (Vec::new(), BTreeSet::new());
        let mut assigned: BTreeMap<Slot, usize> = BTreeMap::new();
        for (_, stmt) in flat.live_statements() {
            stmt.dsts().into_iter().for_each(|slot| *assigned.entry(slot).or_default() += 1);
            match &stmt.kind {
                Kind::Require { check: Some(Check::New(object)), .. } => new.push(object.clone()),
                Kind::Unique { dst, .. } => unique.extend([*dst]),
                _ => {}
            }
        }
        let is_single = |slot: &Slot| assigned.get(slot) == Some(&1);
        let fresh = flat.live_statements().filter_map(|(_, stmt)| match &stmt.kind {
            Kind::Local { dst, op: Op::MakeRef(_), args } => {
                let is_fresh = |arg: &Operand| {
                    arg.slot().is_some_and(|slot| unique.contains(&slot) && is_single(&slot))
                };
                (is_single(dst) && args.iter().all(is_fresh)).then_some(*dst)
            }
            _ => None,
        });
        let fresh = fresh.collect();
        let mut sources = Self { read: BTreeMap::new(), fresh, new };
        while sources.grow(flat) {}
        sources
    }

    /// Propagates the origins one statement further; returns whether that added any.
    fn grow(&mut self, flat: &Flat) -> bool {
        let before: usize = self.read.values().map(BTreeSet::len).sum();
        for (_, stmt) in flat.live_statements() {
            if let Kind::For { columns, .. } = &stmt.kind {
                for (list, item) in columns {
                    let places: Vec<Place> = self.places(list).collect();
                    self.read.entry(*item).or_default().extend(places);
                }
                continue;
            }
            let operands = stmt.operands().into_iter();
            let mut places: BTreeSet<Place> =
                operands.flat_map(|operand| self.places(operand)).collect();
            if let Kind::Read(access) = &stmt.kind {
                places.extend(access.kind.place());
            }
            for dst in stmt.dsts() {
                self.read.entry(dst).or_default().extend(&places);
            }
        }
        self.read.values().map(BTreeSet::len).sum::<usize>() > before
    }

    fn places(&self, operand: &Operand) -> impl Iterator<Item = Place> {
        let known = operand.slot().and_then(|slot| self.read.get(&slot));
        known.into_iter().flatten().copied()
    }
}
