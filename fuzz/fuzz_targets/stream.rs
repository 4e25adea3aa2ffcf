//! Every output of a program, cut at any points, gives the same screen, answers, recording and events.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/provost-terminal/tests/it/stream_law.rs"]
mod stream_law;

fuzz_target!(|input: &[u8]| stream_law::check(input));
