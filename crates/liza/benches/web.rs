//! `liza web` under load: 100 open pages and 1,000 changes a minute, below 20 % of one core, with flat memory.
//!
//! `cargo bench -p liza --bench web` measures for half a minute; `LIZA_WEB_SECONDS=600` for ten minutes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong"
)]

mod shared;
#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use liza_team::project::Project;
use shared::{Killed, add, cpu_ticks, describe, name};
use support::TestProject;

const PAGES: usize = 100;
const TASKS: usize = 60;
/// 1,000 a minute.
const PAUSE: Duration = Duration::from_millis(60);
const WARM_UP: Duration = Duration::from_secs(5);

fn main() {
    let seconds = std::env::var("LIZA_WEB_SECONDS").map_or(30, |text| text.parse().expect("a number"));
    let project = TestProject::new();
    let opened = Project::open(&project.root).unwrap();
    (0..TASKS).for_each(|number| add(&opened, number, None));
    let mut server = Server::start(&project);
    let visitor = server.enter();
    let sent = Arc::new(AtomicU64::new(0));
    let writes: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let latencies: Arc<Mutex<Vec<Duration>>> = Arc::default();
    for number in 0..PAGES {
        let page = match number % 10 {
            0..6 => "live/board".to_owned(),
            6..8 => "live/tasks".to_owned(),
            8 => "live/agents".to_owned(),
            _ => format!("live/task/{}", name(number % TASKS)),
        };
        let stream = visitor.open(&page);
        let (sent, writes, latencies) = (Arc::clone(&sent), Arc::clone(&writes), Arc::clone(&latencies));
        let measured = (number == 0).then_some((writes, latencies));
        thread::spawn(move || read(stream, &sent, measured.as_ref()));
    }
    println!("{PAGES} open pages, {TASKS} tasks, 1,000 changes a minute, {seconds} s\n");
    change(&opened, &writes, WARM_UP);
    let (cpu, bytes, memory, began) =
        (cpu_ticks(server.child.0.id()), sent.load(Ordering::Relaxed), server.memory(), Instant::now());
    let half = Duration::from_secs(seconds) / 2;
    change(&opened, &writes, half);
    let middle = server.memory();
    change(&opened, &writes, half);
    let took = began.elapsed().as_secs_f64();
    // A tick is a hundredth of a second.
    let percent = (cpu_ticks(server.child.0.id()) - cpu) as f64 / took;
    let rate = (sent.load(Ordering::Relaxed) - bytes) as f64 / took / 1024.0;
    let changes = writes.lock().unwrap().len();
    println!("  changes                  {changes:>8}");
    println!("  CPU of the server        {percent:>8.1} % of one core (wanted: under 20 %)");
    println!("  sent to all pages        {rate:>8.0} KiB a second");
    println!(
        "  memory                   {memory:>8} KiB after {} s, {middle} KiB in the middle, {} KiB at the end",
        WARM_UP.as_secs(),
        server.memory()
    );
    let mut all = latencies.lock().unwrap().clone();
    all.sort_unstable();
    if let (Some(median), Some(last)) = (all.get(all.len() / 2), all.get(all.len() * 99 / 100)) {
        println!("  write to page            {median:>8.0?} median, {last:.0?} p99 (wanted: under 1 s)");
    }
    server.child.stop();
}

/// Changes one task after the other for that long.
fn change(project: &Project, writes: &Mutex<Vec<Instant>>, long: Duration) {
    let end = Instant::now() + long;
    let mut next = Instant::now();
    while Instant::now() < end {
        let number = writes.lock().unwrap().len();
        describe(project, number % TASKS, format!("Change {number} of it"));
        writes.lock().unwrap().push(Instant::now());
        next += PAUSE;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

type Measured = (Arc<Mutex<Vec<Instant>>>, Arc<Mutex<Vec<Duration>>>);

/// Reads what a page is sent; with `measured`, how long each change takes to arrive.
fn read(mut stream: TcpStream, sent: &AtomicU64, measured: Option<&Measured>) {
    let mut buffer = [0; 64 << 10];
    let mut newest = 0;
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        sent.fetch_add(count as u64, Ordering::Relaxed);
        let Some((writes, latencies)) = measured else { continue };
        let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
        let numbers =
            text.split("Change ").skip(1).filter_map(|part| part.split(' ').next()?.parse::<usize>().ok());
        let Some(last) = numbers.max().filter(|last| *last > newest) else { continue };
        newest = last;
        if let Some(written) = writes.lock().unwrap().get(last) {
            latencies.lock().unwrap().push(written.elapsed());
        }
    }
}

/// The server.
struct Server {
    child: Killed,
    address: String,
}

/// A browser's cookie.
struct Visitor {
    host: String,
    prefix: String,
    cookie: String,
}

impl Server {
    fn start(project: &TestProject) -> Self {
        let mut program = project.program();
        let mut child = program.arg("web").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child: Killed(child), address: address.trim().to_owned() }
    }

    fn enter(&self) -> Visitor {
        let (host, query) = self.address.trim_start_matches("http://").split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{query} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let header = |name: &str| {
            let line = answer.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split(';').next().unwrap().trim().to_owned()
        };
        Visitor { host: host.to_owned(), prefix: header("location:"), cookie: header("set-cookie:") }
    }

    /// KiB of memory.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Visitor {
    /// Follows a page.
    fn open(&self, page: &str) -> TcpStream {
        let Self { host, prefix, cookie } = self;
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET {prefix}{page} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n").unwrap();
        stream
    }
}
