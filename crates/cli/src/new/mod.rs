//! `mingle new`: a folder with a program to start from.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::ValueEnum;

use crate::exit::{Exit, Failure};
use crate::output::print;

/// Make a folder with a program, its tests and its bindings.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle new shop                        a shop with orders and a feed
  mingle new club --template feed        accounts and posts
  mingle new counter --template bare     one store and one transaction

The folder has the program, tests for `mingle test`, a binding for this machine (mingle.toml), one
for PostgreSQL and Redis (production.toml) with a compose file that starts both, and a README.")]
pub struct Args {
    /// The folder, whose name is also that of the program.
    #[arg(value_name = "NAME")]
    name: String,

    /// The program to start from.
    #[arg(long, value_enum, default_value_t, value_name = "TEMPLATE")]
    template: Template,
}

/// A program to start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Template {
    /// Orders that are exact, and a feed that tells of them.
    #[default]
    Shop,
    /// Accounts that are exact, and posts near their readers.
    Feed,
    /// Money that is exact, and messages that tell of it.
    Bank,
    /// One store, one object, one transaction.
    Bare,
}

/// The parts of a template that differ from others.
struct Parts {
    program: &'static str,
    tests: &'static str,
    /// The exact store, and the one that may lag, if there is one.
    stores: (&'static str, Option<&'static str>),
    /// A call to try, and an object to look at afterwards.
    call: &'static str,
    object: &'static str,
}

impl Template {
    fn parts(self) -> Parts {
        match self {
            Self::Shop => Parts {
                program: include_str!("shop.mingle"),
                tests: include_str!("shop.test.mingle"),
                stores: ("office", Some("feeds")),
                call: "stock_item sku=tea title='Green tea' price=350 stock=10",
                object: "Item tea",
            },
            Self::Feed => Parts {
                program: include_str!("feed.mingle"),
                tests: include_str!("feed.test.mingle"),
                stores: ("accounts", Some("timelines")),
                call: "sign_up handle=ana name=Ana",
                object: "Account ana",
            },
            Self::Bank => Parts {
                program: include_str!("bank.mingle"),
                tests: include_str!("bank.test.mingle"),
                stores: ("accounts", Some("messages")),
                call: "open_account number=a1 owner=ana",
                object: "Account a1",
            },
            Self::Bare => Parts {
                program: include_str!("bare.mingle"),
                tests: include_str!("bare.test.mingle"),
                stores: ("main", None),
                call: "count counter=visits",
                object: "Counter visits",
            },
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let folder = Path::new(&args.name);
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    check_name(name)?;
    let fail = |error: std::io::Error| {
        Failure::usage(format!("cannot make {}: {error}", folder.display()))
    };
    let is_used = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(fail(error)),
    };
    if is_used {
        let message = format!("{} is there and has files; name another folder", folder.display());
        return Err(Failure::usage(message));
    }
    fs::create_dir_all(folder.join(".vscode")).map_err(fail)?;
    for (file, text) in files(name, &args.template.parts()) {
        fs::write(folder.join(file), text).map_err(fail)?;
    }
    print(&format!(
        "made {shown}: {name}.mingle, its tests, bindings and a README\n\n\
         Next:\n  cd {shown}\n  mingle test    runs the tests, with a crash at every step\n  \
         mingle dev     serves it here, and again after each change\n",
        shown = args.name
    ));
    Ok(Exit::Success)
}

/// The longest name of a folder.
const NAME_MAX: usize = 64;

fn check_name(name: &str) -> Result<(), Failure> {
    let is_good = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && name.len() <= NAME_MAX;
    if is_good {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "a name has letters, digits, `_` and `-`, begins with a letter or a digit, and is at most \
         {NAME_MAX} long; this one is {name:?}"
    )))
}

