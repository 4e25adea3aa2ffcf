//! Recordings in a folder of their own.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use provost_engine::Answer;
use provost_event::{DeltaKind, ModelFailure, ModelPolicy};
use provost_harness::{Model, Redactor};
use provost_llm::{RecordingModel, ReplayModel};
use secrecy::SecretString;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::scripted::script;
use crate::support::*;

/// A folder for recordings.
pub(crate) struct Tapes {
    pub(crate) folder: TempDir,
}

impl Tapes {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("run.jsonl")
    }

    /// Records a model's answers in this file.
    pub(crate) fn record(&self, model: impl Model + 'static) -> RecordingModel {
        self.record_as("demo", model)
    }

    pub(crate) fn record_as(&self, name: &str, model: impl Model + 'static) -> RecordingModel {
        let policy = ModelPolicy { window_tokens: Some(1000), images: true, ..ModelPolicy::new(name, 500) };
        let redactor = Redactor::new([SecretString::from(KEY)]);
        RecordingModel::new(self.file(), Arc::new(model), &policy, Arc::new(redactor))
    }

    /// Records a script.
    pub(crate) fn script(&self, text: &str) -> RecordingModel {
        self.record(script(text))
    }

    pub(crate) fn replay(&self) -> ReplayModel {
        ReplayModel::open(self.file()).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// An error's message, independent of the folder.
    pub(crate) fn words(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// The deltas of an answer, and its outcome.
pub(crate) type Told = (String, String, Result<Answer, ModelFailure>);

pub(crate) async fn hear(conversation: &Conversation, model: &dyn Model) -> Told {
    let heard = DeltaRecorder::default();
    let outcome = model.answer(conversation.request(), &heard, &CancellationToken::new()).await;
    (heard.text(DeltaKind::Thinking), heard.text(DeltaKind::Text), outcome)
}

/// Runs a conversation of this many answers; returns every call's outcome, including failures.
pub(crate) async fn converse(model: &dyn Model, agent: u32, answers: u32, output: &str) -> Vec<Told> {
    let mut conversation = Conversation::new("go");
    conversation.session.agent = agent;
    let mut all = Vec::new();
    while conversation.answers_before < answers {
        let heard = hear(&conversation, model).await;
        if let Ok(answer) = &heard.2 {
            conversation.answered(answer, output);
        }
        all.push(heard);
        assert!(all.len() < 20, "{all:?}");
    }
    all
}
