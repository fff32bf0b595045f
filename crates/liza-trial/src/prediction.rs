//! The prediction of each arm: exact arithmetic over the rates, written from the rules on paper. It calls nothing of the core, so
//! that a fault of the rules and one of the prediction cannot be the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::arms::{Ablation, Arm, DEFECTIVE, HARM, REPAIR, Rates, Script, Setting};
use crate::mutants::Material;
use crate::work::fits;

/// The rejections after which a task is blocked.
const MAX_CYCLES: u8 = 5;
/// The claims of one coder after which a task is blocked.
const MAX_CLAIMS: u32 = 10;
/// The claims that the prediction follows without limits; later ones have no weight.
const HORIZON: u32 = 200;
/// A chance below this one is left out.
const NOTHING: f64 = 1e-15;

/// The expected part of pairs with each result, and the mean number of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Expected {
    pub merged: f64,
    /// Merged with a defect; for scripts about the protocol, the misbehaviour had its effect.
    pub escaped: f64,
    /// A rework has broken correct work.
    pub harmed: f64,
    /// Correct work that was blocked.
    pub false_block: f64,
    /// Waits for the human.
    pub asked: f64,
    pub unended: f64,
    pub sessions: f64,
}

impl Expected {
    fn add(&mut self, other: &Expected, weight: f64) {
        self.merged += weight * other.merged;
        self.escaped += weight * other.escaped;
        self.harmed += weight * other.harmed;
        self.false_block += weight * other.false_block;
        self.asked += weight * other.asked;
        self.unended += weight * other.unended;
        self.sessions += weight * other.sessions;
    }
}

/// A defect as far as its way depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    visible: bool,
    blind: [bool; 2],
    /// Tests deleted or skipped: two approvals are needed.
    raises: bool,
    gate: bool,
}

/// The state of a task between two submissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    defect: Option<Seen>,
    harmed: bool,
    cycles: u8,
    more_tests: bool,
    clash: bool,
    late: bool,
    /// The second reviewer has had a session, so its program is known.
    other_known: bool,
}

type Spread = BTreeMap<Place, f64>;

/// The chances of one task.
struct Chances {
    setting: Setting,
    /// The part of its mutants that visible tests kill.
    visible_part: f64,
}

/// The mean over all tasks on which the cell is possible.
pub fn predict(setting: &Setting, all: &[Material]) -> Expected {
    let fitting = all.iter().filter(|material| fits(material, setting.script));
    let budget = if setting.arm == Arm::SoloBudget { team_sessions(setting.rates, all) } else { 0 };
    // Tasks differ only by the part of their mutants that visible tests kill.
    let mut kinds: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for material in fitting {
        let part = material.visible_part();
        kinds.entry(part.to_bits()).or_insert((part, 0.0)).1 += 1.0;
    }
    let number: f64 = kinds.values().map(|(_, number)| number).sum();
    let mut mean = Expected::default();
    for (visible_part, tasks) in kinds.into_values() {
        let chances = Chances { setting: *setting, visible_part };
        let expected = if setting.arm.is_team() { chances.team() } else { chances.solo(budget) };
        mean.add(&expected, tasks / number);
    }
    mean
}

/// The sessions of the single agent with the team's budget: the mean of the team with gate and validation, rounded up.
pub fn team_sessions(rates: Rates, all: &[Material]) -> u32 {
    predict(&Setting::dice(Arm::Gate, rates), all).sessions.ceil() as u32
}

fn move_to(spread: &mut Spread, place: Place, weight: f64) {
    if weight > NOTHING {
        *spread.entry(place).or_default() += weight;
    }
}

impl Chances {
    /// All forms of a defect with their chances; `visible` is the chance that a visible test fails.
    fn defects(&self, visible: f64, raises: bool, gate: bool) -> Vec<(Seen, f64)> {
        let blindness = self.setting.rates.blindness;
        let both = |chance: f64| [(true, chance), (false, 1.0 - chance)];
        let mut all = Vec::new();
        for (visible, p) in both(visible) {
            for (one, q) in both(blindness) {
                for (other, r) in both(blindness) {
                    all.push((Seen { visible, blind: [one, other], raises, gate }, p * q * r));
                }
            }
        }
        all
    }

