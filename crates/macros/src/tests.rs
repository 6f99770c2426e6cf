use mingle_gen::rust;
use proc_macro2::{Delimiter, TokenTree};
use quote::quote;

use super::*;

const FILE: &str = "../../examples/message_groups.mingle";
const TEXT: &str = include_str!("../../../examples/message_groups.mingle");

#[test]
fn the_macro_expands_to_what_the_command_writes() {
    let checked = mingle_lang::check(TEXT);
    let written =
        rust::text(rust::items(&checked, "`message_groups.mingle`").expect("it is right"));
    let expanded = rust::text(expand(quote!(#FILE)));
    let rest = expanded.strip_prefix(&written).expect("the macro gives the same items");
    assert!(rest.starts_with("const _: &[u8] = ::core::include_bytes!("), "{rest}");
    assert_eq!(rest.matches(';').count(), 1, "{rest}");
}

#[test]
fn a_program_of_several_files_depends_on_each() {
    const TWO: &str = "../../examples/lending/lending.mingle";
    let expanded = rust::text(expand(quote!(#TWO)));
    assert_eq!(expanded.matches("include_bytes!(").count(), 2, "{expanded}");
    assert!(expanded.contains("fn lend(") && expanded.contains("fn acquire("), "{expanded}");
    assert!(!expanded.contains("compile_error"), "{expanded}");
    let inline = rust::text(expand(quote! { import "books.mingle"; store a: causal; }));
    assert!(inline.contains("compile_error") && inline.contains("without files"), "{inline}");
    // A crate for temporary folders would be compiled a second time for the host of macros.
    let folder = std::env::temp_dir().join(format!("mingle-macros-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let root = folder.join("root.mingle");
    std::fs::write(&root, "import \"gone.mingle\";\n").expect("it is written");
    let root = root.to_str().expect("it is UTF-8");
    let missing = rust::text(expand(quote!(#root)));
    std::fs::remove_dir_all(&folder).expect("it is removed");
    assert!(missing.contains("there is no such file"), "{missing}");
}

#[test]
fn every_example_is_the_same_program_inline() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the examples are there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_none_or(|ending| ending != "mingle") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let tokens = text.parse().expect("every lexeme is one of Rust's");
        let inline = mingle_lang::check(inline::text(tokens).0);
        let file = mingle_lang::check(text);
        let texts = |checked: &mingle_lang::Checked| -> Vec<String> {
            let tokens = 0..checked.source.tokens.len() as u32;
            tokens.map(|token| checked.source.token_text(token).to_owned()).collect()
        };
        assert_eq!(texts(&inline), texts(&file), "{}", path.display());
        let docs = |checked: &mingle_lang::Checked| -> Vec<String> {
            checked.syntax.items.iter().map(|item| item.docs.clone()).collect()
        };
        assert_eq!(docs(&inline), docs(&file), "{}", path.display());
        count += 1;
    }
    assert!(count >= 7, "{count}");
}

/// The lines of the host keep their numbers, so that messages can name them.
#[test]
fn tokens_stay_on_their_lines_and_in_their_columns() {
    let host = "store a: causal;\n//! Not a doc comment here.\n\n/// What it is,\n///\n/// and why.\n  \
                object O in a {\n    key k: string; // a comment\n    n: option<list<int>>;\n}\n";
    let expected = "store a: causal;\n\n\n/// What it is,\n///\n/// and why.\n  \
                    object O in a {\n    key k: string;\n    n: option<list<int>>;\n}\n";
    let (text, _) = inline::text(host.parse().expect("it is made of Rust's lexemes"));
    assert_eq!(text, expected);
}

#[test]
fn what_is_no_file_name_is_a_program() {
    for input in ["", "\"a.mingle\" \"b.mingle\"", "b\"a.mingle\"", "store", "1"] {
        let tokens: TokenStream = input.parse().expect("it is made of Rust's lexemes");
        assert!(file::Named::parse(&tokens).is_none(), "{input}");
    }
    let tokens: TokenStream = "\"a.mingle\",".parse().expect("it is made of Rust's lexemes");
    assert!(file::Named::parse(&tokens).is_some());
}

/// Returns the messages of the errors that a macro call produces.
fn errors(input: TokenStream) -> Vec<String> {
    let text = rust::text(expand(input));
    let parts = text.split("compile_error!").skip(1);
    parts.map(str::to_owned).collect()
}

#[test]
fn all_mistakes_in_a_file_are_shown_with_their_lines() {
    let errors = errors(quote!("tests/bad.mingle"));
    assert_eq!(errors.len(), 2, "{errors:?}");
    for (error, expected) in errors.iter().zip([
        ["[M0101]: no level is called `strong`", "tests/bad.mingle:1:17"],
        ["[M0101]: no field of `User` is called `inbx`", "tests/bad.mingle:10:8"],
    ]) {
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let errors = errors(quote!("tests/none.mingle"));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("cannot read "), "{errors:?}");
    assert!(errors[0].contains("tests/none.mingle: there is no such file"), "{errors:?}");
}

#[test]
fn a_warning_of_the_program_is_one_of_the_host() {
    let program = "store a: causal; store b: causal; object O in a { key k: string; }
        transaction t(o: ref O) { o.delete(); }";
    let text = rust::text(expand(program.parse().expect("it is made of Rust's lexemes")));
    let note = "#[deprecated(note = \"[W0501]: store `b` is not used";
    assert_eq!((text.matches(note).count(), text.matches("deprecated").count()), (1, 1), "{text}");
    assert!(text.contains("pub struct Database"), "the program is there all the same");
}

/// An error as the host's compiler shows it.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    message: String,
    line: usize,
    /// The column; the first is 1.
    column: usize,
    /// The number of marked characters.
    marked: usize,
}

/// Parses errors as the compiler prints them.
fn printed(text: &str) -> Vec<Shown> {
    let blocks = format!("\n{text}");
    let blocks = blocks.split("\nerror: ").skip(1);
    let error = |block: &str| {
        let (message, place) = block.split_once(" --> ").expect("an error has a place");
        let message: Vec<&str> = message.trim_end().lines().collect();
        // The compiler puts the lines after the first one below it.
        let indented = |line: &&str| line.strip_prefix("       ").unwrap_or(line).to_owned();
        let message = message.iter().map(indented).collect::<Vec<_>>().join("\n");
        let place_of = place.lines().next().expect("a place").rsplit(':');
        let [column, line] = place_of
            .take(2)
            .map(|number| number.parse().expect("a number"))
            .collect::<Vec<usize>>()[..]
        else {
            panic!("{place}")
        };
        Shown { message, line, column, marked: place.matches('^').count() }
    };
    blocks.map(error).collect()
}

/// Returns the errors within tokens that a macro call produces.
fn given(tokens: TokenStream) -> Vec<Shown> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut errors = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let TokenTree::Ident(name) = token else { continue };
        if name != "compile_error" {
            continue;
        }
        let TokenTree::Group(message) = &tokens[index + 2] else { panic!("{tokens:?}") };
        let text: syn::LitStr = syn::parse2(message.stream()).expect("a message is a string");
        let (start, end) = (name.span().start(), message.span().end());
        errors.push(Shown {
            message: text.value(),
            line: start.line,
            column: start.column + 1,
            marked: end.column - start.column,
        });
    }
    errors
}

/// Uses the same pages as `tests/ui.rs`, which runs the host's compiler and takes a minute.
#[test]
fn mistakes_are_errors_of_the_host_where_they_stand() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    for page in ["flow", "names", "syntax"] {
        let read = |ending| std::fs::read_to_string(folder.join(page).with_extension(ending));
        let host = read("rs").expect("the page is there");
        let host: TokenStream = host.parse().expect("it is made of Rust's lexemes");
        let is_program = |token: &TokenTree| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                Some(group.stream())
            }
            _ => None,
        };
        let program = host.into_iter().find_map(|token| is_program(&token));
        let shown = given(expand(program.expect("the page has a program")));
        let expected = printed(&read("stderr").expect("what the compiler says is there"));
        assert!(!expected.is_empty(), "{page}");
        assert_eq!(shown, expected, "{page}");
    }
}
