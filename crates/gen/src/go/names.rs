//! Names of a program as names of Go.
//!
//! Go exports a name that begins with an upper-case letter. A name whose first letter has no case, or that
//! begins with an underscore, gets an `X` before it. Initialisms such as `ID` and `URL` are in one case.

use mingle_model::Name;
use unicode_normalization::UnicodeNormalization;

use crate::names::{self, Style, snake_case};

/// Names of one namespace.
pub(super) struct Names(names::Names);

impl Names {
    /// Assigns the names of objects and structs.
    pub(super) fn of_types<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        let own = super::package::declared();
        let reserved = |name: &str| own.contains(&name) || OWN.contains(&name);
        Self::assign(names, exported, &reserved)
    }

    /// Assigns the names of transactions.
    pub(super) fn of_methods<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, exported, &|name| METHODS.contains(&name))
    }

    /// Assigns the names of parameters.
    pub(super) fn of_parameters<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, unexported, &|name| {
            LOCALS.contains(&name) || is_keyword(name) || is_predeclared(name)
        })
    }

    /// Assigns the names of fields.
    pub(super) fn of_fields<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, exported, &|name| HANDLE.contains(&name))
    }

    /// Assigns the names of stores, which their constants have after [`STORE`]. `taken` has the names beside
    /// the constants.
    pub(super) fn of_stores<'a>(names: impl Iterator<Item = &'a Name>, taken: &[String]) -> Self {
        let is_taken = |name: &str| taken.iter().any(|it| it.strip_prefix(STORE) == Some(name));
        Self::assign(names, exported, &is_taken)
    }

    /// Assigns the names of the values of an enumeration, which their constants have after its own. `taken` has the
    /// other names of the package.
    pub(super) fn of_enum<'a>(
        values: impl Iterator<Item = &'a Name>,
        ident: &str,
        taken: &[String],
    ) -> Self {
        let own = super::package::declared();
        let is_taken = |name: &str| {
            let whole = format!("{ident}{name}");
            taken.contains(&whole) || own.contains(&&*whole) || OWN.contains(&&*whole)
        };
        Self::assign(values, exported, &is_taken)
    }

    fn assign<'a>(
        names: impl Iterator<Item = &'a Name>,
        convert: fn(&str) -> String,
        reserved: &dyn Fn(&str) -> bool,
    ) -> Self {
        let valid = if convert("a") == "A" { valid_exported } else { valid_unexported };
        Self(names::Names::assign(names, &Style { convert, valid, reserved }))
    }

    pub(super) fn of(&self, name: &Name) -> &str {
        self.0.of(name)
    }

    /// Returns the name of the type of an object's fields.
    pub(super) fn of_object_fields(&self, object: &Name) -> String {
        self.free(format!("{}Fields", self.of(object)))
    }

    /// Returns the name of the method that calls a transaction and returns early.
    pub(super) fn of_early(&self, transaction: &Name) -> String {
        self.free(format!("{}Until", self.of(transaction)))
    }

    fn free(&self, mut name: String) -> String {
        while self.0.has(&name) {
            name.push('_');
        }
        name
    }
}

/// The beginning of the names of the constants of stores.
pub(super) const STORE: &str = "Store";

/// The beginnings of the names that the generated file declares beside those for its users.
const PREFIXES: [&str; 3] = ["wire", "codecOf", "callOf"];

/// The types and functions that each client declares beside those of the runtime.
const OWN: [&str; 3] = ["Client", "NewClient", "Show"];

/// The methods of the client beside the transactions.
const METHODS: [&str; 3] = ["CloseIdleConnections", "Session", "WithSession"];

/// The methods of a handle, if the runtime is imported.
const HANDLE: [&str; 2] = ["WireFields", "WirePath"];

/// The other names that are in use where parameters are: the receiver, parameters of all methods, and packages.
const LOCALS: [&str; 11] =
    ["c", "call", "context", "ctx", "err", "mingleclient", "nil", "options", "time", "until", "w"];

/// The initialisms that Go writes in one case.
const INITIALISMS: [&str; 34] = [
    "acl", "api", "ascii", "cpu", "css", "dns", "eof", "guid", "html", "http", "https", "id", "ip",
    "json", "qps", "ram", "rpc", "sla", "smtp", "sql", "ssh", "tcp", "tls", "ttl", "udp", "ui",
    "uid", "uri", "url", "utf8", "uuid", "vm", "xml", "xsrf",
];