    fn start(&self) -> Spread {
        let mut spread = Spread::new();
        let (defective, visible) = match self.setting.script {
            None => (DEFECTIVE, self.visible_part),
            Some(Script::ClaimsUntested | Script::HalfFinishes) => (1.0, 1.0),
            Some(Script::ApprovesEverything) => (1.0, self.visible_part),
            Some(
                Script::WeakensTest
                | Script::DeletesTest
                | Script::SkipsTest
                | Script::ChangesGate
                | Script::OutsideScope
                | Script::ApprovesItself
                | Script::LateVerdict,
            ) => (1.0, 0.0),
            Some(
                Script::ForgetsCommit
                | Script::ForgesEvidence
                | Script::StaleBase
                | Script::CommitsAfterSubmission
                | Script::Hangs
                | Script::Loops,
            ) => (0.0, 0.0),
        };
        let script = self.setting.script;
        let raises = matches!(script, Some(Script::DeletesTest | Script::SkipsTest));
        let gate = script == Some(Script::ChangesGate);
        let clash = script == Some(Script::StaleBase);
        let late = script == Some(Script::CommitsAfterSubmission);
        let place = Place { clash, late, ..Place::default() };
        for (defect, chance) in self.defects(visible, raises, gate) {
            move_to(&mut spread, Place { defect: Some(defect), ..place }, defective * chance);
        }
        move_to(&mut spread, place, 1.0 - defective);
        spread
    }

    /// The places after a rework.
    fn rework(&self, place: Place) -> Vec<(Place, f64)> {
        let place = Place { late: false, ..place };
        match place.defect {
            Some(_) => vec![(Place { defect: None, ..place }, REPAIR), (place, 1.0 - REPAIR)],
            None => {
                let visible = if place.more_tests { 1.0 } else { self.visible_part };
                let harmed = self.defects(visible, false, false).into_iter();
                let place_of = |(defect, chance): (Seen, f64)| {
                    (Place { defect: Some(defect), harmed: true, ..place }, HARM * chance)
                };
                harmed.map(place_of).chain([(place, 1.0 - HARM)]).collect()
            }
        }
    }

    fn rejects(&self, place: Place, slot: u8) -> f64 {
        let (arm, rates) = (self.setting.arm, self.setting.rates);
        let stamps = self.setting.script == Some(Script::ApprovesEverything) && slot == 0;
        match place.defect {
            _ if arm == Arm::NoReview || stamps => 0.0,
            _ if arm == Arm::MutantReview => {
                f64::from(u8::from(self.visible_part < 1.0 && !place.more_tests))
            }
            Some(defect) if defect.blind[usize::from(arm.is_other_program(slot))] => 0.0,
            Some(_) => rates.catch,
            None => rates.false_alarm,
        }
    }

    fn team(&self) -> Expected {
        if let Some(expected) = self.protocol_script() {
            return expected;
        }
        let arm = self.setting.arm;
        let last = if arm.has_limits() { MAX_CLAIMS } else { HORIZON };
        let (mut expected, mut spread) = (Expected::default(), self.start());
        for claim in 1..=last {
            let mut next = Spread::new();
            for (place, weight) in spread {
                expected.sessions += weight;
                self.submission(place, weight, claim == last, &mut expected, &mut next);
            }
            spread = next;
        }
        expected
    }

    /// The way of one submission: validation, reviews, merge.
    fn submission(
        &self,
        place: Place,
        weight: f64,
        is_last: bool,
        expected: &mut Expected,
        next: &mut Spread,
    ) {
        let arm = self.setting.arm;
        if arm.has_gate() && place.defect.is_some_and(|defect| defect.visible) {
            return self.back(place, weight, is_last, expected, next);
        }
        let order: &[u8] = match arm.reviewers() {
            2 if arm == Arm::SecondOther && place.other_known => &[1, 0],
            2 => &[0, 1],
            _ => &[0],
        };
        let (mut place, mut weight) = (place, weight);
        for slot in order {
            expected.sessions += weight;
            place.other_known |= *slot == 1;
            let rejected = weight * self.rejects(place, *slot);
            let cycles = place.cycles + 1;
            if arm.has_limits() && cycles >= MAX_CYCLES {
                end_blocked(place, rejected, expected);
            } else {
                self.back(
                    Place { cycles: cycles.min(MAX_CYCLES), ..place },
                    rejected,
                    is_last,
                    expected,
                    next,
                );
            }
            weight -= rejected;
        }
        self.approved(place, weight, is_last, expected, next);
    }

