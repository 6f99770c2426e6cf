//! `mingle run`: calls a transaction.

use mingle::{Call, Error, texts};
use mingle_lang::Program;
use mingle_model::{Type, Value};

use crate::exit::{Exit, Failure};
use crate::files;
use crate::open::{Opened, Place, block_on, held, open};
use crate::output::{Color, print};
use crate::progress::Progress;
use crate::rest::{A_MOMENT, wait_for_rest};

/// Call a transaction and print its result as JSON.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle run groups.mingle create_user name=ana
  mingle run groups.mingle add_post group=rust post='hello, world'
  mingle run shop.mingle check_out customer=ana lines='[{\"item\":\"tea\",\"count\":2}]'
  mingle run groups.mingle add_post group=rust post=@post.txt

  mingle run groups.mingle add_post group=rust post=hello --until groups

Strings, times and refs with a string key are taken as they stand, all else is JSON. `@FILE` takes
a file's text; `@@` is a plain `@`. The result is `null` where there is none, and where a store
that comes after that of `--until` has yet to compute it.")]
pub struct Args {
    /// The program.
    file: String,

    /// The transaction.
    transaction: String,

    /// Its arguments.
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,

    /// Print the result as soon as this store, and all before it, have committed; the rest is
    /// finished before the command ends.
    #[arg(long, value_name = "STORE")]
    until: Option<String>,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let mut named = Vec::new();
    for argument in &args.arguments {
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            Failure::usage(format!("expected NAME=VALUE as an argument, found `{argument}`"))
        })?;
        named.push((name, value));
    }
    if let Some((program, holder)) = held(&args.file, &args.place, color)? {
        let arguments = arguments(&program, &args.transaction, &named).map_err(failure)?;
        let result = holder.call(&program, &args.transaction, &arguments, args.until.as_deref())?;
        print(&format!("{result}\n"));
        return Ok(Exit::Success);
    }
    block_on(async {
        let opened = open(&args.file, &args.place, color).await?;
        let database = &opened.database;
        let called = call(args, &named, &opened).await;
        // The later stores may take as long as a call may.
        let at_most = database.runtime().settings().deadline.max(A_MOMENT);
        let at_most = if args.until.is_some() { at_most } else { A_MOMENT };
        let rest = match &called {
            // The error itself names the stores that are left.
            Err(Error::Incomplete { .. }) => {
                database.settle(at_most).await;
                Exit::Success
            }
            _ => wait_for_rest(database, at_most).await,
        };
        called.map(|()| rest).map_err(failure)
    })
}

/// Calls the transaction, and prints its result.
async fn call(args: &Args, named: &[(&str, &str)], opened: &Opened) -> Result<(), Error> {
    let _progress = Progress::start(format!("running {}", args.transaction));
    let database = &opened.database;
    let arguments = arguments(database.program(), &args.transaction, named)?;
    let mut call = Call::new(args.transaction.as_str(), arguments);
    call.session = opened.session.clone();
    call.until = args.until.as_deref().map(Into::into);
    let report = database.submit(call).await?;
    print(&format!("{}\n", database.result_text(&args.transaction, &report)));
    Ok(())
}

/// Reads the arguments of a call.
fn arguments(
    program: &Program,
    transaction: &str,
    named: &[(&str, &str)],
) -> Result<Vec<Value>, Error> {
    let plan = program.plan(transaction);
    let mut given = Vec::new();
    for (name, value) in named {
        let params = plan.map_or(&[][..], |plan| plan.params.as_slice());
        let param = params.iter().find(|(param, _)| **param == **name);
        let text = text(value, param.map(|(_, param_type)| param_type));
        given.push((*name, text.map_err(|failure| Error::Misuse(failure.message))?));
    }
    texts::arguments(program, transaction, given.iter().map(|(name, text)| (*name, text.as_str())))
}

/// The text of an argument: for `@FILE` the content of the file, otherwise the argument itself; a leading
/// `@@` stands for `@`.
fn text(value: &str, wanted: Option<&Type>) -> Result<String, Failure> {
    let Some(rest) = value.strip_prefix('@') else { return Ok(value.to_owned()) };
    if rest.starts_with('@') {
        return Ok(rest.to_owned());
    }
    let text = files::read(rest)?;
    // The line break at the end of a file is no part of a key or a time; it may be part of a string.
    if matches!(wanted, Some(Type::String)) { Ok(text) } else { Ok(text.trim_end().to_owned()) }
}

/// The exit of the command after an error of the runtime.
pub fn failure(error: Error) -> Failure {
    let message = match &error {
        Error::Require { code: Some(code), message } => format!("{message} [{code}]"),
        other => other.to_string(),
    };
    Failure { message, exit: exit(&error) }
}

/// Returns the exit code for an error of a call.
pub fn exit(error: &Error) -> Exit {
    match error {
        // The transaction itself refused, and nothing was written.
        Error::Require { .. }
        | Error::Exists(_)
        | Error::Taken(_)
        | Error::Limit(_)
        | Error::Deadline { .. } => Exit::Require,
        // A rule of the database refused, which is no failure of the store.
        Error::Store(mingle_store::StoreError::Violated { .. }) => Exit::Require,
        Error::Misuse(_) | Error::Unsupported(_) | Error::KeyReused | Error::Forbidden { .. } => {
            Exit::Usage
        }
        Error::Conflict { .. } | Error::Cancelled | Error::Waiting { .. } => Exit::Conflict,
        Error::Store(mingle_store::StoreError::Unknown { .. })
        | Error::Unknown { .. }
        | Error::ResultGone { .. } => Exit::Unknown,
        Error::Store(_) | Error::Parked { .. } => Exit::Store,
        Error::Incomplete { cause, .. } => match exit(cause) {
            Exit::Unknown => Exit::Unknown,
            _ => Exit::Store,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mingle_store::StoreError;

    use super::*;

    #[test]
    fn each_way_to_fail_has_its_exit_code() {
        let conflict =
            Error::Conflict { store: "s".into(), attempts: 3, deadline: Duration::from_secs(1) };
        let unknown = Error::Unknown { store: "s".into(), id: None };
        let refused = Error::Store(StoreError::Refused { store: "s".into(), reason: "no".into() });
        let violation = mingle_store::Violation::range("age", "column age cannot hold 70000");
        let violated = StoreError::Violated { store: "s".into(), violation: Box::new(violation) };
        assert_eq!(exit(&Error::Store(violated)), Exit::Require);
        let incomplete = |cause: &Error| Error::Incomplete {
            id: None,
            committed: vec!["a".into()],
            missing: vec!["s".into()],
            cause: Box::new(cause.clone()),
        };
        for (error, expected) in [
            (Error::Require { code: None, message: "no".into() }, 3),
            (Error::Limit("too large".into()), 3),
            (Error::Misuse("no such transaction".into()), 2),
            (refused.clone(), 4),
            (incomplete(&refused), 4),
            (incomplete(&conflict), 4),
            (conflict, 5),
            (Error::Store(StoreError::Unknown { store: "s".into(), id: None }), 6),
            (incomplete(&unknown), 6),
            (unknown, 6),
        ] {
            assert_eq!(exit(&error) as u8, expected, "{error}");
        }
    }
}
