//! Cleaning up after origins that are gone, and an operator's view and means.

pub mod abandon;
mod background;
pub(crate) mod dead_origins;
pub mod survey;
pub mod sweeper;

use std::sync::{Arc, Mutex, Weak};

use crate::execute::Executor;
use crate::in_flight::InFlight;
use crate::recovery::dead_origins::Watched;
use crate::stores::Stores;

/// Finishes and cleans up the transactions of origins that are gone, and serves an operator.
pub(crate) struct Recovery {
    pub(crate) stores: Arc<Stores>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) executor: Arc<Executor>,
    watched: Mutex<Watched>,
    pub(crate) me: Weak<Self>,
}

impl Recovery {
    /// Creates a recovery that has watched no other origin yet.
    pub(crate) fn new(executor: Arc<Executor>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            stores: executor.stores.clone(),
            in_flight: executor.in_flight.clone(),
            executor,
            watched: Mutex::default(),
            me: me.clone(),
        })
    }
}