    fn approved(&self, place: Place, weight: f64, is_last: bool, expected: &mut Expected, next: &mut Spread) {
        let arm = self.setting.arm;
        let ablated = |part: Ablation| self.setting.ablation == Some(part);
        let is_tested = arm.has_gate() && !ablated(Ablation::NoHeadTest);
        let needs_two = place.defect.is_some_and(|defect| defect.raises) && arm.reviewers() == 1;
        if needs_two || (arm.has_gate() && place.defect.is_some_and(|defect| defect.gate)) {
            expected.asked += weight;
            expected.harmed += weight * f64::from(u8::from(place.harmed));
        } else if place.clash && is_tested {
            let mended = Place { clash: false, ..place };
            match is_last {
                true => end_blocked(mended, weight, expected),
                false => move_to(next, mended, weight),
            }
        } else {
            let replaced = place.late && ablated(Ablation::NoCommitBinding);
            let escapes = place.defect.is_some() || place.clash || replaced;
            expected.merged += weight;
            expected.escaped += weight * f64::from(u8::from(escapes));
            expected.harmed += weight * f64::from(u8::from(place.harmed));
        }
    }

    /// The task goes back to its coder.
    fn back(&self, place: Place, weight: f64, is_last: bool, expected: &mut Expected, next: &mut Spread) {
        if is_last {
            return end_blocked(place, weight, expected);
        }
        if self.setting.arm == Arm::MutantReview && !place.more_tests && place.cycles > 0 {
            let seen = |defect: Seen| Seen { visible: true, ..defect };
            let place = Place { more_tests: true, defect: place.defect.map(seen), ..place };
            let repaired = if place.defect.is_some() { REPAIR } else { 0.0 };
            move_to(next, Place { defect: None, ..place }, weight * repaired);
            return move_to(next, place, weight * (1.0 - repaired));
        }
        for (place, chance) in self.rework(place) {
            move_to(next, place, weight * chance);
        }
    }

    /// Scripts that end by a rule of the protocol, not by a verdict.
    fn protocol_script(&self) -> Option<Expected> {
        let is_ablated = self.setting.ablation == Some(Ablation::NoFencing);
        let escaped = f64::from(u8::from(is_ablated));
        match self.setting.script? {
            Script::ForgesEvidence | Script::ApprovesItself | Script::LateVerdict | Script::Hangs => {
                Some(Expected { escaped, ..Expected::default() })
            }
            Script::Loops => Some(Expected { asked: 1.0, ..Expected::default() }),
            Script::ClaimsUntested
            | Script::WeakensTest
            | Script::DeletesTest
            | Script::SkipsTest
            | Script::ChangesGate
            | Script::HalfFinishes
            | Script::ForgetsCommit
            | Script::OutsideScope
            | Script::StaleBase
            | Script::CommitsAfterSubmission
            | Script::ApprovesEverything => None,
        }
    }

    fn solo(&self, budget: u32) -> Expected {
        match self.setting.script {
            Some(Script::Hangs | Script::Loops) => {
                return Expected { unended: 1.0, escaped: 1.0, sessions: 1.0, ..Expected::default() };
            }
            Some(Script::ForgetsCommit | Script::StaleBase) => {
                return Expected { merged: 1.0, escaped: 1.0, sessions: 1.0, ..Expected::default() };
            }
            Some(_) | None => {}
        }
        let (mut spread, mut used) = (self.start(), 1.0);
        for _ in 1..self.setting.arm.solo_sessions(budget) {
            let mut next = Spread::new();
            for (place, weight) in spread {
                used += weight * self.solo_session(place, weight, &mut next);
            }
            spread = next;
        }
        let part = |holds: fn(&Place) -> bool| {
            spread.iter().filter(|(place, _)| holds(place)).map(|(_, weight)| weight).sum()
        };
        let (escaped, harmed) = (part(|place| place.defect.is_some()), part(|place| place.harmed));
        Expected { merged: 1.0, escaped, harmed, sessions: used, ..Expected::default() }
    }

    /// A further session of a single agent; returns 1 if it takes place.
    fn solo_session(&self, place: Place, weight: f64, next: &mut Spread) -> f64 {
        let is_red = place.defect.is_some_and(|defect| defect.visible);
        let found = match self.setting.arm {
            _ if is_red => 1.0,
            Arm::SoloBudget => self.rejects(place, 0),
            Arm::Solo
            | Arm::SoloTests
            | Arm::NoReview
            | Arm::Review
            | Arm::Limits
            | Arm::Gate
            | Arm::SecondSame
            | Arm::SecondOther
            | Arm::MutantReview => 0.0,
        };
        for (place, chance) in self.rework(place) {
            move_to(next, place, weight * found * chance);
        }
        move_to(next, place, weight * (1.0 - found));
        if is_red || self.setting.arm == Arm::SoloBudget { 1.0 } else { 0.0 }
    }
}

fn end_blocked(place: Place, weight: f64, expected: &mut Expected) {
    expected.asked += weight;
    expected.harmed += weight * f64::from(u8::from(place.harmed));
    expected.false_block += weight * f64::from(u8::from(place.defect.is_none()));
}
