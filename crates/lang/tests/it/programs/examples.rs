//! The programs in `examples/`, and the pages that hold programs.

use super::common::{assert_clean, assert_formatted, blocks, errors, shown};
use mingle_lang::diagnostic::render_human;
use mingle_lang::files::{Unreadable, load};
use mingle_lang::format::format;
use mingle_lang::syntax::{lex, parse};
use mingle_lang::{check, check_source};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../../../examples/", $name, ".mingle"))
    };
}

#[test]
fn examples_have_no_diagnostics_and_are_formatted() {
    assert_clean(example!("message_groups"));
    assert_clean(example!("contest_strong"));
    assert_clean(example!("contest"));
    assert_clean(example!("ticket_shop"));
    assert_clean(example!("tickets"));
    assert_clean(example!("cart"));
    assert_clean(example!("bank"));
    assert_clean(example!("shop_feed/shop"));
}

#[test]
fn the_example_of_two_files_is_one_program() {
    let files = [example!("lending/lending"), example!("lending/books")];
    let mut read = |path: &str| match path {
        "lending/books.mingle" => Ok(files[1].to_owned()),
        _ => Err(Unreadable("there is no such file".into())),
    };
    let checked = check_source(load("lending/lending.mingle", files[0], &mut read));
    assert!(checked.diagnostics.is_empty(), "{}", shown(&checked));
    for text in files {
        let source = lex(text);
        assert_eq!(format(&source, &parse(&source).0), text);
    }
}

#[test]
fn the_naive_contest_is_rejected() {
    let checked = check(example!("contest_rejected"));
    assert_eq!(errors(&checked), ["M0302"], "{}", shown(&checked));
    // One for each of the two places that declare a winner.
    assert_eq!(checked.diagnostics.len(), 2, "{}", shown(&checked));
    assert_formatted(&checked);
}

#[test]
fn the_contests_endorse_once_and_say_why() {
    for text in [example!("contest_strong"), example!("contest")] {
        let endorsements = check(text).endorsements;
        assert_eq!(endorsements.len(), 1);
        assert_eq!(&*endorsements[0].level, "linearizable");
        assert!(endorsements[0].reason.contains("strong_size"));
    }
}

/// Checks the programs of a page: one without a code has no diagnostics, one with a code has only that, and the message
/// that the page shows below it. Returns their number.
fn held(page: &str) -> usize {
    let blocks = blocks(page);
    let mut programs = 0;
    for (index, block) in blocks.iter().enumerate() {
        match block.info.split_once(',') {
            None if block.info == "mingle" => assert_clean(&block.text),
            Some(("mingle", code)) => {
                let checked = check(block.text.as_str());
                let mut codes: Vec<_> =
                    checked.diagnostics.iter().map(|found| found.code.text()).collect();
                codes.dedup();
                assert_eq!(codes, [code], "{}\n{}", block.text, shown(&checked));
                let below = blocks.get(index + 1).filter(|below| below.info == "text");
                let said = below.and_then(|below| below.text.strip_prefix("$ mingle check "));
                let said = said.filter(|said| !said.starts_with("--"));
                if let Some((file, message)) = said.and_then(|said| said.split_once('\n')) {
                    let expected = render_human(&checked.source, file, &checked.diagnostics, false);
                    assert!(message.starts_with(expected.trim_end()), "{message}\n{expected}");
                }
            }
            _ => continue,
        }
        programs += 1;
    }
    programs
}

#[test]
fn the_reference_holds() {
    let programs = held(include_str!("../../../../../docs/reference.md"));
    assert!(programs > 10, "only {programs} programs in the reference");
}

#[test]
fn the_pages_on_levels_and_costs_hold() {
    assert_eq!(held(include_str!("../../../../../docs/levels.md")), 7);
    assert_eq!(held(include_str!("../../../../../docs/costs.md")), 1);
}
