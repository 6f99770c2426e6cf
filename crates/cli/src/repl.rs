//! `mingle repl`: calls and reads, one per line.

mod line;

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use mingle::Error;
use mingle::database::{SHOWN_MAX, absent_fields};
use mingle_lang::Program;
use mingle_model::json::from_tree;
use mingle_model::{Ref, Tree, Type, Value};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure};
use crate::held::{Holder, Refused};
use crate::open::{Opened, Place, block_on, data_of, held, open};
use crate::output::{Color, print};
use crate::progress::Progress;
use crate::rest::{A_MOMENT, wait_for_rest};
use crate::run::exit;
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

/// The place where the calls run.
enum Side {
    /// Stores that this process has opened.
    Here(Opened),
    /// A server, which holds the data.
    There(Holder),
}

/// A program, and the place where its calls run.
struct Talk {
    program: Arc<Program>,
    side: Side,
    /// The folder of the data, which has the history of the typed lines.
    data: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    // The editor blocks its thread, so it runs outside of the runtime's workers.
    block_on(async {
        let data = data_of(&args.file, &args.place);
        let (program, side) = match held(&args.file, &args.place, color)? {
            Some((program, holder)) => (program, Side::There(holder)),
            None => {
                let opened = open(&args.file, &args.place, color).await?;
                (opened.database.program().clone(), Side::Here(opened))
            }
        };
        let talk = Talk { program, side, data };
        if std::io::stdin().is_terminal() {
            interactive(&talk).await?;
        } else {
            piped(&talk).await?;
        }
        if let Side::Here(opened) = &talk.side {
            wait_for_rest(&opened.database, A_MOMENT).await;
        }
        Ok(Exit::Success)
    })
}

async fn piped(talk: &Talk) -> Result<(), Failure> {
    for line in std::io::stdin().lock().lines() {
        let line =
            line.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
        let answer = match parse(&line) {
            Ok(Line::Nothing) => continue,
            Ok(Line::Exit) => break,
            Ok(Line::Help) => Ok(Tree::String(help(&talk.program))),
            Ok(line) => answer(talk, line).await,
            Err(message) => Err(misuse(message)),
        };
        let answer = answer.unwrap_or_else(|error| {
            let error = json!({ "error": { "code": error.code, "message": error.message } });
            Tree::from(&error)
        });
        print(&format!("{answer}\n"));
    }
    Ok(())
}

async fn interactive(talk: &Talk) -> Result<(), Failure> {
    let fail = |error: ReadlineError| Failure::usage(format!("cannot use the terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(fail)?;
    let history = talk.data.join("history");
    // At the first use there is no history.
    editor.load_history(&history).ok();
    eprintln!("`help` says what can be typed here.");
    if let Side::There(holder) = &talk.side {
        eprintln!("The server at {} holds the data, and runs the calls.", holder.address());
    }
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
                print(&help(&talk.program));
                continue;
            }
            Ok(line) => {
                let _progress = Progress::start("running");
                answer(talk, line).await
            }
            Err(message) => Err(misuse(message)),
        };
        match answer {
            Ok(json) => print(&format!("{json:#}\n")),
            Err(error) => eprintln!("error[{}]: {}", error.code, error.message),
        }
    }
    // Without its history the next session only lacks the earlier lines.
    editor.save_history(&history).ok();
    Ok(())
}

/// Returns the help: the commands of the repl, and the transactions and objects of the program.
fn help(program: &Program) -> String {
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

fn refused(error: &Error) -> Refused {
    let code = error.code().to_owned();
    Refused { code, is_require: false, message: error.to_string(), exit: exit(error) }
}

fn misuse(message: String) -> Refused {
    refused(&Error::Misuse(message))
}

async fn answer(talk: &Talk, line: Line) -> Result<Tree, Refused> {
    match line {
        Line::Call { transaction, arguments } => talk.call(&transaction, &arguments).await,
        Line::Read { kind, key, field } => talk.read(&kind, &key, field.as_deref()).await,
        Line::Nothing | Line::Help | Line::Exit => Ok(Tree::Null),
    }
}

impl Talk {
    async fn call(&self, transaction: &str, arguments: &[Tree]) -> Result<Tree, Refused> {
        let values = arguments_of(&self.program, transaction, arguments).map_err(misuse)?;
        match &self.side {
            Side::Here(opened) => {
                let called = opened.database.call(transaction, values, opened.session.clone());
                let report = called.await.map_err(|error| refused(&error))?;
                Ok(tree(&opened.database.result_text(transaction, &report)))
            }
            Side::There(holder) => holder.call(&self.program, transaction, &values, None),
        }
    }

    async fn read(&self, kind: &str, key: &Tree, field: Option<&str>) -> Result<Tree, Refused> {
        let object = object_of(&self.program, kind, key, field).map_err(misuse)?;
        let shown = match &self.side {
            Side::Here(opened) => {
                let shown = opened.database.show_text(&object, &opened.session, SHOWN_MAX).await;
                let shown = shown.map_err(|error| refused(&error))?;
                shown.map_or(Tree::Null, |text| tree(&text))
            }
            Side::There(holder) => {
                let key = match key {
                    Tree::String(text) => text.clone(),
                    other => other.to_string(),
                };
                holder.show(kind, &key, SHOWN_MAX)?
            }
        };
        let Some(field) = field else { return Ok(shown) };
        // As in a program, a field of an object that does not exist is its default.
        let fields = match shown {
            Tree::Null => Tree::from(&Json::Object(absent_fields(&self.program, &object))),
            shown => shown,
        };
        Ok(fields.member(field).cloned().unwrap_or(Tree::Null))
    }
}

/// Parses a text that this program has written.
fn tree(text: &str) -> Tree {
    Tree::parse(text.as_bytes()).expect("a value is written as JSON")
}

/// Returns the arguments of a call, or the mistake in them.
fn arguments_of(
    program: &Program,
    transaction: &str,
    arguments: &[Tree],
) -> Result<Vec<Value>, String> {
    let Some(plan) = program.plan(transaction) else {
        let known: Vec<&str> = program.plans.iter().map(|plan| &*plan.name).collect();
        let known = known.join(", ");
        return Err(format!("no transaction is called {transaction:?}; there are {known}"));
    };
    if plan.params.len() != arguments.len() {
        return Err(format!(
            "{transaction} takes {} arguments, found {}",
            plan.params.len(),
            arguments.len()
        ));
    }
    let pairs = plan.params.iter().zip(arguments);
    let values = pairs.map(|((name, wanted), found)| {
        from_tree(program.schema(), found, wanted)
            .map_err(|error| format!("{name} of {transaction}: {error}"))
    });
    values.collect()
}

/// Returns the object that is read, or the mistake in its kind, its key or the field.
fn object_of(
    program: &Program,
    kind: &str,
    key: &Tree,
    field: Option<&str>,
) -> Result<Ref, String> {
    let schema = program.schema();
    let Some(declared) = schema.objects.get(kind) else {
        let known: Vec<&str> = schema.objects.keys().map(|name| &**name).collect();
        let known = known.join(", ");
        return Err(format!("no object is called {kind:?}; there are {known}"));
    };
    if let Some(field) = field
        && declared.field_index(field).is_none()
        && *declared.key_name != *field
    {
        return Err(format!("{kind} has no field {field:?}"));
    }
    let object = from_tree(schema, key, &Type::Ref(declared.name.clone()))
        .map_err(|error| format!("the key of {kind}: {error}"))?;
    match object {
        Value::Ref(object) => Ok(object),
        other => Err(format!("{other} is no {kind}")),
    }
}
