//! `mingle completions`: shell completions for the command.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::exit::Exit;
use crate::output::print;

/// Print completions for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle completions bash > ~/.local/share/bash-completion/completions/mingle
  mingle completions fish > ~/.config/fish/completions/mingle.fish
  mingle completions zsh > \"${fpath[1]}/_mingle\"")]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &Args) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mingle", &mut text);
    print(&String::from_utf8_lossy(&text));
    Exit::Success
}
