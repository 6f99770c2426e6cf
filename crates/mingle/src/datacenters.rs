//! Data centers of the embedded engine in this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::Name;
use mingle_runtime::Session;
use mingle_store::DataStore;
use mingle_store_embedded::{DatacenterState, GeoStore};

use crate::database::Database;

impl Database {
    /// The data centers of a store that has several in this process. Use it to stop one and see which
    /// calls stay available.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle::{Binding, Database, Session};
    ///
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
    /// let text = "store inboxes: causal;
    ///     object User in inboxes { key name: string; inbox: log<string>; }
    ///     transaction send(to: ref User, text: string) { to.inbox.append(text); }";
    /// let binding = "[stores.inboxes]\ndatacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"30ms\"";
    /// let binding = Binding::parse(binding).unwrap();
    /// let database = Database::open(mingle::compile(text).unwrap(), &binding, None).await.unwrap();
    /// let send = database.arguments("send", [("to", "ana"), ("text", "hello")]).unwrap();
    ///
    /// database.geo("inboxes").unwrap().kill("oslo").unwrap();
    /// let error = database.call("send", send.clone(), Session::at("oslo")).await.unwrap_err();
    /// assert!(error.to_string().contains("its data center oslo is down"));
    /// database.call("send", send, Session::at("rome")).await.unwrap();
    /// # });
    /// ```
    pub fn geo(&self, store: &str) -> Option<&Arc<GeoStore>> {
        self.known.geo.get(store)
    }

    /// All stores that have data centers in this process, by their names.
    pub fn geo_stores(&self) -> &BTreeMap<Name, Arc<GeoStore>> {
        &self.known.geo
    }

    /// The first running data center, as a replacement for the session's data center that was given up.
    /// None if the session's data center was not given up, or no other runs.
    pub fn stands_in_for(&self, session: &Session) -> Option<Name> {
        let replica = session.replica()?;
        let mut given_up = self.known.geo.values().filter(|geo| geo.departed().contains(&replica));
        given_up.find_map(|geo| {
            let mut up = geo.status().into_iter();
            up.find(|status| status.state == DatacenterState::Up).map(|status| status.name)
        })
    }
}
