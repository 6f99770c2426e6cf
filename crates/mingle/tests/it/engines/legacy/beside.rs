//! Both programs move money at once: none is made or lost, and the tables keep their form.

use std::sync::Arc;

use mingle::{Error, Session};
use mingle_model::random::Random;
use mingle_services::Engine;
use tokio_postgres::Client;

use super::Legacy;
use crate::engines::site::{RealSite, block_on};
use crate::support::scenarios::Site;

const ACCOUNTS: usize = 6;
const OPENING: i64 = 100;
/// Clients of each kind.
const CLIENTS: u64 = 2;
const TRANSFERS: usize = 20;

/// A trigger notes every change of an account, by either program.
const BANK: &str = "
CREATE TABLE legacy.accounts (
    number text PRIMARY KEY,
    owner text NOT NULL DEFAULT 'nobody',
    balance bigint NOT NULL CHECK (balance >= 0),
    changes integer NOT NULL DEFAULT 0
);
CREATE TABLE legacy.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text NOT NULL REFERENCES legacy.accounts,
    before bigint NOT NULL,
    after bigint NOT NULL
);
CREATE FUNCTION legacy.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO legacy.audit (account, before, after) VALUES (new.number, old.balance, new.balance);
    new.changes := old.changes + 1;
    RETURN new;
END $$;
CREATE TRIGGER noted BEFORE UPDATE ON legacy.accounts
    FOR EACH ROW EXECUTE FUNCTION legacy.note();
";

const PROGRAM: &str = "\
store accounts: linearizable;
store feed: causal;

object Account in accounts {
    key number: string;
    balance: int;
}

object Page in feed {
    key number: string;
    moved: counter;
    lines: log<int>;
}

transaction transfer(source: ref Account, target: ref Account, amount: int) {
    require source.balance >= amount else \"the balance is too low\" as too_low;
    source.balance -= amount;
    target.balance += amount;
    Page[source.number].moved.add(-amount);
    Page[target.number].moved.add(amount);
    Page[source.number].lines.append(amount);
}

/// All at once, as they are at one moment.
transaction total(accounts: list<ref Account>) -> int {
    var total = 0;
    for account in accounts {
        total += account.balance;
    }
    return total;
}
";

const OBJECTS: &str = "\
[stores.accounts.objects.Account]
table = \"legacy.accounts\"
key = \"number\"

[runtime]
deadline = \"60s\"
";

/// Two different accounts, and an amount.
fn drawn(random: &mut Random) -> (String, String, i64) {
    let source = random.below(ACCOUNTS);
    let target = (source + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    (format!("a{source}"), format!("a{target}"), 1 + random.below(60) as i64)
}

/// A style in which an ordinary application does it.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// At `READ COMMITTED`, with one statement for each account that checks and writes.
    Committed,
    /// At `READ COMMITTED`, with rows locked before they are written.
    Locking,
    /// At `SERIALIZABLE`: reads, computes, writes, and retries after a serialization failure.
    Serializable,
}

/// Moves money in SQL; returns the number of transfers.
async fn in_sql(client: Client, style: Style, seed: u64) -> i64 {
    let (mut random, mut moved) = (Random::new(seed), 0);
    for _ in 0..TRANSFERS {
        let (source, target, amount) = drawn(&mut random);
        loop {
            match transfer(&client, style, &source, &target, amount).await {
                Ok(is_moved) => {
                    moved += i64::from(is_moved);
                    break;
                }
                Err(error) => {
                    client.batch_execute("ROLLBACK").await.expect("the server answers");
                    // 40001 and 40P01: the retryable errors at these levels.
                    let code = error.code().map_or("", tokio_postgres::error::SqlState::code);
                    assert!(code.starts_with("40"), "seed {seed}, {style:?}: {error:?}");
                }
            }
        }
    }
    moved
}

/// Makes one transfer; returns true if the balance was enough.
async fn transfer(
    client: &Client,
    style: Style,
    source: &str,
    target: &str,
    amount: i64,
) -> Result<bool, tokio_postgres::Error> {
    let level = match style {
        Style::Committed | Style::Locking => "READ COMMITTED",
        Style::Serializable => "SERIALIZABLE",
    };
    client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}")).await?;
    let is_enough = match style {
        Style::Committed => {
            let sql = "UPDATE accounts SET balance = balance - $2 \
                       WHERE number = $1 AND balance >= $2";
            let is_enough = client.execute(sql, &[&source, &amount]).await? == 1;
            if is_enough {
                let sql = "UPDATE accounts SET balance = balance + $2 WHERE number = $1";
                client.execute(sql, &[&target, &amount]).await?;
            }
            is_enough
        }
        Style::Locking | Style::Serializable => {
            let locks = if let Style::Locking = style { "FOR UPDATE" } else { "" };
            let sql = format!("SELECT balance FROM accounts WHERE number = $1 {locks}");
            let from: i64 = client.query_one(&sql, &[&source]).await?.get(0);
            let to: i64 = client.query_one(&sql, &[&target]).await?.get(0);
            if from >= amount {
                let sql = "UPDATE accounts SET balance = $2 WHERE number = $1";
                client.execute(sql, &[&source, &(from - amount)]).await?;
                client.execute(sql, &[&target, &(to + amount)]).await?;
            }
            from >= amount
        }
    };
    client.batch_execute("COMMIT").await?;
    Ok(is_enough)
}

