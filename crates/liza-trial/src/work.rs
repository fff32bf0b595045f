//! The content of a commit as the trial knows it, and a coder that works by dice.

use crate::arms::{DEFECTIVE, HARM, REPAIR, Rates, Script};
use crate::dice::{Dice, Die};
use crate::mutants::{Material, Mutant};

/// What is wrong with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The mutant of this number.
    Mutant(usize),
    TestWeakened,
    TestDeleted,
    TestSkipped,
    Gate,
    /// The function is missing.
    Half,
    NotCommitted,
    Scope,
    /// It does not fit to what was merged meanwhile.
    Clash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defect {
    pub flaw: Flaw,
    /// True if a visible test fails.
    pub is_visible: bool,
    /// True if a reviewer with the coder's program, or with another one, never sees it.
    pub blind: [bool; 2],
}

/// A commit: correct, or with a defect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    pub defect: Option<Defect>,
    /// True if the coder has added tests for all mutants that survived.
    pub has_more_tests: bool,
}

impl Content {
    pub fn is_red(&self) -> bool {
        self.defect.is_some_and(|defect| defect.is_visible)
    }

    /// True if a reviewer rejects it by this throw.
    pub fn is_rejected(&self, rates: Rates, other_program: bool, throw: f64) -> bool {
        match self.defect {
            Some(defect) => !defect.blind[usize::from(other_program)] && throw < rates.catch,
            None => throw < rates.false_alarm,
        }
    }
}

/// A coder that works by dice.
#[derive(Debug, Clone)]
pub struct Coder<'m> {
    pub dice: Dice,
    pub material: &'m Material,
    rates: Rates,
    reworks: u32,
    /// True if a rework has broken correct work.
    pub has_harmed: bool,
}

impl<'m> Coder<'m> {
    /// A coder with the task that the dice select among those on which the script is possible.
    pub fn new(dice: Dice, all: &'m [Material], rates: Rates, script: Option<Script>) -> Option<Self> {
        let fitting: Vec<&Material> = all.iter().filter(|material| fits(material, script)).collect();
        let material = *fitting.get(dice.pick(Die::Task, 0, fitting.len()))?;
        Some(Self { dice, material, rates, reworks: 0, has_harmed: false })
    }

    /// The first submission.
    pub fn first(&self, script: Option<Script>) -> Content {
        let defect = match script {
            None => {
                (self.dice.roll(Die::Defective, 0) < DEFECTIVE).then(|| self.mutant(0, |_| true)).flatten()
            }
            Some(script) => self.scripted(script),
        };
        Content { defect, has_more_tests: false }
    }

    /// The work after a rejection, a red test or a failed merge.
    pub fn rework(&mut self, content: Content) -> Content {
        self.reworks += 1;
        let throw = self.reworks;
        let defect = match content.defect {
            Some(defect) => (self.dice.roll(Die::Repair, throw) >= REPAIR).then_some(defect),
            None if self.dice.roll(Die::Harm, throw) < HARM => {
                self.has_harmed = true;
                self.mutant(throw, |_| true)
            }
            None => None,
        };
        self.with_tests(Content { defect, ..content })
    }

    /// The work after a reviewer has asked for tests that kill the surviving mutants: correct work stays so.
    pub fn add_tests(&mut self, content: Content) -> Content {
        self.reworks += 1;
        let is_repaired = self.dice.roll(Die::Repair, self.reworks) < REPAIR;
        self.with_tests(Content { defect: content.defect.filter(|_| !is_repaired), has_more_tests: true })
    }

    fn with_tests(&self, content: Content) -> Content {
        let seen =
            |defect: Defect| Defect { is_visible: defect.is_visible || content.has_more_tests, ..defect };
        Content { defect: content.defect.map(seen), ..content }
    }

    fn mutant(&self, throw: u32, wanted: impl Fn(&Mutant) -> bool) -> Option<Defect> {
        let fitting: Vec<&Mutant> = self.material.mutants.iter().filter(|mutant| wanted(mutant)).collect();
        let mutant = fitting.get(self.dice.pick(Die::Mutant, throw, fitting.len()))?;
        Some(self.defect(Flaw::Mutant(mutant.number), mutant.is_visible, throw))
    }

    fn defect(&self, flaw: Flaw, is_visible: bool, throw: u32) -> Defect {
        let is_blind = |die| self.dice.roll(die, throw) < self.rates.blindness;
        Defect { flaw, is_visible, blind: [is_blind(Die::Blind), is_blind(Die::BlindOther)] }
    }

    /// The content of the first commit under a script.
    fn scripted(&self, script: Script) -> Option<Defect> {
        let of = |flaw, is_visible| Some(self.defect(flaw, is_visible, 0));
        match script {
            Script::ClaimsUntested => self.mutant(0, |mutant| mutant.is_visible),
            Script::WeakensTest => of(Flaw::TestWeakened, false),
            Script::DeletesTest => of(Flaw::TestDeleted, false),
            Script::SkipsTest => of(Flaw::TestSkipped, false),
            Script::ChangesGate => of(Flaw::Gate, false),
            Script::HalfFinishes => of(Flaw::Half, true),
            Script::OutsideScope => of(Flaw::Scope, false),
            Script::ApprovesItself | Script::LateVerdict => self.mutant(0, |mutant| !mutant.is_visible),
            Script::ApprovesEverything => self.mutant(0, |_| true),
            Script::ForgetsCommit
            | Script::ForgesEvidence
            | Script::StaleBase
            | Script::CommitsAfterSubmission
            | Script::Hangs
            | Script::Loops => None,
        }
    }

    /// The commit that is made after the submission.
    pub fn late_commit(&self) -> Content {
        Content { defect: Some(self.defect(Flaw::Scope, false, 0)), has_more_tests: false }
    }
}

/// True if the script is possible on this task: it has the mutants that the script needs.
pub fn fits(material: &Material, script: Option<Script>) -> bool {
    match script {
        Some(Script::ClaimsUntested) => material.visible_part() > 0.0,
        Some(Script::ApprovesItself | Script::LateVerdict) => material.has_survivors(),
        Some(_) | None => true,
    }
}
