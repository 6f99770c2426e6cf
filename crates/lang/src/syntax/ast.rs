//! The syntax tree, as the program is written.

mod bounds;
mod enumeration;
mod import;
mod operator;

use mingle_model::Name;

use super::token::Span;

pub use bounds::Bounds;
pub use enumeration::{Enum, EnumValue};
pub use import::Import;
pub use operator::BinaryOp;

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its imports, in order.
    pub imports: Vec<Import>,
    /// Its items, in order.
    pub items: Vec<Item>,
    /// True if a declaration, or a part of one that other parts may name, could not be read.
    pub is_incomplete: bool,
    /// The names of transactions that are left out: their results are known.
    pub left_out: Vec<Name>,
}

/// A name and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    /// The name; empty if it is missing in the source.
    pub name: Name,
    /// Its place.
    pub span: Span,
}

/// `allow W0502 because "…"`, before an item or statement in which a warning does not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Allow {
    /// The codes of the warnings.
    pub codes: Vec<Ident>,
    /// The place of the reason; none if it is missing.
    pub reason: Option<Span>,
    /// Its place.
    pub span: Span,
}

/// A top-level item.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The lines of its doc comment, joined.
    pub docs: String,
    /// The warnings that do not matter in it.
    pub allows: Vec<Allow>,
    /// Its kind and contents.
    pub kind: ItemKind,
    /// The span of the whole item, without `allow`.
    pub span: Span,
}

/// The kind of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `level name between above, above and below, below;`
    Level {
        /// The new level.
        name: Ident,
        /// The levels above it.
        above: Vec<Ident>,
        /// The levels below it.
        below: Vec<Ident>,
    },
    /// `store name: level;`, with operations or without.
    Store(Store),
    /// `object Name in store { … }`
    Object(Object),
    /// `struct Name { … }`
    Struct(Struct),
    /// `enum Name { … }`
    Enum(Enum),
    /// `fn name(…) -> type { … }`
    Function(Function),
    /// `transaction name(…) { … }`
    Transaction(Transaction),
}

/// A store.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// Its name.
    pub name: Ident,
    /// Its level.
    pub level: Ident,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// A declared query or command.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Doc comment.
    pub docs: String,
    /// True if it writes.
    pub is_command: bool,
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its result type.
    pub result: Option<TypeExpr>,
    /// The span of the whole declaration.
    pub span: Span,
}

/// A parameter, or a struct's field.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Doc comment, of a struct's field.
    pub docs: String,
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub param_type: TypeExpr,
}

/// A kind of object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: Ident,
    /// The store that it lives in.
    pub store: Ident,
    /// Its key.
    pub key: Param,
    /// Its fields.
    pub fields: Vec<ObjectField>,
    /// Its indexes.
    pub indexes: Vec<Index>,
}

/// An index of an object: `index by field, field as name;` or `unique field, field as name;`
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Doc comment.
    pub docs: String,
    /// True if it is a `unique`.
    pub is_unique: bool,
    /// The fields that it is ordered by.
    pub fields: Vec<Ident>,
    /// Its name, if that is written.
    pub name: Option<Ident>,
    /// The span of the whole declaration.
    pub span: Span,
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectField {
    /// Doc comment.
    pub docs: String,
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub field_type: TypeExpr,
    /// The policy of all its reads.
    pub policy: Option<Policy>,
    /// The policies of single reading operations, by name.
    pub operation_policies: Vec<(Ident, Policy)>,
    /// Its default.
    pub default: Option<Expr>,
    /// The span of the whole field.
    pub span: Span,
}

/// The policy of a read: how strong, or how fast, its answer must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its kind.
    pub kind: PolicyKind,
    /// Its place.
    pub span: Span,
}

/// The kind of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyKind {
    /// `at level`
    At(Ident),
    /// `by duration`, as written.
    By(Ident),
}

/// A struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    /// Its name.
    pub name: Ident,
    /// Its fields.
    pub fields: Vec<Param>,
}

/// A pure function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its result's type.
    pub result: TypeExpr,
    /// The bindings before the result.
    pub lets: Vec<Let>,
    /// The result.
    pub body: Expr,
    /// The braces and their contents.
    pub body_span: Span,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The place of `isolated`, if the transaction has it.
    pub isolated: Option<Span>,
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its result's type.
    pub result: Option<TypeExpr>,
    /// Its body.
    pub body: Block,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    /// Its kind.
    pub kind: TypeKind,
    /// Its place.
    pub span: Span,
}

