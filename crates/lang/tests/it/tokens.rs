//! Programs with one token left out or doubled: the errors stay few and near.

use mingle_lang::check;
use mingle_lang::diagnostic::{Diagnostic, Severity, render_human};
use mingle_lang::syntax::{Source, Span, lex};
use mingle_model::random::Random;

const EXAMPLES: [(&str, &str); 6] = [
    ("bank", include_str!("../../../../examples/bank.mingle")),
    ("bank_counters", include_str!("../../../../examples/bank_counters.mingle")),
    ("cart", include_str!("../../../../examples/cart.mingle")),
    ("contest", include_str!("../../../../examples/contest.mingle")),
    ("message_groups", include_str!("../../../../examples/message_groups.mingle")),
    ("ticket_shop", include_str!("../../../../examples/ticket_shop.mingle")),
];

/// The maximum number of errors for one changed token.
const ERRORS_MAX: usize = 3;

/// The errors of nearly all changed programs: of a hundred, this many have at most one error whose
/// place is within `NEAR` tokens of the change.
const GOOD_PERCENT_MIN: usize = 98;

const NEAR: u32 = 8;

/// The number of changes for each example.
const CHANGES: usize = 150;

struct Changed {
    text: String,
    token: u32,
    what: String,
}

/// Leaves out or doubles a token.
fn changed(source: &Source, token: u32, is_double: bool) -> Changed {
    let place = source.tokens[token as usize];
    let (start, end) = (place.start as usize, place.end as usize);
    let (before, after) = (&source.text[..start], &source.text[end..]);
    let word = source.token_text(token);
    let (text, verb) = if is_double {
        (format!("{before}{word} {word}{after}"), "doubled")
    } else {
        (format!("{before}{after}"), "left out")
    };
    Changed { text, token, what: format!("token {token}, `{word}`, is {verb}") }
}

/// Returns the number of tokens between a token and a span.
fn distance(token: u32, span: Span) -> u32 {
    let last = span.end.saturating_sub(1).max(span.start);
    span.start.saturating_sub(token).max(token.saturating_sub(last))
}

/// True if the change has at most one error, near to it.
fn is_good(changed: &Changed, errors: &[Diagnostic]) -> bool {
    let Some(first) = errors.first() else { return true };
    let spans = first.labels.iter().map(|label| label.span).chain([first.span]);
    let nearest = spans.map(|span| distance(changed.token, span)).min();
    errors.len() == 1 && nearest.is_some_and(|nearest| nearest <= NEAR)
}

/// Changes examples at random; a failure names the seed and each change that is not good.
fn check_seed(seed: u64) {
    let mut random = Random::new(seed);
    let (mut total, mut good, mut others) = (0, 0, String::new());
    for (name, text) in EXAMPLES {
        let source = lex(text);
        for _ in 0..CHANGES {
            let token = random.below(source.tokens.len() - 1) as u32;
            let changed = changed(&source, token, random.one_in(2));
            let checked = check(changed.text.as_str());
            let errors: Vec<Diagnostic> = (checked.diagnostics.iter())
                .filter(|found| found.severity() == Severity::Error)
                .cloned()
                .collect();
            let shown = || render_human(&checked.source, name, &errors, false);
            let what = &changed.what;
            assert!(errors.len() <= ERRORS_MAX, "seed {seed}: {name}: {what}\n{}", shown());
            total += 1;
            if is_good(&changed, &errors) {
                good += 1;
            } else {
                others = format!("{others}{name}: {what}\n{}", shown());
            }
        }
    }
    let is_enough = good * 100 >= total * GOOD_PERCENT_MIN;
    assert!(is_enough, "seed {seed}: only {good} of {total} are good; not these:\n{others}");
}

#[test]
fn one_changed_token_gives_few_errors_near_to_it() {
    for seed in 1..=3 {
        check_seed(seed);
    }
}

/// Every error has a reason in the text: a program that is not changed has none.
#[test]
fn an_example_has_no_errors() {
    for (name, text) in EXAMPLES {
        assert!(!check(text).has_errors(), "{name}");
    }
}
