//! The small process between a supervisor and one agent session: starts it, keeps its output, sweeps what it leaves.
//!
//! Lives as long as its supervisor at most: when the pipe from there closes, it ends every descendant at once. Knows
//! no blackboard and no git.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::providers::usage::{SessionUsage, UsageMeter};
use crate::secrets::{MaskStream, Masker};
use crate::sys::family::{ProcessFamily, ProgramExit, Reaped};
use crate::work::{FileLock, WorkError};

use super::order::{Order, Report, Word};

/// As much of a session's output as is kept.
const OUTPUT_MAX: u64 = 16 << 20;

/// How far a session that nobody sits before stands back for the rest of the machine.
const NICENESS: i32 = 5;

/// How long processes that cannot be ended (they hang in the kernel) are waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an earlier session of the same agent, whose supervisor is gone, may take to be ended.
const TURN: Duration = Duration::from_secs(20);

/// How often what a session uses is reported while it runs; that it should hand over is reported at once.
const USED_EVERY: Duration = Duration::from_secs(2);

/// Variables that would point a session's git at some other repository.
const REPOSITORY: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
];

/// What the helper waits for.
enum Event {
    Told(Word),
    /// The supervisor is gone.
    Orphaned,
    Ended(ProgramExit),
    /// Nothing is left of the session.
    Swept,
}

/// Carries out the order that comes first on standard input; gives the exit code.
pub fn serve() -> u8 {
    let mut line = String::new();
    let order = match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => return 1,
        Ok(_) => serde_json::from_str::<Order>(&line),
    };
    let run = order.map_err(io::Error::other).and_then(|order| {
        let run = run(&order);
        let _ = fs::remove_dir_all(&order.scratch);
        run
    });
    let (report, code) = match run {
        Ok((exit, dropped)) => {
            let (code, signal) = match exit {
                ProgramExit::Code(code) => (Some(code), None),
                ProgramExit::Signal(signal) => (None, Some(signal)),
            };
            let encoded = code.unwrap_or_else(|| 128 + signal.unwrap_or_default());
            (Report::Ended { code, signal, dropped }, u8::try_from(encoded).unwrap_or(1))
        }
        Err(error) => (Report::Failed { message: error.to_string() }, 1),
    };
    tell(&report);
    code
}

/// Tells the supervisor; where it is gone, nobody.
fn tell(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

fn run(order: &Order) -> io::Result<(ProgramExit, u64)> {
    let _turn = take_turn(order)?;
    if order.output.is_some() {
        // Sixty sessions that compile must not keep the one who supervises them from doing so.
        let _ = rustix::process::nice(NICENESS);
    }
    let (family, output) = start(order)?;
    tell(&Report::Started { pid: family.id() });
    if order.output.is_none() {
        // The terminal's Ctrl-C is for the program; where it cannot be caught, the session ends with it.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default());
    }
    let (sender, events) = channel();
    let words = sender.clone();
    thread::spawn(move || listen(&words));
    let reaper = family.clone();
    thread::spawn(move || reap(&reaper, &sender));
    let mut exit = None;
    let mut ending: Option<Instant> = None;
    loop {
        let pause = if ending.is_some() { Duration::from_millis(10) } else { PATIENCE };
        match events.recv_timeout(pause) {
            Ok(Event::Told(Word::Terminate)) => family.terminate(),
            Ok(Event::Told(Word::Kill) | Event::Orphaned) => ending = ending.or(Some(Instant::now())),
            Ok(Event::Ended(how)) => {
                exit = Some(how);
                ending = ending.or(Some(Instant::now()));
            }
            Ok(Event::Swept) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ending.is_some_and(|since| since.elapsed() > PATIENCE) {
            break;
        }
        if ending.is_some() {
            family.kill();
        }
    }
    // Where orphans are not given to us, what is left of the group is found by its number only.
    family.kill();
    Ok((exit.unwrap_or(ProgramExit::Signal(9)), finish(output)))
}

/// Waits for the end of an earlier session of this agent, which somebody else's helper is just ending. Where there are
/// no locks to be had, nobody can be waited for.
fn take_turn(order: &Order) -> io::Result<Option<FileLock>> {
    match FileLock::at(&order.turn, TURN) {
        Ok(lock) => Ok(Some(lock)),
        Err(WorkError::Locked { .. }) => {
            Err(io::Error::other("an earlier session of this agent could not be ended"))
        }
        Err(_) => Ok(None),
    }
}

/// Starts the agent with its input, its output and its environment.
fn start(order: &Order) -> io::Result<(ProcessFamily, Option<JoinHandle<u64>>)> {
    let failed = |what: &str, path: &Path, error: &io::Error| {
        io::Error::other(format!("cannot {what} {}: {error}", path.display()))
    };
    // What a session left that could not clean up goes first.
    let _ = fs::remove_dir_all(&order.scratch);
    fs::create_dir_all(&order.scratch).map_err(|error| failed("create", &order.scratch, &error))?;
    let mut command = Command::new(&order.program);
    command.args(&order.arguments).current_dir(&order.directory);
    for name in REPOSITORY {
        command.env_remove(name);
    }
    // Some programs believe this variable rather than the system, and would work in our own folder.
    command.env("PWD", &order.directory).env_remove("OLDPWD");
    command.env("TMPDIR", &order.scratch).envs(order.environment.iter().map(|(name, value)| (name, value)));
    if let Some(input) = &order.input {
        command.stdin(File::open(input).map_err(|error| failed("read", input, &error))?);
    } else {
        command.stdin(File::open("/dev/tty").map_or_else(|_| Stdio::null(), Stdio::from));
    }
    let output = match &order.output {
        None => {
            let terminal = || {
                OpenOptions::new().write(true).open("/dev/tty").map_or_else(|_| Stdio::null(), Stdio::from)
            };
            command.stdout(terminal()).stderr(terminal());
            None
        }
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| failed("write", path, &error))?;
            let (reader, writer) = io::pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            Some((reader, file))
        }
    };
    let family = ProcessFamily::spawn(&mut command, order.output.is_some())
        .map_err(|error| failed("start", &order.program, &error))?;
    // Holds the writing end of the pipe, whose closing by all is the end of the output.
    drop(command);
    let inherited = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let secrets = Masker::new(inherited.chain(order.environment.iter().cloned()));
    let meter = UsageMeter::new(order.events);
    let keep = |(reader, file)| thread::spawn(move || keep(reader, file, secrets, Metered::new(meter)));
    Ok((family, output.map(keep)))
}

