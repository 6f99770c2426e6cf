//! Subscriptions: each server has one to every other.
//!
//! A slot at the publisher keeps the updates that the subscriber has not received. If a slot is
//! lost, the subscription is recreated, together with a copy of the publisher's log, which has all
//! updates that some server lacks; the receiver drops duplicates. This process makes the copy, not
//! the server (`copy_data`): the slots that the server needs for a copy have the same name on all
//! servers that began as copies of one data folder.

use super::setup::{Opening, Planned, There};
use super::store::Server;
use super::vector::Vector;
use crate::config::OpenError;
use crate::encoding::short_digest;
use crate::layout::system;
use crate::limits::COPIED_AT_ONCE;
use crate::name::{literal, quote};
use crate::pool::Lease;
use crate::wire::{int, ints, text};

/// The subscription of one server to another, by their indexes.
pub struct Link<'a> {
    pub opening: &'a Opening,
    pub servers: &'a [Server],
    /// The subscriber.
    pub at: usize,
    /// The publisher.
    pub from: usize,
}

/// The state of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fine,
    /// There is no subscription; there may be a slot.
    Missing,
    /// The publisher's address has changed.
    Moved,
    /// Its slot is lost.
    Lost,
}

impl Link<'_> {
    /// Returns the missing statements, by server; all of them if one of the servers is new.
    ///
    /// # Errors
    ///
    /// When a server refuses, or the publisher lacks updates that it has sent.
    pub async fn plan(
        &self,
        at: &There,
        from: &There,
        is_new: bool,
    ) -> Result<Vec<Planned>, OpenError> {
        let name = self.name(from);
        let state =
            if is_new { State::Missing } else { self.state(&name, &at.lease, &from.lease).await? };
        let steps = match state {
            State::Fine => return Ok(Vec::new()),
            State::Missing => [self.slot(&name), self.subscription(&name, "…")].concat(),
            State::Moved => self.moved(&name, "…"),
            State::Lost => {
                let again = [self.slot(&name), self.subscription(&name, "…")].concat();
                [self.removal(&name), again].concat()
            }
        };
        Ok(steps)
    }

    /// Creates the missing parts.
    ///
    /// # Errors
    ///
    /// As [`Link::plan`].
    pub async fn make(&self, at: &There, from: &There) -> Result<(), OpenError> {
        let name = self.name(from);
        let (at, from) = (&at.lease, &from.lease);
        let address = &self.servers[self.from].link;
        // Run separately: a slot is created only after all transactions with changes have ended.
        let removal = async {
            if self.state(&name, at, from).await? == State::Lost {
                for (index, sql) in self.removal(&name) {
                    self.run(index, at, &sql).await?;
                }
            }
            Ok(())
        };
        self.opening.locked(self.at, at, removal).await?;
        let all = async {
            match self.state(&name, at, from).await? {
                State::Fine | State::Lost => {}
                State::Moved => {
                    for (index, sql) in self.moved(&name, address) {
                        self.run(index, at, &sql).await?;
                    }
                }
                State::Missing => {
                    for (index, sql) in self.slot(&name) {
                        self.run(index, from, &sql).await?;
                    }
                    for (index, sql) in self.subscription(&name, address) {
                        self.run(index, at, &sql).await?;
                    }
                    self.copy(at, from).await?;
                }
            }
            Ok(())
        };
        self.opening.locked(self.at, at, all).await
    }

    /// Copies the updates that the publisher logged before its slot was created.
    async fn copy(&self, at: &Lease, from: &Lease) -> Result<(), OpenError> {
        let (subscriber, publisher) = (&self.servers[self.at].name, &self.servers[self.from].name);
        let failed = |who, error| self.opening.server(who, "a copy of the log", &error);
        let own = |table| system(&self.opening.own, table);
        let (log, inbox, state) = (own("log"), own("inbox"), own("state"));
        let (source, target) = (from.connection().client(), at.connection().client());
        let lock = format!("SELECT FROM {state} FOR UPDATE");
        target.batch_execute(&lock).await.map_err(|error| failed(subscriber, error))?;
        let batch = format!(
            "SELECT l.number, l::text FROM {log} AS l WHERE number > $1::bigint \
             ORDER BY number LIMIT {COPIED_AT_ONCE}"
        );
        let add = format!(
            "INSERT INTO {inbox} SELECT u.* FROM unnest($1::text[]) AS x(line), \
             LATERAL (SELECT (x.line::{log}).*) AS u \
             WHERE u.number > (SELECT s.vector[u.origin] FROM {state} AS s) ON CONFLICT DO NOTHING"
        );
        let mut last: i64 = 0;
        loop {
            let rows = source.query(&batch, &[&last]).await;
            let rows = rows.map_err(|error| failed(publisher, error))?;
            let Some(row) = rows.last() else { break };
            last = int(row, 0);
            let lines: Vec<&str> = rows.iter().filter_map(|row| text(row, 1)).collect();
            target.execute(&add, &[&lines]).await.map_err(|error| failed(subscriber, error))?;
        }
        let said = format!("SELECT number, vector FROM {} ORDER BY number", own("seen"));
        let rows = source.query(&said, &[]).await.map_err(|error| failed(publisher, error))?;
        for row in rows {
            let sql = format!(
                "UPDATE {} SET number = {number}, vector = '{}' \
                 WHERE server = {} AND number < {number}",
                own("known"),
                Vector(ints(&row, 1)).literal(),
                self.from + 1,
                number = int(&row, 0)
            );
            target.batch_execute(&sql).await.map_err(|error| failed(subscriber, error))?;
        }
        let drain = format!("SELECT {}(NULL) FROM {state} WHERE NOT is_held", own("drain"));
        target.batch_execute(&drain).await.map_err(|error| failed(subscriber, error))
    }

    async fn run(&self, index: usize, lease: &Lease, sql: &str) -> Result<(), OpenError> {
        let (at, from) = (&self.servers[self.at].name, &self.servers[self.from].name);
        let what = format!("the subscription of {at} to {from}");
        self.opening.run(index, lease, &what, sql).await
    }

    /// Returns the name of the subscription and of its slot, unique in the publisher's cluster.
    fn name(&self, from: &There) -> String {
        let (publisher, subscriber) = (&self.servers[self.from].name, &self.servers[self.at].name);
        let parts = [&*from.database, &*self.opening.own, publisher, subscriber];
        format!("mingle_{}", short_digest(&format!("{parts:?}")))
    }

    /// Returns a digest of the publisher's address, which may contain a password.
    fn address_digest(&self) -> String {
        short_digest(&self.servers[self.from].link)
    }

    async fn state(&self, name: &str, at: &Lease, from: &Lease) -> Result<State, OpenError> {
        let (subscriber, publisher) = (&self.servers[self.at].name, &self.servers[self.from].name);
        let failed = |who, error| self.opening.server(who, "a look at subscriptions", &error);
        let own = |table| system(&self.opening.own, table);
        let sql = format!(
            "SELECT (SELECT vector FROM {}), (SELECT digest FROM {} WHERE name = {name}), \
             (SELECT 'there' FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = s.subdbid \
              WHERE d.datname = current_database() AND s.subname = {name})",
            own("state"),
            own("links"),
            name = literal(name)
        );
        let found = at.connection().client().query_one(&sql, &[]).await;
        let row = found.map_err(|error| failed(subscriber, error))?;
        let seen = Vector(ints(&row, 0));
        let (digest, is_there) = (text(&row, 1).map(str::to_owned), text(&row, 2).is_some());
        let sql = format!(
            "SELECT vector, (SELECT wal_status FROM pg_replication_slots WHERE slot_name = {}) \
             FROM {}",
            literal(name),
            own("state")
        );
        let found = from.connection().client().query_one(&sql, &[]).await;
        let row = found.map_err(|error| failed(publisher, error))?;
        let made = Vector(ints(&row, 0));
        if seen.at(self.from) > made.at(self.from) {
            return Err(OpenError::Config {
                store: self.opening.schema.store.clone(),
                reason: format!(
                    "servers.{publisher}: it has {} updates of its own, of which {subscriber} has \
                     {}: it was put back to an older state, and must not go on from there",
                    made.at(self.from),
                    seen.at(self.from)
                ),
            });
        }
        let is_kept = text(&row, 1).is_some_and(|status| status != "lost");
        Ok(match (is_there, is_kept) {
            (false, _) => State::Missing,
            (true, false) => State::Lost,
            (true, true) if digest != Some(self.address_digest()) => State::Moved,
            (true, true) => State::Fine,
        })
    }

    /// Creates a slot if there is none. It is a separate step, because the creation waits for other
    /// transactions. A lost slot is useless.
    fn slot(&self, name: &str) -> Vec<Planned> {
        let name = literal(name);
        let gone = format!(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots \
             WHERE slot_name = {name} AND wal_status = 'lost'"
        );
        let sql = format!(
            "SELECT pg_create_logical_replication_slot({name}, 'pgoutput') \
             WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = {name})"
        );
        vec![(self.from, gone), (self.from, sql)]
    }

    fn subscription(&self, name: &str, address: &str) -> Vec<Planned> {
        let create = format!(
            "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (create_slot = false, \
             slot_name = {}, copy_data = false, origin = none, binary = true, streaming = off, \
             synchronous_commit = off)",
            quote(name),
            literal(address),
            quote(&self.opening.own),
            literal(name)
        );
        vec![(self.at, create), (self.at, self.note(name))]
    }

    fn moved(&self, name: &str, address: &str) -> Vec<Planned> {
        let alter = format!("ALTER SUBSCRIPTION {} CONNECTION {}", quote(name), literal(address));
        vec![(self.at, alter), (self.at, self.note(name))]
    }

    fn note(&self, name: &str) -> String {
        format!(
            "INSERT INTO {} (name, digest) VALUES ({}, {}) \
             ON CONFLICT (name) DO UPDATE SET digest = excluded.digest",
            system(&self.opening.own, "links"),
            literal(name),
            literal(&self.address_digest())
        )
    }

    fn removal(&self, name: &str) -> Vec<Planned> {
        let name = quote(name);
        let sql = format!(
            "ALTER SUBSCRIPTION {name} DISABLE; ALTER SUBSCRIPTION {name} SET (slot_name = NONE); \
             DROP SUBSCRIPTION {name}"
        );
        vec![(self.at, sql)]
    }
}
