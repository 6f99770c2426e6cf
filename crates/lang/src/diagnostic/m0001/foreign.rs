//! The words for syntax of other languages: each says how this language writes the same.

use super::super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// Syntax that other languages have.
#[derive(Clone, Debug)]
pub(crate) enum Foreign {
    /// A string in quotes of another kind.
    Quotes,
    /// A string with expressions in it.
    Template,
    /// An invisible character, by its code.
    Blank(char),
    /// A comment that begins with this.
    Comment(&'static str),
    /// A block comment.
    BlockComment,
    /// `#[…]`
    Attribute,
    /// A sign that means another one here.
    Sign { found: String, means: String },
    /// A token that stands twice in a row.
    Twice(String),
    /// A closing bracket or brace without an opening one.
    Stray(&'static str),
    /// A `;` where nothing ends.
    Surplus(&'static str),
    /// A `}` that ends the item too early, and the place of the statement after it.
    EndsEarly(Span),
    /// `a in b`
    In,
    /// `=` where a condition is compared.
    AssignInCondition,
    /// `i++`
    Increment { found: &'static str, means: &'static str },
    /// `x *= 2`
    CompoundAssign(String),
    /// An assignment to an entry in brackets.
    AssignEntry,
    /// `list[i]` or `map[k]`
    IndexValue,
    /// `a::b`
    Path,
    /// `0..10`
    Range,
    /// `a ? b : c`
    Ternary,
    /// `a?.b`, or `a?`
    OptionMark,
    /// `a ** b`
    Power,
    /// `x => x + 1`
    Lambda,
    /// `x as int`
    Cast,
    /// `let mut x`
    LetMut,
    /// A declaration of a variable that begins with another word.
    Declares(String),
    /// `int x = 1`
    TypeFirst,
    /// `let x;`
    NoValue,
    /// `elif`
    ElseIf(String),
    /// `for (let i = 0; …; …)`
    CountingFor,
    /// `for x of xs`, `foreach`
    ForEach(String),
    /// `loop`, `do`
    Loop(String),
    /// `switch`, `case`
    Switch(String),
    /// An arm without braces.
    ArmBlock,
    /// `_ =>` in a `match`
    RestArm,
    /// `throw`, `raise`, `assert`
    Throw(String),
    /// `println!(…)`
    Macro(String),
    /// `await x`
    Await(String),
    /// `try`
    Try(String),
    /// `return` in a function.
    FunctionReturn,
    /// `;` after the value of a function.
    FunctionSemicolon,
    /// A field without a value in braces.
    Shorthand,
    /// A statement in a function.
    FunctionStatement,
    /// A value as the last line of a transaction.
    LastValue,
    /// A statement of SQL.
    Sql(String),
    /// `new O(…)`
    NewCall,
    /// `delete x`
    Delete(String),
    /// A branch or loop without braces.
    Braces,
    /// Braces that belong to no statement.
    Block,
    /// A `require` without a message.
    RequireMessage,
    /// `string?`
    OptionalType,
    /// `string[]`, `[string]`
    ArrayType,
    /// A type's arguments in other brackets.
    TypeArguments { name: String },
    /// A type or word of another language.
    TypeName { found: String, means: String },
    /// `varchar(20)`
    SizedType,
    /// `ref<O>`, `&O`
    RefType,
    /// `a | b` of types.
    Union,
    /// A parameter or field with its type first.
    TypeBefore,
    /// A parameter or field without a type.
    NoType,
    /// `x?: int`
    OptionalParam,
    /// `x: int = 1` as a parameter.
    ParamDefault,
    /// An item that begins with another word.
    ItemWord { found: String, means: &'static str },
    /// A word before an item.
    Modifier(String),
    /// `: int` before a body.
    ResultColon,
    /// No result of a function.
    NoResult,
    /// An object without a store.
    NoStore,
    /// An object without a key.
    NoKey,
    /// A key after another field.
    LateKey,
    /// A second key.
    TwoKeys,
    /// A word before a field.
    FieldWord(String),
    /// A rule of a column after its type.
    ColumnRule(String),
    /// A field declared unique after its type.
    UniqueColumn(String),
    /// `unique by field`
    UniqueBy,
    /// `unique (field)`
    UniqueParentheses,
    /// `default 1`
    DefaultWord,
    /// A store without a level.
    NoLevel,
    /// A statement outside a transaction.
    Outside,
    /// `;` between the fields of a struct, or `,` between those of an object.
    Separator { found: &'static str, means: &'static str },
    /// `key id: string;` written with another word order.
    KeyWord,
    /// A condition with `else` and a message, without `require`.
    NoRequire,
    /// A condition before braces, without its word.
    NoHead,
    /// An `allow` without a reason.
    AllowReason,
}

/// Returns the title, the label, and the advice in words.
fn words(foreign: &Foreign) -> (String, String, String) {
    use Foreign as F;
    let say = |title: &str, label: &str, help: &str| {
        (title.to_owned(), label.to_owned(), help.to_owned())
    };
    match foreign {
        F::Quotes => say("a string stands in double quotes", "other quotes", "write double quotes"),
        F::Template => say("a string holds no expressions", "a string in other quotes, with an expression in it", "join the parts with `+`"),
        F::Blank(blank) => (
            format!("an invisible character, U+{:04X}", u32::from(*blank)),
            "it looks like a blank, or like nothing".into(),
            "write an ordinary blank".into(),
        ),
        F::Comment(found) => (
            format!("a comment begins with `//`, not with `{found}`"),
            "a comment of another language".into(),
            "write `//`".into(),
        ),
        F::BlockComment => say("there are no block comments", "write `//` before each line", "write `//` before each line"),
        F::Attribute => say("there are no attributes", "an attribute of another language", "remove it"),
        F::Sign { found, means } => (
            format!("`{found}` is written `{means}`"),
            format!("write `{means}`"),
            format!("write `{means}`"),
        ),
        F::Twice(text) => (
            format!("`{text}` stands here twice"),
            "the second one".into(),
            "remove one".into(),
        ),
        F::Stray(text) => (format!("this `{text}` closes nothing"), format!("no opening one belongs to this `{text}`"), "remove it".into()),
        F::Surplus(text) => (format!("no `{text}` stands here"), format!("this `{text}` ends nothing"), "remove it".into()),
        F::EndsEarly(_) => say("this `}` ends the item, but statements follow", "this ends the item", "remove it"),
        _ => operator_words(foreign).or_else(|| statement_words(foreign)).unwrap_or_else(|| declared_words(foreign)),
    }
}

fn operator_words(foreign: &Foreign) -> Option<(String, String, String)> {
    use Foreign as F;
    let say = |title: &str, label: &str, help: &str| {
        (title.to_owned(), label.to_owned(), help.to_owned())
    };
    Some(match foreign {
        F::In => say("`in` belongs to `for`; `contains` tests for membership", "a test for membership", "write `contains`"),
        F::AssignInCondition => say("`=` assigns; `==` compares", "an assignment in a condition", "compare with `==`"),
        F::Increment { found, means } => (
            format!("there is no `{found}`: write `{means}`"),
            format!("`{found}` of other languages"),
            format!("write `{means}`"),
        ),
        F::CompoundAssign(found) => (
            format!("there is no `{found}`: only `=`, `+=` and `-=` assign"),
            "this does not assign".into(),
            "write it out".into(),
        ),
        F::AssignEntry => say("an entry of a map is written with `put`", "brackets only make refs, as in `Order[key]`", "write `put`"),
        F::IndexValue => say("brackets only make refs, as in `Order[key]`: `get` reads from a list or map", "an index", "write `get`"),
        F::Path => say("there are no paths: `.` stands before a field or an operation", "a path of another language", "write `.`"),
        F::Range => say("there are no ranges: `for` runs over a list, set, map or log", "a range", "count with `while`: `var i = 0; while i < 10 { i += 1; }`"),
        F::Ternary => say("there is no `? :`: an `if` gives a value", "a choice of another language", "write an `if`"),
        F::OptionMark => say("there is no `?`: `match` and `??` take the value out of an option", "`?` of other languages", "write `value ?? default`, or `match value { some(x) => { … } none => { … } }`"),
        F::Power => say("there is no `**`: multiply with `*`", "a power", "write `x * x`"),
        F::Lambda => say("there are no anonymous functions", "a function as a value", "declare an `fn`, or write a `for`"),
        F::Cast => say("`as` does not convert: `string(x)`, `int(x)` and `float(x)` do", "a conversion of another language", "write a call"),
        _ => return None,
    })
}

fn statement_words(foreign: &Foreign) -> Option<(String, String, String)> {
    use Foreign as F;
    let say = |title: &str, label: &str, help: &str| {
        (title.to_owned(), label.to_owned(), help.to_owned())
    };
    let word = |title: String, help: &str| (title, "a word of another language".to_owned(), help.to_owned());
    Some(match foreign {
        F::LetMut => say("a variable that changes is declared with `var`", "`mut` of another language", "write `var`"),
        F::Declares(found) => word(format!("`{found}` declares no variable: `let` does, and `var` one that changes"), "write `let`"),
        F::TypeFirst => say("a variable is declared with `let` or `var`", "a type before the name", "write `let`"),
        F::NoValue => say("a variable has a value from the start", "no value", "write `= …` after the name or type"),
        F::ElseIf(found) => word(format!("`{found}` is written `else if`"), "write `else if`"),
        F::CountingFor => say("a `for` counts nothing: it runs over a list, set, map or log", "a `for` of another language", "count with `while`: `var i = 0; while i < 10 { i += 1; }`"),
        F::ForEach(found) => (format!("`for` names a variable, `in` and a collection, not `{found}`"), "a `for` of another language".into(), "write `for x in xs`".into()),
        F::Loop(found) => word(format!("there is no `{found}`: a loop is a `while` with a condition, or a `for`"), "write `while` and a condition"),
        F::Switch(found) => word(format!("there is no `{found}`"), "write `if … else if …`; `match` takes an option apart"),
        F::ArmBlock => say("the arms of a `match` stand in braces", "no braces", "add them"),
        F::RestArm => say("`match` has one `some(…)` and one `none` arm", "an arm for the rest", "write `none`"),
        F::Throw(found) => word(format!("there is no `{found}`: `require` gives up a transaction"), "write `require condition else \"message\";`"),
        F::Macro(found) => word(format!("there is no `{found}!`"), "return a value, and print it in the program that calls the transaction"),
        F::Await(found) => word(format!("there is no `{found}`: every read waits for its answer"), "remove it"),
        F::Try(found) => word(format!("there is no `{found}`: a transaction that fails has no effect, and its caller learns of it"), "write its statements alone"),
        F::FunctionReturn => say("a function ends with its value, without `return`", "`return` in a function", "write the value alone"),
        F::FunctionSemicolon => say("a function ends with its value, without `;`", "no `;` stands here", "remove it"),
        F::Shorthand => say("a field has its value after `:`", "no value", "write the value"),
        F::FunctionStatement => say("a function has only `let` and its value: it writes nothing", "a statement in a function", "make it a `transaction`, or write an expression"),
        F::LastValue => say("a transaction gives a value with `return`", "a value as the last line", "write `return`"),
        F::Sql(found) => word(format!("`{found}` is SQL: a program reads and writes fields of objects"), "write `Order[key].field` to read, `order.field = value;` to write, `new Order { … }` to insert, and `order.delete();` to delete"),
        F::NewCall => say("`new` names the fields in braces", "parentheses", "write `new Order { field: value }`"),
        F::Delete(found) => word(format!("`{found}` is an operation of a ref"), "write a call"),
        F::Braces => say("a branch or loop stands in braces", "no braces", "add them"),
        F::Block => say("braces belong to a statement", "a block by itself", "write its statements without them"),
        F::RequireMessage => say("a `require` says with `else` why it fails", "no message", "add a message"),
        F::NoRequire => say("a condition with `else` and a message is a `require`", "no `require`", "write `require`"),
        F::NoHead => say("an `if`, `while`, `for` or `match` stands before braces", "no such word", "write the word"),
        F::AllowReason => say("an `allow` needs a reason", "no reason", "say why the warning does not matter here: `because \"…\"`"),
        _ => return None,
    })
}

fn declared_words(foreign: &Foreign) -> (String, String, String) {
    use Foreign as F;
    let say = |title: &str, label: &str, help: &str| {
        (title.to_owned(), label.to_owned(), help.to_owned())
    };
    let word = |title: String, help: &str| (title, "a word of another language".to_owned(), help.to_owned());
    match foreign {
        F::OptionalType => say("a value that may be missing has the type `option<…>`", "`?` of other languages", "write `option<…>`"),
        F::ArrayType => say("a list has the type `list<…>`", "brackets of other languages", "write `list<…>`"),
        F::TypeArguments { name } => (format!("the argument of `{name}` stands in `<…>`"), "other brackets".into(), "write `<…>`".into()),
        F::TypeName { found, means } => word(format!("`{found}` is written `{means}`"), &format!("write `{means}`")),
        F::SizedType => say("a type has no size", "a size", "remove it"),
        F::RefType => say("a reference to an object is written `ref Order`", "a reference of another language", "write `ref`"),
        F::Union => say("a type is one of several only as `option<…>`, which may be `none`", "types of another language", "write `option<…>`"),
        F::TypeBefore => say("the name stands first, then `:` and the type", "a type before its name", "write the name first"),
        F::NoType => say("a name needs a type here", "no type", "write `: ` and the type"),
        F::OptionalParam => say("a value that may be missing has the type `option<…>`", "`?` of other languages", "write `option<…>`"),
        F::ParamDefault => say("a parameter has no default", "a default", "remove it"),
        F::ItemWord { found, means } => word(format!("`{found}` is written `{means}`"), &format!("write `{means}`")),
        F::Modifier(found) => word(format!("`{found}` is no word of this language: items have no modifiers but `isolated`"), "remove it"),
        F::ResultColon => say("the type of a result stands after `->`", "no `->`", "write `->`"),
        F::NoResult => say("a function has a result", "no `->` and type", "write `-> ` and the type, or make it a `transaction`"),
        F::NoStore => say("an object says which store it lives in", "no `in` and store", "write `in` and the store"),
        F::NoKey => say("the first field of an object is its key", "no key", "write `key` before it"),
        F::LateKey => say("the key of an object stands before its fields", "a key after a field", "move it up"),
        F::TwoKeys => say("an object has one key", "a second key", "make a struct of both, or a field of this one"),
        F::FieldWord(found) => word(format!("`{found}` stands before no field: a field is `name: type;`"), "remove it"),
        F::ColumnRule(found) => word(format!("`{found}` is a rule of a column: a field has only a type and a default"), "remove it"),
        F::UniqueColumn(field) => word(format!("a unique field has a declaration of its own: `unique {field};`"), "write it after the field"),
        F::UniqueBy => say("`unique` names its fields without `by`", "no `by` here", "remove it"),
        F::UniqueParentheses => say("`unique` names its fields without parentheses", "no parentheses here", "remove them"),
        F::DefaultWord => say("the default of a field stands after `=`", "a word of another language", "write `=`"),
        F::NoLevel => say("a store has a level: `linearizable`, `snapshot`, `causal` or `eventual`", "no level", "write the level that the program needs"),
        F::Separator { found, means } => (
            format!("expected `{means}`, found `{found}`"),
            format!("write `{means}`"),
            format!("write `{means}`"),
        ),
        F::KeyWord => say("a key is written `key name: type;`", "not this way", "write `key` first"),
        _ => say("a statement stands in a transaction", "outside of every transaction", "move it into a transaction, or pass the value as a parameter"),
    }
}

/// Renders syntax of another language; without edits the advice stands in words.
pub(super) fn render(foreign: &Foreign, span: Span, edits: Vec<Edit>) -> Diagnostic {
    let (title, label, help) = words(foreign);
    let mut diagnostic = Diagnostic::new(Code::M0001, title, span, label);
    if let Foreign::EndsEarly(statement) = foreign {
        diagnostic = diagnostic.with_label(*statement, "this stands outside of it");
    }
    if edits.is_empty() && *help == diagnostic.labels[0].message {
        return diagnostic;
    }
    diagnostic.with_help(help, edits)
}
