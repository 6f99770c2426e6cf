//! The data centers: their states, and the end and the return of one.

use mingle_geo::DcId;

use super::client::Client;
use super::failure::Failure;
use crate::commands::{Fault, ServerCommand};
use crate::process::{Center, ChangeError, GivenUp};
use crate::resp::{Bytes, Reply};

/// Reads the name of a data center, such as `d2`.
fn data_center(name: &[u8]) -> Result<DcId, Fault> {
    let number = name.strip_prefix(b"d").or_else(|| name.strip_prefix(b"D")).unwrap_or(name);
    let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
    number.map(DcId).ok_or_else(|| {
        let name = name[..name.len().min(64)].escape_ascii();
        Fault::error(format!("found '{name}', expected a data center such as d1"))
    })
}

fn refused(error: &ChangeError) -> Reply {
    let word = match error {
        ChangeError::TooFew { .. }
        | ChangeError::TimedOut { .. }
        | ChangeError::Unreported { .. } => "NOQUORUM",
        ChangeError::Over { .. } => "FENCED",
        _ => "ERR",
    };
    Reply::Error(format!("{word} {error}"))
}

fn map(pairs: Vec<(&'static str, Reply)>) -> Reply {
    Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::text(name), value)).collect())
}

impl Client {
    pub(super) fn barrier(&mut self, of: ServerCommand) -> Reply {
        match self.session.barrier() {
            Ok(()) if of == ServerCommand::Barrier => Reply::OK,
            Ok(()) => {
                let status = self.shared.process.status();
                Reply::count(status.map_or(0, |status| status.connected.len()))
            }
            Err(error) => Failure::from(error).reply(true),
        }
    }

    pub(super) fn fence(&mut self, args: &[Bytes]) -> Reply {
        let is_forced = match &args[2..] {
            [] => false,
            [word] if word.eq_ignore_ascii_case(b"force") => true,
            _ => return Fault::Syntax.reply(),
        };
        let dc = match data_center(&args[1]) {
            Ok(dc) => dc,
            Err(fault) => return fault.reply(),
        };
        match self.shared.process.fence(dc, is_forced) {
            Ok(GivenUp { dc, incarnation, cut_ms }) => map(vec![
                ("name", Reply::text(dc.to_string())),
                ("incarnation", Reply::Integer(incarnation.into())),
                ("kept_until_ms", Reply::Integer(cut_ms as i64)),
            ]),
            Err(error) => refused(&error),
        }
    }

    pub(super) fn admit(&mut self, args: &[Bytes]) -> Reply {
        let dc = match data_center(&args[1]) {
            Ok(dc) => dc,
            Err(fault) => return fault.reply(),
        };
        match self.shared.process.admit(dc) {
            Ok(incarnation) => map(vec![
                ("name", Reply::text(dc.to_string())),
                ("incarnation", Reply::Integer(incarnation.into())),
            ]),
            Err(error) => refused(&error),
        }
    }

    pub(super) fn data_centers(&mut self) -> Reply {
        let Some(status) = self.shared.process.status() else {
            return Reply::Error("ERR the process has stopped".into());
        };
        Reply::array(status.centers.into_iter().map(|center| {
            let Center { dc, state, since_ms, incarnation, lag_ms, why } = center;
            map(vec![
                ("name", Reply::text(dc.to_string())),
                ("state", Reply::text(state.to_string())),
                ("since_ms", Reply::Integer(since_ms as i64)),
                ("incarnation", Reply::Integer(incarnation.into())),
                ("lag_ms", lag_ms.map_or(Reply::Null, |lag_ms| Reply::Integer(lag_ms as i64))),
                ("why", why.map_or(Reply::Null, Reply::text)),
            ])
        }))
    }
}
