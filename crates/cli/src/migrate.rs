//! `mingle migrate`: the SQL that the tables of a program's stores still need.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use mingle::{Migration, apply_migrations, plan_migrations};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::open::{binding, block_on, failure, program};
use crate::output::{Color, print};
use crate::progress::Progress;

/// Show the SQL that the tables of a program's stores still need, or run it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle migrate shop.mingle           what is missing?
  mingle migrate shop.mingle --apply   make it, of each store all or nothing
  mingle migrate shop.mingle > add.sql for `psql -1 -f add.sql`

Only stores in PostgreSQL have tables that somebody makes; they are made at the first start too,
unless the binding says `migrate = \"refuse\"`. Objects and fields that are new are added, and those
that are gone stay. What would lose or reinterpret data is refused, with what was and what is.")]
pub struct Args {
    /// The program.
    file: String,

    /// Run the SQL.
    #[arg(long)]
    apply: bool,

    /// How to show it.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    /// The binding: which engine each store is [default: mingle.toml beside the program, if it is
    /// there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How to show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// SQL, with comments that say which store it is for.
    #[default]
    Sql,
    /// For other programs.
    Json,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let program = program(&args.file, color)?;
    let binding = binding(&args.file, args.config.as_deref())?;
    block_on(async {
        let _progress = Progress::start("looking at the tables");
        let migrations = if args.apply {
            apply_migrations(&program, &binding).await
        } else {
            plan_migrations(&program, &binding).await
        };
        let migrations = migrations.map_err(|error| failure(&error))?;
        print(&match args.format {
            Format::Sql => as_sql(&migrations, args.apply),
            Format::Json => as_json(&migrations, args.apply),
        });
        Ok(Exit::Success)
    })
}

fn as_sql(migrations: &[Migration], is_applied: bool) -> String {
    let mut text = String::new();
    for Migration { store, engine, statements } in migrations {
        let count = statements.len();
        let plural = if count == 1 { "" } else { "s" };
        let says = match (count, is_applied) {
            (0, _) if *engine == "postgres" => "nothing is missing".to_owned(),
            (0, _) => "needs no migration".to_owned(),
            (_, true) => format!("{count} statement{plural}, applied"),
            (_, false) => format!("{count} statement{plural}, not applied"),
        };
        writeln!(text, "-- store {store} ({engine}): {says}").expect("a string takes all");
        for statement in statements {
            writeln!(text, "{statement};").expect("a string takes all");
        }
    }
    text
}

fn as_json(migrations: &[Migration], is_applied: bool) -> String {
    let stores = migrations.iter().map(|migration| {
        json!({
            "store": &*migration.store,
            "engine": migration.engine,
            "statements": migration.statements,
        })
    });
    let stores: Vec<_> = stores.collect();
    format!("{}\n", json!({ "applied": is_applied, "stores": stores }))
}
