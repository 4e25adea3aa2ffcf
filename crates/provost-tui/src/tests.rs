//! What is shown and what keys do, over real stores.

mod large;
mod panics;
mod screens;
mod stage;
mod typed;