/// Returns the name with words in the case of Go: `user_id` becomes `UserID`, or `userID`.
fn joined(name: &str, is_lower: bool) -> String {
    let snake = snake_case(&name.nfc().collect::<String>());
    let words = snake.split('_').filter(|word| !word.is_empty()).enumerate();
    words.fold(String::new(), |joined, (at, word)| {
        let is_initialism = INITIALISMS.contains(&word);
        let mut letters = word.chars();
        match letters.next() {
            _ if at == 0 && is_lower => joined + word,
            _ if is_initialism => joined + &word.to_uppercase(),
            Some(first) => joined + &first.to_uppercase().collect::<String>() + letters.as_str(),
            None => joined,
        }
    })
}

fn exported(name: &str) -> String {
    valid_exported(joined(name, false))
}

fn unexported(name: &str) -> String {
    valid_unexported(joined(name, true))
}

/// Returns a name that Go exports.
fn valid_exported(name: String) -> String {
    let name = of_letters_and_digits(&name);
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let name = first.collect::<String>() + letters.as_str();
    let is_exported = name.starts_with(|c: char| c.is_uppercase() && is_letter(c));
    if is_exported { name } else { format!("X{name}") }
}

/// Returns a name that begins with a letter, and not like those of the generated file.
fn valid_unexported(name: String) -> String {
    let name = of_letters_and_digits(&name);
    let is_own = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if name.starts_with(is_letter) && !is_own { name } else { format!("x{name}") }
}

/// Replaces each character that Go does not allow in names by an underscore.
fn of_letters_and_digits(name: &str) -> String {
    name.nfc().map(|c| if c == '_' || is_letter(c) || is_digit(c) { c } else { '_' }).collect()
}

/// The letters, and some other characters, that newer versions of Unicode than that of Go 1.24 allow in names.
const NEW_LETTERS: &[char] = &[
    '\u{558}', '\u{58b}', '\u{58c}', '\u{88f}', '\u{c5c}', '\u{cdc}', '\u{1c89}', '\u{1c8a}',
    '\u{208f}', '\u{209d}', '\u{209e}', '\u{209f}', '\u{a7cb}', '\u{a7cc}', '\u{a7cd}', '\u{a7ce}',
    '\u{a7cf}', '\u{a7d2}', '\u{a7d4}', '\u{a7da}', '\u{a7db}', '\u{a7dc}', '\u{a7dd}', '\u{a7e2}',
    '\u{a7f1}', '\u{ab6c}', '\u{ab6d}',
];

/// Characters that may begin a name by Unicode's rules, and are no letters.
const NO_LETTERS: [char; 6] =
    ['\u{1885}', '\u{1886}', '\u{2118}', '\u{212e}', '\u{309b}', '\u{309c}'];

/// True for letters (the category L of Unicode) that Go 1.24 knows. Letters beyond the first 65,536 characters are
/// left out.
fn is_letter(c: char) -> bool {
    let is_start = unicode_ident::is_xid_start(c) && !c.is_numeric() && !NO_LETTERS.contains(&c);
    is_start && c <= '\u{ffff}' && !NEW_LETTERS.contains(&c)
}

/// True for decimal digits (the category Nd of Unicode).
fn is_digit(c: char) -> bool {
    let is_part = unicode_ident::is_xid_continue(c) && !unicode_ident::is_xid_start(c);
    is_part
        && c.is_numeric()
        && c <= '\u{ffff}'
        && !('\u{1369}'..='\u{1371}').contains(&c)
        && c != '\u{19da}'
}

/// True if a text is a keyword of Go.
pub(super) fn is_keyword(text: &str) -> bool {
    const KEYWORDS: [&str; 25] = [
        "break",
        "case",
        "chan",
        "const",
        "continue",
        "default",
        "defer",
        "else",
        "fallthrough",
        "for",
        "func",
        "go",
        "goto",
        "if",
        "import",
        "interface",
        "map",
        "package",
        "range",
        "return",
        "select",
        "struct",
        "switch",
        "type",
        "var",
    ];
    KEYWORDS.contains(&text)
}

