//! The dice of agents. A die is named by its purpose and its number, so the same seed has the same task, fault and dice in
//! each arm, however many of them an arm uses.

/// The purpose of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Die {
    Task,
    Defective,
    Mutant,
    /// The program of the coder does not see the defect.
    Blind,
    /// Another program does not see it.
    BlindOther,
    /// The verdict of the code reviewer with this number.
    Review(u8),
    Repair,
    Harm,
}

impl Die {
    fn number(self) -> u64 {
        match self {
            Die::Task => 1,
            Die::Defective => 2,
            Die::Mutant => 3,
            Die::Blind => 4,
            Die::BlindOther => 5,
            Die::Repair => 6,
            Die::Harm => 7,
            Die::Review(slot) => 16 + u64::from(slot),
        }
    }
}

/// All dice of one pair.
#[derive(Debug, Clone, Copy)]
pub struct Dice {
    pub seed: u64,
}

impl Dice {
    /// A number from 0 to 1, the same for the same die and throw.
    pub fn roll(self, die: Die, throw: u32) -> f64 {
        let mixed = mix(mix(self.seed) ^ mix(die.number() << 32 | u64::from(throw)));
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of `length` places.
    pub fn pick(self, die: Die, throw: u32, length: usize) -> usize {
        ((self.roll(die, throw) * length as f64) as usize).min(length.saturating_sub(1))
    }
}

/// The mixing function of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-01
    #[test]
    fn a_die_is_fair_and_the_same_in_each_arm() {
        let dice = Dice { seed: 7 };
        assert_eq!(dice.roll(Die::Repair, 3), Dice { seed: 7 }.roll(Die::Repair, 3));
        assert_ne!(dice.roll(Die::Repair, 3), dice.roll(Die::Harm, 3));
        let mean = (0..10_000).map(|seed| Dice { seed }.roll(Die::Review(0), 1)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let below = (0..10_000).filter(|seed| Dice { seed: *seed }.pick(Die::Task, 0, 40) == 39).count();
        assert!((200..300).contains(&below), "{below}");
    }
}
