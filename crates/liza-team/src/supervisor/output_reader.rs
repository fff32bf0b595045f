//! Reads the output of a session inside its helper: keeps it, masked, and reports usage and errors while it
//! runs. Reads everything, so that no writer has to wait; memory doesn't grow with the output.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use liza_agents::providers::side_log::SideLog;
use liza_agents::providers::stream::{ClientOutcome, EventStream};
use liza_agents::providers::usage::SessionUsage;
use liza_core::model::ClientFault;
use liza_host::secrets::{MaskStream, Masker};
use liza_sandbox::sys::untrusted::UntrustedFolder;

use super::helper_protocol::{HelperReport, send_report};

/// The number of bytes of a session's output that are kept.
const OUTPUT_MAX: u64 = 16 << 20;

/// The interval of usage reports while a session runs; a session that should hand off is reported at once.
const USAGE_INTERVAL: Duration = Duration::from_secs(2);

/// The interval of looks at the log beside the output: goose keeps its last ten requests.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The interval at which the output file is marked as changed when nothing more is written to it.
const TOUCH_INTERVAL: Duration = Duration::from_secs(1);

const RESULT_MAX: u64 = 1 << 20;

pub(super) struct OutputReader {
    stream: EventStream,
    masker: Masker,
    /// The file in which the program leaves its last event.
    result_file: Option<PathBuf>,
    /// The log that the program keeps of the session.
    side_log: Option<SideLog>,
    used: SessionUsage,
    fault: Option<ClientFault>,
    /// The report that the session must end was sent.
    is_stopped: bool,
    next: Instant,
    next_look: Instant,
}

pub(super) struct OutputRead {
    /// The number of bytes that were not kept.
    pub dropped: u64,
    stream: EventStream,
    masker: Masker,
}

impl OutputRead {
    /// The end that the program reports, masked.
    pub(super) fn outcome(&self, code: Option<i32>) -> ClientOutcome {
        let mask = |text: String| self.masker.mask(&text).into_owned();
        let outcome = self.stream.outcome(code);
        let fault = outcome.fault.map(|fault| masked(&self.masker, &fault));
        ClientOutcome { fault, said: outcome.said.map(mask), ..outcome }
    }
}

fn masked(masker: &Masker, fault: &ClientFault) -> ClientFault {
    ClientFault { message: masker.mask(&fault.message).into_owned(), ..fault.clone() }
}

impl OutputReader {
    pub(super) fn new(
        stream: EventStream,
        masker: Masker,
        result_file: Option<PathBuf>,
        side_log: Option<SideLog>,
    ) -> Self {
        let (used, now) = (SessionUsage::default(), Instant::now());
        let is_stopped = false;
        Self {
            stream,
            masker,
            result_file,
            side_log,
            used,
            fault: None,
            is_stopped,
            next: now,
            next_look: now,
        }
    }

    /// Copies the output to a file, up to the limit.
    pub(super) fn copy(mut self, mut output: impl Read, mut file: File) -> OutputRead {
        let mut masks = MaskStream::new(self.masker.clone());
        let mut chunk = vec![0; 64 << 10];
        let (mut kept, mut dropped) = (0_u64, 0_u64);
        let mut touched = Instant::now();
        loop {
            let length = match output.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let bytes = chunk.get(..length).unwrap_or_default();
            self.push(bytes);
            if kept >= OUTPUT_MAX {
                if dropped == 0 {
                    send_report(&HelperReport::OutputTruncated { kept });
                }
                dropped += length as u64;
                // The time of the file shows when the session last printed something.
                if touched.elapsed() >= TOUCH_INTERVAL {
                    let _ = file.set_modified(SystemTime::now());
                    touched = Instant::now();
                }
                continue;
            }
            let ready = masks.push(bytes);
            kept += length as u64;
            // A full disk must not stop the agent; lost bytes are counted.
            if file.write_all(&ready).is_err() {
                dropped += ready.len() as u64;
            }
        }
        self.finish();
        let _ = file.write_all(&masks.finish());
        if dropped > 0 {
            let _ = writeln!(file, "\n[liza: {dropped} more bytes of output were not kept]");
        }
        OutputRead { dropped, stream: self.stream, masker: self.masker }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.stream.push(bytes, &mut |_| {});
        if self.side_log.is_some() && Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK_INTERVAL;
            self.read_side_log();
        }
        let used_up = self.stream.used().should_hand_over() && !self.used.should_hand_over();
        if used_up || Instant::now() >= self.next {
            self.report_usage();
        }
        self.report_fault();
        self.report_stop();
    }

    fn finish(&mut self) {
        self.stream.finish(&mut |_| {});
        self.read_side_log();
        if let Some(result) = self.result_file.as_ref().and_then(read_result) {
            self.stream.push(&result, &mut |_| {});
            self.stream.push(b"\n", &mut |_| {});
        }
        self.report_usage();
        self.report_stop();
    }

    fn read_side_log(&mut self) {
        let conversation = self.stream.conversation().map(str::to_owned);
        let log = self.side_log.as_mut();
        for line in log.map(|log| log.read(conversation.as_deref())).unwrap_or_default() {
            self.stream.insert(&line);
        }
    }

    fn report_usage(&mut self) {
        let measured = self.stream.used();
        if *measured != self.used {
            send_report(&HelperReport::Used(measured.clone()));
            self.used = measured.clone();
            self.next = Instant::now() + USAGE_INTERVAL;
        }
    }

    /// Reports at once that the session must end, after its usage.
    fn report_stop(&mut self) {
        if let Some(stop) = self.stream.guard_stop().filter(|_| !self.is_stopped) {
            self.is_stopped = true;
            self.report_usage();
            send_report(&HelperReport::Guarded(stop));
        }
    }

    /// Reports an error at once: the program may go on trying for hours.
    fn report_fault(&mut self) {
        let found = self.stream.fault();
        if found != self.fault.as_ref() {
            self.fault = found.cloned();
            if let Some(fault) = &self.fault {
                send_report(&HelperReport::Faulted(masked(&self.masker, fault)));
            }
        }
    }
}

/// The program's last event as one line.
fn read_result(path: &PathBuf) -> Option<Vec<u8>> {
    // The session can put a link there, to a file that it cannot read itself.
    let name = Path::new(path.file_name()?);
    let text = UntrustedFolder::open(path.parent()?).ok()?.read(name, RESULT_MAX).ok()?;
    let _ = fs::remove_file(path);
    let value: serde_json::Value = serde_json::from_slice(&text).ok()?;
    serde_json::to_vec(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-14
    #[test]
    fn the_result_of_a_program_is_read_from_its_own_file_only() {
        let home = tempfile::tempdir().unwrap();
        let (secret, result) = (home.path().join("secret.json"), home.path().join("scratch/export.json"));
        fs::create_dir(home.path().join("scratch")).unwrap();
        fs::write(&secret, r#"{"token": 1}"#).unwrap();
        std::os::unix::fs::symlink(&secret, &result).unwrap();
        assert_eq!(read_result(&result), None);
        fs::remove_file(&result).unwrap();
        fs::write(&result, "{\"last\":\n1}").unwrap();
        assert_eq!(read_result(&result).unwrap(), br#"{"last":1}"#);
        assert!(!result.exists() && secret.exists());
    }
}
