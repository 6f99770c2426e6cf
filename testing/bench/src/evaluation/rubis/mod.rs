//! An auction site like RUBiS, from its publications: users sell items, others bid for them,
//! buy them at once, and comment on each other (Cecchet et al., OOPSLA 2002; UniStore §8.1; the
//! conflicts are those of Li et al., *Fine-grained consistency for geo-replicated systems*, ATC 2018).
//!
//! There are 11 read-only transactions, 5 that update, and `closeAuction`, which declares a winner. Four
//! are strong, and three pairs of them conflict:
//!
//! - `registerUser` with itself on one nickname, so that nicknames are unique;
//! - `storeBuyNow` with itself on one item, so that no more is sold than there is;
//! - `storeBid` with `closeAuction` on one item, so that the winner is the highest bidder.
//!
//! Of 100 transactions 15 update, and 10 are strong. The split of these sums among the transactions
//! is not published; [`MIX`] gives the split used here.
//!
//! # Departures
//!
//! - Rows are items of the geo store: an item for sale has a register, a log of bids, a stock and a
//!   winner, in one partition by its tag; a user has a register, a rating, and logs of bids and comments.
//! - Lists by category and region are kept as pages of twenty, with the listed facts of each item.
//! - Categories and regions are listed by region, so that no single item has all readers: in
//!   `Strong`, which makes these reads strong transactions, readers of one item would wait for one
//!   partition.
//! - Clients pick items that are not closed, like users that browse the items for sale.

mod rows;
mod steps;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use mingle_geo::certify::Conflicts;
use mingle_geo::{Key, State};
use mingle_model::random::Random;

use super::workload::{Job, Step, Workload};
use rows::Rows;

/// The transactions, in the order of [`MIX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    BrowseCategories,
    BrowseRegions,
    SearchItemsByCategory,
    SearchItemsByRegion,
    ViewItem,
    ViewUserInfo,
    ViewBidHistory,
    BuyNow,
    PutBid,
    PutComment,
    AboutMe,
    RegisterItem,
    StoreComment,
    RegisterUser,
    StoreBuyNow,
    StoreBid,
    CloseAuction,
}

/// The transactions with their frequency in 1/1000 and their names.
pub const MIX: [(usize, Call, &str); 17] = [
    (60, Call::BrowseCategories, "browseCategories"),
    (20, Call::BrowseRegions, "browseRegions"),
    (220, Call::SearchItemsByCategory, "searchItemsByCategory"),
    (70, Call::SearchItemsByRegion, "searchItemsByRegion"),
    (200, Call::ViewItem, "viewItem"),
    (40, Call::ViewUserInfo, "viewUserInfo"),
    (30, Call::ViewBidHistory, "viewBidHistory"),
    (20, Call::BuyNow, "buyNow"),
    (120, Call::PutBid, "putBid"),
    (20, Call::PutComment, "putComment"),
    (50, Call::AboutMe, "aboutMe"),
    (25, Call::RegisterItem, "registerItem"),
    (25, Call::StoreComment, "storeComment"),
    (10, Call::RegisterUser, "registerUser"),
    (10, Call::StoreBuyNow, "storeBuyNow"),
    (70, Call::StoreBid, "storeBid"),
    (10, Call::CloseAuction, "closeAuction"),
];

impl Call {
    /// True if the transaction may write.
    pub fn is_update(self) -> bool {
        self.is_strong() || matches!(self, Self::RegisterItem | Self::StoreComment)
    }

    /// True if the application declares the transaction strong.
    pub fn is_strong(self) -> bool {
        matches!(self, Self::RegisterUser | Self::StoreBuyNow | Self::StoreBid | Self::CloseAuction)
    }
}

/// The labels of strong accesses to items, for which conflicts are declared.
pub const REGISTER: &str = "register";
pub const BUY: &str = "buy";
pub const BID: &str = "bid";
pub const CLOSE: &str = "close";

/// The auction site.
#[derive(Clone, Debug)]
pub struct Rubis {
    rows: Rows,
    /// The items for sale, as a browsing user finds them.
    open: Vec<u64>,
    /// The index in `open` of each item.
    place_of: Vec<usize>,
    /// The number of the next item to be registered.
    next_item: u64,
    /// The number of the next user to be registered.
    next_user: u64,
}

impl Rubis {
    /// Creates a site with the given numbers of items for sale and users.
    pub fn new(items: u64, users: u64) -> Self {
        let open: Vec<u64> = (0..items).collect();
        let place_of = (0..items as usize).collect();
        Self { rows: Rows { items, users }, open, place_of, next_item: items, next_user: users }
    }

    fn call(job: &Job) -> Call {
        MIX[job.kind].1
    }

    fn close(&mut self, item: u64) {
        let Some(place) = self.place_of.get(item as usize).copied() else { return };
        if self.open.get(place) == Some(&item) && self.open.len() > 1 {
            self.open.swap_remove(place);
            if let Some(moved) = self.open.get(place) {
                self.place_of[*moved as usize] = place;
            }
        }
    }

    fn offer(&mut self, item: u64) {
        if self.place_of.len() <= item as usize {
            self.place_of.resize(item as usize + 1, usize::MAX);
        }
        self.place_of[item as usize] = self.open.len();
        self.open.push(item);
    }
}

impl Workload for Rubis {
    fn conflicts(&self) -> Conflicts {
        Conflicts::new([(REGISTER, REGISTER), (BUY, BUY), (BID, CLOSE)])
    }

    fn filling(&self) -> Vec<(Key, Arc<State>)> {
        self.rows.filling()
    }

    fn next(&mut self, random: &mut Random) -> Job {
        let mut left = random.below(1_000);
        let mut kind = 0;
        while left >= MIX[kind].0 {
            left -= MIX[kind].0;
            kind += 1;
        }
        let call = MIX[kind].1;
        let item = *random.pick(&self.open);
        let user = random.below(self.rows.users as usize) as u64;
        let subjects = match call {
            Call::RegisterItem => {
                self.next_item += 1;
                [self.next_item - 1, user, random.bits()]
            }
            Call::RegisterUser => {
                self.next_user += 1;
                // Some nicknames are taken.
                [self.next_user - 1, random.below(20 * self.rows.users as usize) as u64, 0]
            }
            Call::SearchItemsByCategory | Call::SearchItemsByRegion | Call::StoreComment => {
                [item, user, random.below(self.rows.users as usize) as u64]
            }
            _ => [item, user, random.below(100) as u64],
        };
        let (is_strong, is_update) = (call.is_strong(), call.is_update());
        Job { kind, is_strong, is_update, subjects, ..Job::default() }
    }

    fn step(&mut self, job: &mut Job, found: &[Arc<State>]) -> Step {
        steps::step(&self.rows, Self::call(job), job, found)
    }

    fn on_committed(&mut self, job: &Job) {
        match Self::call(job) {
            Call::CloseAuction => self.close(job.subjects[0]),
            Call::RegisterItem => self.offer(job.subjects[0]),
            _ => {}
        }
    }
}
