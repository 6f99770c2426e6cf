//! A journal in memory, which survives a crash as a file does: by its bytes.

use super::segment::{self, Corrupt, FRAME_BYTES, HEADER_BYTES, Header};

/// The entries that a crash leaves, beside those that are safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// None.
    Nothing,
    /// The first ones of the running sync, up to this number. The next one is damaged or cut short;
    /// in some cases intact ones follow.
    Torn(usize),
    /// All that were appended.
    All,
}

/// A journal in memory. The driver ends its syncs, makes it crash, and then recovers it.
///
/// # Examples
///
/// ```
/// use mingle_geo_node::{Kept, MemoryJournal};
///
/// let mut journal = MemoryJournal::default();
/// journal.append(b"a");
/// journal.begin();
/// journal.append(b"b");
/// assert_eq!(journal.end(), [b"a"]);
/// journal.begin();
/// journal.append(b"c");
/// assert_eq!(journal.crash(Kept::Torn(1)), [b"b"]);
/// assert_eq!(journal.recover().expect("only the tail was lost"), [b"a", b"b"]);
/// ```
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    /// The segment.
    bytes: Vec<u8>,
    /// The ends of its frames in `bytes`.
    ends: Vec<usize>,
    /// The position of the first frame.
    base: u64,
    /// The number of frames that are safe.
    safe: usize,
    /// The number of frames that are safe once the running sync ends; none if none runs.
    syncing: Option<usize>,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::beginning_at(0)
    }
}

impl MemoryJournal {
    fn beginning_at(base: u64) -> Self {
        let mut bytes = Vec::new();
        Header { position: base, ..Header::default() }.put(&mut bytes);
        Self { bytes, ends: Vec::new(), base, safe: 0, syncing: None }
    }

    /// Returns the place in `bytes` where this frame begins.
    fn begin_of(&self, frame: usize) -> usize {
        frame.checked_sub(1).map_or(HEADER_BYTES, |before| self.ends[before])
    }

    fn position(&self, frame: usize) -> u64 {
        self.base + (self.begin_of(frame) - HEADER_BYTES) as u64
    }

    fn entry(&self, frame: usize) -> Vec<u8> {
        self.bytes[self.begin_of(frame) + FRAME_BYTES..self.ends[frame]].to_vec()
    }

    /// Appends an entry.
    pub fn append(&mut self, entry: &[u8]) {
        let (position, safe) = (self.position(self.ends.len()), self.position(self.safe));
        segment::put_frame(&mut self.bytes, 0, position, safe, entry);
        self.ends.push(self.bytes.len());
    }

    /// Begins a sync.
    pub fn begin(&mut self) {
        self.syncing = Some(self.ends.len());
    }

    /// Ends the running sync; returns the entries that it made safe.
    pub fn end(&mut self) -> Vec<Vec<u8>> {
        let to = self.syncing.take().unwrap_or(self.safe);
        let from = std::mem::replace(&mut self.safe, to);
        (from..to).map(|frame| self.entry(frame)).collect()
    }