/// Passes on what the supervisor says.
fn listen(events: &Sender<Event>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(word) = serde_json::from_str(&line) {
            let _ = events.send(Event::Told(word));
        }
    }
    let _ = events.send(Event::Orphaned);
}

/// Waits for every descendant.
fn reap(family: &ProcessFamily, events: &Sender<Event>) {
    loop {
        let event = match family.reap() {
            Reaped::Leader(exit) => Event::Ended(exit),
            Reaped::Descendant => continue,
            Reaped::NoneLeft => Event::Swept,
        };
        let last = matches!(event, Event::Swept);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// A meter whose figures are reported, not too often.
struct Metered {
    meter: UsageMeter,
    told: SessionUsage,
    next: Instant,
}

impl Metered {
    fn new(meter: UsageMeter) -> Self {
        Self { meter, told: SessionUsage::default(), next: Instant::now() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.meter.push(bytes);
        let used_up = self.meter.total().should_hand_over() && !self.told.should_hand_over();
        if used_up || Instant::now() >= self.next {
            self.tell();
        }
    }

    fn finish(&mut self) {
        self.meter.finish();
        self.tell();
    }

    fn tell(&mut self) {
        let measured = self.meter.total();
        if *measured != self.told {
            tell(&Report::Used(measured.clone()));
            self.told = measured.clone();
            self.next = Instant::now() + USED_EVERY;
        }
    }
}

/// Keeps the output, masked, as far as there is room; reads all of it, so that nobody who writes has to wait.
fn keep(mut output: impl Read, mut file: File, secrets: Masker, mut metered: Metered) -> u64 {
    let mut stream = MaskStream::new(secrets);
    let mut chunk = vec![0; 64 << 10];
    let (mut kept, mut dropped) = (0_u64, 0_u64);
    loop {
        let length = match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let bytes = chunk.get(..length).unwrap_or_default();
        metered.push(bytes);
        if kept >= OUTPUT_MAX {
            if dropped == 0 {
                tell(&Report::Flooded { kept });
            }
            dropped += length as u64;
            continue;
        }
        let ready = stream.push(bytes);
        kept += length as u64;
        // A full disk must not stop the agent; what could not be kept is counted.
        if file.write_all(&ready).is_err() {
            dropped += ready.len() as u64;
        }
    }
    metered.finish();
    let _ = file.write_all(&stream.finish());
    if dropped > 0 {
        let _ = writeln!(file, "\n[liza: {dropped} more bytes of output were not kept]");
    }
    dropped
}

/// Waits for the last of the output; not for ever, since a process that we could not end may hold it.
fn finish(output: Option<JoinHandle<u64>>) -> u64 {
    let Some(output) = output else { return 0 };
    let deadline = Instant::now() + Duration::from_secs(5);
    while !output.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    if output.is_finished() { output.join().unwrap_or_default() } else { 0 }
}
