//! `mingle repl`: calls and reads, one per line.

mod line;

use std::io::{BufRead, IsTerminal};

use mingle::Error;
use mingle::database::SHOWN_MAX;
use mingle_model::{Type, Value, json};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::Value as Json;

use crate::exit::{Exit, Failure};
use crate::open::{Opened, Place, block_on, open};
use crate::output::{Color, print};
use crate::progress::Progress;
use crate::rest::{A_MOMENT, wait_for_rest};
use line::{Line, parse};

/// Call transactions and look at objects, line by line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle repl groups.mingle
  > create_user(\"ana\")
  > add_post(\"rust\", \"hello\")
  > User[\"ana\"]
  > User[\"ana\"].unread

  echo 'create_user(\"ana\")' | mingle repl groups.mingle

Arguments are JSON, in the order of the parameters; a ref is its key. From a pipe each line gives
one line of JSON, errors as {\"error\":{\"code\",\"message\"}}, and it goes on.")]
pub struct Args {
    /// The program.
    file: String,

    #[command(flatten)]
    place: Place,
}

/// The text of `help`.
const HELP: &str = "\
What can be typed:
  transaction(argument, …)   call it; arguments are JSON, a ref is its key
  Kind[key]                  an object's fields
  Kind[key].field            one of them
  help                       this, and what the program has
  exit                       end (or Ctrl-D)

What the program has:
";

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    // The editor blocks its thread, so it runs outside of the runtime's workers.
    block_on(async {
        let opened = open(&args.file, &args.place, color).await?;
        if std::io::stdin().is_terminal() {
            interactive(&opened).await?;
        } else {
            piped(&opened).await?;
        }
        wait_for_rest(&opened.database, A_MOMENT).await;
        Ok(Exit::Success)
    })
}

async fn piped(opened: &Opened) -> Result<(), Failure> {
    for line in std::io::stdin().lock().lines() {
        let line =
            line.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
        let answer = match parse(&line) {
            Ok(Line::Nothing) => continue,
            Ok(Line::Exit) => break,
            Ok(Line::Help) => Ok(Json::String(help(opened))),
            Ok(line) => answer(opened, line).await,
            Err(message) => Err(Error::Misuse(message)),
        };
        let answer = answer.unwrap_or_else(|error| {
            serde_json::json!({ "error": { "code": error.code(), "message": error.to_string() } })
        });
        print(&format!("{answer}\n"));
    }
    Ok(())
}

async fn interactive(opened: &Opened) -> Result<(), Failure> {
    let fail = |error: ReadlineError| Failure::usage(format!("cannot use the terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(fail)?;
    let history = opened.data.join("history");
    // At the first use there is no history.
    editor.load_history(&history).ok();
    eprintln!("`help` says what can be typed here.");
    loop {
        let typed = match editor.readline("> ") {
            Ok(typed) => typed,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(fail(error)),
        };
        editor.add_history_entry(typed.as_str()).map_err(fail)?;
        let answer = match parse(&typed) {
            Ok(Line::Nothing) => continue,
            Ok(Line::Exit) => break,
            Ok(Line::Help) => {
                print(&help(opened));
                continue;
            }
            Ok(line) => {
                let _progress = Progress::start("running");
                answer(opened, line).await
            }
            Err(message) => Err(Error::Misuse(message)),
        };
        match answer {
            Ok(json) => print(&format!("{json:#}\n")),
            Err(error) => eprintln!("error[{}]: {error}", error.code()),
        }
    }
    // Without its history the next session only lacks the earlier lines.
    editor.save_history(&history).ok();
    Ok(())
}

/// Returns the help: the commands of the repl, and the transactions and objects of the program.
fn help(opened: &Opened) -> String {
    let program = opened.database.program();
    let mut text = HELP.to_owned();
    let transactions = program.plans.iter().map(|plan| {
        let params = plan.params.iter().map(|(name, param)| format!("{name}: {param}"));
        let params = params.collect::<Vec<_>>().join(", ");
        let result = plan.result.as_ref().map_or(String::new(), |found| format!(" -> {found}"));
        format!("  {}({params}){result}\n", plan.name)
    });
    text.extend(transactions);
    let objects = program.schema().objects.values();
    text.extend(
        objects
            .map(|object| format!("  {}[{}: {}]\n", object.name, object.key_name, object.key_type)),
    );
    text
}

async fn answer(opened: &Opened, line: Line) -> Result<Json, Error> {
    match line {
        Line::Call { transaction, arguments } => call(opened, &transaction, &arguments).await,
        Line::Read { kind, key, field } => read(opened, &kind, &key, field.as_deref()).await,
        Line::Nothing | Line::Help | Line::Exit => Ok(Json::Null),
    }
}

async fn call(opened: &Opened, transaction: &str, arguments: &[Json]) -> Result<Json, Error> {
    let database = &opened.database;
    let program = database.program();
    let Some(plan) = program.plan(transaction) else {
        let known: Vec<&str> = program.plans.iter().map(|plan| &*plan.name).collect();
        let known = known.join(", ");
        return Err(Error::Misuse(format!(
            "no transaction is called {transaction:?}; there are {known}"
        )));
    };
    if plan.params.len() != arguments.len() {
        return Err(Error::Misuse(format!(
            "{transaction} takes {} arguments, found {}",
            plan.params.len(),
            arguments.len()
        )));
    }
    let pairs = plan.params.iter().zip(arguments);
    let values = pairs.map(|((name, wanted), found)| {
        json::from_json(program.schema(), found, wanted)
            .map_err(|error| Error::Misuse(format!("{name} of {transaction}: {error}")))
    });
    let values = values.collect::<Result<Vec<Value>, Error>>()?;
    let report = database.call(transaction, values, opened.session.clone()).await?;
    Ok(database.result_json(transaction, &report))
}

async fn read(opened: &Opened, kind: &str, key: &Json, field: Option<&str>) -> Result<Json, Error> {
    let schema = opened.database.program().schema();
    let Some(declared) = schema.objects.get(kind) else {
        let known: Vec<&str> = schema.objects.keys().map(|name| &**name).collect();
        let known = known.join(", ");
        return Err(Error::Misuse(format!("no object is called {kind:?}; there are {known}")));
    };
    if let Some(field) = field
        && declared.field_index(field).is_none()
        && *declared.key_name != *field
    {
        return Err(Error::Misuse(format!("{kind} has no field {field:?}")));
    }
    let object = json::from_json(schema, key, &Type::Ref(declared.name.clone()))
        .map_err(|error| Error::Misuse(format!("the key of {kind}: {error}")))?;
    let Value::Ref(object) = object else {
        return Err(Error::Misuse(format!("{object} is no {kind}")));
    };
    let Some(field) = field else {
        return opened.database.show(&object, &opened.session, SHOWN_MAX).await;
    };
    // As in a program, a field of an object that does not exist is its default.
    let (_, mut fields) = opened.database.show_fields(&object, &opened.session, SHOWN_MAX).await?;
    Ok(fields.remove(field).unwrap_or_default())
}
