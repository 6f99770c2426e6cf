//! Completion: the names and keywords that can stand at a place.
//!
//! During typing, the text around the cursor rarely parses. So the server inserts a placeholder
//! name, which lets the compiler read the rest as intended, and offers the names that the compiler
//! then finds for the place.

use std::collections::BTreeSet;

use gen_lsp_types::{CompletionItem, CompletionItemKind, CompletionResponse, Position};
use mingle_lang::names::{Kind, Names, visible};
use mingle_lang::syntax::token::{Keyword, Punct};
use mingle_lang::syntax::{Source, TokenKind, ast, parse};
use serde_json::{Value, json};

use crate::document::Document;

/// The placeholder name at the cursor; no real program uses it.
const PLACE: &str = "completed_here__";

const ITEMS: [&str; 9] = [
    "import",
    "level",
    "store",
    "object",
    "struct",
    "enum",
    "fn",
    "transaction",
    "isolated transaction",
];

const TYPES: [&str; 16] = [
    "bool", "int", "float", "string", "bytes", "time", "date", "decimal", "json", "ref", "option",
    "list", "counter", "set", "map", "log",
];

const FUNCTIONS: [&str; 14] = [
    "now",
    "unique",
    "string",
    "int",
    "float",
    "date",
    "time",
    "decimal",
    "min",
    "max",
    "abs",
    "checked_add",
    "checked_sub",
    "checked_mul",
];

const LEVELS: [&str; 4] = ["linearizable", "snapshot", "causal", "eventual"];

const STATEMENTS: [Keyword; 9] = [
    Keyword::Let,
    Keyword::Var,
    Keyword::If,
    Keyword::While,
    Keyword::For,
    Keyword::Match,
    Keyword::Require,
    Keyword::Return,
    Keyword::Else,
];

const EXPRESSIONS: [Keyword; 7] = [
    Keyword::New,
    Keyword::Put,
    Keyword::Some,
    Keyword::None,
    Keyword::True,
    Keyword::False,
    Keyword::Endorse,
];

/// Returns the completions at a place.
pub(crate) fn complete(document: &Document, position: Position) -> Value {
    let text = document.text();
    let at = document.byte(position);
    let start = at
        - text[..at].chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let end =
        at + text[at..].chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let offset = document.offset();
    if is_inside_text(&document.checked().source, at + offset) {
        return json!(CompletionResponse::CompletionItemList(Vec::new()));
    }
    let text = format!("{}{PLACE}{}", &text[..start], &text[end..]);
    let source = document.checked().source.with_text(document.own(), text);
    let start = start + offset;
    let token = source.tokens.partition_point(|token| (token.start as usize) < start) as u32;
    if source.tokens.get(token as usize).is_none_or(|token| token.start as usize != start) {
        return json!(CompletionResponse::CompletionItemList(Vec::new()));
    }
    let (tree, _) = parse(&source);
    let place = Place { source: &source, tree: &tree, names: Names::of(&tree), token };
    let mut offer = Offer::default();
    place.offer(&mut offer);
    json!(CompletionResponse::CompletionItemList(offer.items))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// True if a byte is inside a comment or a string.
fn is_inside_text(source: &Source, at: usize) -> bool {
    let at = at as u32;
    let comment = source.trivia.partition_point(|trivia| trivia.start < at);
    let in_comment = comment > 0 && {
        // A comment ends at the end of its line.
        let start = source.trivia[comment - 1].start as usize;
        !source.text[start..at as usize].contains(['\n', '\r'])
    };
    let token = source.tokens.partition_point(|token| token.end < at);
    let token = source.tokens.get(token);
    let in_string = token.is_some_and(|token| {
        let is_text = matches!(token.kind, TokenKind::String | TokenKind::Bytes);
        is_text && token.start < at && at < token.end
    });
    in_comment || in_string
}

/// The place that is completed.
struct Place<'a> {
    source: &'a Source,
    tree: &'a ast::Program,
    names: Names,
    token: u32,
}

