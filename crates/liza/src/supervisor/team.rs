//! The event loop: one for a whole team, a lone agent being a team of one.
//!
//! Waits for one event after the other, asks `liza_core::supervise` what to do, has it done. Decides nothing, and does
//! nothing itself that could take long.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::State;
use liza_core::config::Config;
use liza_core::time::{Seconds, Timestamp};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::project::{Project, now};
use crate::sys::process::ignores_hangup;

use super::errand::{self, Errand};
use super::event::{Event, Line, Seat};
use super::member::{End, Farewell, Member, Phase, Post};
use super::prepare::Who;
use super::registration::{Registered, register};
use super::trouble::Trouble;

/// How long the end of a supervisor waits for what is being done for an agent.
const ERRAND_GRACE: Duration = Duration::from_secs(10);

/// How soon leases are renewed again after that has failed.
const BEAT_AGAIN: Duration = Duration::from_secs(2);

/// How a team runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program itself, which sessions call and which is their helper.
    pub liza: PathBuf,
    /// Whether agents wait on where a lone one would end.
    pub in_team: bool,
}

/// A team at work.
pub(super) struct Team<'t> {
    pub(super) project: Project,
    pub(super) members: Vec<Member>,
    pub(super) sender: Sender<Event>,
    events: Receiver<Event>,
    pub(super) options: Options,
    tell: &'t dyn Fn(&Line),
    /// The blackboard as last read.
    pub(super) state: Arc<State>,
    /// Whether it could be read just now.
    pub(super) readable: bool,
    /// Since when, and how urgently, everybody is to end.
    pub(super) stopping: Option<Instant>,
    pub(super) urgent: bool,
    next_beat: Instant,
    beating: bool,
}

/// Supervises agents on these posts until all of them have ended.
///
/// # Errors
///
/// When one of them cannot be registered; those that were are off the board again.
pub fn run(
    project: &Project,
    posts: Vec<Post>,
    options: Options,
    tell: &dyn Fn(&Line),
) -> Result<Vec<Farewell>, Trouble> {
    let (sender, events) = channel();
    let signals = listen(sender.clone())?;
    let state = Arc::new(project.store().snapshot()?);
    let next_beat = Instant::now();
    let mut team = Team {
        project: project.clone(),
        members: Vec::new(),
        sender,
        events,
        options,
        tell,
        state,
        readable: true,
        stopping: None,
        urgent: false,
        next_beat,
        beating: false,
    };
    let enrolled = posts.into_iter().try_for_each(|post| team.enrol(post));
    if enrolled.is_err() {
        team.stopping = Some(Instant::now());
    }
    team.watch();
    team.serve();
    signals.close();
    enrolled.map(|()| team.farewells())
}

/// Makes signals to this process events.
fn listen(events: Sender<Event>) -> Result<Handle, Trouble> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    // Whoever started us with nohup wants us to outlive the terminal.
    if !ignores_hangup() {
        handle.add_signal(SIGHUP)?;
    }
    thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal { interrupt: signal == SIGINT }).is_err() {
                return;
            }
        }
    });
    Ok(handle)
}

