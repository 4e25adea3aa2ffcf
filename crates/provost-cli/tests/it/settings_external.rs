//! `[exec]`, `[terminal]` and `[[agents]]` of kind external: errors have their position.

use expect_test::expect;

use crate::settings_errors::check;
use crate::support::Scene;

#[test]
fn what_cant_be_of_programs() {
    check(
        "[exec]\nsize = \"80\"\nidle_time = 30\nrecord = \"no\"\nenv = [\"sk-1\"]\ndetach_key = \"ctrl-]\"\n\n[terminal]\nreports = \"off\"\n",
        expect![[r#"
            provost.toml:2:1: exec.size: must be rows and columns, each from 1 to 1000, such as 40x120 (is `80`); e.g. size = "50x160"
            provost.toml:3:1: exec.idle_time: must be a time with its unit, in quotes (is 30); e.g. idle_time = "10m"
            provost.toml:4:1: exec.record: must be true or false (is text); e.g. record = false
            provost.toml:5:8: exec.env: must be the name of an environment variable, not a key; e.g. env = ["OPENAI_API_KEY"]
            provost.toml:6:1: exec.detach_key: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml, or as PROVOST_EXEC_DETACH_KEY
            provost.toml:9:1: terminal.reports: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml, or as PROVOST_TERMINAL_REPORTS
        "#]],
    );
}

#[test]
fn fields_that_dont_go_with_the_kind_of_an_agent() {
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\nprogram = \"codex\"\nsize = \"40x120\"\n\n\
         [[agents]]\nkind = \"external\"\nname = \"z\"\ndescription = \"y\"\nmodel = \"a/b\"\ntools = []\n\n\
         [[agents]]\nkind = \"other\"\nname = \"w\"\ndescription = \"y\"\nchannel = \"phone\"\n",
        expect![[r#"
            provost.toml:4:1: agents.program: belongs to an agent of kind = "external"; say so, or leave it out
            provost.toml:5:1: agents.size: belongs to an agent of kind = "external"; say so, or leave it out
            provost.toml:11:1: agents.model: an external agent is a program that has this of its own; leave it out, or give it to the program in `args`
            provost.toml:12:1: agents.tools: an external agent is a program that has this of its own; leave it out, or give it to the program in `args`
            provost.toml:8:1: agents.kind: an external agent needs the program that it is; e.g. program = "codex"
            provost.toml:15:1: agents.kind: must be one of native, external (is `other`); e.g. kind = "external"
            provost.toml:18:1: agents.channel: must be one of auto, terminal, structured (is `phone`); e.g. channel = "terminal"
        "#]],
    );
}

#[test]
fn a_profile_that_isnt_there_and_money_that_cant_bind() {
    check(
        "[budget]\nusd = 1\n\n[[agents]]\nkind = \"external\"\nname = \"x\"\ndescription = \"y\"\nprogram = \"codex\"\nprofile = \"codx\"\n",
        expect![[r#"
            provost.toml:9:1: agents.profile: there is no profile `codx`; did you mean `codex`?
            default: agent.model: the model `anthropic/claude-opus-5-5` needs a key: set ANTHROPIC_API_KEY
        "#]],
    );
}

#[test]
fn a_projects_file_cannot_take_programs_past_the_gateway() {
    let scene = Scene::new();
    scene.write("work/provost.toml", "[exec]\nunmetered = true\n");
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    let words = "error: provost.toml:2:1: exec.unmetered: a project's file may not set this";
    assert!(checked.stdout.contains(words), "{checked:?}");
}
