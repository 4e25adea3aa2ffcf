//! What is shown and what keys do, over real stores.

mod screens;
mod stage;
mod typed;
