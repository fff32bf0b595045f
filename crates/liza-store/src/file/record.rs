//! The records of the last writes in the lock file: they recognize and restore a version, and list pending
//! entries.
//!
//! A new record never overwrites the newest one, so a torn record leaves its predecessor, nor the newest
//! synced one with a log entry, so a power cut loses no entry that is missing in the log.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::NewVersion;
use super::log_writer::PendingLogEntry;
use crate::document::Edit;
use crate::error::StoreError;

/// The size of a slot. Edits that don't fit are not recorded; a copy of the version is kept instead.
const SLOT: usize = 64 * 1024;
const EDITS_LIMIT: usize = 32 * 1024;
/// The part of a slot that is read first; nearly every record is shorter.
const PAGE: usize = 2 * 1024;
/// One slot for the newest record, one for the newest synced one with a log entry, one to write to.
const SLOTS: usize = 3;
const MAGIC: &str = "liza-record-1";

/// Length and hash of a file, to recognize a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    length: u64,
    hash: u64,
}

impl Fingerprint {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, hash: xxh3_64(bytes) }
    }
}

/// The progress of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The temporary file is complete; if it is gone, it has been renamed.
    Writing,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteRecord {
    pub(crate) sequence: u64,
    pub(crate) revision: u64,
    pub(crate) revision_before: u64,
    pub(crate) after: Fingerprint,
    pub(crate) before: Fingerprint,
    /// A line scan finds all blocks of the new version. Its name in the file is `simple`.
    pub(crate) scannable: bool,
    pub(crate) stage: Stage,
    /// It is in the log, or about to be appended.
    pub(crate) log: Option<PendingLogEntry>,
    /// Entries of earlier writes that are in the log, but may not be synced there.
    pub(crate) carried: Vec<PendingLogEntry>,
    /// The edits from the old version to the new one; if empty, state.yaml.prev is a copy of the new one.
    pub(crate) edits: Vec<Edit>,
}

pub(super) fn temporary_name(revision: u64) -> String {
    format!("state.yaml.tmp-{revision}")
}

impl WriteRecord {
    pub(super) fn of(
        write: &NewVersion<'_>,
        log: Option<PendingLogEntry>,
        carried: Vec<PendingLogEntry>,
    ) -> Self {
        let size: usize = write.edits.iter().map(|edit| edit.text.len() + 64).sum();
        Self {
            sequence: 0,
            revision: write.revision,
            revision_before: write.revision_before,
            after: Fingerprint::of(write.after),
            before: write.before,
            scannable: write.scannable,
            stage: Stage::Writing,
            log,
            carried,
            edits: if size <= EDITS_LIMIT { write.edits.to_vec() } else { Vec::new() },
        }
    }

    /// True if state.yaml.prev must be a copy of the new version, since no edits lead to it.
    pub(super) fn needs_copy(&self) -> bool {
        self.edits.is_empty()
    }

