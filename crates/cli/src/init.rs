//! `mingle init`: writes a program and a binding for an existing database.

#[cfg(any(feature = "postgres", feature = "redis"))]
mod address;
#[cfg(feature = "cassandra")]
mod cassandra;
mod design;
#[cfg(feature = "postgres")]
mod enums;
#[cfg(test)]
mod hostile;
#[cfg(feature = "postgres")]
mod indexes;
#[cfg(feature = "postgres")]
mod join;
mod names;
#[cfg(feature = "postgres")]
mod objects;
mod overview;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "postgres")]
mod refs;
mod text;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use mingle::Binding;
use mingle_lang::Program;

use crate::exit::{Exit, Failure};
use crate::open::block_on;
use crate::output::print;
use crate::progress::Progress;
use design::Design;

/// Begin with a database that is there: write a program and a binding for its data.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle init postgres://app:secret@db.example.com/shop
  mingle init 'postgres://app:${SHOP_PASSWORD}@db.example.com/shop?sslmode=verify-full'
  mingle init postgres://localhost/shop --schema sales --name sales
  mingle init cassandra://app:secret@10.0.0.1:9042,10.1.0.1:9042/shop
  mingle init rediss://app:secret@cache.example.com:6379/0 --name cache --sample 50000

Changes nothing in the database, and writes NAME.mingle and mingle.toml into the current folder. What
does not fit is left out, with a comment that says why; a table at the end lists all of it. A password
does not get into the files: a variable of the environment stands for it.

PostgreSQL: tables with a primary key become objects, foreign keys become refs, join tables become sets
of refs or maps. Cassandra: tables whose primary key is one column become objects; tables with one
clustering column become sets, maps and logs of the object that their partition key names. Redis: a
sample of the keys is grouped into patterns such as `user:{id}`, and each pattern becomes an object or
a field of one.")]
pub struct Args {
    /// The database: `postgres://user:password@host:port/database?sslmode=…`,
    /// `cassandra://user:password@host:port,…/keyspace?tls=true`, or `redis://user:password@host:port/number`.
    url: String,

    /// PostgreSQL: the schema whose tables to read [default: public].
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,

    /// Redis: how many keys to look at [default: 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sample: Option<u32>,

    /// What to call the program and its store [default: as the database].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Overwrite files that are there.
    #[arg(long)]
    force: bool,
}

/// The file name of the default binding.
const BINDING: &str = "mingle.toml";

/// The name and the value of a variable of the environment.
type Variable = (String, String);

/// A design that was checked against its database.
struct Begun {
    design: Design,
    /// The text of the binding.
    binding: String,
    /// The variable of the password.
    variable: Option<Variable>,
    /// Obstacles to opening the store that only the database's operator can remove.
    warnings: Vec<String>,
}

/// A database, by the scheme of its address.
enum Source {
    #[cfg(feature = "postgres")]
    Postgres(address::Address),
    #[cfg(feature = "cassandra")]
    Cassandra(cassandra::Address),
    #[cfg(feature = "redis")]
    Redis(address::Address),
}

impl Source {
    fn parse(args: &Args) -> Result<Self, Failure> {
        let source = Self::of(&args.url)?;
        for (option, is_given, engine) in [
            ("--schema", args.schema.is_some(), "PostgreSQL"),
            ("--sample", args.sample.is_some(), "Redis"),
        ] {
            if is_given && source.engine() != engine {
                return Err(Failure::usage(format!("{option} is for {engine}")));
            }
        }
        Ok(source)
    }

    fn of(url: &str) -> Result<Self, Failure> {
        #[cfg(feature = "postgres")]
        if let Some(address) = address::Address::parse(url, &address::POSTGRES) {
            return Ok(Self::Postgres(address));
        }
        #[cfg(feature = "redis")]
        if let Some(address) = address::Address::parse(url, &address::REDIS) {
            return Ok(Self::Redis(address));
        }
        #[cfg(feature = "cassandra")]
        if let Some(rest) = url.strip_prefix(cassandra::SCHEME) {
            return Ok(Self::Cassandra(cassandra::Address::parse(rest)?));
        }
        let forms = [
            #[cfg(feature = "postgres")]
            "`postgres://user@host/database`",
            #[cfg(feature = "cassandra")]
            "`cassandra://host:9042/keyspace`",
            #[cfg(feature = "redis")]
            "`redis://host:6379/0`",
        ];
        Err(Failure::usage(format!("expected an address such as {}", forms.join(", "))))
    }

