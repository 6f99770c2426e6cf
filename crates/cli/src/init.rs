//! `mingle init`: writes a program and a binding for an existing database.

mod address;
mod enums;
mod indexes;
mod join;
mod names;
mod objects;
mod overview;
mod text;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use mingle::{Binding, TokioWorld, plan_migrations};
use mingle_gen::one_line;
use mingle_store_postgres::{PostgresConfig, describe};

use crate::exit::{Exit, Failure};
use crate::open::{block_on, failure};
use crate::output::print;
use crate::progress::Progress;
use address::Address;
use objects::Design;

/// Begin with a database that is there: write a program and a binding for its tables.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle init postgres://app:secret@db.example.com/shop
  mingle init 'postgres://app:${SHOP_PASSWORD}@db.example.com/shop?sslmode=verify-full'
  mingle init postgres://localhost/shop --schema sales --name sales

Reads the schema, changes nothing in the database, and writes NAME.mingle and mingle.toml into the
current folder. Tables with a primary key become objects, foreign keys become refs, join tables
become sets of refs or maps. What does not fit is left out, with a comment that says why; a table
at the end lists all of it. A password does not get into the files: a variable of the environment
stands for it.")]
pub struct Args {
    /// The database: `postgres://user:password@host:port/database?sslmode=…`.
    url: String,

    /// The schema whose tables to read.
    #[arg(long, value_name = "SCHEMA", default_value = "public")]
    schema: String,

    /// What to call the program and its store [default: as the database].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Overwrite files that are there.
    #[arg(long)]
    force: bool,
}

/// The file name of the default binding.
const BINDING: &str = "mingle.toml";

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let address = Address::parse(&args.url)?;
    let named = args.name.as_deref().unwrap_or(&address.database);
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
    if args.schema.contains('.') {
        let message = "a schema with a dot in its name cannot be named in a binding";
        return Err(Failure::usage(message));
    }
    let (address, variable) = address.without_password(&name);
    let design = block_on(async {
        let _progress = Progress::start("looking at the tables");
        design(&name, &args.schema, &address, variable.as_ref()).await
    })?;
    let program = text::program(&design);
    write(&file, &program, args.force)?;
    write(BINDING, &text::binding(&design, &address), args.force)?;
    let variable = variable.as_ref().map(|(name, _)| name.as_str());
    print(&text::next(&design, &file, variable));
    Ok(Exit::Success)
}

/// Designs a program, and checks that it is correct and fits the database.
async fn design(
    name: &str,
    schema: &str,
    address: &str,
    variable: Option<&(String, String)>,
) -> Result<Design, Failure> {
    let environment = |wanted: &str| match variable {
        Some((known, value)) if known == wanted => Some(value.clone()),
        _ => std::env::var(wanted).ok(),
    };
    let bind = |text: &str| {
        let parsed = Binding::parse_in(text, &environment);
        parsed.map_err(|error| Failure::usage(error.to_string()))
    };
    let empty = Design { store: name.to_owned(), schema: schema.to_owned(), ..Design::default() };
    let binding = bind(&text::binding(&empty, address))?;
    let mingle::binding::Engine::Postgres(config) = &binding.stores[name].engine else {
        unreachable!("the binding says that it is in PostgreSQL")
    };
    let config = PostgresConfig { pool: 1, ..config.clone() };
    let tables = describe(name, &config, schema, Arc::new(TokioWorld::new())).await;
    let tables = tables.map_err(|error| failure(&mingle::OpenError::Postgres(error)))?;
    let design = objects::design(name, schema, &tables);
    if design.objects.is_empty() {
        let left_out: Vec<String> =
            design.left_out.iter().map(|part| format!("\n  {}", text::table(part))).collect();
        let message = format!(
            "the schema {} has no table that could be an object{}",
            one_line(schema),
            left_out.concat()
        );
        return Err(Failure::usage(message));
    }
    // The program must be correct, so it is checked like any other program.
    let program = mingle::compile(&text::program(&design)).map_err(unfit)?;
    let binding = bind(&text::binding(&design, address))?;
    plan_migrations(&program, &binding).await.map_err(|error| failure(&error))?;
    Ok(design)
}

fn unfit(errors: String) -> Failure {
    let message =
        format!("the tables give a program with errors, which is a mistake here: {errors}");
    Failure { message, exit: Exit::Program }
}

fn write(file: &str, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).create(force).create_new(!force);
    let written = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| Failure::usage(format!("cannot write {file}: {error}")))
}
