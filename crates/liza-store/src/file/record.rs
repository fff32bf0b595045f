//! What the lock file says about our last write: how to know it again, how to bring it back, what is still pending.
//!
//! A record never overwrites the newest one, so a write that is cut off leaves the one before; nor the newest one that
//! was made durable with a log entry, so a power cut leaves every entry that the log itself may have lost.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::Write;
use super::log::Entry;
use crate::document::Edit;
use crate::error::StoreError;

/// Room for one record. Edits that do not fit are not recorded; a copy is kept instead.
const SLOT: usize = 64 * 1024;
const EDITS_LIMIT: usize = 32 * 1024;
/// How much of a slot is read at first; nearly every record is shorter.
const PAGE: usize = 2 * 1024;
/// How many slots there are: one for the newest, one for the newest durable one, one to write to.
const SLOTS: usize = 3;
const MAGIC: &str = "liza-record-1";

/// Length and hash of a file: enough to know it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Imprint {
    length: u64,
    hash: u64,
}

impl Imprint {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, hash: xxh3_64(bytes) }
    }
}

/// How far a write has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The temporary file is complete; whether it has been renamed shows in the folder.
    Writing,
    /// All done.
    Done,
    /// A command may be changing the file in place.
    Modifying,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Writing => "writing",
            Stage::Done => "done",
            Stage::Modifying => "modifying",
        }
    }
}

/// The record of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) revision: u64,
    pub(crate) revision_before: u64,
    pub(crate) after: Imprint,
    pub(crate) before: Imprint,
    pub(crate) simple: bool,
    pub(crate) stage: Stage,
    /// The entry of this write. It is in the log, or about to be.
    pub(crate) log: Option<Entry>,
    /// Entries of earlier writes that are in the log but may not be durable there.
    pub(crate) carried: Vec<Entry>,
    /// From the file before to the one after; none means that the copy beside is the one after.
    pub(crate) edits: Vec<Edit>,
}

/// The temporary file of a write.
pub(super) fn temporary(revision: u64) -> String {
    format!("state.yaml.tmp-{revision}")
}

impl Record {
    pub(super) fn of(write: &Write<'_>, log: Option<Entry>, carried: Vec<Entry>) -> Self {
        let size: usize = write.edits.iter().map(|edit| edit.text.len() + 64).sum();
        Self {
            sequence: 0,
            revision: write.revision,
            revision_before: write.revision_before,
            after: Imprint::of(write.after),
            before: write.before,
            simple: write.simple,
            stage: Stage::Writing,
            log,
            carried,
            edits: if size <= EDITS_LIMIT { write.edits.to_vec() } else { Vec::new() },
        }
    }

    /// Whether the copy beside has to be the whole new version, since no edits lead to it.
    pub(super) fn is_copied(&self) -> bool {
        self.edits.is_empty()
    }

    pub(super) fn temporary(&self) -> String {
        temporary(self.revision)
    }

