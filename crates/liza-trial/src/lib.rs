//! `liza trial`: does supervision pay? Agents are dice with known rates, so the expected result of each arm is arithmetic. The
//! real rules of the core run beside the prediction, and a difference between them is a fault of the machine.
//!
//! No IO, no clock: a seed is the only input. Nothing here says how good models are.

#![forbid(unsafe_code)]

pub mod arms;
mod board;
pub mod chart;
pub mod corpus;
pub mod dice;
pub mod drill;
mod facts;
pub mod fresh;
mod judging;
pub mod model_trial;
pub mod mutants;
mod oracles;
pub mod outcome;
pub mod prediction;
pub mod scorecard;
mod solo;
pub mod statistics;
pub mod table;
mod team;
pub mod trial;
pub mod work;
