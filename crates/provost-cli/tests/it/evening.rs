//! An evening with `provost top` alone: what examples/evening leaves is found and settled by keys, which are counted.

use std::path::Path;
use std::process::Stdio;

use provost_event::Exit;

use crate::support::{Scene, done, until};
use crate::terminal::AtTerminal;

/// Keys besides the letters of messages.
const KEYS_MAX: usize = 30;

struct Evening<'a> {
    scene: &'a Scene,
    person: AtTerminal,
    keys: usize,
}

/// The beginning of a row's goal, which no other row has.
fn goal_in(row: &str) -> String {
    row.chars().skip(2).take(20).collect()
}

impl Evening<'_> {
    fn press(&mut self, keys: &str) {
        self.keys += keys.chars().count();
        self.person.types(keys);
    }

    /// Words of a message, which aren't counted.
    fn says(&mut self, words: &str) {
        self.person.types(words);
    }

    /// Moves down until this run is selected.
    #[track_caller]
    fn selects(&mut self, goal: &str) {
        let is_there = |screen: &str| screen.lines().any(|line| line.starts_with('▌') && line.contains(goal));
        until("the run is in the list", || {
            self.person.listen();
            self.person.screen().contains(goal).then_some(())
        });
        for _ in 0..20 {
            let before = self.person.screen();
            if is_there(&before) {
                return;
            }
            let row = |is: &dyn Fn(&str) -> bool| before.lines().position(is).unwrap_or_default();
            let is_below = row(&|line| line.contains(goal)) > row(&|line| line.starts_with('▌'));
            self.press(if is_below { "j" } else { "k" });
            // The rest of the screen changes by itself, each second.
            let selected = |screen: &str| screen.lines().find(|line| line.starts_with('▌')).map(goal_in);
            until("the selection has moved", || {
                self.person.listen();
                (selected(&self.person.screen()) != selected(&before)).then_some(())
            });
        }
        panic!("{goal} isn't reached:\n{}", self.person.screen());
    }

    /// Presses an answer as soon as the question has been in view for long enough.
    #[track_caller]
    fn answers(&mut self, question: &str, key: &str, shows: &str) {
        self.person.sees(question);
        // The time for which keys are dead; a person reads meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(600));
        self.press(key);
        self.person.sees(shows);
    }

    #[track_caller]
    fn reaches(&mut self, goal: &str, state: &str) {
        until(&format!("{goal} is {state}"), || {
            let listed = self.scene.provost(&["ps", "--all"]).stdout;
            listed.lines().any(|line| line.contains(goal) && line.contains(state)).then_some(())
        });
    }
}

#[test]
fn all_of_an_evening_is_found_and_settled_by_keys() {
    let scene = Scene::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evening/evening.sh");
    let mut setup = scene.command(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.arg(script).arg(scene.path("evening")).env_clear().current_dir(scene.path("work"));
    shell.envs(setup.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PROVOST", setup.get_program()).stdin(Stdio::null());
    let ready = done(&shell.output().unwrap());
    assert_eq!(ready.status, 0, "{ready:?}");
    setup.args(["top"]);
    let script = format!("exec '{}' top", setup.get_program().to_str().unwrap());
    let person = AtTerminal::with(&scene, &script, &[("LANG", "C.UTF-8")]);
    let mut evening = Evening { scene: &scene, person, keys: 0 };
    evening.person.sees("2 need you");
    // Two ask.
    evening.press("a");
    evening.answers("of 2", "a", "approved once");
    evening.answers("1 of 1", "d", "deny; why");
    evening.says("stay at Vite 7");
    evening.press("\r");
    evening.person.sees("Nothing waits for you.");
    evening.press("\u{1b}");
    // One is stuck, one has a check that fails.
    evening.person.sees("STUCK 2");
    for (goal, words) in
        [("Find out why the Windows build", "look at the console"), ("Bring the parser", "add the tests")]
    {
        evening.selects(goal);
        evening.press("p");
        evening.person.sees("resume with a message");
        evening.says(words);
        evening.press("\r");
        evening.reaches(goal, "completed");
    }
    // One has used up its budget, one is paused.
    evening.selects("Rotate the staging");
    evening.press("p");
    evening.person.sees("resume with this much more tokens");
    evening.says("100000");
    evening.press("\r");
    evening.reaches("Rotate the staging", "completed");
    evening.selects("Translate the handbook");
    evening.press("p");
    evening.person.sees("resume with a message");
    evening.press("\r");
    evening.reaches("Translate the handbook", "completed");
    // One waits for a provider that won't come.
    evening.selects("Replace the cron jobs");
    evening.press("x");
    evening.person.sees("Enter does it");
    evening.press("\r");
    evening.reaches("Replace the cron jobs", "cancelled");
    evening.person.sees("cancelled");
    for goal in ["Keep the ledger", "Upgrade the docs site"] {
        evening.reaches(goal, "completed");
    }
    until("nothing is left but what works and what is finished", || {
        evening.person.listen();
        let screen = evening.person.screen();
        let left = ["NEEDS YOU", "STUCK", "FAILED", "WAITING"];
        (!left.iter().any(|group| screen.contains(group))).then_some(())
    });
    println!("keys: {}", evening.keys);
    assert!(evening.keys <= KEYS_MAX, "{} keys", evening.keys);
    evening.press("q");
    assert_eq!(evening.person.end(), Exit::Code(0));
    for folder in ["atlas-api", "till", "infra"] {
        scene.write(&format!("evening/{folder}/stop"), "");
    }
    for goal in ["Port the importer", "Tidy the fixtures", "Triage the 14"] {
        evening.reaches(goal, "completed");
    }
}
