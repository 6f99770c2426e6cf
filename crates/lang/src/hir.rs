//! The checked program: names resolved, types known, as a tree.
//!
//! This is the unsplit program. The plain interpreter runs it as it stands; flow analysis and
//! splitting start from it.

mod index;
mod key;

use std::sync::Arc;

use mingle_model::{
    BuiltinQuery, EnumType, LevelId, Levels, Name, ObjectType, Schema, Type, Value,
};

use crate::ops::Op;
use crate::syntax::Span;
pub use crate::syntax::ast::Bounds;
pub use index::Index;
pub use key::NewKey;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A store: index into [`Program::stores`].
    StoreId,
    /// A kind of object: index into [`Program::objects`].
    ObjectId,
    /// A function: index into [`Program::functions`].
    FunctionId,
    /// A variable of one transaction or function: index into its `vars`.
    VarId,
}

/// A checked program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its levels.
    pub levels: Levels,
    /// Its stores, as declared.
    pub stores: Vec<Store>,
    /// Its objects, as declared.
    pub objects: Vec<Object>,
    /// Its enumerations, as declared.
    pub enums: Vec<Arc<EnumType>>,
    /// Structs and objects, without spans.
    pub schema: Arc<Schema>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its transactions.
    pub transactions: Vec<Transaction>,
}

impl Program {
    /// The store in which a kind of object lives.
    pub fn store_of(&self, object: ObjectId) -> StoreId {
        self.objects[object.index()].store
    }

    /// The level of a store.
    pub fn level_of(&self, store: StoreId) -> LevelId {
        self.stores[store.index()].level
    }

    /// Returns the transaction called `name`.
    pub fn transaction(&self, name: &str) -> Option<&Transaction> {
        self.transactions.iter().find(|transaction| &*transaction.name == name)
    }
}

/// A store.
#[derive(Clone, Debug)]
pub struct Store {
    /// Its name.
    pub name: Name,
    /// Its level.
    pub level: LevelId,
    /// The span of its name.
    pub span: Span,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// A declared operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name.
    pub name: Name,
    /// True if it is a command, which may write.
    pub is_command: bool,
    /// Names and types of its parameters.
    pub params: Vec<(Name, Type)>,
    /// The type of its result.
    pub result: Option<Type>,
    /// The span of its name.
    pub span: Span,
    /// Its doc comment.
    pub docs: String,
    /// What it asks if the compiler declares it; none if the program does.
    pub builtin: Option<BuiltinQuery>,
}

impl Operation {
    /// Returns the kind of object whose keys it draws.
    pub fn draws(&self) -> Option<&Name> {
        self.builtin.as_ref().and_then(BuiltinQuery::draws)
    }

    /// True if a query always has a result: without rows it gives `none`, or an empty list.
    pub fn is_total(&self) -> bool {
        let is_index = self.builtin.as_ref().is_some_and(|query| query.index().is_some());
        is_index || matches!(self.result, Some(Type::Option(_) | Type::List(_)))
    }
}

/// A kind of object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its key and fields.
    pub declared: Arc<ObjectType>,
    /// Its store.
    pub store: StoreId,
    /// The span of its name.
    pub span: Span,
    /// The span of its store's name.
    pub store_span: Span,
    /// Its doc comment.
    pub docs: String,
    /// The policies of its fields' reads.
    pub policies: Policies,
    /// The bounds of its counters that have some, by field.
    pub bounds: Vec<(u16, Bounds)>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The operation of its store that draws its keys, where the store can promise that they are new.
    pub draw: Option<u32>,
}

impl Object {
    /// Returns the bounds of a field, if it is a counter with bounds.
    pub fn bounds_of(&self, field: u16) -> Option<Bounds> {
        self.bounds.iter().find(|(at, _)| *at == field).map(|(_, bounds)| *bounds)
    }

