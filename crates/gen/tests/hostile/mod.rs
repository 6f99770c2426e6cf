//! The code outside of comments is the same for every content of doc comments and file names.

use mingle_gen::{go, python, rust, typescript};
use mingle_lang::{Checked, check};

/// Texts that end comments, strings or lines in some language, or hide the text around them.
const PIECES: [&str; 32] = [
    "*/",
    "/*",
    "//",
    "\"\"\"",
    "'''",
    "\"",
    "'",
    "\\",
    "\\\"\"\"",
    "#",
    "`",
    "${x}",
    "</script>",
    "{{x}}",
    "\r",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{b}",
    "\u{c}",
    "\0",
    "\u{202e}",
    "evil()",
    "import os",
    " ",
    "--",
    "\u{feff}",
    "//go:build ignore",
    "- ",
    "# ",
    "[a]: b",
    "\t",
];

/// A random generator of sufficient quality for this test (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn text(&mut self) -> String {
        (0..=self.below(6)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}

/// Returns a program with this doc comment in every place that allows one.
fn program(docs: &str) -> Checked {
    // A carriage return alone ends a line, and so a comment.
    let docs = docs.split(['\n', '\r']);
    let docs: Vec<String> = docs.map(|line| format!("/// {line}\n")).collect();
    let docs = docs.concat();
    let checked = check(format!(
        "store s: causal;\n{docs}struct P {{\n{docs}x: int,\n}}\n{docs}enum E {{\n{docs}a,\n{docs}b = \"c\",\n}}\n{docs}object O in s {{\n{docs}key k: int;\n{docs}n: int;\n}}\n\
         {docs}transaction bump(o: ref O, p: P) {{ o.n += p.x; }}\n"
    ));
    assert!(!checked.has_errors(), "{:?}", checked.diagnostics);
    checked
}

/// Returns TypeScript without comments and blank lines.
fn typescript_code(text: &str) -> String {
    let mut code = String::new();
    let (first, mut rest) = text.split_once('\n').expect("there are lines");
    assert!(first.starts_with("// Generated from "), "{first}");
    while let Some(start) = rest.find("/**") {
        code += &rest[..start];
        let end = rest[start..].find("*/").expect("a comment ends");
        rest = &rest[start + end + 2..];
    }
    code += rest;
    squeeze(&code, "//")
}

/// Returns Python without comments, docstrings and blank lines.
fn python_code(text: &str) -> String {
    let (mut code, mut is_inside) = (String::new(), false);
    for line in text.split('\n') {
        if !is_inside && line.trim_start().starts_with('#') {
            continue;
        }
        let mut rest = line;
        while let Some(place) = if is_inside { end_of(rest) } else { rest.find(QUOTES) } {
            code += if is_inside { "" } else { &rest[..place] };
            rest = &rest[place + QUOTES.len()..];
            is_inside = !is_inside;
        }
        code += if is_inside { "" } else { rest };
        code.push('\n');
    }
    assert!(!is_inside, "a docstring ends");
    squeeze(&code, "#")
}

const QUOTES: &str = "\"\"\"";

/// Returns the end of a docstring. A backslash escapes the character after it.
fn end_of(text: &str) -> Option<usize> {
    let mut places = text.char_indices();
    while let Some((place, found)) = places.next() {
        if text[place..].starts_with(QUOTES) {
            return Some(place);
        }
        if found == '\\' {
            places.next();
        }
    }
    None
}

/// Returns the lines that are neither blank nor a comment. Every character that ends a line in some
/// language counts.
fn squeeze(code: &str, comment: &str) -> String {
    let ends =
        |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let lines = code.split(ends).map(str::trim);
    let kept = lines.filter(|line| !line.is_empty() && !line.starts_with(comment));
    kept.collect::<Vec<_>>().join("\n")
}

/// Returns Go without comments and blank lines. Its comments end with their lines.
fn go_code(text: &str) -> String {
    let first = text.lines().next().expect("there are lines");
    assert!(first.starts_with("// Generated from "), "{first}");
    assert!(!text.contains('\u{feff}'), "Go refuses a byte order mark");
    let (before, rest) = text.split_once("// What follows is the same").expect("it says so");
    let (_, after) = rest.split_once("// How the program's own").expect("it says so");
    squeeze(&format!("{before}{after}"), "//")
        .replace(&format!("package {}\n", package(text)), "package of any name\n")
}

/// Returns the name of the package, which is made from the name of the file.
fn package(text: &str) -> &str {
    let name = text.lines().find_map(|line| line.strip_prefix("package "));
    let name = name.expect("there is a package");
    assert!(go::is_package_name(name), "{name}");
    name
}

/// Returns Rust without doc comments.
fn rust_code(text: &str) -> String {
    assert!(!text.contains('\r'), "a bare return in a doc comment is an error of Rust's");
    let kept = text.lines().filter(|line| !line.trim().starts_with("///"));
    let file: syn::File = syn::parse_str(&kept.collect::<Vec<_>>().join("\n")).expect("it is Rust");
    let program = format!("{:?}", file.items.len());
    program + &file.items.iter().map(kind).collect::<String>()
}

fn kind(item: &syn::Item) -> String {
    match item {
        syn::Item::Struct(found) => format!(" struct {}", found.ident),
        syn::Item::Impl(found) => format!(" impl of {}", found.items.len()),
        other => format!(" {:?}", std::mem::discriminant(other)),
    }
}

#[test]
fn comments_end_where_they_should() {
    let typescript_of = |checked: &Checked, name: &str| {
        typescript_code(&typescript::text(checked, name).expect("a program"))
    };
    let python_of = |checked: &Checked, name: &str| {
        python_code(&python::text(checked, name).expect("a program"))
    };
    let go_of =
        |checked: &Checked, name: &str| go_code(&go::text(checked, name).expect("a program"));
    let rust_of = |checked: &Checked, name: &str| {
        rust_code(&rust::text(rust::items(checked, name).expect("a program")))
    };
    let plain = program("plain");
    let all = |checked: &Checked, name: &str| {
        [
            typescript_of(checked, name),
            python_of(checked, name),
            go_of(checked, name),
            rust_of(checked, name),
        ]
    };
    let expected = all(&plain, "a");
    let mut random = Random(17);
    for _ in 0..1_000 {
        let (docs, name) = (random.text(), random.text() + "\n" + &random.text());
        let checked = program(&docs);
        assert_eq!(all(&checked, &name), expected, "{docs:?}, {name:?}");
    }
}