    /// Returns the number of entries.
    pub fn length(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of entries that the running sync covers and that are not safe.
    pub fn torn_most(&self) -> usize {
        self.syncing.unwrap_or(self.safe) - self.safe
    }

    /// Replaces all entries.
    pub fn replace(&mut self, entries: &[Vec<u8>]) {
        *self = Self::beginning_at(self.position(self.ends.len()));
        for entry in entries {
            self.append(entry);
        }
        self.safe = self.ends.len();
    }

    /// Ends a running sync without success and loses or damages bytes that are not safe. Returns
    /// the entries among them that are left. The journal must then be [recovered](Self::recover).
    pub fn crash(&mut self, kept: Kept) -> Vec<Vec<u8>> {
        let (from, count) = (self.safe, self.ends.len());
        let left = match kept {
            Kept::Nothing => from,
            Kept::Torn(left) => from + left.min(self.torn_most()),
            Kept::All => count,
        };
        let (begin, is_torn) = (self.begin_of(left), left < from + self.torn_most());
        match kept {
            // The disk wrote later blocks first.
            Kept::Torn(_) if is_torn && (left + count).is_multiple_of(2) => self.bytes[begin] ^= 1,
            Kept::Torn(_) if is_torn => {
                self.bytes.truncate(usize::midpoint(begin, self.ends[left]));
            }
            _ => self.bytes.truncate(begin),
        }
        self.ends.truncate(left);
        (self.safe, self.syncing) = (left, None);
        (from..left).map(|frame| self.entry(frame)).collect()
    }

    /// Reads all entries, and drops a torn tail.
    ///
    /// # Errors
    ///
    /// [`Corrupt`], if bytes that were safe are damaged.
    pub fn recover(&mut self) -> Result<Vec<Vec<u8>>, Corrupt> {
        let scanned = segment::scan(&self.bytes)?;
        let entries: Vec<Vec<u8>> = scanned.entries.into_iter().map(<[u8]>::to_vec).collect();
        self.reset(&entries, scanned.end);
        Ok(entries)
    }

    /// A planted mistake ([`MiddleSkipped`](mingle_geo::flaw::Flaw::MiddleSkipped)): reads all intact
    /// entries, also those behind a damaged one.
    pub fn recover_skipping(&mut self) -> Vec<Vec<u8>> {
        let entries: Vec<Vec<u8>> =
            segment::salvage(&self.bytes).into_iter().map(<[u8]>::to_vec).collect();
        self.reset(&entries, self.base + self.bytes.len() as u64);
        entries
    }

    /// Begins a new segment with these entries at this position.
    fn reset(&mut self, entries: &[Vec<u8>], position: u64) {
        *self = Self::beginning_at(position);
        self.replace(entries);
    }

    /// Loses everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal with two safe entries, three in the running sync, and one behind it.
    fn journal() -> MemoryJournal {
        let mut journal = MemoryJournal::default();
        journal.append(b"a");
        journal.append(b"b");
        journal.begin();
        assert_eq!(journal.end(), [b"a", b"b"]);
        for entry in [b"c", b"d", b"e"] {
            journal.append(entry);
        }
        journal.begin();
        journal.append(b"f");
        journal
    }

    #[test]
    fn a_crash_leaves_a_beginning_that_has_everything_safe() {
        let cases = [
            (Kept::Nothing, 2),
            (Kept::Torn(0), 2),
            (Kept::Torn(1), 3),
            (Kept::Torn(2), 4),
            (Kept::Torn(3), 5),
            (Kept::All, 6),
        ];
        let all = [b"a", b"b", b"c", b"d", b"e", b"f"];
        for (kept, count) in cases {
            let mut journal = journal();
            assert_eq!(journal.torn_most(), 3);
            assert_eq!(journal.crash(kept), all[2..count], "{kept:?}");
            assert_eq!(journal.recover().expect("only the tail is lost"), all[..count], "{kept:?}");
            // It goes on.
            journal.append(b"g");
            journal.begin();
            assert_eq!(journal.end(), [b"g"]);
            journal.crash(Kept::Nothing);
            assert_eq!(journal.recover().expect("nothing is lost").len(), count + 1, "{kept:?}");
        }
    }

    #[test]
    fn in_some_cases_intact_entries_follow_a_damaged_one() {
        let mut journal = journal();
        journal.crash(Kept::Torn(0));
        assert_eq!(journal.recover_skipping(), [b"a", b"b", b"d", b"e", b"f"]);
    }

    #[test]
    fn damage_before_the_last_sync_is_named() {
        let mut journal = journal();
        journal.bytes[HEADER_BYTES + FRAME_BYTES] ^= 1;
        let refused = journal.recover().unwrap_err();
        assert!(refused.to_string().contains("position 0 are damaged"), "{refused}");
    }
}
