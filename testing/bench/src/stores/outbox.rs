//! Message Groups written by hand over PostgreSQL and a near store, with an outbox.
//!
//! To join a group, a call writes both stores. Member and outbox row are one transaction of PostgreSQL;
//! after its commit the application delivers to the near store, and a background task later deletes
//! many outbox rows at once. If a crash leaves rows in the outbox, [`relay`] delivers them: at least
//! once, and deduplicated by the row's id. A post reads one store and writes the other, which needs no
//! outbox: the transaction that reads is one statement and ends before the deliveries; if these never
//! happen, the post had no effect.
//!
//! All transactions are `SERIALIZABLE`, like the adapter's, and are sent in one round trip.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Origin, Ref, Time, TransactionId, Value};
use mingle_store::StoreError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::servers::{connect, failed};
use crate::hand::Inboxes;

const TABLES: &str = "\
CREATE SCHEMA by_hand;
CREATE TABLE by_hand.groups (name text PRIMARY KEY, closed boolean NOT NULL DEFAULT false);
CREATE TABLE by_hand.members (\"group\" text, \"user\" text, PRIMARY KEY (\"group\", \"user\"));
CREATE TABLE by_hand.outbox (id bigint PRIMARY KEY, \"user\" text NOT NULL, \"group\" text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());";

const MEMBERS: &str = "SELECT g.closed, m.\"user\" FROM by_hand.groups AS g \
    LEFT JOIN by_hand.members AS m ON m.\"group\" = g.name WHERE g.name = $1";

const JOIN: [&str; 3] = [
    "INSERT INTO by_hand.groups (name) VALUES ($1) ON CONFLICT DO NOTHING",
    "INSERT INTO by_hand.members (\"group\", \"user\") VALUES ($1, $2) ON CONFLICT DO NOTHING",
    "INSERT INTO by_hand.outbox (id, \"group\", \"user\") VALUES ($1, $2, $3)",
];

const DONE: &str = "DELETE FROM by_hand.outbox WHERE id = ANY($1)";

/// The number of rows that are deleted from the outbox at once.
const DONE_AT_ONCE: usize = 256;

/// The largest number of tries of a transaction that meets conflicts.
const TRIES_MAX: usize = 100;

/// The application.
pub struct Outbox {
    inboxes: Inboxes,
    delivered: mpsc::UnboundedSender<TransactionId>,
    last: AtomicU64,
}

/// One client's connection to PostgreSQL.
pub struct Link {
    client: Client,
    members: Statement,
    join: [Statement; 3],
    /// Attempts after the first.
    again: AtomicU64,
}

impl Link {
    pub async fn open(url: &str) -> Result<Self, String> {
        let client = connect(url).await?;
        let prepare = async |sql: &str| client.prepare(sql).await.map_err(failed);
        let members = prepare(MEMBERS).await?;
        let join = [prepare(JOIN[0]).await?, prepare(JOIN[1]).await?, prepare(JOIN[2]).await?];
        Ok(Self { client, members, join, again: AtomicU64::new(0) })
    }

    /// Returns the number of attempts after the first, and resets it.
    pub fn take_again(&self) -> u64 {
        self.again.swap(0, Ordering::Relaxed)
    }

    /// Retries a transaction after conflicts.
    async fn persist<T, F: Future<Output = Result<T, Error>>>(
        &self,
        run: impl Fn() -> F,
    ) -> Result<T, String> {
        for _ in 1..TRIES_MAX {
            match run().await {
                Err(error) if is_conflict(&error) => {
                    self.again.fetch_add(1, Ordering::Relaxed);
                }
                other => return other.map_err(failed),
            }
        }
        run().await.map_err(failed)
    }

    /// Reads whether a group is closed, and its members.
    async fn members(&self, group: &str) -> Result<(bool, Vec<Ref>), Error> {
        let of_group: [&(dyn ToSql + Sync); 1] = [&group];
        let (begun, found, ended) = tokio::join!(
            biased;
            self.client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"),
            self.client.query(&self.members, &of_group),
            self.client.batch_execute("COMMIT"),
        );
        begun?;
        let rows = found?;
        ended?;
        let closed = rows.first().is_some_and(|row| row.get(0));
        let names = rows.iter().filter_map(|row| row.get::<_, Option<&str>>(1));
        Ok((closed, names.map(|name| Ref::new("User", Value::from(name))).collect()))
    }

    /// Adds a member, and the delivery to the outbox.
    async fn join(&self, id: i64, user: &str, group: &str) -> Result<(), Error> {
        let client = &self.client;
        let all: [&(dyn ToSql + Sync); 3] = [&id, &group, &user];
        let (begun, first, second, third, ended) = tokio::join!(
            biased;
            client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"),
            client.execute(&self.join[0], &all[1..2]),
            client.execute(&self.join[1], &all[1..]),
            client.execute(&self.join[2], &all),
            client.batch_execute("COMMIT"),
        );
        begun?;
        first.and(second).and(third)?;
        ended
    }
}

/// The error message of a call that a store failed.
fn store_failed(error: StoreError) -> String {
    error.to_string()
}

/// True if the error is a conflict with another transaction.
fn is_conflict(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    })
}

