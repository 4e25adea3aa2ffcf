//! Processes of a run can't act on runs, under any name and through any chain of processes.

use std::fs;

use crate::support::{Scene, json, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_provost");

/// A run whose agent's one command is `script`; `$P` is the program and `$S` the test's state folder.
fn runs(script: &str) -> Scene {
    let scene =
        Scene::scripted("answers: [{ tools: [{ shell: { command: sh try.sh } }] }, { text: done }]\n");
    let state = scene.path("state");
    let head = format!("P='{PROGRAM}'; S='{}'; export PROVOST_STATE_DIR=\"$S\"\n", state.display());
    scene.write("work/try.sh", &format!("{head}{script}"));
    scene
}

/// The command's output in `out`, after the run.
#[track_caller]
fn tried(script: &str) -> (Scene, String) {
    let scene = runs(script);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let out = fs::read_to_string(scene.path("work/out")).unwrap();
    (scene, out)
}

#[test]
fn every_command_that_acts_is_refused_and_names_the_run() {
    let commands = [
        "run x",
        "exec --unattended -- true",
        "resume last",
        "flow run flow.toml",
        "approve",
        "deny",
        "say last hello",
        "pause last",
        "cancel last",
        "attach last",
        "reprioritize last.0 high",
        "import run.jsonl",
        "trust --yes",
        "trust --revoke",
        "goal pause last",
        "goal resume last",
        "goal clear last",
        "models update table.json",
        "models check",
        "init --force",
        "services stop web",
    ];
    let script = commands.map(|command| format!("$P {command} >> out 2>&1; echo \"$?\" >> out\n")).concat();
    let (scene, out) = tried(&script);
    let run = scene.last_run();
    for command in commands {
        let is_argument = |word: &&str| {
            word.starts_with(['-', 'x']) || word.starts_with("last") || *word == "web" || word.contains('.')
        };
        let name = command.split(' ').take_while(|word| !is_argument(word)).collect::<Vec<_>>();
        let line = format!(
            "error: provost {}: this was started by run {run}, whose programs can't act on runs\n\
             hint: do it in a terminal of your own; ps, show and logs work here too\n2\n",
            name.join(" ")
        );
        assert!(out.contains(&line), "{line} isn't in {out}");
    }
    assert_eq!(out.matches("\n2\n").count(), commands.len(), "{out}");
    let runs = scene.provost(&["ps", "--all", "--json"]).stdout;
    assert_eq!(runs.lines().count(), 1, "{runs}");
}

/// The table would be stored in the folder that the variable names.
#[test]
fn models_are_not_updated_in_another_settings_folder_either() {
    let (scene, out) = tried(
        "echo '{}' > table.json\n\
         for folder in \"$PWD/elsewhere\" relative ''; do\n\
         XDG_CONFIG_HOME=$folder $P models update table.json >> out 2>&1; echo $? >> out\n\
         done\n",
    );
    assert_eq!(out.matches("whose programs can't act on runs").count(), 3, "{out}");
    assert_eq!(out.matches("\n2\n").count(), 3, "{out}");
    assert!(!scene.path("work/elsewhere").exists() && !scene.path("work/relative").exists());
}

#[test]
fn looking_stays_allowed() {
    let looks = [
        "ps",
        "show last",
        "logs last",
        "cost",
        "approvals",
        "explain last",
        "export last",
        "trust --list",
        "services",
    ];
    let script = looks.map(|look| format!("$P {look} > /dev/null 2>> out; echo \"$?\" >> out\n")).concat();
    let (_, out) = tried(&script);
    assert_eq!(out, "0\n".repeat(looks.len()));
}

/// The starting process can choose names and variables, but not the descent.
#[test]
fn no_other_name_environment_session_or_state_folder_hides_it() {
    let script = "cp $P helper; sync\n\
        ./helper say last a >> out 2>&1\n\
        ln -s $P other; ./other say last b >> out 2>&1\n\
        env -i ./helper say last c >> out 2>&1\n\
        setsid ./helper say last d >> out 2>&1\n\
        nohup ./helper say last e >> out 2>&1\n\
        (ulimit -Hx 1000 2>/dev/null; ./helper say last f >> out 2>&1)\n\
        mkdir elsewhere; PROVOST_STATE_DIR=$PWD/elsewhere ./helper run --model script:agent.yaml x >> out 2>&1\n\
        cp -r $S copied; PROVOST_STATE_DIR=$PWD/copied ./helper cancel last >> out 2>&1\n";
    let (scene, out) = tried(script);
    assert_eq!(out.matches("whose programs can't act on runs").count(), 8, "{out}");
    assert!(!scene.path("work/elsewhere/provost.db").exists());
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(!log.contains("user_message\",\"by\""), "{log}");
}

/// The process that started it has ended, and another one is its parent now.
#[cfg(target_os = "linux")]
#[test]
fn a_daemon_is_known_for_what_it_is() {
    let daemon = "cp $P helper\n\
        cat > daemon.sh <<'END'\n\
        while [ \"$(cut -d' ' -f4 /proc/$$/stat)\" = \"$1\" ]; do :; done\n\
        env -i PROVOST_STATE_DIR=$2 ./helper say last hello > daemon.out 2>&1; echo $? >> daemon.out\n\
        END\n\
        setsid sh -c 'setsid sh daemon.sh $$ \"$0\" & exit 0' $S\n\
        until grep -q '^[0-9]' daemon.out 2>/dev/null; do sleep 0.02; done; cp daemon.out out\n";
    let (scene, out) = tried(daemon);
    let run = scene.last_run();
    assert!(out.contains(&format!("this was started by run {run}, ")), "{out}");
    assert!(out.ends_with("\n2\n"), "{out}");
}

/// The administrator can remove a process's own mark; its ancestors still have theirs.
#[cfg(target_os = "linux")]
#[test]
fn a_mark_that_was_taken_off_is_seen_on_those_above() {
    let raised = "prlimit --locks=7:7 prlimit --locks=unlimited:unlimited true";
    let may_raise = std::process::Command::new("sh").args(["-c", raised]).status();
    if !may_raise.is_ok_and(|status| status.success()) {
        return;
    }
    let (_, out) = tried("prlimit --locks=unlimited:unlimited $P say last hello >> out 2>&1\n");
    assert!(out.contains("whose programs can't act on runs"), "{out}");
}

#[test]
fn hooks_and_what_they_start_are_held_too() {
    let scene = Scene::scripted("answers: [{ text: done }]\n");
    let hook = format!(
        "(PROVOST_STATE_DIR='{}' setsid '{PROGRAM}' cancel last; echo $?) > out 2>&1",
        scene.path("state").display()
    );
    let scene =
        scene.with_settings(&format!("[[stop_hooks]]\nname = \"end\"\ncommand = \"\"\"{hook}\"\"\"\n"));
    let ran = scene.trusted().provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
}

#[test]
fn an_external_agent_is_held_too() {
    let scene = Scene::new();
    let state = scene.path("state");
    scene.write(
        "work/try.sh",
        &format!("PROVOST_STATE_DIR='{}' '{PROGRAM}' run x > out 2>&1; echo $? >> out\n", state.display()),
    );
    let ran = scene.provost(&["exec", "--unattended", "--", "sh", "try.sh"]);
    let out = until("the program has tried", || fs::read_to_string(scene.path("work/out")).ok());
    let run = json(scene.provost(&["ps", "--json"]).stdout.trim())["run"].as_str().unwrap().to_owned();
    assert!(out.contains(&format!("provost run: this was started by run {run}, ")), "{out}\n{ran:?}");
    assert!(out.ends_with("\n2\n"), "{out}");
}

/// A run leaves no mark on the shell from which it was started.
#[test]
fn the_starter_of_the_run_acts_on_it_as_before() {
    let (scene, _) = tried("$P ps > out\n");
    let said = scene.provost(&["trust", "--yes"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
}

#[test]
fn a_list_of_runs_in_another_state_folder_names_the_run_that_it_was_started_by() {
    let (scene, out) = tried("env PROVOST_STATE_DIR=\"$PWD/other\" $P ps > out\n");
    let run = scene.last_run();
    let words = "no runs in the state folder that is set here; this was started by run";
    assert_eq!(out, format!("{words} {run}, which is in another one\n"));
}
