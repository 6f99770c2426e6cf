//! `BACKUP`: all items at one vector, a frame with each reply.

use super::client::Client;
use super::execute::wall_us;
use crate::backup::Backup;
use crate::commands::Fault;
use crate::process::CopyFault;
use crate::resp::{Bytes, Reply};

fn refused(fault: &CopyFault) -> Reply {
    Reply::Error(format!("NOBACKUP {fault}"))
}

impl Client {
    /// Begins, goes on with or ends the backup of this connection.
    pub(super) fn backup(&mut self, args: &[Bytes]) -> Reply {
        match args[1].to_ascii_lowercase().as_slice() {
            b"start" => {
                // Another connection's backup ends; its next request says so.
                self.backup = None;
                match self.shared.process.copy() {
                    Ok(copy) => {
                        let backup = Backup::new(copy, self.shared.settings.cluster, wall_us());
                        self.backup = Some(Box::new(backup));
                        self.next_of_backup()
                    }
                    Err(fault) => refused(&fault),
                }
            }
            b"next" => self.next_of_backup(),
            b"stop" => {
                self.backup = None;
                Reply::OK
            }
            _ => Fault::error("BACKUP has the parts START, NEXT and STOP").reply(),
        }
    }

    fn next_of_backup(&mut self) -> Reply {
        let Some(backup) = &mut self.backup else {
            return Reply::Error("ERR BACKUP NEXT without BACKUP START".into());
        };
        match backup.next_bytes() {
            Ok(Some(bytes)) => Reply::Bulk(bytes.into()),
            Ok(None) => {
                self.backup = None;
                Reply::Null
            }
            Err(fault) => {
                self.backup = None;
                refused(&fault)
            }
        }
    }
}
