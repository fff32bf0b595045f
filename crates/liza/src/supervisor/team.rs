//! The event loop: one for a whole team, a lone agent being a team of one.
//!
//! Waits for one event after the other, asks `liza_core::supervise` what to do, has it done. Decides nothing, and does
//! nothing itself that could take long.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Config, GoalStatus, Role, Seconds, State, StopFiles, Timestamp};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::project::{Project, now};
use crate::sys::family::kill_own_families;
use crate::sys::process::ignores_hangup;

use super::attendant::{Attendance, Attendant};
use super::by_hand::ByHand;
use super::errand::{self, Errand};
use super::event::{Event, Line, Seat, Weight};
use super::member::{End, Farewell, Member, Phase, Post};
use super::prepare::Who;
use super::registration::{Registered, register};
use super::trouble::Trouble;

/// How long the end of a supervisor waits for what is being done for an agent.
const ERRAND_GRACE: Duration = Duration::from_secs(10);

/// How long a team that a bare ABORT has ended waits for the blackboard to follow.
const FOLLOW_GRACE: Duration = Duration::from_secs(5);

/// How soon leases are renewed again after that has failed.
const BEAT_AGAIN: Duration = Duration::from_secs(2);

/// How a team runs.
pub struct Options {
    /// The program itself, which sessions call and which is their helper.
    pub liza: PathBuf,
    /// Whether agents wait on where a lone one would end.
    pub in_team: bool,
    /// Who looks on.
    pub attendants: Vec<Box<dyn Attendant>>,
    /// After how long everybody is to end, whatever they are at.
    pub limit: Option<Duration>,
}

impl Options {
    /// For a lone agent, without anybody who looks on.
    pub fn alone(liza: PathBuf) -> Self {
        Self { liza, in_team: false, attendants: Vec::new(), limit: None }
    }
}