/// Returns the files of a folder: the name and the text of each.
fn files(name: &str, parts: &Parts) -> Vec<(String, String)> {
    vec![
        (format!("{name}.mingle"), parts.program.replace("NAME.mingle", &format!("{name}.mingle"))),
        (format!("{name}.test.mingle"), parts.tests.to_owned()),
        ("mingle.toml".into(), development(parts)),
        ("production.toml".into(), production(parts)),
        ("compose.yaml".into(), compose(parts)),
        ("README.md".into(), readme(name, parts)),
        (".gitignore".into(), "# The data of the embedded stores.\n.mingle/\n".into()),
        (".vscode/extensions.json".into(), "{ \"recommendations\": [\"mingle.mingle\"] }\n".into()),
    ]
}

fn development(parts: &Parts) -> String {
    let (exact, near) = parts.stores;
    let mut text = format!(
        "# The binding for this machine: all stores in the process that uses them, with their data in\n\
         # .mingle/. production.toml has the one for servers.\n\n[stores.{exact}]\nengine = \"embedded\"\n"
    );
    if let Some(near) = near {
        write!(
            text,
            "\n[stores.{near}]\nengine = \"embedded\"\nreplicas = [\"east\", \"west\"]\ndelay = \"50ms\"   \
             # until a write reaches the other replica\n"
        )
        .expect("writing to a string does not fail");
    }
    text
}

fn production(parts: &Parts) -> String {
    let (exact, near) = parts.stores;
    let mut text = format!(
        "# The binding for servers: mingle serve NAME.mingle --config production.toml\n\n\
         [stores.{exact}]\nengine = \"postgres\"\nurl = \"${{DATABASE_URL}}\"\n"
    );
    if let Some(near) = near {
        write!(text, "\n[stores.{near}]\nengine = \"redis\"\nurl = \"${{REDIS_URL}}\"\n")
            .expect("writing to a string does not fail");
    }
    text
}

fn compose(parts: &Parts) -> String {
    let mut text = "# The servers of production.toml, reachable from this machine only: docker compose up -d\n\
         services:\n  postgres:\n    image: postgres:17\n    environment:\n      \
         POSTGRES_PASSWORD: mingle\n    ports: [\"127.0.0.1:5432:5432\"]\n    \
         volumes: [\"postgres:/var/lib/postgresql/data\"]\n"
        .to_owned();
    let mut volumes = "\nvolumes:\n  postgres:\n".to_owned();
    if parts.stores.1.is_some() {
        text.push_str(
            "  redis:\n    image: redis:7\n    # A commit is acknowledged once it is on the disk.\n    \
             command: redis-server --appendonly yes --appendfsync always\n    \
             ports: [\"127.0.0.1:6379:6379\"]\n    volumes: [\"redis:/data\"]\n",
        );
        volumes.push_str("  redis:\n");
    }
    text + &volumes
}

fn readme(name: &str, parts: &Parts) -> String {
    let (exact, near) = parts.stores;
    let near = near.map_or_else(String::new, |near| format!(", `{near}` may lag by a moment"));
    let redis = parts.stores.1.map_or("", |_| "export REDIS_URL=redis://127.0.0.1:6379\n");
    let Parts { call, object, .. } = parts;
    format!(
        "# {name}\n\n\
         Transactions over stores of different strength: `{exact}` is exact{near}. A transaction that\n\
         writes at both takes effect at both, or at none, whichever process crashes.\n\n\
         ## Here\n\n\
         ```sh\n\
         mingle test                      # the tests, with a crash at every step\n\
         mingle run {name}.mingle {call}\n\
         mingle show {name}.mingle {object}\n\
         mingle dev                       # serves it, and again after each change\n\
         mingle gen typescript {name}.mingle > client.ts\n\
         ```\n\n\
         `mingle.toml` keeps all data in `.mingle/`. `mingle explain {name}.mingle` shows the phases of each\n\
         transaction.\n\n\
         ## With servers\n\n\
         ```sh\n\
         docker compose up -d\n\
         export DATABASE_URL=postgres://postgres:mingle@127.0.0.1:5432/postgres\n\
         {redis}\
         mingle migrate {name}.mingle --config production.toml --apply\n\
         mingle serve {name}.mingle --config production.toml\n\
         ```\n\n\
         `mingle check --config production.toml {name}.mingle` checks that binding.\n"
    )
}