    /// Entries that may not be in the log, or not synced there, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &PendingLogEntry> + Clone {
        self.carried.iter().chain(&self.log)
    }

    fn encode(&self) -> Vec<u8> {
        let hex = |fingerprint: Fingerprint| format!("{} {:016x}", fingerprint.length, fingerprint.hash);
        let mut payload = format!(
            "revision {}\nrevision_before {}\nafter {}\nbefore {}\nsimple {}\nstage {}\n",
            self.revision,
            self.revision_before,
            hex(self.after),
            hex(self.before),
            self.scannable,
            self.stage.name(),
        );
        let entry = |name: &str, entry: &PendingLogEntry| {
            format!("{name} {} {}\n{}\n", entry.offset, entry.text.len(), entry.text)
        };
        payload.extend(self.log.iter().map(|own| entry("log", own)));
        payload.extend(self.carried.iter().map(|carried| entry("carried", carried)));
        for edit in &self.edits {
            payload +=
                &format!("edit {} {} {}\n{}\n", edit.range.start, edit.range.end, edit.text.len(), edit.text);
        }
        let hash = xxh3_64(payload.as_bytes());
        let header = format!("{MAGIC} {} {} {hash:016x}\n", self.sequence, payload.len());
        [header.as_bytes(), payload.as_bytes()].concat()
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let line_end = memchr::memchr(b'\n', slot)?;
        let mut header = std::str::from_utf8(&slot[..line_end]).ok()?.split(' ');
        let (magic, sequence, length, hash) =
            (header.next()?, header.next()?, header.next()?, header.next()?);
        let length: usize = length.parse().ok()?;
        let payload = slot.get(line_end + 1..(line_end + 1).checked_add(length)?)?;
        if magic != MAGIC || u64::from_str_radix(hash, 16).ok()? != xxh3_64(payload) {
            return None;
        }
        let mut parser = RecordParser(std::str::from_utf8(payload).ok()?);
        let mut record = Self {
            sequence: sequence.parse().ok()?,
            revision: parser.field("revision")?.parse().ok()?,
            revision_before: parser.field("revision_before")?.parse().ok()?,
            after: fingerprint(parser.field("after")?)?,
            before: fingerprint(parser.field("before")?)?,
            scannable: parser.field("simple")? == "true",
            stage: stage(parser.field("stage")?)?,
            log: None,
            carried: Vec::new(),
            edits: Vec::new(),
        };
        while !parser.0.is_empty() {
            record.decode_more(&mut parser)?;
        }
        Some(record)
    }

    fn decode_more(&mut self, parser: &mut RecordParser<'_>) -> Option<()> {
        let line = parser.line()?;
        let mut words = line.split(' ');
        match words.next()? {
            kind @ ("log" | "carried") => {
                let (offset, length) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let entry = PendingLogEntry { offset, text: parser.text(length)?.to_owned() };
                if kind == "log" {
                    self.log = Some(entry);
                } else {
                    self.carried.push(entry);
                }
            }
            "edit" => {
                let (start, end) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let length = words.next()?.parse().ok()?;
                self.edits.push(Edit { range: start..end, text: parser.text(length)?.to_owned() });
            }
            _ => return None,
        }
        Some(())
    }
}

fn fingerprint(text: &str) -> Option<Fingerprint> {
    let (length, hash) = text.split_once(' ')?;
    Some(Fingerprint { length: length.parse().ok()?, hash: u64::from_str_radix(hash, 16).ok()? })
}

fn stage(text: &str) -> Option<Stage> {
    [Stage::Writing, Stage::Done, Stage::Modifying].into_iter().find(|stage| stage.name() == text)
}

struct RecordParser<'t>(&'t str);

impl<'t> RecordParser<'t> {
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

#[derive(Debug, Default)]
pub(super) struct RecordSlots {
    newest: Option<(usize, WriteRecord)>,
    logged: Option<usize>,
    older: Vec<WriteRecord>,
}

impl RecordSlots {
    pub(super) fn read(file: &File, path: &Path) -> Result<Self, StoreError> {
        let mut complete: Vec<(usize, WriteRecord)> = Vec::with_capacity(SLOTS);
        for slot in 0..SLOTS {
            let bytes = slot_bytes(file, slot).map_err(StoreError::io("read", path))?;
            complete.extend(WriteRecord::decode(&bytes).map(|record| (slot, record)));
        }
        complete.sort_by_key(|(_, record)| record.sequence);
        let logged = complete.iter().rev().find(|(_, record)| record.log.is_some()).map(|(slot, _)| *slot);
        let newest = complete.pop();
        Ok(Self { newest, logged, older: complete.into_iter().map(|(_, record)| record).collect() })
    }

    pub(super) fn newest(&self) -> Option<&WriteRecord> {
        self.newest.as_ref().map(|(_, record)| record)
    }

    /// As it was when the lock was taken.
    pub(super) fn before_newest(&self) -> Option<&WriteRecord> {
        self.older.last()
    }

