//! What each wire format is sent, as a model reads it: stored whole, so that a change of a prompt shows.
//!
//! `UPDATE_EXPECT=1` writes `requests/*.txt` anew. A request is stored as far as it differs from the one before it of
//! the same run; the test checks that what was there before is unchanged, which providers' caches need.

mod answers;
mod readable;

use std::path::PathBuf;

use expect_test::expect_file;
use serde_json::Value;

use self::answers::{Answer, AnswerFormat};
use self::readable::{Readable, tokens};
use crate::model_server::ModelServer;
use crate::support::{Done, Scene, done, json};

/// A model whose requests are stored.
struct ShownModel {
    name: &'static str,
    key: &'static str,
    format: AnswerFormat,
    /// The member of a request with its messages.
    messages: &'static str,
    /// Behind the server's address.
    path: &'static str,
}

const CLAUDE: ShownModel = ShownModel {
    name: "anthropic/claude-opus-5-5",
    key: "ANTHROPIC_API_KEY",
    format: AnswerFormat::Anthropic,
    messages: "messages",
    path: "",
};
const GPT: ShownModel = ShownModel {
    name: "openai/gpt-6.1-sol",
    key: "OPENAI_API_KEY",
    format: AnswerFormat::Responses,
    messages: "input",
    path: "/v1",
};
const GEMINI: ShownModel = ShownModel {
    name: "gemini/gemini-4-argon",
    key: "GEMINI_API_KEY",
    format: AnswerFormat::Gemini,
    messages: "contents",
    path: "",
};
const OPENROUTER: ShownModel = ShownModel {
    name: "openrouter/qwen/qwen4-coder",
    key: "OPENROUTER_API_KEY",
    format: AnswerFormat::Chat,
    messages: "messages",
    path: "/v1",
};
const LOCAL: ShownModel = ShownModel {
    name: "ollama/qwen3-coder:30b",
    key: "OLLAMA_API_KEY",
    format: AnswerFormat::Chat,
    messages: "messages",
    path: "/v1",
};

const GOAL: &str = "Add the line `two` to notes.txt.";

impl ShownModel {
    fn answers(&self, answers: &[Answer<'_>]) -> Vec<String> {
        answers.iter().map(|answer| self.format.stream(answer)).collect()
    }

    /// The bodies of the requests of a run.
    fn requests(&self, answers: &[Answer<'_>], settings: &str, args: &[&str]) -> (Scene, Vec<Value>) {
        let server = ModelServer::plain(self.answers(answers));
        let scene = Scene::new();
        scene.write("work/notes.txt", "one\n");
        scene.write("work/AGENTS.md", "Keep lines short.\n");
        let (provider, _) = self.name.split_once('/').unwrap();
        let base = format!("http://127.0.0.1:{}{}", server.port, self.path);
        let config = format!(
            "[agent]\nmodel = \"{0}\"\n[budget]\nusd = 5\n[permissions]\ndefault = \"allow\"\n\
             [providers.{provider}]\nbase_url = \"{base}\"\n\
             [models.\"{0}\"]\nwindow_tokens = 60_000\ninput_usd = 1\noutput_usd = 2\n{settings}",
            self.name
        );
        scene.write("home/.config/provost/config.toml", &config);
        let mut command = scene.command(args);
        command.env(self.key, "sk-not-a-key");
        let ran: Done = done(&command.output().unwrap());
        let requests = server.requests();
        let bodies = requests.iter().map(|request| json(request.split_once("\r\n\r\n").unwrap().1));
        let bodies = bodies.collect::<Vec<_>>();
        assert!(!bodies.is_empty(), "{ran:?}");
        (scene, bodies)
    }

    #[track_caller]
    fn check(&self, file: &str) {
        let mut page = format!("Requests to {}\n", self.name);
        let write = r#"{"path":"notes.txt","content":"one\ntwo\n"}"#;
        let call = Answer::Call { tool: "write_file", arguments: write };
        let done = Answer::Text("The line is there.\n\nVERDICT: PASS");
        let (scene, turns) = self.requests(&[call, done, done], "", &["run", GOAL, "--max-turns", "4"]);
        assert_eq!(turns.len(), 3, "{}", self.name);
        let mut shown = Readable::new(&scene, self.messages);
        for (title, body) in
            ["first turn", "mid-run, with reminders of limits", "final check"].iter().zip(&turns)
        {
            page.push_str(&shown.section(title, body));
        }

        let verdict = r#"{"achieved":true,"reasoning":"It has two lines.","confidence":1}"#;
        let judged = [call, done, Answer::Text(verdict)];
        let args = ["run", GOAL, "--goal", "notes.txt has two lines", "--judge", self.name];
        let (scene, asked) = self.requests(&judged, "", &args);
        page.push_str(&Readable::new(&scene, self.messages).section("a judge", &asked[2]));

        let look = Answer::Call { tool: "shell", arguments: r#"{"command":"seq 3000"}"# };
        let full = Answer::Full { tool: "read_file", arguments: r#"{"path":"notes.txt"}"# };
        let summary = Answer::Text("Looked around; the line is not written yet.");
        let long = [look, look, look, look, full, summary, done];
        let (scene, filled) = self.requests(&long, "", &["run", GOAL]);
        let mut grown = Readable::new(&scene, self.messages);
        for body in &filled[..5] {
            grown.section("not stored", body);
        }
        page.push_str(&Readable::new(&scene, self.messages).section("a summary", &filled[5]));
        let path = PathBuf::from(format!("requests/{file}.txt"));
        expect_file![path].assert_eq(&page);
    }
}

#[test]
fn requests_to_claude_are_as_stored() {
    CLAUDE.check("claude");
}

#[test]
fn requests_to_gpt_are_as_stored() {
    GPT.check("gpt");
}

#[test]
fn requests_to_gemini_are_as_stored() {
    GEMINI.check("gemini");
}

#[test]
fn requests_to_a_model_behind_openrouter_are_as_stored() {
    OPENROUTER.check("openrouter");
}

#[test]
fn requests_to_a_local_model_are_as_stored() {
    LOCAL.check("local");
}

/// Each skill and each byte of rules costs tokens in every request: this is what an agent begins with.
#[test]
fn the_first_request_stays_small() {
    let (scene, bodies) = CLAUDE.requests(&[Answer::Text("VERDICT: FAIL")], "", &["run", GOAL]);
    let text = Readable::new(&scene, CLAUDE.messages).section("first turn", &bodies[0]);
    let count = tokens(&bodies[0].to_string());
    assert!(count < 5_000, "{count} tokens: {text}");
}
