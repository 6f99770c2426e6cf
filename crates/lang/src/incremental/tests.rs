use super::*;

const PROGRAMS: [&str; 3] = [
    include_str!("../../../../examples/message_groups.mingle"),
    include_str!("../../../../examples/contest_rejected.mingle"),
    include_str!("../../../../examples/ticket_shop.mingle"),
];

/// Both ways of checking give the same diagnostics once the advice was tried.
fn assert_same(program: &mut Incremental, text: &str) {
    let mut version = program.check(text);
    let mut diagnostics = std::mem::take(&mut version.diagnostics);
    version.diagnostics = diagnostics.clone();
    program.advise(&version, &mut diagnostics);
    let expected = crate::check(text);
    assert_eq!(diagnostics, expected.diagnostics, "{text}");
    assert_eq!(version.syntax, expected.syntax, "{text}");
    assert_eq!(version.omitted, expected.omitted);
}

#[test]
fn every_version_is_checked_as_if_it_were_the_first() {
    for text in PROGRAMS {
        let mut program = Incremental::default();
        assert_same(&mut program, text);
        let source = syntax::lex(text);
        // Each token is left out, repeated, and replaced, as in an edited text.
        for (index, token) in source.tokens.iter().enumerate() {
            let (before, after) = (&text[..token.start as usize], &text[token.end as usize..]);
            let word = &text[token.start as usize..token.end as usize];
            let other = ["groups", "User", "post", "1", ";", "}"][index % 6];
            for new in ["", &format!("{word} {word}"), other] {
                assert_same(&mut program, &format!("{before}{new}{after}"));
            }
        }
        assert_same(&mut program, text);
    }
}

#[test]
fn what_stands_elsewhere_moves_along() {
    let text = PROGRAMS[1];
    let mut program = Incremental::default();
    assert_same(&mut program, text);
    for above in ["", "// a comment\n", "struct S { a: int }\n", "transaction t() {}\n"] {
        assert_same(&mut program, &format!("{above}{text}"));
        assert_same(&mut program, &format!("{text}{above}"));
    }
    // An item after the transactions that use it.
    let (items, rest) = text.split_at(text.find("transaction").unwrap());
    assert_same(&mut program, &format!("{rest}\n{items}"));
}

#[test]
fn what_was_known_is_not_checked_again() {
    let mut program = Incremental::default();
    program.check(PROGRAMS[0]);
    let text = PROGRAMS[0].replace("delivered += 1", "delivered += 2");
    let mut version = program.check(text.as_str());
    let checked = program.check_unknown(&mut version.syntax, false, true, &[]);
    assert!(checked.program.transactions.is_empty());
    let mut version = program.check(text.replace("delivered += 2", "delivered += 3"));
    let text = text.replace("delivered += 2", "delivered += 4");
    let source = syntax::lex(text);
    version.syntax = syntax::parse(&source).0;
    program.closures.update(&source, &version.syntax, false);
    let checked = program.check_unknown(&mut version.syntax, false, true, &[]);
    assert_eq!(checked.program.transactions.len(), 1);
}

#[test]
fn nothing_is_lost_among_a_thousand_mistakes() {
    let mut program = Incremental::default();
    let many = "transaction t() { let x = y; }\n".repeat(2 * DIAGNOSTICS_MAX);
    assert_same(&mut program, &many);
    assert_same(&mut program, &format!("{many}store s: strong;"));
}
