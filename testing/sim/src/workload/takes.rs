//! Takes from bounded counters, in some seeds.
//!
//! One seed in thirteen has shelves with a stock, and calls that take from it. The shop is a `snapshot` store in these
//! seeds, so the account of a buyer is written before it: the take runs ahead, and is held until the phase at the
//! shop. A call that took effect leaves its tag in the shelf's log, so the log tells how much was taken.
//!
//! A separate generator draws these calls, so all other seeds stay unchanged.

use mingle_model::random::Random;

use super::calls::{ClientCall, Kind, Object};
use super::extras::{add_calls, add_deaths};
use super::history::History;
use super::promises::{Broken, broken};
use super::setup::Setup;
use crate::process::Event;

/// The divisor, and the remainder that selects a seed.
const EVERY: (u64, u64) = (13, 6);

/// The amount that can be taken from each shelf.
const STOCK: i64 = 6;

/// The transactions of these seeds: those that take, and some that meet them.
const MIX: &[Kind] =
    &[Kind::Buy, Kind::Buy, Kind::Buy, Kind::Buy, Kind::Transfer, Kind::Order, Kind::Look];

/// The transaction that takes.
const PROGRAM: &str = "
// Only runs with takes have the following.

// The take runs ahead of the account; the shelf is the second store that is written.
transaction buy(account: ref Account, shelf: ref Shelf, inbox: ref Inbox, tag: string) {
    require shelf.left.take(1) else \"sold out\" as sold_out;
    account.entries.append(tag);
    shelf.entries.append(tag);
    inbox.entries.append(tag);
    inbox.count.add(1);
}
";

/// Adds the takes of a seed, if it has any.
pub(super) fn add(seed: u64, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    if seed % EVERY.0 != EVERY.1 {
        return;
    }
    let mut random = Random::new(seed ^ 0x0074_616b_6573);
    setup.extras.has_takes = true;
    let calls = 4 + random.below(12);
    add_calls(&mut random, MIX, calls, setup, events);
    add_deaths(&mut random, setup, events);
}

/// Returns the program with takes.
pub(super) fn with_takes(text: &str) -> String {
    let head = "object Shelf in shop {\n    key name: string;\n    entries: log<string>;\n";
    let stock = format!("{head}    left: counter min -{STOCK};\n");
    let text = text.replacen("store shop: linearizable", "store shop: snapshot", 1);
    let text = text.replacen(head, &stock, 1);
    text + PROGRAM
}

/// Checks that exactly the sold amount was taken from each shelf, and never more than there is.
///
/// # Errors
///
/// The first shelf whose counter does not agree with its log.
pub(super) fn stocks(history: &History) -> Result<(), Broken> {
    let by_tag = history.by_tag();
    for (object, replicas) in &history.finals {
        let (Object::Shelf(_), Some(shelf)) = (object, replicas.first()) else { continue };
        let is_buy = |tag: &&String| {
            by_tag.get(*tag).is_some_and(|at| history.operations[*at].call.kind == Kind::Buy)
        };
        let sold = shelf.entries.iter().filter(is_buy).count() as i64;
        let taken = -shelf.count;
        if taken != sold {
            let how = format!("{taken} was taken from {object:?}, and {sold} sold");
            return Err(broken("P3 conservation", how));
        }
        if taken > STOCK {
            let how = format!("{taken} was taken from {object:?}, which had {STOCK}");
            return Err(broken("bounds", how));
        }
    }
    Ok(())
}
