//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.