/// The kind of a written type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// A built-in value type or a struct, by name.
    Named(Name),
    /// `ref O`
    Ref(Ident),
    /// `option<T>`
    Option(Box<TypeExpr>),
    /// `list<T>`
    List(Box<TypeExpr>),
    /// `counter`, with its bounds.
    Counter(Bounds),
    /// `set<T>`
    Set(Box<TypeExpr>),
    /// `map<K, V>`
    Map(Box<TypeExpr>, Box<TypeExpr>),
    /// `log<T>`
    Log(Box<TypeExpr>),
    /// `rushed<T>`
    Rushed(Box<TypeExpr>),
    /// A mistake that was reported.
    Error,
}

/// Statements in braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Stmt>,
    /// The braces and their contents.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The warnings that do not matter in it.
    pub allows: Vec<Allow>,
    /// Its kind.
    pub kind: StmtKind,
    /// The span of the whole statement, without `allow`.
    pub span: Span,
}

/// `let` or `var`.
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    /// True if it is a `var`.
    pub mutable: bool,
    /// The variable.
    pub name: Ident,
    /// Its written type.
    pub written_type: Option<TypeExpr>,
    /// Its value.
    pub value: Expr,
    /// The span of the whole binding.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `let` or `var`.
    Let(Let),
    /// `place = value;` and the like.
    Assign {
        /// A variable or a field.
        place: Expr,
        /// The operator.
        op: AssignOp,
        /// The value.
        value: Expr,
    },
    /// `if`.
    If(If),
    /// `while`.
    While {
        /// The condition.
        condition: Expr,
        /// The body.
        body: Block,
    },
    /// `for`.
    For {
        /// The first variable.
        first: Ident,
        /// The second one, over a map.
        second: Option<Ident>,
        /// The iterated expression.
        iterated: Expr,
        /// The body.
        body: Block,
    },
    /// `match`.
    Match {
        /// The option.
        scrutinee: Expr,
        /// The variable of the `some` arm.
        some_name: Ident,
        /// The `some` arm.
        some_block: Block,
        /// The `none` arm.
        none_block: Block,
        /// True if the `some` arm is written first.
        some_first: bool,
    },
    /// `match` over an answer that may be weak or late.
    MatchAnswer {
        /// The answer.
        scrutinee: Expr,
        /// The arms, as written.
        arms: Vec<AnswerArm>,
    },
    /// `require`.
    Require {
        /// The condition.
        condition: Expr,
        /// The message.
        message: Expr,
        /// The code after `as`.
        code: Option<Ident>,
    },
    /// `return`.
    Return(Option<Expr>),
    /// An expression that is evaluated for its effect.
    Expr(Expr),
    /// A mistake that was reported.
    Error,
}

/// `level(name) => { … }`, or `late => { … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerArm {
    /// The level, or `late`.
    pub level: Ident,
    /// The variable of the answer; none in the arm of a late answer.
    pub name: Option<Ident>,
    /// The arm.
    pub block: Block,
}

/// An `if` statement.
#[derive(Clone, Debug, PartialEq)]
pub struct If {
    /// The condition.
    pub condition: Expr,
    /// The first branch.
    pub then_block: Block,
    /// The other branch.
    pub else_branch: Option<Else>,
}

/// The branch after `else`.
#[derive(Clone, Debug, PartialEq)]
pub enum Else {
    /// A block.
    Block(Block),
    /// Another `if`.
    If(Box<If>, Span),
}

/// `=`, `+=` or `-=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
}

/// A field's name and value in braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Init {
    /// The field.
    pub name: Ident,
    /// Its value.
    pub value: Expr,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `true`, `false`
    Bool(bool),
    /// An integer, including its sign if the literal is negated in place.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    String(Name),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A variable.
    Name(Name),
    /// `e.field`
    Field(Box<Expr>, Ident),
    /// `e.method(…)`
    Method(Box<Expr>, Ident, Vec<Expr>),
    /// `O[key]`
    Index(Ident, Box<Expr>),
    /// `new O { … }`, or `put O { … }`
    Create {
        /// True if it is `put`.
        is_put: bool,
        /// The kind of object.
        object: Ident,
        /// The fields.
        inits: Vec<Init>,
    },
    /// `S { … }`
    Struct(Ident, Vec<Init>),
    /// `[…]`
    List(Vec<Expr>),
    /// `some(e)`
    Some(Box<Expr>),
    /// `none`
    None,
    /// `f(…)`
    Call(Ident, Vec<Expr>),
    /// `!e`
    Not(Box<Expr>),
    /// `-e`
    Negate(Box<Expr>),
    /// `a op b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `(e)`
    Paren(Box<Expr>),
    /// `if c { a } else { b }`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `e at level`, `e by duration`
    Policy(Box<Expr>, Policy),
    /// `endorse(e) as level because "…"`
    Endorse {
        /// The endorsed expression.
        value: Box<Expr>,
        /// The level that it is endorsed as.
        level: Ident,
        /// The reason.
        reason: Option<(Name, Span)>,
    },
    /// A mistake that was reported.
    Error,
}
