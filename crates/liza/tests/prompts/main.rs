//! Prompts and contracts: what each agent is told, for every role, wake trigger and turn of events.

mod coder;
mod contracts;
mod fixture;
mod planner;
mod reviewer;
