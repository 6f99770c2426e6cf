//! What the certification service delivers (3:4-8).

use std::sync::Arc;

use super::Replica;
use crate::record::{Alarm, Interval, Record};
use crate::timestamp::{DcId, Now, Timestamp};
use crate::tx::Transaction;

/// All strong transactions of this partition up to a timestamp that were not delivered before.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Up to here, inclusive.
    pub to: Timestamp,
    /// In the order of their strong timestamps; their origin is [`DcId::STRONG`].
    pub transactions: Vec<Arc<Transaction>>,
}

impl Replica {
    /// DELIVER_UPDATES. What was delivered before is left out, so this may be repeated.
    pub(super) fn on_deliver(&mut self, now: Now, delivery: Delivery) {
        let strong = DcId::STRONG;
        let known = self.known_vec[strong];
        let is_sound = delivery.transactions.iter().all(|transaction| {
            transaction.origin == strong
                && transaction.timestamp() <= delivery.to
                && self.fits_here(transaction)
        });
        if !is_sound {
            return self.alarm(Alarm::Malformed("a delivery of strong transactions"));
        }
        if delivery.to <= known {
            return;
        }
        let new = delivery.transactions.into_iter();
        let new: Vec<_> = new.filter(|transaction| transaction.timestamp() > known).collect();
        for transaction in &new {
            self.apply(transaction);
        }
        self.known_vec[strong] = delivery.to;
        self.write(Record::Delivered(Interval {
            origin: strong,
            to: delivery.to,
            transactions: new,
            floors: Vec::new(),
        }));
        self.wake(now);
    }
}