    /// The log entries that the log may not have, or not durably, in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.carried.iter().chain(&self.log)
    }

    fn encode(&self) -> Vec<u8> {
        let imprint = |print: Imprint| format!("{} {:016x}", print.length, print.hash);
        let mut payload = format!(
            "revision {}\nrevision_before {}\nafter {}\nbefore {}\nsimple {}\nstage {}\n",
            self.revision,
            self.revision_before,
            imprint(self.after),
            imprint(self.before),
            self.simple,
            self.stage.name(),
        );
        let entry = |name: &str, entry: &Entry| {
            format!("{name} {} {}\n{}\n", entry.offset, entry.text.len(), entry.text)
        };
        payload.extend(self.log.iter().map(|own| entry("log", own)));
        payload.extend(self.carried.iter().map(|earlier| entry("carried", earlier)));
        for edit in &self.edits {
            payload +=
                &format!("edit {} {} {}\n{}\n", edit.range.start, edit.range.end, edit.text.len(), edit.text);
        }
        let hash = xxh3_64(payload.as_bytes());
        let head = format!("{MAGIC} {} {} {hash:016x}\n", self.sequence, payload.len());
        [head.as_bytes(), payload.as_bytes()].concat()
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let line_end = memchr::memchr(b'\n', slot)?;
        let mut head = std::str::from_utf8(&slot[..line_end]).ok()?.split(' ');
        let (magic, sequence, length, hash) = (head.next()?, head.next()?, head.next()?, head.next()?);
        let length: usize = length.parse().ok()?;
        let payload = slot.get(line_end + 1..(line_end + 1).checked_add(length)?)?;
        if magic != MAGIC || u64::from_str_radix(hash, 16).ok()? != xxh3_64(payload) {
            return None;
        }
        let mut reader = Reader(std::str::from_utf8(payload).ok()?);
        let mut record = Self {
            sequence: sequence.parse().ok()?,
            revision: reader.field("revision")?.parse().ok()?,
            revision_before: reader.field("revision_before")?.parse().ok()?,
            after: imprint(reader.field("after")?)?,
            before: imprint(reader.field("before")?)?,
            simple: reader.field("simple")? == "true",
            stage: stage(reader.field("stage")?)?,
            log: None,
            carried: Vec::new(),
            edits: Vec::new(),
        };
        while !reader.0.is_empty() {
            record.decode_more(&mut reader)?;
        }
        Some(record)
    }

    fn decode_more(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let line = reader.line()?;
        let mut words = line.split(' ');
        match words.next()? {
            kind @ ("log" | "carried") => {
                let (offset, length) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let entry = Entry { offset, text: reader.text(length)?.to_owned() };
                if kind == "log" {
                    self.log = Some(entry);
                } else {
                    self.carried.push(entry);
                }
            }
            "edit" => {
                let (start, end) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let length = words.next()?.parse().ok()?;
                self.edits.push(Edit { range: start..end, text: reader.text(length)?.to_owned() });
            }
            _ => return None,
        }
        Some(())
    }
}

fn imprint(text: &str) -> Option<Imprint> {
    let (length, hash) = text.split_once(' ')?;
    Some(Imprint { length: length.parse().ok()?, hash: u64::from_str_radix(hash, 16).ok()? })
}

fn stage(text: &str) -> Option<Stage> {
    [Stage::Writing, Stage::Done, Stage::Modifying].into_iter().find(|stage| stage.name() == text)
}

struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    fn line(&mut self) -> Option<&'t str> {
        let (line, rest) = self.0.split_once('\n')?;
        self.0 = rest;
        Some(line)
    }

    fn field(&mut self, name: &str) -> Option<&'t str> {
        self.line()?.strip_prefix(name)?.strip_prefix(' ')
    }

    fn text(&mut self, length: usize) -> Option<&'t str> {
        let text = self.0.get(..length)?;
        self.0 = self.0.get(length..)?.strip_prefix('\n')?;
        Some(text)
    }
}

/// What the slots of the lock file hold.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// The newest record that is whole, and where it is.
    newest: Option<(usize, Record)>,
    /// Where the newest record of a write with a log entry is.
    logged: Option<usize>,
    /// The others that are whole.
    older: Vec<Record>,
}

impl Slots {
    pub(super) fn read(file: &File, path: &Path) -> Result<Self, StoreError> {
        let mut whole: Vec<(usize, Record)> = Vec::with_capacity(SLOTS);
        for slot in 0..SLOTS {
            let bytes = slot_bytes(file, slot).map_err(StoreError::io("read", path))?;
            whole.extend(Record::decode(&bytes).map(|record| (slot, record)));
        }
        whole.sort_by_key(|(_, record)| record.sequence);
        let logged = whole.iter().rev().find(|(_, record)| record.log.is_some()).map(|(slot, _)| *slot);
        let newest = whole.pop();
        Ok(Self { newest, logged, older: whole.into_iter().map(|(_, record)| record).collect() })
    }

