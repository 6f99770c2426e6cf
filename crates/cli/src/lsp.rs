//! `mingle lsp`: the language server, on standard input and output.

use std::io::{self, BufReader};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use mingle_lsp::{Disk, Server, frame};

use crate::exit::{Exit, Failure};
use crate::files;

/// Serve an editor: the Language Server Protocol on standard input and output.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle lsp           what an editor runs for files *.mingle
  mingle lsp --stdio   the same, for editors that say so

The exit code is 0 if the editor said goodbye (`shutdown`, then `exit`), else 1.")]
pub struct Args {
    /// Changes nothing: standard input and output are used in any case.
    #[arg(long)]
    stdio: bool,
}

/// The maximum number of messages that wait to be handled; further ones make the editor wait.
const MESSAGES_MAX: usize = 1_024;

/// Runs the command.
pub fn run(_: &Args) -> Result<Exit, Failure> {
    let (sender, messages) = sync_channel(MESSAGES_MAX);
    // Reads ahead, so that a request can be cancelled before it is handled. The thread ends with
    // the input, or with the process.
    thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        loop {
            let message = frame::read(&mut input);
            let is_last = !matches!(message, Ok(Some(_)));
            if sender.send(message).is_err() || is_last {
                return;
            }
        }
    });
    match serve(&messages) {
        Ok(code) => Ok(if code == 0 { Exit::Success } else { Exit::Program }),
        Err(error) => Err(Failure {
            message: format!("cannot go on talking to the editor: {error}"),
            exit: Exit::Program,
        }),
    }
}

/// Answers until the client says `exit` or closes its end.
fn serve(messages: &Receiver<io::Result<Option<Vec<u8>>>>) -> io::Result<u8> {
    let mut server =
        Server::with_disk(Disk { read: files::read_for_editor, list: files::programs });
    let mut output = io::stdout().lock();
    while server.exit_code().is_none() {
        let Ok(first) = messages.recv() else { return Ok(1) };
        let Some(first) = first? else { return Ok(1) };
        server.receive(&first);
        loop {
            while let Ok(next) = messages.try_recv() {
                // The end of input is handled after all earlier messages are answered.
                let Some(next) = next? else { return drain(&mut server, &mut output) };
                server.receive(&next);
            }
            let Some(message) = server.poll() else { break };
            frame::write(&mut output, &message)?;
        }
    }
    Ok(server.exit_code().unwrap_or(1))
}

/// Answers the remaining messages.
fn drain(server: &mut Server, output: &mut impl io::Write) -> io::Result<u8> {
    while let Some(message) = server.poll() {
        frame::write(output, &message)?;
    }
    Ok(server.exit_code().unwrap_or(1))
}