    /// Returns the value of a counter whose adds have this sum.
    pub fn counted(&self, field: u16, sum: i128) -> i64 {
        let start = self.bounds_of(field).map_or(0, Bounds::start);
        sum.saturating_add(start.into()).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// The policy of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// At a level that is weaker than the store's.
    At(LevelId),
    /// The strongest answer that comes within this number of milliseconds.
    By(u64),
}

/// The policies of the reads of an object's fields.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// For all reads of a field.
    pub fields: Vec<(u16, Policy)>,
    /// For one operation of a field.
    pub operations: Vec<(u16, CollectionRead, Policy)>,
}

impl Policies {
    /// Returns the policy of a field's read.
    pub fn of(&self, field: u16, read: Option<CollectionRead>) -> Option<Policy> {
        let operation =
            self.operations.iter().find(|(at, of, _)| *at == field && Some(*of) == read);
        let all = self.fields.iter().find(|(at, _)| *at == field);
        operation.map(|(_, _, policy)| *policy).or(all.map(|(_, policy)| *policy))
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name.
    pub name: Name,
    /// Its type; none where its declaration has a mistake.
    pub var_type: Option<Type>,
    /// The span of its name.
    pub span: Span,
    /// True if it is a `var`.
    pub mutable: bool,
}

/// A pure function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Its variables, the parameters first.
    pub vars: Vec<Var>,
    /// The number of parameters among them.
    pub param_count: usize,
    /// Bindings before the result.
    pub lets: Vec<(VarId, Expr)>,
    /// Its result; none where it has a mistake.
    pub body: Option<Expr>,
    /// The type of the result.
    pub result: Option<Type>,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its name.
    pub name: Name,
    /// The span of its name.
    pub span: Span,
    /// Its doc comment.
    pub docs: String,
    /// The span of `isolated`, if it is.
    pub isolated: Option<Span>,
    /// Its variables, the parameters first.
    pub vars: Vec<Var>,
    /// The number of parameters among them.
    pub param_count: usize,
    /// The type of its result.
    pub result: Option<Type>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

impl Transaction {
    /// Names and types of the parameters.
    pub fn params(&self) -> impl Iterator<Item = (&Name, &Type)> {
        self.vars[..self.param_count]
            .iter()
            .filter_map(|var| Some((&var.name, var.var_type.as_ref()?)))
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its kind.
    pub kind: StmtKind,
    /// All of it.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Declares a variable.
    Let(VarId, Expr),
    /// Assigns a variable.
    Assign(VarId, Expr),
    /// Writes an object.
    Write(WriteOp),
    /// Branches.
    If {
        /// The condition.
        condition: Expr,
        /// If it holds.
        then_block: Vec<Stmt>,
        /// If not.
        else_block: Vec<Stmt>,
    },
    /// Loops while a condition holds.
    While {
        /// The condition.
        condition: Expr,
        /// The body.
        body: Vec<Stmt>,
    },
    /// Loops over contents as they are at the start.
    For {
        /// The element, or the key.
        first: VarId,
        /// The value, over a map.
        second: Option<VarId>,
        /// The iterated list or collection.
        iterated: Iterated,
        /// The body.
        body: Vec<Stmt>,
    },
    /// Branches on an option.
    Match {
        /// The option.
        scrutinee: Expr,
        /// The variable of the `some` arm.
        some_var: VarId,
        /// If there is a value.
        some_block: Vec<Stmt>,
        /// If not.
        none_block: Vec<Stmt>,
    },
    /// Branches on the level of an answer.
    MatchAnswer {
        /// The answer.
        scrutinee: Expr,
        /// Level, variable and block of each arm, in order.
        arms: Vec<(LevelId, VarId, Vec<Stmt>)>,
        /// If no answer of these levels came in time; none if that cannot be.
        late: Option<Vec<Stmt>>,
    },
    /// Aborts unless a condition holds.
    Require {
        /// The condition.
        condition: Expr,
        /// The message.
        message: Expr,
        /// The code.
        code: Option<Name>,
    },
    /// Ends the transaction.
    Return(Option<Expr>),
    /// Evaluates an expression for its effect.
    Expr(Expr),
}

/// The operand of a `for`.
#[derive(Clone, Debug)]
pub enum Iterated {
    /// A list value.
    List(Expr),
    /// A set, map or log of an object, read at a weaker level if one is named.
    Collection(Place, Option<LevelId>),
    /// A slice of a map: its keys and values.
    Slice {
        /// The map.
        map: Place,
        /// The operation.
        read: CollectionRead,
        /// Its arguments.
        args: Vec<Expr>,
        /// The weaker level at which it is read, if one is named.
        level: Option<LevelId>,
        /// The span of the whole operand.
        span: Span,
    },
}

/// A field of the object that an expression names.
#[derive(Clone, Debug)]
pub struct Place {
    /// The handle.
    pub object: Box<Expr>,
    /// Its kind.
    pub kind: ObjectId,
    /// The field.
    pub field: u16,
    /// The whole place as written.
    pub span: Span,
}

/// A write to an object.
#[derive(Clone, Debug)]
pub enum WriteOp {
    /// `r.f = e`, or with an operation between the old value and `e`.
    Assign(Place, Option<Op>, Expr),
    /// An operation of a collection that writes.
    Collection(Place, CollectionWrite, Vec<Expr>),
    /// `r.f.give(n)` of a counter without a greatest value.
    Give(Place, Box<Expr>),
    /// `r.delete()`
    Delete(Expr, ObjectId),
}

/// An operation of a collection that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CollectionWrite {
    Add,
    Insert,
    Remove,
    Put,
    Erase,
    Append,
    Clear,
}

/// An operation of a collection that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CollectionRead {
    CounterValue,
    SetContains,
    SetSize,
    SetList,
    MapGet,
    MapSize,
    MapKeys,
    MapFirst,
    MapLast,
    MapAfter,
    MapSlice,
    LogLast,
    LogSlice,
    LogSize,
    LogList,
}

