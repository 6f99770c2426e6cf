//! The first part of the demonstration: a shop writes each sale to two stores, and its process is killed
//! again and again. Once the shop makes two calls for a sale, as applications over two databases do, and
//! once one mixed transaction.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use mingle::{Binding, Database, Session};
use mingle_model::random::Random;
use mingle_model::{Ref, Value};

use crate::groups;

/// The shop. `sell` is what `take` and `tell` do together.
pub const PROGRAM: &str = "store stock: linearizable;
store feed: causal;
object Shelf in stock { key name: string; sold: int; }
object Wall in feed { key name: string; told: counter; }
transaction take(shelf: ref Shelf) { shelf.sold += 1; }
transaction tell(wall: ref Wall) { wall.told.add(1); }
transaction sell(shelf: ref Shelf, wall: ref Wall) {
    shelf.sold += 1;
    wall.told.add(1);
}
transaction sold(shelf: ref Shelf) -> int { return shelf.sold; }
transaction told(wall: ref Wall) -> int { return wall.told.value(); }
";

/// The line that a shop prints after its first sale.
const READY: &str = "ready";

/// How long a shop sells before it is killed, in milliseconds.
const SELLS_FOR: std::ops::Range<u64> = 100..300;

/// The way in which a sale is written to both stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// A call for each store.
    TwoWrites,
    /// One transaction over both stores.
    OneTransaction,
}

impl Way {
    /// Returns the name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::TwoWrites => "two writes",
            Self::OneTransaction => "one transaction",
        }
    }
}

/// The options of a shop, which sells until it is killed or its standard input ends.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The folder of its data.
    folder: PathBuf,
    /// How it writes a sale.
    #[arg(value_enum)]
    way: Way,
}

/// The data that a shop has left.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// How it wrote a sale.
    pub way: Way,
    /// Sales that are at the linearizable store.
    pub sold: i64,
    /// Sales that are at the causal store.
    pub told: i64,
}

impl Left {
    /// Returns the number of sales that are at one store alone.
    pub fn halves(&self) -> u64 {
        self.sold.abs_diff(self.told)
    }
}

fn shelf() -> Value {
    Value::Ref(Ref::new("Shelf", Value::String("pots".into())))
}

fn wall() -> Value {
    Value::Ref(Ref::new("Wall", Value::String("pots".into())))
}

async fn open(folder: &Path) -> Result<Database, String> {
    let program = groups::compile(PROGRAM)?;
    let opened = Database::open(program, &Binding::default(), Some(folder)).await;
    opened.map_err(|error| error.to_string())
}

async fn call(database: &Database, name: &str, arguments: Vec<Value>) -> Result<i64, String> {
    let called = database.call(name, arguments, Session::default()).await;
    match called.map_err(|error| error.to_string())?.result {
        Some(Value::Int(number)) => Ok(number),
        _ => Ok(0),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

/// Runs a shop: the command of the process that is killed.
pub fn run(options: &Options) -> Result<(), String> {
    // Without the process that has started it, it would sell for ever.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    block_on(async {
        let database = open(&options.folder).await?;
        let mut is_ready = false;
        loop {
            match options.way {
                Way::TwoWrites => {
                    call(&database, "take", vec![shelf()]).await?;
                    call(&database, "tell", vec![wall()]).await?;
                }
                Way::OneTransaction => {
                    call(&database, "sell", vec![shelf(), wall()]).await?;
                }
            }
            if !is_ready {
                println!("{READY}");
                is_ready = true;
            }
        }
    })
}

/// Runs a shop in each way, kills it so often, and returns what both have left.
pub fn compare(kills: u32, seed: u64) -> Result<[Left; 2], String> {
    let mut random = Random::new(seed);
    Ok([left(Way::TwoWrites, kills, &mut random)?, left(Way::OneTransaction, kills, &mut random)?])
}

fn left(way: Way, kills: u32, random: &mut Random) -> Result<Left, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a folder for the data: {error}"))?;
    for _ in 0..kills {
        let mut shop = start(folder.path(), way)?;
        let sells_for =
            SELLS_FOR.start + random.below((SELLS_FOR.end - SELLS_FOR.start) as usize) as u64;
        let ready = await_ready(&mut shop);
        if ready.is_ok() {
            std::thread::sleep(Duration::from_millis(sells_for));
        }
        shop.kill().and_then(|()| shop.wait()).map_err(|error| format!("the shop: {error}"))?;
        ready?;
    }
    block_on(async {
        let database = open(folder.path()).await?;
        // A process finishes what a killed one has begun once its lease is over; this does so at once.
        database.recover().await.map_err(|error| error.to_string())?;
        let sold = call(&database, "sold", vec![shelf()]).await?;
        let told = call(&database, "told", vec![wall()]).await?;
        Ok(Left { way, sold, told })
    })
}

fn start(folder: &Path, way: Way) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let way = way.to_possible_value().ok_or("a way has a name")?;
    let mut command = Command::new(program);
    command.arg("shop").arg(folder).arg(way.get_name());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(|error| format!("the shop does not start: {error}"))
}

/// Waits until a shop has made its first sale.
fn await_ready(shop: &mut Child) -> Result<(), String> {
    let out = shop.stdout.take().ok_or("the shop's output is piped")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).map_err(|error| format!("the shop: {error}"))?;
    if line.trim_end() == READY {
        Ok(())
    } else {
        Err("the shop ended before its first sale".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_sales_at_one_store_alone() {
        let left = |sold, told| Left { way: Way::TwoWrites, sold, told }.halves();
        assert_eq!((left(5, 5), left(9, 7), left(7, 9)), (0, 2, 2));
    }

    #[test]
    fn the_shop_sells_at_both_stores() {
        let folder = tempfile::tempdir().expect("a folder");
        let counted = block_on(async {
            let database = open(folder.path()).await?;
            call(&database, "sell", vec![shelf(), wall()]).await?;
            call(&database, "take", vec![shelf()]).await?;
            call(&database, "tell", vec![wall()]).await?;
            let sold = call(&database, "sold", vec![shelf()]).await?;
            Ok((sold, call(&database, "told", vec![wall()]).await?))
        });
        assert_eq!(counted, Ok((2, 2)));
    }
}