/// True if Go declares a name in every package. A parameter of such a name would be allowed, and hide it.
fn is_predeclared(text: &str) -> bool {
    const NAMES: [&str; 44] = [
        "any",
        "append",
        "bool",
        "byte",
        "cap",
        "clear",
        "close",
        "comparable",
        "complex",
        "complex128",
        "complex64",
        "copy",
        "delete",
        "error",
        "false",
        "float32",
        "float64",
        "imag",
        "init",
        "int",
        "int16",
        "int32",
        "int64",
        "int8",
        "iota",
        "len",
        "make",
        "max",
        "min",
        "new",
        "nil",
        "panic",
        "print",
        "println",
        "real",
        "recover",
        "rune",
        "string",
        "true",
        "uint",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
    ];
    NAMES.contains(&text) || text == "uintptr"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(names: &[&str], of: fn(std::slice::Iter<'_, Name>) -> Names) -> Vec<String> {
        let names: Vec<Name> = names.iter().map(|name| Name::from(*name)).collect();
        let assigned = of(names.iter());
        names.iter().map(|name| assigned.of(name).to_owned()).collect()
    }

    #[test]
    fn methods_are_exported_and_never_meet() {
        let names =
            ["add_post", "HTTPServer_id", "session", "_", "__init__", "名", "größe", "userIDs"];
        let found = assigned(&names, |names| Names::of_methods(names));
        let expected =
            ["AddPost", "HTTPServerID", "Session_", "X", "Init", "X名", "Größe", "UserIDs"];
        assert_eq!(found, expected);
        let found =
            assigned(&["getX", "get_x", "GetX", "_get_x"], |names| Names::of_methods(names));
        assert_eq!(found, ["GetX_", "Get_x", "GetX", "X_get_x"]);
    }

    #[test]
    fn methods_that_return_early_have_names_of_their_own() {
        let names = ["buy", "buy_until", "session"].map(Name::from);
        let methods = Names::of_methods(names.iter());
        let early = names.each_ref().map(|name| methods.of_early(name));
        let all: std::collections::BTreeSet<&str> = names
            .iter()
            .map(|name| methods.of(name))
            .chain(early.iter().map(String::as_str))
            .collect();
        assert_eq!(all.len(), 6, "{all:?}");
        assert_eq!(methods.of(&names[1]), "BuyUntil");
    }

    #[test]
    fn parameters_are_no_words_of_the_language_or_the_file() {
        let names = [
            "type",
            "ctx",
            "string",
            "user_id",
            "URL",
            "_1a",
            "_",
            "wireInt",
            "call_of_a",
            "time",
            "Ünï",
        ];
        let found = assigned(&names, |names| Names::of_parameters(names));
        let expected = [
            "type_", "ctx_", "string_", "userID", "url", "x1a", "x", "xwireInt", "xcallOfA",
            "time_", "ünï",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn types_are_not_those_of_the_file() {
        let names =
            ["Date", "session", "Client", "user", "show", "ErrRequire", "with_retries", "ﬁ"];
        let found = assigned(&names, |names| Names::of_types(names));
        let expected =
            ["Date_", "Session_", "Client_", "User", "Show_", "ErrRequire_", "WithRetries_", "FI"];
        assert_eq!(found, expected);
    }

    #[test]
    fn marks_and_letters_that_go_does_not_know_are_replaced() {
        // A letter with a mark becomes one letter where there is one; other marks are no part of a name.
        let found = assigned(&["e\u{301}a", "क\u{93e}", "a\u{20000}", "Ⅷ", "a٣"], |names| {
            Names::of_fields(names)
        });
        assert_eq!(found, ["Éa", "Xक_", "A_", "X_", "A٣"]);
    }

    #[test]
    fn an_object_may_be_called_like_the_fields_of_another() {
        let names = [Name::from("User"), Name::from("UserFields")];
        let types = Names::of_types(names.iter());
        assert_eq!(types.of_object_fields(&names[0]), "UserFields_");
        let stores = [Name::from("a_b"), Name::from("aB"), Name::from("main")];
        let names = Names::of_stores(stores.iter(), &["StoreMain".to_owned()]);
        assert_eq!(stores.each_ref().map(|store| names.of(store)), ["A_b", "AB", "Main_"]);
    }

    #[test]
    fn letters_and_digits_are_those_that_go_knows() {
        // The counts were compared with `unicode.IsLetter` and `unicode.IsDigit` of Go 1.26, character by
        // character. If they grow, a new version of Unicode has new letters for `NEW_LETTERS`.
        let all = (0..=0xffff).filter_map(char::from_u32);
        let count = |f: fn(char) -> bool| all.clone().filter(|c| f(*c)).count();
        assert_eq!((count(is_letter), count(is_digit)), (48_943, 370));
    }
}