    pub(super) fn newest(&self) -> Option<&Record> {
        self.newest.as_ref().map(|(_, record)| record)
    }

    /// All that are whole, the newest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Record> {
        self.newest().into_iter().chain(self.older.iter().rev())
    }

    /// Writes a record where none is that may still be needed.
    pub(super) fn write(&mut self, file: &File, path: &Path, record: Record) -> Result<(), StoreError> {
        let newest = self.newest.as_ref().map(|(slot, _)| *slot);
        let is_free = |slot: &usize| Some(*slot) != newest && Some(*slot) != self.logged;
        self.write_to((0..SLOTS).find(is_free).unwrap_or_default(), file, path, record)
    }

    /// Writes the record that was there before over the newest, whose write has come to nothing.
    pub(super) fn retract(
        &mut self,
        file: &File,
        path: &Path,
        before: Option<Record>,
    ) -> Result<(), StoreError> {
        let slot = self.newest.as_ref().map_or(0, |(slot, _)| *slot);
        match before {
            Some(record) => self.write_to(slot, file, path, record),
            None => {
                self.newest = None;
                let nothing = [0; MAGIC.len()];
                file.write_all_at(&nothing, (slot * SLOT) as u64).map_err(StoreError::io("write", path))
            }
        }
    }

    /// Says that the write of the newest record has happened, so that its record is durable if it has a log entry.
    pub(super) fn happened(&mut self) {
        if let Some((slot, record)) = &self.newest
            && record.log.is_some()
        {
            self.logged = Some(*slot);
        }
    }

    fn write_to(
        &mut self,
        slot: usize,
        file: &File,
        path: &Path,
        mut record: Record,
    ) -> Result<(), StoreError> {
        record.sequence = self.newest().map_or(1, |newest| newest.sequence + 1);
        let mut bytes = record.encode();
        if bytes.len() > SLOT {
            // Without its edits it fits; what they would be needed for is told where they are missed.
            record.edits.clear();
            bytes = record.encode();
        }
        file.write_all_at(&bytes, (slot * SLOT) as u64).map_err(StoreError::io("write", path))?;
        self.newest = Some((slot, record));
        Ok(())
    }
}

/// The bytes of a slot as far as they can belong to its record.
fn slot_bytes(file: &File, slot: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; PAGE];
    let mut filled = 0;
    loop {
        match file.read_at(&mut bytes[filled..], (slot * SLOT + filled) as u64)? {
            0 => break,
            n => filled += n,
        }
        if filled == bytes.len() {
            // More than a page only where the record says so itself.
            match record_length(&bytes) {
                Some(length) if length > filled && length <= SLOT => bytes.resize(length, 0),
                Some(_) | None => break,
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// How long the record is that begins so, its head included.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let line_end = memchr::memchr(b'\n', bytes)?;
    let head = std::str::from_utf8(&bytes[..line_end]).ok()?;
    let payload: usize = head.split(' ').nth(2)?.parse().ok()?;
    payload.checked_add(line_end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-12
    #[test]
    fn a_record_is_read_back_and_a_torn_one_is_not() {
        let write = Write {
            before: Imprint::of(b"a: 1\n"),
            after: b"a: 2\n",
            edits: &[Edit { range: 3..4, text: "2\nedit 1 2 3\n".to_owned() }],
            revision_before: 7,
            revision: 8,
            simple: true,
            log: None,
        };
        let entry = Entry { offset: 12, text: "- detail: \"é\"\n".to_owned() };
        let carried = vec![Entry { offset: 0, text: "log 1 2\n".to_owned() }, entry.clone()];
        let record = Record { sequence: 3, ..Record::of(&write, Some(entry), carried) };
        let bytes = record.encode();
        assert_eq!(Record::decode(&bytes), Some(record));
        for cut in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..cut]), None, "cut at {cut}");
        }
        let mut flipped = bytes;
        flipped[60] ^= 1;
        assert_eq!(Record::decode(&flipped), None);
    }
}