    /// All complete records, newest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &WriteRecord> {
        self.newest().into_iter().chain(self.older.iter().rev())
    }

    /// Writes a record to a slot whose record is no longer needed.
    pub(super) fn write(&mut self, file: &File, path: &Path, record: WriteRecord) -> Result<(), StoreError> {
        let newest = self.newest.as_ref().map(|(slot, _)| *slot);
        let is_free = |slot: &usize| Some(*slot) != newest && Some(*slot) != self.logged;
        self.write_to((0..SLOTS).find(is_free).unwrap_or_default(), file, path, record)
    }

    /// Overwrites the newest record, whose write failed, with the one before it.
    pub(super) fn retract(
        &mut self,
        file: &File,
        path: &Path,
        before: Option<WriteRecord>,
    ) -> Result<(), StoreError> {
        let slot = self.newest.as_ref().map_or(0, |(slot, _)| *slot);
        match before {
            Some(record) => self.write_to(slot, file, path, record),
            None => {
                self.newest = None;
                let zeros = [0; MAGIC.len()];
                file.write_all_at(&zeros, (slot * SLOT) as u64).map_err(StoreError::io("write", path))
            }
        }
    }

    /// Notes that the write of the newest record is durable, and so is its record if it has a log entry.
    pub(super) fn committed(&mut self) {
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
        mut record: WriteRecord,
    ) -> Result<(), StoreError> {
        record.sequence = self.newest().map_or(1, |newest| newest.sequence + 1);
        let mut bytes = record.encode();
        if bytes.len() > SLOT {
            // It fits without its edits. If they are needed later, restoring the version fails with a notice.
            record.edits.clear();
            bytes = record.encode();
        }
        file.write_all_at(&bytes, (slot * SLOT) as u64).map_err(StoreError::io("write", path))?;
        self.newest = Some((slot, record));
        Ok(())
    }
}

/// The bytes of a slot that may belong to its record.
fn slot_bytes(file: &File, slot: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; PAGE];
    let mut filled = 0;
    loop {
        match file.read_at(&mut bytes[filled..], (slot * SLOT + filled) as u64)? {
            0 => break,
            n => filled += n,
        }
        if filled == bytes.len() {
            // More than a page only if the record itself says that it is longer.
            match record_length(&bytes) {
                Some(length) if length > filled && length <= SLOT => bytes.resize(length, 0),
                Some(_) | None => break,
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The length of the record that begins with these bytes, header included.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let line_end = memchr::memchr(b'\n', bytes)?;
    let header = std::str::from_utf8(&bytes[..line_end]).ok()?;
    let payload: usize = header.split(' ').nth(2)?.parse().ok()?;
    payload.checked_add(line_end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-12
    #[test]
    fn a_record_reads_back_and_a_torn_one_is_rejected() {
        let write = NewVersion {
            before: Fingerprint::of(b"a: 1\n"),
            on_disk: b"a: 1\n",
            after: b"a: 2\n",
            edits: &[Edit { range: 3..4, text: "2\nedit 1 2 3\n".to_owned() }],
            revision_before: 7,
            revision: 8,
            scannable: true,
            log: None,
        };
        let entry = PendingLogEntry { offset: 12, text: "- detail: \"é\"\n".to_owned() };
        let carried = vec![PendingLogEntry { offset: 0, text: "log 1 2\n".to_owned() }, entry.clone()];
        let record = WriteRecord { sequence: 3, ..WriteRecord::of(&write, Some(entry), carried) };
        let bytes = record.encode();
        assert_eq!(WriteRecord::decode(&bytes), Some(record));
        for cut in 0..bytes.len() {
            assert_eq!(WriteRecord::decode(&bytes[..cut]), None, "cut at {cut}");
        }
        let mut flipped = bytes;
        flipped[60] ^= 1;
        assert_eq!(WriteRecord::decode(&flipped), None);
    }
}