impl CollectionRead {
    /// True if it reads a slice of a map.
    pub fn is_map_slice(self) -> bool {
        matches!(self, Self::MapFirst | Self::MapLast | Self::MapAfter | Self::MapSlice)
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// The type of its value.
    pub value_type: Type,
    /// Its span.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// A variable.
    Var(VarId),
    /// A local operation.
    Local(Op, Vec<Expr>),
    /// A register.
    Register(Place),
    /// A read of a collection.
    Collection(Place, CollectionRead, Vec<Expr>),
    /// `r.exists()`
    Exists(Box<Expr>, ObjectId),
    /// `new` or `put`.
    Create {
        /// True if it is `put`.
        is_put: bool,
        /// The kind of object.
        kind: ObjectId,
        /// The key.
        key: NewKey,
        /// Fields and their values, as written.
        inits: Vec<(u16, Expr)>,
    },
    /// A struct: fields and their values, as written.
    Struct(Vec<(u16, Expr)>),
    /// A function's result.
    Call(FunctionId, Vec<Expr>),
    /// An operation of a store: its index there.
    Operation(StoreId, u32, Vec<Expr>),
    /// `r.f.take(n)`, or `r.f.give(n)` of a counter with a greatest value.
    Take {
        /// The counter.
        place: Place,
        /// The amount.
        amount: Box<Expr>,
        /// True if it is `give`.
        gives: bool,
    },
    /// `now()`
    Now,
    /// `unique()` at this site.
    Unique(u32),
    /// A register, a read of a collection or of an existence, with a policy.
    Policy(Box<Expr>, Policy),
    /// `endorse(…)`
    Endorse {
        /// The endorsed value.
        value: Box<Expr>,
        /// The level that the value gets.
        level: LevelId,
        /// The reason.
        reason: Name,
    },
}