/// A team at work.
pub(super) struct Team<'t> {
    pub(super) project: Project,
    pub(super) members: Vec<Member>,
    pub(super) sender: Sender<Event>,
    events: Receiver<Event>,
    liza: PathBuf,
    pub(super) in_team: bool,
    attendance: Attendance,
    tell: &'t dyn Fn(&Line),
    /// The blackboard as last read.
    pub(super) state: Arc<State>,
    pub(super) config: Arc<Config>,
    /// How many different ones were read.
    pub(super) editions: u64,
    /// The stop files as last seen.
    pub(super) halt: StopFiles,
    /// Whether any of these may have changed since.
    stale: bool,
    /// Whether the system tells when they change.
    watched: bool,
    /// How many errands have been done: what one agent was trying for, another may have now.
    pub(super) errands_done: u64,
    /// Whether it could be read just now.
    pub(super) readable: bool,
    /// When everybody is to end at the latest.
    end_at: Option<Instant>,
    /// Since when nobody is left.
    gone_since: Option<Instant>,
    /// Since when, and how urgently, everybody is to end.
    pub(super) stopping: Option<Instant>,
    pub(super) urgent: bool,
    next_beat: Instant,
    beating: bool,
    /// Whether the leases could not be renewed at the last try.
    unbeaten: bool,
    /// Whether PAUSE or CHECKPOINT has been told.
    pub(super) holding: bool,
    /// The last thing that was said of the whole team.
    said: String,
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
    let state = project.look()?;
    let config = state.board.config.ready().cloned().unwrap_or_default();
    let mut attendants = options.attendants;
    attendants.insert(0, Box::new(ByHand::new(project)));
    let mut team = Team {
        project: project.clone(),
        members: Vec::new(),
        attendance: Attendance::new(attendants, &sender),
        sender,
        events,
        liza: options.liza,
        in_team: options.in_team,
        tell,
        state,
        config: Arc::new(config),
        editions: 0,
        halt: project.halt(),
        stale: true,
        watched: false,
        errands_done: 0,
        readable: true,
        end_at: options.limit.map(|limit| Instant::now() + limit),
        gone_since: None,
        stopping: None,
        urgent: false,
        next_beat: Instant::now(),
        beating: false,
        unbeaten: false,
        holding: false,
        said: String::new(),
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
        let liza = self.liza.clone();
        let who = Who { seat, agent, generation, provider, interactive, liza };
        self.members.push(Member::new(who, post, life, now()));
        self.mutter(seat, format!("registered, generation {generation}"));
        self.send(seat, Errand::Begin { recover: seat == 0 });
        self.next_beat = Instant::now() + self.beat_interval();
        Ok(())
    }

    /// Makes changes of the blackboard events; where the system cannot watch, the poll interval has to do.
    fn watch(&mut self) {
        let Ok(watch) = self.project.store().watch() else { return };
        self.watched = true;
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
            if std::mem::take(&mut self.stale) {
                self.look();
            }
            self.mind_the_time();
            for seat in 0..self.members.len() {
                self.advance(seat);
            }
            self.beat();
            if self.is_stranded() {
                self.stopping = Some(Instant::now());
                self.say_all(Weight::Alert, "no planner is left and nobody has anything to do: stopping");
                continue;
            }
            if self.members.iter().all(Member::is_gone) && !self.must_follow_abort() {
                // Not before everybody is off the board: a test that is ended while its code reviewer is still there has
                // failed.
                if self.errands_are_over() {
                    kill_own_families();
                }
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
        self.halt = self.project.halt();
        match self.project.look() {
            Ok(state) => {
                self.config = Arc::new(state.board.config.ready().cloned().unwrap_or_default());
                // A person's edit has no revision of its own.
                self.editions += u64::from(!Arc::ptr_eq(&self.state, &state));
                self.state = state;
                if !self.readable {
                    self.readable = true;
                    self.say_all(Weight::News, "the blackboard can be read again");
                }
            }
            Err(error) => {
                if self.readable {
                    self.readable = false;
                    let text = format!("no agent is started until this is mended: {error}");
                    self.say_all(Weight::Alert, &text);
                }
            }
        }
        self.attendance.call(&self.state);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Changed | Event::Timer => self.stale = true,
            // What it did is a change of the blackboard, which is told by itself.
            Event::Session(seat, report) => self.reported(seat, report),
            Event::Done(seat, done) => {
                self.stale = true;
                self.errands_done += 1;
                self.done(seat, done);
            }
            Event::Beaten(beaten) => {
                self.stale = true;
                self.beating = false;
                match beaten {
                    // Should it fail again, that is news again.
                    Ok(()) if std::mem::take(&mut self.unbeaten) => self.said.clear(),
                    Ok(()) => {}
                    Err(trouble) => {
                        self.unbeaten = true;
                        self.next_beat = Instant::now() + BEAT_AGAIN;
                        self.say_all(Weight::Alert, &format!("the leases could not be renewed: {trouble}"));
                    }
                }
            }
            Event::Attended(lines) => lines.iter().for_each(|line| (self.tell)(line)),
            // A person before an interactive session means its program.
            Event::Signal { interrupt: true } if self.members.iter().any(Member::is_interactive) => {}
            Event::Signal { .. } => {
                self.urgent = self.stopping.is_some();
                self.stopping = self.stopping.or(Some(Instant::now()));
                let text = if self.urgent { "ending at once" } else { "stopping; once more ends it at once" };
                self.say_all(Weight::News, text);
            }
        }
    }

    /// Whether a bare ABORT has ended everybody before the blackboard could follow it. A file that stands for less than
    /// a moment is no word of a person's, so this takes a little.
    fn must_follow_abort(&mut self) -> bool {
        let open = self.state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::InProgress);
        if !self.halt.abort || !open {
            return false;
        }
        self.gone_since.get_or_insert_with(Instant::now).elapsed() < FOLLOW_GRACE
    }

    /// Ends everybody whose time is up.
    fn mind_the_time(&mut self) {
        if self.end_at.is_some_and(|end| Instant::now() >= end) {
            self.end_at = None;
            self.stopping = self.stopping.or(Some(Instant::now()));
            self.say_all(Weight::Alert, "time is up: stopping");
        }
    }

    /// Whether the planner came to grief and nobody has anything left to do: nothing would ever come.
    fn is_stranded(&self) -> bool {
        let lost = |member: &Member| matches!(member.phase, Phase::Gone(End::Trouble(_)));
        let mut planners = self.members.iter().filter(|member| member.post.role == Role::Planner);
        let waits = self.halt.pause || self.halt.checkpoint || !self.readable || self.stale;
        if !self.in_team || self.stopping.is_some() || waits || !planners.any(lost) {
            return false;
        }
        let sight = self.sight();
        let idle = self.members.iter().all(|member| member.is_gone() || member.is_at_rest(&sight));
        let ours = |agent: &AgentId| self.members.iter().any(|member| member.who.agent == *agent);
        let mut agents = self.state.board.agents.ready().into_iter().flatten();
        // Somebody in another terminal may plan, or bring something to review.
        idle && !agents.any(|(agent, entry)| !ours(agent) && entry.holds(now()))
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
        let config = &self.config;
        // A lease that is shorter than the interval would end before it is renewed.
        Duration::from_secs(config.heartbeat_interval.0.min(config.lease_duration.0 / 3).max(1))
    }

    /// How long to wait for an event.
    fn patience(&self) -> Duration {
        let wakes = self.members.iter().filter(|member| !member.is_gone()).filter_map(|member| member.wake);
        let stop = self.stopping.map(|since| since + ERRAND_GRACE);
        let beat = (!self.beating).then_some(self.next_beat);
        let stop = stop.filter(|time| *time > Instant::now());
        let soon = self.gone_since.map(|_| Instant::now() + Duration::from_millis(200));
        let first = wakes.chain(stop).chain(beat).chain(self.end_at).chain(soon).min();
        let wait = first.map(|time| time.saturating_duration_since(Instant::now()));
        let poll = (!self.watched).then_some(self.config.coder_poll_interval);
        no_longer_than(poll, wait.unwrap_or(Duration::from_secs(1)))
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

    /// Says what only somebody wants to know who looks closely.
    pub(super) fn mutter(&mut self, seat: Seat, text: impl Into<String>) {
        self.line(seat, Weight::Detail, text.into());
    }

    pub(super) fn say(&mut self, seat: Seat, text: impl Into<String>) {
        self.line(seat, Weight::News, text.into());
    }

    pub(super) fn alert(&mut self, seat: Seat, text: impl Into<String>) {
        self.line(seat, Weight::Alert, text.into());
    }

    fn line(&mut self, seat: Seat, weight: Weight, text: String) {
        let Some(member) = self.members.get_mut(seat) else { return };
        if member.said != text {
            (self.tell)(&Line { agent: Some(member.who.agent), text: text.clone(), weight });
            member.said = text;
        }
    }

    /// Says once what is true of everybody.
    pub(super) fn say_all(&mut self, weight: Weight, text: &str) {
        if self.said != text {
            text.clone_into(&mut self.said);
            let agent = self.members.first().filter(|_| !self.in_team).map(|member| member.who.agent);
            (self.tell)(&Line { agent, text: text.to_owned(), weight });
        }
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

/// How long to wait: where nobody tells of changes, no longer than the poll interval, whatever else there is to wait for.
fn no_longer_than(poll: Option<Seconds>, wait: Duration) -> Duration {
    let longest = poll.map_or(wait, |poll| Duration::from_secs(poll.0));
    wait.min(longest).max(Duration::from_millis(5))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AG-06, AG-07
    #[test]
    fn where_nobody_tells_of_changes_a_stop_file_is_seen_within_the_poll_interval() {
        let (hour, second) = (Duration::from_secs(3600), Duration::from_secs(1));
        assert_eq!(no_longer_than(None, hour), hour);
        assert_eq!(no_longer_than(Some(Seconds(30)), hour), Duration::from_secs(30));
        assert_eq!(no_longer_than(Some(Seconds(30)), second), second);
        assert!(no_longer_than(Some(Seconds(0)), hour) > Duration::ZERO, "it never spins");
    }
}
