//! Tests of the embedded home, through what it offers to others.

mod homes;
mod stores;
