//! Commands on the names of all items.
//!
//! The names are read in pieces, and each piece of items at a snapshot of its own, so that no command
//! holds up the others. `SCAN` visits names in the order of a hash; its cursor is the next hash. So it
//! needs no memory at the server, and an item that exists during the whole scan is returned. A connection
//! keeps the sorted names between steps; without them, at another connection, they are read again.

use mingle_geo::types::item::ItemType;
use mingle_geo::{Key, Kind, PartitionId};

use super::client::Client;
use super::failure::Failure;
use crate::commands::{Scan, find, matches, position, type_word};
use crate::process::SessionError;
use crate::resp::{Bytes, Reply};

/// The number of names, or of items, of one piece.
const PIECE: usize = 1_000;

/// The maximum number of names of a step of a scan.
const STEP_MAX: usize = 100_000;

impl Client {
    /// Returns the names of all items for which `takes` holds. Some may not exist any more.
    fn all_names(&self, takes: impl Fn(&[u8]) -> bool) -> Result<Vec<Bytes>, SessionError> {
        let mut names = Vec::new();
        for partition in 0..self.shared.settings.partition_count {
            let mut after = None;
            loop {
                let keys = self.shared.process.keys(PartitionId(partition), after, PIECE)?;
                let Some(last) = keys.last() else { break };
                after = Some(last.clone());
                let items = keys.into_iter().filter(|key| key.kind == Kind::Item);
                names.extend(items.map(|Key { name, .. }| name).filter(|name| takes(name)));
            }
        }
        Ok(names)
    }

    /// Returns those of the items that exist, with their types.
    fn existing(&self, names: &[Bytes]) -> Result<Vec<(Bytes, ItemType)>, Failure> {
        let mut existing = Vec::new();
        for piece in names.chunks(PIECE) {
            let data = self.data(piece, true)?;
            existing.extend(piece.iter().filter_map(|name| {
                let item = data.states.get(name)?.as_item()?;
                Some((name.clone(), item.at(data.now_us).shown_type()?))
            }));
        }
        Ok(existing)
    }

    pub(super) fn keys(&mut self, args: &[Bytes]) -> Reply {
        let names = self.all_names(|name| matches(&args[1], name)).map_err(Failure::from);
        match names.and_then(|names| self.existing(&names)) {
            Ok(names) => Reply::array(names.into_iter().map(|(name, _)| Reply::Bulk(name))),
            Err(failure) => failure.reply(false),
        }
    }

    pub(super) fn db_size(&mut self) -> Reply {
        let names = self.all_names(|_| true).map_err(Failure::from);
        match names.and_then(|names| self.existing(&names)) {
            Ok(names) => Reply::count(names.len()),
            Err(failure) => failure.reply(false),
        }
    }

    pub(super) fn random_key(&mut self) -> Reply {
        let mut names = match self.all_names(|_| true) {
            Ok(names) => names,
            Err(error) => return Failure::from(error).reply(false),
        };
        while !names.is_empty() {
            let place = self.random.below(names.len());
            let name = names.swap_remove(place);
            match self.existing(std::slice::from_ref(&name)) {
                Ok(existing) if existing.is_empty() => {}
                Ok(_) => return Reply::Bulk(name),
                Err(failure) => return failure.reply(false),
            }
        }
        Reply::Null
    }

    pub(super) fn flush(&mut self, args: &[Bytes]) -> Reply {
        let is_mode = |word: &Bytes| {
            word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async")
        };
        if args.len() > 2 || !args[1..].iter().all(is_mode) {
            return Reply::Error("ERR syntax error".into());
        }
        let Some(del) = find(b"del") else { return Reply::OK };
        let names = match self.all_names(|_| true) {
            Ok(names) => names,
            Err(error) => return Failure::from(error).reply(false),
        };
        for piece in names.chunks(PIECE) {
            let command = std::iter::once(b"del".as_slice().into());
            let args: Vec<Bytes> = command.chain(piece.iter().cloned()).collect();
            let reply = self.alone(del, &args);
            if matches!(reply, Reply::Error(_)) {
                return reply;
            }
        }
        Reply::OK
    }

    pub(super) fn scan(&mut self, args: &[Bytes]) -> Reply {
        let scan = match Scan::parse(&args[1], &args[2..]) {
            Ok(scan) => scan,
            Err(fault) => return fault.reply(),
        };
        match self.scan_step(&scan) {
            Ok(reply) => reply,
            Err(failure) => failure.reply(false),
        }
    }

    fn scan_step(&mut self, scan: &Scan) -> Result<Reply, Failure> {
        let kept = self.names.take().filter(|_| scan.cursor > 0);
        let names = match kept {
            Some(names) => names,
            None => {
                let names = self.all_names(|_| true)?.into_iter();
                let mut names: Vec<(u64, Bytes)> =
                    names.map(|name| (position(&name), name)).collect();
                names.sort();
                names
            }
        };
        let rest = &names[names.partition_point(|(at, _)| *at < scan.cursor)..];
        // Names at one position are returned together.
        let last = rest.get(scan.count.min(STEP_MAX) - 1).map_or(u64::MAX, |(at, _)| *at);
        let length = rest.partition_point(|(at, _)| *at <= last);
        let next = rest.get(length).map_or(0, |(at, _)| *at);
        let step = rest[..length].iter().map(|(_, name)| name);
        let step: Vec<Bytes> = step.filter(|name| scan.takes(name)).cloned().collect();
        let is_wanted = |of: ItemType| {
            let word = type_word(Some(of));
            scan.of.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(word.as_bytes()))
        };
        let found = self.existing(&step)?.into_iter().filter(|(_, of)| is_wanted(*of));
        let found = Reply::array(found.map(|(name, _)| Reply::Bulk(name)));
        if next > 0 {
            self.names = Some(names);
        }
        Ok(Reply::Array(vec![Reply::text(next.to_string()), found]))
    }
}
