//! A program whose output ends with a failure has failed, whatever its exit status is.

use crate::support::{Done, Scene};

fn ran(scene: &Scene, args: &[&str]) -> Done {
    scene.provost(&[&["exec", "--unattended", "--unmetered"], args].concat())
}

/// Ends successfully after these words.
fn says(words: &str) -> Done {
    let scene = Scene::new();
    scene.write("work/words", words);
    ran(&scene, &["--", "sh", "-c", "cat words"])
}

#[test]
fn a_program_whose_output_ends_with_a_failure_has_failed() {
    let all = [
        ("Error: 401 Unauthorized: invalid api key\n", "401 Unauthorized"),
        ("Traceback (most recent call last):\n  File \"x\", line 1\nValueError: boom\n", "ValueError: boom"),
        ("thread 'main' panicked at src/main.rs:1: boom\n", "panicked"),
        (
            "error[E0425]: cannot find value\nerror: could not compile `x` (bin \"x\") due to 1 previous error\n",
            "could not compile",
        ),
        ("fatal: not a git repository (or any of the parent directories): .git\n", "not a git repository"),
        ("npm ERR! code ENOENT\nnpm ERR! syscall open\n", "npm ERR!"),
        ("You exceeded your current quota, please check your plan and billing details.\n", "quota"),
        ("Rate limit reached, try again in 20s\n", "Rate limit"),
        ("connect ECONNREFUSED 127.0.0.1:443\n", "ECONNREFUSED"),
        (
            "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}\n",
            "x-api-key",
        ),
        (
            "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'bad'}}\n",
            "AuthenticationError",
        ),
        ("╭────────╮\n│ ✕ API Error: 500 internal │\n╰────────╯\n", "API Error: 500"),
        ("Segmentation fault (core dumped)\n", "Segmentation fault"),
        ("bash: foo: command not found\n", "command not found"),
        ("Killed\n", "Killed"),
        ("Permission denied (publickey).\n", "Permission denied"),
        ("\x1b]7501;state=error;message=boom\x07", "boom"),
    ];
    for (words, part) in all {
        let done = says(words);
        assert_ne!(done.status, 0, "{words}: {done:?}");
        assert!(done.stderr.contains(part), "{words}: {done:?}");
        assert!(!done.stderr.contains("completed"), "{words}: {done:?}");
    }
}

#[test]
fn words_about_failures_that_are_no_failure_end_a_run_as_they_did() {
    for words in [
        "All done: 0 errors, error handling was improved.\n",
        "Fixed: Error: 401 Unauthorized in tests\nDone.\n",
        "Error: the first attempt\nThe second attempt worked.\n",
        "test result: ok. 12 passed; 0 failed; 0 ignored\n",
        "I explained the error to you.\n",
        "\x1b]7501;state=error;message=boom\x07\x1b]7501;state=done\x07All is well.\n",
        "",
    ] {
        let done = says(words);
        assert_eq!(done.status, 0, "{words}: {done:?}");
    }
}

#[test]
fn a_program_that_shows_a_failure_after_its_prompt_has_failed_on_it() {
    for end in ["sys.exit(0)", "input('> ')"] {
        let scene = Scene::new();
        let program = format!(
            "import sys\nprint('agent ready')\nline = input('> ')\nprint('working on', line)\n\
             print('Error: 401 Unauthorized: invalid api key')\n{end}\n"
        );
        scene.write("work/agent.py", &program);
        let done = ran(&scene, &["--prompt", "fix it", "--", "python3", "agent.py"]);
        assert_ne!(done.status, 0, "{end}: {done:?}");
        assert!(done.stderr.contains("401 Unauthorized"), "{end}: {done:?}");
    }
}