/// The name of an object of the program.
fn name(object: &Ref) -> &str {
    match object.key() {
        Value::String(name) => name,
        _ => "",
    }
}

impl Outbox {
    /// Makes the tables, and starts the task that empties the outbox, over a connection through `url`.
    pub async fn open(
        url: &str,
        inboxes: impl Fn() -> Inboxes,
    ) -> Result<(Arc<Self>, JoinHandle<Result<(), String>>), String> {
        let client = connect(url).await?;
        client.batch_execute(TABLES).await.map_err(failed)?;
        let (delivered, done) = mpsc::unbounded_channel();
        let emptying = tokio::spawn(empty(client, inboxes(), done));
        let outbox = Self { inboxes: inboxes(), delivered, last: AtomicU64::new(0) };
        Ok((Arc::new(outbox), emptying))
    }

    pub async fn create_user(&self, name: &Value, now: Time) -> Result<Value, String> {
        self.inboxes.create_user(name, now).await.map_err(store_failed)
    }

    pub async fn check_inbox(&self, user: &Ref) -> Result<Value, String> {
        self.inboxes.check_inbox(user).await.map_err(store_failed)
    }

    /// Delivers a post to the members of a group; returns their number, or none if the group is closed.
    pub async fn add_post(
        &self,
        link: &Link,
        group: &Ref,
        post: &Value,
    ) -> Result<Option<usize>, String> {
        let group = name(group);
        let (closed, members) = link.persist(|| link.members(group)).await?;
        if closed {
            return Ok(None);
        }
        self.inboxes.deliver(members.iter(), post).await.map_err(store_failed)?;
        Ok(Some(members.len()))
    }

    pub async fn join_group(&self, link: &Link, user: &Ref, group: &Ref) -> Result<(), String> {
        let id = self.commit_join(link, user, group).await?;
        self.deliver(id, user, group).await
    }

    /// The first half of a join; if the process crashes afterwards, [`relay`] does the rest.
    async fn commit_join(
        &self,
        link: &Link,
        user: &Ref,
        group: &Ref,
    ) -> Result<TransactionId, String> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        link.persist(|| link.join(number as i64, name(user), name(group))).await?;
        Ok(id(number))
    }

    async fn deliver(&self, id: TransactionId, user: &Ref, group: &Ref) -> Result<(), String> {
        self.inboxes.join_once(id, user, group).await.map_err(store_failed)?;
        self.delivered.send(id).map_err(|_| "nobody empties the outbox".to_owned())
    }
}

/// Delivers the rows that have been in the outbox for so many seconds, and returns their number. The
/// rows stay locked until they are deleted, so that no other task forgets their deliveries meanwhile.
pub async fn relay(link: &Link, inboxes: &Inboxes, seconds: f64) -> Result<usize, String> {
    let old = "SELECT id, \"user\", \"group\" FROM by_hand.outbox \
               WHERE at <= clock_timestamp() - make_interval(secs => $1) \
               ORDER BY id FOR UPDATE SKIP LOCKED";
    link.client.batch_execute("BEGIN").await.map_err(failed)?;
    let rows = link.client.query(old, &[&seconds]).await.map_err(failed)?;
    let mut ids: Vec<i64> = Vec::new();
    for row in &rows {
        let (number, user, group): (i64, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let user = Ref::new("User", Value::from(user));
        let group = Ref::new("Group", Value::from(group));
        inboxes.join_once(id(number as u64), &user, &group).await.map_err(store_failed)?;
        ids.push(number);
    }
    link.client.execute(DONE, &[&ids]).await.map_err(failed)?;
    link.client.batch_execute("COMMIT").await.map_err(failed)?;
    Ok(rows.len())
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(1), sequence }
}