/// Moves money with Mingle; returns the number of transfers.
async fn in_mingle(site: Arc<RealSite>, seed: u64) -> i64 {
    let (mut random, mut moved) = (Random::new(seed), 0);
    for _ in 0..TRANSFERS {
        let (source, target, amount) = drawn(&mut random);
        let amount = amount.to_string();
        let named = [("source", &*source), ("target", &*target), ("amount", &*amount)];
        let arguments = site.database.arguments("transfer", named).expect("they are right");
        match site.database.call("transfer", arguments, Session::default()).await {
            Ok(_) => moved += 1,
            Err(Error::Require { code, .. }) => assert_eq!(code.as_deref(), Some("too_low")),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    moved
}

/// Asks for the total repeatedly, while other clients move money.
async fn totals(site: Arc<RealSite>) {
    let all: Vec<String> = (0..ACCOUNTS).map(|number| format!("\"a{number}\"")).collect();
    let all = format!("[{}]", all.join(","));
    for _ in 0..TRANSFERS {
        let arguments = site.database.arguments("total", [("accounts", &*all)]);
        let arguments = arguments.expect("they are right");
        let report = site.database.call("total", arguments, Session::default()).await;
        let total = site.database.result_json("total", &report.expect("a read"));
        assert_eq!(total, OPENING * ACCOUNTS as i64, "a total that never was");
    }
}

/// Runs all clients at once; returns the numbers of transfers in SQL and through Mingle.
async fn everybody(legacy: &Legacy, site: &Arc<RealSite>) -> (i64, i64) {
    let mut seed = 31_000;
    println!("seeds from {seed}");
    let (mut sql, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS {
        for style in [Style::Committed, Style::Locking, Style::Serializable] {
            seed += 1;
            sql.push(tokio::spawn(in_sql(legacy.connect().await, style, seed)));
        }
        seed += 1;
        ours.push(tokio::spawn(in_mingle(Arc::clone(site), seed)));
    }
    let reader = tokio::spawn(totals(Arc::clone(site)));
    let mut moved = (0, 0);
    for client in sql {
        moved.0 += client.await.expect("no client panics");
    }
    for client in ours {
        moved.1 += client.await.expect("no client panics");
    }
    reader.await.expect("the reader does not panic");
    moved
}

#[test]
fn both_programs_work_on_the_same_tables_at_once() {
    let Some(legacy) = Legacy::new(BANK) else { return };
    for number in 0..ACCOUNTS {
        legacy.execute(&format!(
            "INSERT INTO legacy.accounts (number, balance) VALUES ('a{number}', {OPENING})"
        ));
    }
    let form = legacy.form();
    let binding = legacy.binding("accounts", OBJECTS) + &legacy.beside("feed", Engine::Redis);
    let site = Arc::new(RealSite::new(PROGRAM, &binding));
    assert_eq!(site.database.warnings(), [""; 0], "nothing can be refused too late");
    let (sql, ours) = block_on(everybody(&legacy, &site));
    assert!(sql > 20 && ours > 10, "only {sql} and {ours} transfers");
    assert!(site.settles(), "it does not come to rest");
    let all = OPENING * ACCOUNTS as i64;
    assert_eq!(legacy.number("SELECT sum(balance)::bigint FROM legacy.accounts"), all);
    // The trigger has seen every change of both programs once.
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.audit"), 2 * (sql + ours));
    let counted = "SELECT sum(changes)::bigint FROM legacy.accounts";
    assert_eq!(legacy.number(counted), 2 * (sql + ours));
    let lost = format!(
        "SELECT count(*) FROM legacy.accounts AS a WHERE balance <> {OPENING} + \
         (SELECT coalesce(sum(after - before), 0) FROM legacy.audit WHERE account = a.number)"
    );
    assert_eq!(legacy.number(&lost), 0, "accounts with an update that was lost");
    let (mut moved, mut lines) = (0, 0);
    for number in 0..ACCOUNTS {
        let page = site.show("Page", &format!("a{number}"));
        moved += page["moved"].as_i64().unwrap_or_default();
        lines += page["lines"].as_array().map_or(0, Vec::len);
    }
    assert_eq!((moved, lines), (0, usize::try_from(ours).unwrap_or_default()), "the feed");
    assert_eq!(legacy.form(), form, "the form of the tables");
    // Mingle's own tables are in a separate schema, and no open transaction is left in them.
    assert_eq!(legacy.rows_of_ours("accounts", "mingle_witnesses"), 0, "what was left");
}

#[test]
fn a_transaction_that_is_open_meanwhile_loses_nothing() {
    let Some(legacy) = Legacy::new(BANK) else { return };
    legacy.execute("INSERT INTO legacy.accounts (number, balance) VALUES ('a0', 100), ('a1', 100)");
    let binding = legacy.binding("accounts", OBJECTS);
    let site = Arc::new(RealSite::new(PROGRAM, &binding));
    for level in ["READ COMMITTED", "SERIALIZABLE"] {
        let before = legacy.number("SELECT balance FROM legacy.accounts WHERE number = 'a0'");
        // The other program has written a row and pauses.
        let other = block_on(legacy.connect());
        let begin = format!(
            "BEGIN ISOLATION LEVEL {level}; \
             UPDATE accounts SET balance = balance + 7 WHERE number = 'a0'"
        );
        block_on(other.batch_execute(&begin)).expect("an update");
        let called = std::thread::spawn({
            let site = Arc::clone(&site);
            move || site.ok("transfer", &[("source", "a0"), ("target", "a1"), ("amount", "10")])
        });
        // Mingle waits for the lock on the row, and retries when the other program has committed.
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
             AND query LIKE '%{}_._accounts%'",
            legacy.name
        );
        legacy.await_number(&waiting, 1);
        block_on(other.batch_execute("COMMIT")).expect("a commit");
        called.join().expect("the call succeeds");
        let after = legacy.number("SELECT balance FROM legacy.accounts WHERE number = 'a0'");
        assert_eq!(after, before + 7 - 10, "{level}");
    }
}
