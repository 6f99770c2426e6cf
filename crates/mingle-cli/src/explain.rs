//! `mingle explain`: what a diagnostic means.

use mingle_lang::diagnostic::Code;

use crate::exit::{Exit, Failure};
use crate::output::print;

/// Explain a diagnostic by its code.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle explain M0302       a weaker condition decides: what, why, and how to mend it
  mingle explain list        all codes, one a line")]
pub struct Args {
    /// The code of a diagnostic, or `list`.
    #[arg(value_name = "CODE")]
    subject: String,
}

/// Runs it.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    if args.subject == "list" {
        let lines = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.summary()));
        print(&lines.collect::<String>());
        return Ok(Exit::Success);
    }
    let Some(code) = Code::find(&args.subject) else {
        let subject = &args.subject;
        return Err(Failure::usage(format!(
            "no diagnostic has the code `{subject}`; `mingle explain list` shows all"
        )));
    };
    print(code.explanation());
    Ok(Exit::Success)
}
