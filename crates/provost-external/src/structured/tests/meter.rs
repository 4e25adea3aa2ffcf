//! What is charged of what programs report.

use provost_event::{MicroDollars, Usage};

use super::super::meter::Meter;
use super::super::stream_item::{Cost, Used};

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

#[test]
fn each_token_is_charged_once_whatever_the_figures_count() {
    let mut meter = Meter::from(tokens(300, 60), MicroDollars(0));
    // Per session: earlier usage is already charged.
    meter.begin();
    meter.count(Used::Session(tokens(400, 80)));
    assert_eq!(meter.charge(), (tokens(100, 20), None));
    assert_eq!(meter.charge(), (tokens(0, 0), None));
    // Per call, and then for the whole prompt.
    meter.begin();
    meter.count(Used::Call(tokens(10, 1)));
    assert_eq!(meter.charge().0, tokens(10, 1));
    meter.count(Used::Call(tokens(20, 2)));
    meter.count(Used::Prompt(tokens(35, 3)));
    assert_eq!(meter.charge().0, tokens(25, 2));
    // The next prompt's figures begin anew.
    meter.begin();
    meter.count(Used::Prompt(tokens(35, 3)));
    assert_eq!(meter.charge().0, tokens(35, 3));
}

#[test]
fn money_is_charged_once_and_a_report_without_it_is_not_believed() {
    let mut meter = Meter::from(Usage::default(), MicroDollars(500));
    meter.pay(Cost::Process(MicroDollars(0)));
    assert_eq!(meter.charge().1, None);
    meter.pay(Cost::Process(MicroDollars(200)));
    assert_eq!(meter.charge().1, Some(MicroDollars(200)));
    meter.pay(Cost::Process(MicroDollars(250)));
    assert_eq!(meter.charge().1, Some(MicroDollars(50)));
    assert_eq!(meter.charge().1, Some(MicroDollars(0)));
    meter.forget_process();
    meter.pay(Cost::Process(MicroDollars(30)));
    meter.pay(Cost::Session(MicroDollars(560)));
    assert_eq!(meter.charge().1, Some(MicroDollars(90)));
}