    /// Returns the name of the engine.
    fn engine(&self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "PostgreSQL",
            #[cfg(feature = "cassandra")]
            Self::Cassandra(_) => "Cassandra",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "Redis",
        }
    }

    /// Returns the default name of the program.
    fn name(&self) -> &str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => &address.database,
            #[cfg(feature = "cassandra")]
            Self::Cassandra(address) => &address.keyspace,
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }

    /// Returns the words for the progress of the command.
    fn progress(&self) -> &'static str {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(_) => "looking at the keys",
            #[cfg(any(feature = "postgres", feature = "cassandra"))]
            _ => "looking at the tables",
        }
    }

    async fn begin(self, name: &str, args: &Args) -> Result<Begun, Failure> {
        // Cassandra has no options of its own.
        let _ = args;
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => {
                let schema = args.schema.as_deref().unwrap_or("public");
                postgres::begin(name, schema, address).await
            }
            #[cfg(feature = "cassandra")]
            Self::Cassandra(address) => cassandra::begin(name, address).await,
            #[cfg(feature = "redis")]
            Self::Redis(address) => redis::begin(name, address, args.sample).await,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let source = Source::parse(args)?;
    let named = args.name.as_deref().unwrap_or(source.name());
    let name = names::identifier(named, "shop");
    if args.name.as_ref().is_some_and(|wanted| *wanted != name) {
        let message = format!("expected a name as in programs, such as `{name}`, found `{named}`");
        return Err(Failure::usage(message));
    }
    let file = format!("{name}.mingle");
    if let Some(there) = [&*file, BINDING].into_iter().find(|file| Path::new(file).exists())
        && !args.force
    {
        return Err(Failure::usage(format!("{there} is there already: `--force` overwrites it")));
    }
    let begun = block_on(async {
        let _progress = Progress::start(source.progress());
        Box::pin(source.begin(&name, args)).await
    })?;
    write(&file, &text::program(&begun.design), args.force)?;
    write(BINDING, &begun.binding, args.force)?;
    let next = begun.next(&file);
    print(&text::next(&begun.design, &file, &next));
    for warning in &begun.warnings {
        eprintln!("note: {warning}");
    }
    Ok(Exit::Success)
}

impl Begun {
    fn next(&self, file: &str) -> text::Next<'_> {
        let variable = self.variable.as_ref();
        match self.design.kind {
            #[cfg(feature = "postgres")]
            design::Kind::Postgres => postgres::next(&self.design, file, variable),
            #[cfg(feature = "cassandra")]
            design::Kind::Cassandra => cassandra::next(&self.design, file, variable),
            #[cfg(feature = "redis")]
            design::Kind::Redis => redis::next(&self.design, file, variable),
            #[cfg(not(all(feature = "postgres", feature = "cassandra", feature = "redis")))]
            _ => unreachable!("no design is of an engine that this build lacks"),
        }
    }
}

/// Parses a binding, with the variable of a password beside those of the environment.
fn bind(text: &str, variable: Option<&Variable>) -> Result<Binding, Failure> {
    let environment = |wanted: &str| match variable {
        Some((known, value)) if known == wanted => Some(value.clone()),
        _ => std::env::var(wanted).ok(),
    };
    let parsed = Binding::parse_in(text, &environment);
    parsed.map_err(|error| Failure::usage(error.to_string()))
}

/// Checks the program of a design like any other program.
fn checked(design: &Design) -> Result<Arc<Program>, Failure> {
    let compiled = mingle::compile(&text::program(design));
    compiled.map_err(|errors| {
        let message =
            format!("the database gives a program with errors, which is a mistake here: {errors}");
        Failure { message, exit: Exit::Program }
    })
}

/// Returns the failure for a database without any object; `what` is a sentence without its end.
fn empty(what: &str, design: &Design) -> Failure {
    let parts = design.left_out.iter().map(|part| format!("\n  {}", text::table(part)));
    let parts: String = parts.collect();
    Failure::usage(format!("{what} that could be an object{parts}"))
}

fn write(file: &str, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).create(force).create_new(!force);
    let written = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| Failure::usage(format!("cannot write {file}: {error}")))
}