impl Place<'_> {
    /// Returns the text of the token `count` tokens before the place.
    fn before(&self, count: u32) -> &str {
        self.token.checked_sub(count).map_or("", |token| self.source.token_text(token))
    }

    fn kind_before(&self) -> Option<TokenKind> {
        Some(self.source.tokens[self.token.checked_sub(1)? as usize].kind)
    }

    fn offer(&self, offer: &mut Offer) {
        match self.before(1) {
            "." => self.members(offer),
            "ref" | "new" | "put" => self.declared(offer, &[Kind::Object]),
            "between" | "and" => self.levels(offer),
            "as" if self.before(2) == ")" => self.levels(offer),
            "as" => {}
            "in" if self.before(3) == "object" => self.declared(offer, &[Kind::Store]),
            ":" if self.before(3) == "store" => self.levels(offer),
            ":" if !self.is_in_fields() => self.types(offer),
            "->" => self.types(offer),
            "<" | "," if self.is_in_type_arguments() => self.types(offer),
            "{" | "," if self.is_in_fields() => self.fields(offer),
            "{" | "}" if self.match_around().is_some() => self.arms(offer),
            "unique" | "by" | "," if self.object_around().is_some() => self.registers(offer),
            _ => self.anything(offer),
        }
    }

    /// Offers fields and operations of the expression before the point.
    fn members(&self, offer: &mut Offer) {
        let point = self.token - 1;
        let members = match self.names.type_before(point) {
            Some(found) => self.names.members(found),
            None => {
                let name = self.before(2);
                let mut members = self.names.operations(name);
                members.extend(self.names.indexes(name));
                members.extend(self.names.values(name));
                members
            }
        };
        for member in members {
            offer.add(&member.name, item_kind(member.kind), Some(member.shown));
        }
    }

    /// Returns the object whose declaration is around the place.
    fn object_around(&self) -> Option<&ast::Object> {
        self.tree.items.iter().find_map(|item| match &item.kind {
            ast::ItemKind::Object(object)
                if item.span.start < self.token && self.token < item.span.end =>
            {
                Some(object)
            }
            _ => None,
        })
    }

    /// Offers the fields by which an index may find the object around the place.
    fn registers(&self, offer: &mut Offer) {
        let Some(object) = self.object_around() else { return };
        for member in self.names.fields(&object.name.name, true) {
            if member.kind == Kind::Field {
                offer.add(&member.name, item_kind(member.kind), Some(member.shown));
            }
        }
    }

    fn levels(&self, offer: &mut Offer) {
        for level in LEVELS {
            offer.add(level, CompletionItemKind::EnumMember, None);
        }
        self.declared(offer, &[Kind::Level]);
    }

    fn types(&self, offer: &mut Offer) {
        for name in TYPES {
            offer.add(name, CompletionItemKind::Keyword, None);
        }
        self.declared(offer, &[Kind::Struct, Kind::Enum]);
    }

    fn declared(&self, offer: &mut Offer, kinds: &[Kind]) {
        for found in self.names.declarations().filter(|found| kinds.contains(&found.kind)) {
            offer.add(&found.name, item_kind(found.kind), Some(found.shown.clone()));
        }
    }

    /// True if the place is between `<` and `>` of a type, on its line.
    fn is_in_type_arguments(&self) -> bool {
        let mut depth = 0;
        for token in (0..self.token).rev() {
            match self.source.tokens[token as usize].kind {
                TokenKind::Punct(Punct::Greater) => depth += 1,
                TokenKind::Punct(Punct::Less) if depth > 0 => depth -= 1,
                TokenKind::Punct(Punct::Less) => {
                    let of = token.checked_sub(1).map(|token| self.source.token_text(token));
                    return of.is_some_and(|of| TYPES.contains(&of));
                }
                TokenKind::Punct(Punct::Comma) | TokenKind::Ident => {}
                _ => return false,
            }
        }
        false
    }

    /// Returns the object or struct whose fields stand in the braces around the place.
    fn fields_of(&self) -> Option<(&str, bool)> {
        let mut depth = 0_usize;
        for token in (0..self.token).rev() {
            match self.source.tokens[token as usize].kind {
                TokenKind::Punct(Punct::RightBrace | Punct::RightParen | Punct::RightBracket) => {
                    depth += 1;
                }
                TokenKind::Punct(Punct::LeftBrace) if depth == 0 => {
                    let name = self.source.token_text(token.checked_sub(1)?);
                    let word = self.source.token_text(token.checked_sub(2)?);
                    let is_object = matches!(word, "new" | "put");
                    let is_struct = word != "struct"
                        && word != "object"
                        && self.names.item(Kind::Struct, name).is_some();
                    return (is_object || is_struct).then_some((name, is_object));
                }
                TokenKind::Punct(Punct::LeftBrace | Punct::LeftParen | Punct::LeftBracket) => {
                    depth = depth.checked_sub(1)?;
                }
                TokenKind::Punct(Punct::Semicolon) if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the names of the arms before the place, if it is where an arm of a `match` can stand.
    fn match_around(&self) -> Option<Vec<&str>> {
        let (mut depth, mut arms, mut brace) = (0_usize, Vec::new(), None);
        for token in (0..self.token).rev() {
            match self.source.tokens[token as usize].kind {
                TokenKind::Punct(Punct::RightBrace | Punct::RightParen | Punct::RightBracket) => {
                    depth += 1;
                }
                TokenKind::Punct(Punct::LeftBrace | Punct::LeftParen | Punct::LeftBracket) => {
                    let Some(outer) = depth.checked_sub(1) else {
                        brace = Some(token);
                        break;
                    };
                    depth = outer;
                }
                TokenKind::Punct(Punct::Semicolon) if depth == 0 => return None,
                _ if depth == 0 && self.is_arm(token) => arms.push(self.source.token_text(token)),
                _ => {}
            }
        }
        // The expression between `match` and the brace has no braces but those of a struct.
        for token in (0..brace?).rev() {
            match self.source.tokens[token as usize].kind {
                TokenKind::Keyword(Keyword::Match) => return Some(arms),
                TokenKind::Punct(
                    Punct::Semicolon | Punct::LeftBrace | Punct::RightBrace | Punct::FatArrow,
                ) => return None,
                _ => {}
            }
        }
        None
    }

    /// True if a token is the name of an arm: `causal(n) =>` or `late =>`.
    fn is_arm(&self, token: u32) -> bool {
        let is = |at: u32, punct: Punct| {
            let found = self.source.tokens.get((token + at) as usize);
            found.is_some_and(|found| found.kind == TokenKind::Punct(punct))
        };
        is(1, Punct::FatArrow)
            || (is(1, Punct::LeftParen) && is(3, Punct::RightParen) && is(4, Punct::FatArrow))
    }

    /// Offers the arms that a `match` does not have yet: those of an `option`, or of an answer that may be weak or late.
    fn arms(&self, offer: &mut Offer) {
        let there = self.match_around().unwrap_or_default();
        let of_option = ["some", "none"];
        let has = |names: &[&str]| there.iter().any(|name| names.contains(name));
        let is_option = has(&of_option);
        if !is_option {
            let levels = LEVELS.iter().chain(&["late"]).filter(|name| !there.contains(name));
            levels.for_each(|name| offer.add(name, CompletionItemKind::EnumMember, None));
            for found in self.names.declarations().filter(|found| found.kind == Kind::Level) {
                if !there.contains(&&*found.name) {
                    offer.add(&found.name, item_kind(found.kind), Some(found.shown.clone()));
                }
            }
        }
        if is_option || there.is_empty() {
            for name in of_option.iter().filter(|name| !there.contains(name)) {
                offer.add(name, CompletionItemKind::Keyword, None);
            }
        }
    }

    fn is_in_fields(&self) -> bool {
        self.fields_of().is_some()
    }

    fn fields(&self, offer: &mut Offer) {
        let Some((name, is_object)) = self.fields_of() else { return };
        for member in self.names.fields(name, is_object) {
            offer.add(&member.name, item_kind(member.kind), Some(member.shown));
        }
    }

    /// Offers everything that can start an item, a statement or an expression.
    fn anything(&self, offer: &mut Offer) {
        let is_inside = self
            .tree
            .items
            .iter()
            .any(|item| item.span.start < self.token && self.token < item.span.end);
        let ends_item = matches!(
            self.kind_before(),
            None | Some(TokenKind::Punct(Punct::RightBrace | Punct::Semicolon))
        );
        if !is_inside && ends_item {
            for word in ITEMS {
                offer.add(word, CompletionItemKind::Keyword, None);
            }
            return;
        }
        for name in visible(self.tree, self.token).into_iter().rev() {
            let shown = self.names.at(name.span.start).map(|found| found.shown.clone());
            offer.add(&name.name, CompletionItemKind::Variable, shown);
        }
        let kinds = [Kind::Function, Kind::Object, Kind::Struct, Kind::Enum];
        self.declared(offer, &kinds);
        for found in self.names.declarations().filter(|found| found.kind == Kind::Store) {
            if !self.names.operations(&found.name).is_empty() {
                offer.add(&found.name, CompletionItemKind::Module, Some(found.shown.clone()));
            }
        }
        for name in FUNCTIONS {
            offer.add(name, CompletionItemKind::Function, None);
        }
        let starts = matches!(
            self.kind_before(),
            Some(TokenKind::Punct(Punct::LeftBrace | Punct::RightBrace | Punct::Semicolon))
        );
        let statements = STATEMENTS.iter().filter(|_| starts);
        for word in EXPRESSIONS.iter().chain(statements) {
            offer.add(word.text(), CompletionItemKind::Keyword, None);
        }
        offer.add("if", CompletionItemKind::Keyword, None);
    }
}

/// The offered completions, each name once.
#[derive(Default)]
struct Offer {
    items: Vec<CompletionItem>,
    names: BTreeSet<String>,
}

impl Offer {
    fn add(&mut self, name: &str, kind: CompletionItemKind, detail: Option<String>) {
        if name != PLACE && self.names.insert(name.to_owned()) {
            self.items.push(CompletionItem {
                label: name.to_owned(),
                kind: Some(kind),
                detail,
                ..CompletionItem::default()
            });
        }
    }
}

fn item_kind(kind: Kind) -> CompletionItemKind {
    match kind {
        Kind::Level | Kind::EnumValue => CompletionItemKind::EnumMember,
        Kind::Enum => CompletionItemKind::Enum,
        Kind::Store => CompletionItemKind::Module,
        Kind::Operation => CompletionItemKind::Method,
        Kind::Object => CompletionItemKind::Class,
        Kind::Key | Kind::Field | Kind::StructField => CompletionItemKind::Field,
        Kind::Struct => CompletionItemKind::Struct,
        Kind::Function => CompletionItemKind::Function,
        Kind::Transaction => CompletionItemKind::Event,
        Kind::Parameter | Kind::Variable => CompletionItemKind::Variable,
    }
}
