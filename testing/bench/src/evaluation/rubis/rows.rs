//! The tables as items of the geo store: their keys and initial contents.

use std::sync::Arc;

use mingle_geo::{Key, Kind, Op, State};
use mingle_model::Value;

use super::super::micro::state_of;

/// The number of categories, as in RUBiS.
pub const CATEGORIES: u64 = 20;
pub const REGIONS: u64 = 62;

/// Items on a page of a list.
pub const PAGE: u64 = 20;

/// The sizes in bytes of an item's description and of a user's profile.
const ITEM_BYTES: usize = 200;
const USER_BYTES: usize = 100;

/// The number of pieces of an item that can be bought at once, besides its auction.
pub const STOCK: i64 = 1;

/// The initial numbers of items and users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub items: u64,
    pub users: u64,
}

impl Rows {
    pub fn item(item: u64) -> Key {
        Key::new(Kind::Register, format!("{{item:{item}}}"))
    }

    /// Returns the key of an item's bids, each in the form of [`bid`](Self::bid).
    pub fn bids(item: u64) -> Key {
        Key::new(Kind::Log, format!("{{item:{item}}}:bids"))
    }

    pub fn stock(item: u64) -> Key {
        Key::new(Kind::Counter, format!("{{item:{item}}}:stock"))
    }

    /// Returns the key of the winning bid, set once the auction is closed; 0 if there was no bid.
    pub fn winner(item: u64) -> Key {
        Key::new(Kind::Register, format!("{{item:{item}}}:winner"))
    }

    pub fn user(user: u64) -> Key {
        Key::new(Kind::Register, format!("{{user:{user}}}"))
    }

    pub fn rating(user: u64) -> Key {
        Key::new(Kind::Counter, format!("{{user:{user}}}:rating"))
    }

    pub fn comments(user: u64) -> Key {
        Key::new(Kind::Log, format!("{{user:{user}}}:comments"))
    }

    /// Returns the key of the items that the user has bid for, bought or sells.
    pub fn dealings(user: u64) -> Key {
        Key::new(Kind::Log, format!("{{user:{user}}}:dealings"))
    }

    /// Returns the key that maps a nickname to its user.
    pub fn nickname(name: u64) -> Key {
        Key::new(Kind::Register, format!("nick:{name}"))
    }

    /// Returns the key of the categories as listed to users of a region.
    pub fn categories(region: u64) -> Key {
        Key::new(Kind::Set, format!("categories:{region}"))
    }

    /// Returns the key of the regions as listed to users of a region.
    pub fn regions(region: u64) -> Key {
        Key::new(Kind::Set, format!("regions:{region}"))
    }

    /// Returns the key of the category-list page with the item.
    pub fn category_page(item: u64) -> Key {
        let (category, page) = (item % CATEGORIES, item / CATEGORIES / PAGE);
        Key::new(Kind::Set, format!("category:{category}:{page}"))
    }

    /// Returns the key of the region-list page with the item.
    pub fn region_page(item: u64) -> Key {
        let (region, page) = (item % REGIONS, item / REGIONS / PAGE);
        Key::new(Kind::Set, format!("region:{region}:{page}"))
    }

    /// Returns the seller of an item.
    pub fn seller(&self, item: u64) -> u64 {
        item.wrapping_mul(0x9e37_79b9) % self.users
    }

    /// Encodes a bid as one number, so that the highest amount is the highest number.
    pub fn bid(amount: i64, user: u64) -> i64 {
        amount << 32 | (user as i64 & 0xffff_ffff)
    }

    /// Returns an item's price and description.
    pub fn description() -> Value {
        Value::Bytes(vec![b'i'; ITEM_BYTES].into())
    }

    /// Returns a user's profile.
    pub fn profile() -> Value {
        Value::Bytes(vec![b'u'; USER_BYTES].into())
    }

    /// Returns the initial contents.
    pub fn filling(&self) -> Vec<(Key, Arc<State>)> {
        let mut filling = Vec::new();
        let description = state_of(Kind::Register, &[Op::Write(Self::description())]);
        let stock = state_of(Kind::Counter, &[Op::Add(STOCK)]);
        for item in 0..self.items {
            filling.push((Self::item(item), description.clone()));
            filling.push((Self::stock(item), stock.clone()));
        }
        let profile = state_of(Kind::Register, &[Op::Write(Self::profile())]);
        filling.extend((0..self.users).map(|user| (Self::user(user), profile.clone())));
        filling.extend((0..self.users).map(|user| {
            let owner = state_of(Kind::Register, &[Op::Write(Value::Int(user as i64))]);
            (Self::nickname(user * 20), owner)
        }));
        filling.extend(self.pages());
        let all = |count: u64| -> Vec<Op> {
            (0..count).map(|at| Op::Insert(Value::Int(at as i64))).collect()
        };
        for region in 0..REGIONS {
            filling.push((Self::categories(region), state_of(Kind::Set, &all(CATEGORIES))));
            filling.push((Self::regions(region), state_of(Kind::Set, &all(REGIONS))));
        }
        filling.sort_by(|(a, _), (b, _)| a.cmp(b));
        filling
    }

    fn pages(&self) -> Vec<(Key, Arc<State>)> {
        let mut pages: std::collections::BTreeMap<Key, Vec<Op>> = std::collections::BTreeMap::new();
        for item in 0..self.items {
            for page in [Self::category_page(item), Self::region_page(item)] {
                pages.entry(page).or_default().push(Op::Insert(Value::Int(item as i64)));
            }
        }
        pages.into_iter().map(|(key, ops)| (key, state_of(Kind::Set, &ops))).collect()
    }
}