impl Team<'_> {
    /// Registers one more agent.
    fn enrol(&mut self, post: Post) -> Result<(), Trouble> {
        let Registered { agent, generation, life } = register(&self.project, post.role, post.agent)?;
        let seat = self.members.len();
        let (provider, interactive) = (post.provider.clone(), post.interactive);
        let liza = self.options.liza.clone();
        let who = Who { seat, agent, generation, provider, interactive, liza };
        self.members.push(Member::new(who, post, life, now()));
        self.say(seat, format!("registered, generation {generation}"));
        self.send(seat, Errand::Begin { recover: seat == 0 });
        self.next_beat = Instant::now() + self.beat_interval();
        Ok(())
    }

    /// Makes changes of the blackboard events; where the system cannot watch, the poll interval has to do.
    fn watch(&self) {
        let Ok(watch) = self.project.store().watch() else { return };
        let events = self.sender.clone();
        thread::spawn(move || {
            loop {
                if watch.wait(Duration::from_secs(3600)) && events.send(Event::Changed).is_err() {
                    return;
                }
            }
        });
    }

    fn serve(&mut self) {
        loop {
            self.look();
            for seat in 0..self.members.len() {
                self.advance(seat);
            }
            self.beat();
            if self.members.iter().all(Member::is_gone) {
                return;
            }
            let event = self.events.recv_timeout(self.patience()).unwrap_or(Event::Timer);
            self.take(event);
            while let Ok(event) = self.events.try_recv() {
                self.take(event);
            }
        }
    }

    /// Reads the blackboard. One that cannot be read starts nobody, and ends nobody either.
    fn look(&mut self) {
        match self.project.store().snapshot() {
            Ok(state) => {
                self.state = Arc::new(state);
                if !self.readable {
                    self.readable = true;
                    self.say_all("the blackboard can be read again");
                }
            }
            Err(error) => {
                if self.readable {
                    self.readable = false;
                    self.alert_all(&format!("no agent is started until this is mended: {error}"));
                }
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            // The next round looks at everything anyway.
            Event::Changed | Event::Timer => {}
            Event::Session(seat, report) => self.reported(seat, report),
            Event::Done(seat, done) => self.done(seat, done),
            Event::Beaten(beaten) => {
                self.beating = false;
                if let Err(trouble) = beaten {
                    self.next_beat = Instant::now() + BEAT_AGAIN;
                    self.alert_all(&format!("the leases could not be renewed: {trouble}"));
                }
            }
            // A person before an interactive session means its program.
            Event::Signal { interrupt: true } if self.members.iter().any(Member::is_interactive) => {}
            Event::Signal { .. } => {
                self.urgent = self.stopping.is_some();
                self.stopping = self.stopping.or(Some(Instant::now()));
                self.say_all(if self.urgent { "ending at once" } else { "stopping" });
            }
        }
    }

    /// Renews all leases in one write when it is time.
    fn beat(&mut self) {
        if self.beating || Instant::now() < self.next_beat {
            return;
        }
        let here = self.members.iter().filter(|member| member.is_here()).map(|member| member.who.clone());
        let here: Vec<Who> = here.collect();
        self.next_beat = Instant::now() + self.beat_interval();
        if !here.is_empty() {
            self.beating = true;
            errand::beat(&self.project, &here, &self.sender);
        }
    }

    fn beat_interval(&self) -> Duration {
        let config = self.config();
        // A lease that is shorter than the interval would end before it is renewed.
        Duration::from_secs(config.heartbeat_interval.0.min(config.lease_duration.0 / 3).max(1))
    }

    pub(super) fn config(&self) -> Config {
        self.state.board.config.ready().cloned().unwrap_or_default()
    }

    /// How long to wait for an event.
    fn patience(&self) -> Duration {
        let wakes = self.members.iter().filter(|member| !member.is_gone()).filter_map(|member| member.wake);
        let stop = self.stopping.map(|since| since + ERRAND_GRACE);
        let beat = (!self.beating).then_some(self.next_beat);
        let first = wakes.chain(stop.filter(|time| *time > Instant::now())).chain(beat).min();
        let wait = first.map(|time| time.saturating_duration_since(Instant::now()));
        wait.unwrap_or(Duration::from_secs(1)).max(Duration::from_millis(5))
    }

    /// Has something done for an agent.
    pub(super) fn send(&mut self, seat: Seat, errand: Errand) {
        let Some(member) = self.members.get_mut(seat) else { return };
        member.wake = None;
        errand::send(&self.project, &member.who, &self.sender, errand);
    }

    /// Takes an agent off the board.
    pub(super) fn leave(&mut self, seat: Seat, end: End) {
        if let Some(member) = self.members.get_mut(seat) {
            member.phase = Phase::Leaving(end);
        }
        self.send(seat, Errand::Leave);
    }

    /// Whether what is being done for an agent has had its time to end.
    pub(super) fn errands_are_over(&self) -> bool {
        self.urgent || self.stopping.is_some_and(|since| since.elapsed() >= ERRAND_GRACE)
    }

    pub(super) fn say(&mut self, seat: Seat, text: impl Into<String>) {
        self.line(seat, text.into(), false);
    }

    pub(super) fn alert(&mut self, seat: Seat, text: impl Into<String>) {
        self.line(seat, text.into(), true);
    }

    fn line(&mut self, seat: Seat, text: String, alert: bool) {
        let Some(member) = self.members.get_mut(seat) else { return };
        if member.said != text {
            (self.tell)(&Line { agent: member.who.agent, text: text.clone(), alert });
            member.said = text;
        }
    }

    fn say_all(&mut self, text: &str) {
        (0..self.members.len()).for_each(|seat| self.say(seat, text));
    }

    fn alert_all(&mut self, text: &str) {
        (0..self.members.len()).for_each(|seat| self.alert(seat, text));
    }

    fn farewells(self) -> Vec<Farewell> {
        let farewell = |member: Member| match member.phase {
            Phase::Gone(end) | Phase::Leaving(end) => Farewell { agent: member.who.agent, end },
            Phase::Errand | Phase::Looking | Phase::Running(_) => {
                Farewell { agent: member.who.agent, end: End::Signalled }
            }
        };
        self.members.into_iter().map(farewell).collect()
    }
}

/// The moment at which a time of the blackboard has come.
pub(super) fn moment(time: Timestamp) -> Instant {
    let left = time.unix().saturating_mul(1000).saturating_sub(jiff::Timestamp::now().as_millisecond());
    Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0).saturating_add(1))
}

/// So many seconds from now.
pub(super) fn after(pause: Seconds) -> Instant {
    Instant::now() + Duration::from_secs(pause.0)
}
