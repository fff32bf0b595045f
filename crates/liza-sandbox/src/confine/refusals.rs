//! The services of this machine that a session was refused, from the notes in its log: its own tools say only that nothing
//! answers there.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use liza_host::durable::{self, Open};

use crate::sys::confinement::REFUSED_PORT;

/// The notes in a session's log that the session has not been told.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    log: Option<PathBuf>,
    /// The part of the log that was looked at.
    looked_at: Arc<Mutex<u64>>,
}

impl Refusals {
    pub fn of(log: Option<PathBuf>) -> Self {
        Self { log, looked_at: Arc::default() }
    }

    /// The lines since the last call. Without a log there are none.
    pub fn untold(&self) -> Vec<String> {
        let mut from = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |mut log: File| {
            let mut text = Vec::new();
            log.seek(SeekFrom::Start(*from)).and_then(|_| log.read_to_end(&mut text)).map(|_| text)
        };
        let log = self.log.as_ref().and_then(|log| durable::open(Open::Read, log).ok());
        let text = log.and_then(|log| read(log).ok()).unwrap_or_default();
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        *from += whole as u64;
        let text = String::from_utf8_lossy(text.get(..whole).unwrap_or_default());
        text.lines().filter(|line| line.starts_with(REFUSED_PORT)).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Covers: RO-04
    #[test]
    fn a_session_is_told_of_each_refused_port_once() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let refusals = Refusals::of(Some(log.clone()));
        assert_eq!(refusals.untold(), [""; 0]);
        let (one, two) = (format!("{REFUSED_PORT}1 of it]"), format!("{REFUSED_PORT}2 of it]"));
        fs::write(&log, format!("said\n{one}\n{}", &two[..20])).unwrap();
        assert_eq!(refusals.untold(), std::slice::from_ref(&one));
        fs::write(&log, format!("said\n{one}\n{two}\nsaid {one}\n")).unwrap();
        assert_eq!((refusals.untold(), refusals.untold()), (vec![two], vec![]));
    }
}
