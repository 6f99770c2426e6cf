//! `mingle man`: the manual pages, made from the same descriptions as the help.

use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::Cli;
use crate::exit::{Exit, Failure};
use crate::output::print;

/// Print the manual page, or write one for each subcommand too.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle man | man -l -                read it
  mingle man --into ~/.local/share/man/man1")]
pub struct Args {
    /// Write `mingle.1`, and a page for each subcommand, into this folder.
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match &args.into {
        Some(folder) => {
            let fail = |error: Error| Failure {
                message: format!("cannot write to {}: {error}", folder.display()),
                exit: Exit::Usage,
            };
            fs::create_dir_all(folder).map_err(fail)?;
            write_all(&command, folder).map_err(fail)?;
        }
        None => print(&page(&command).unwrap_or_default()),
    }
    Ok(Exit::Success)
}

/// Returns the page of one command.
fn page(command: &clap::Command) -> Result<String, Error> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    Ok(with_examples(&String::from_utf8_lossy(&text)))
}

/// Gives the section of examples of a page its name, and keeps its lines as they are.
fn with_examples(page: &str) -> String {
    let Some((before, rest)) = page.split_once("\n.SH EXTRA\n") else { return page.to_owned() };
    let (examples, after) =
        rest.split_once("\n.SH ").map_or((rest, None), |(it, after)| (it, Some(after)));
    let examples = examples.strip_prefix("Examples:\n").unwrap_or(examples);
    let after = after.map_or_else(String::new, |after| format!(".SH {after}"));
    format!("{before}\n.SH EXAMPLES\n.nf\n{}\n.fi\n{after}", examples.trim_end())
}

/// Writes the pages of a command and of the commands below it: `mingle-gen-rust.1`.
fn write_all(command: &clap::Command, folder: &Path) -> Result<(), Error> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page(command)?)?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_all(below, folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A doc comment of flattened options takes the place of a command that has none.
    #[test]
    fn each_command_says_what_it_does() {
        let mut command = Cli::command();
        command.build();
        let abouts = command.get_subcommands().map(|below| {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            (below.get_name().to_owned(), about)
        });
        for (name, about) in abouts {
            let first = about.split(' ').next().unwrap_or_default();
            let is_verb = !matches!(first, "" | "Where" | "What" | "How" | "Which" | "The" | "A");
            assert!(is_verb, "mingle {name}: {about:?} does not begin with a verb");
        }
    }
}