/// Deletes delivered rows from the outbox, then the near store's records of these deliveries: once
/// the rows are gone, no relay delivers them again.
async fn empty(
    client: Client,
    inboxes: Inboxes,
    mut done: mpsc::UnboundedReceiver<TransactionId>,
) -> Result<(), String> {
    let statement = client.prepare(DONE).await.map_err(failed)?;
    let mut ids = Vec::new();
    while done.recv_many(&mut ids, DONE_AT_ONCE).await > 0 {
        let numbers: Vec<i64> = ids.iter().map(|id| id.sequence as i64).collect();
        client.execute(&statement, &[&numbers]).await.map_err(failed)?;
        inboxes.forget(&ids).await.map_err(store_failed)?;
        ids.clear();
    }
    Ok(())
}

/// Fills the tables with members of groups: pairs of group and user.
pub async fn fill(url: &str, pairs: &[(String, String)]) -> Result<(), String> {
    let client = connect(url).await?;
    let groups: Vec<&str> = pairs.iter().map(|(group, _)| group.as_str()).collect();
    let users: Vec<&str> = pairs.iter().map(|(_, user)| user.as_str()).collect();
    let into_groups = "INSERT INTO by_hand.groups (name) SELECT DISTINCT unnest($1::text[])";
    client.execute(into_groups, &[&groups]).await.map_err(failed)?;
    let into_members = "INSERT INTO by_hand.members (\"group\", \"user\") \
                        SELECT DISTINCT * FROM unnest($1::text[], $2::text[])";
    client.execute(into_members, &[&groups, &users]).await.map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use mingle_services::Engine;
    use mingle_store::{Address, Data, Read};

    use super::super::mixed;
    use super::super::servers::Servers;
    use super::*;

    /// The groups in a user's own list.
    async fn own_groups(inboxes: &Inboxes, user: &Ref) -> usize {
        let mut transaction = inboxes.store.begin(&inboxes.session).await.unwrap();
        let groups = Address { object: user.clone(), field: 3 };
        let answers = transaction.read(&[Read::SetSize(groups)]).await.unwrap();
        match answers[0].data {
            Data::Count(count) => count as usize,
            ref other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_crash_leaves_is_delivered_once() {
        let Some(server) = mingle_services::private(Engine::Postgres).await else { return };
        let servers = Servers::before(server, 1).await.unwrap();
        let store = mixed::near("1ms".parse().unwrap()).await.unwrap();
        let inboxes = || Inboxes {
            store: store.clone(),
            session: mingle_store::Session::default(),
            user_kind: "User".into(),
        };
        let (outbox, emptying) = Outbox::open(servers.near(), inboxes).await.unwrap();
        let link = Link::open(servers.near()).await.unwrap();
        let (ana, group) = (Ref::new("User", "ana".into()), Ref::new("Group", "rust".into()));

        let id = outbox.commit_join(&link, &ana, &group).await.unwrap();
        assert_eq!(own_groups(&inboxes(), &ana).await, 0, "it was not delivered yet");
        assert_eq!(relay(&link, &inboxes(), 3600.0).await, Ok(0), "it is young");
        assert_eq!(relay(&link, &inboxes(), 0.0).await, Ok(1));
        assert_eq!(own_groups(&inboxes(), &ana).await, 1);
        inboxes().join_once(id, &ana, &Ref::new("Group", "other".into())).await.unwrap();
        assert_eq!(own_groups(&inboxes(), &ana).await, 1, "the second delivery changes nothing");

        outbox.join_group(&link, &Ref::new("User", "ben".into()), &group).await.unwrap();
        let post = Value::from("hello");
        assert_eq!(outbox.add_post(&link, &group, &post).await, Ok(Some(2)));
        let inbox = outbox.check_inbox(&ana).await.unwrap();
        assert_eq!(inbox, Value::list([post]));
        drop(outbox);
        emptying.await.unwrap().unwrap();
        assert_eq!(relay(&link, &inboxes(), 0.0).await, Ok(0), "nothing is left");
    }
}
