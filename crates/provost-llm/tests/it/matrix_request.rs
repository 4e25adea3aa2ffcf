//! Messages are sent back unchanged, in bytes that begin like those of the turn before.

use provost_event::{Block, Effort};
use provost_harness::{Part, Role, ToolChoice};
use provost_llm::ProviderModel;

use crate::matrix::*;
use crate::speaker::*;
use crate::support::Conversation;

for_every_provider! {
    what_was_said_goes_back_unchanged,
    a_request_begins_with_the_last_ones_bytes_up_to_the_end_of_its_messages,
    what_others_have_sealed_isnt_sent,
    a_calls_malformed_arguments_go_back_as_an_object,
}

/// The model's answer in turn `n`.
fn turn(n: usize) -> Spoken {
    let mut spoken = Spoken::everything();
    let calls = if n.is_multiple_of(2) { 1 } else { 2 };
    spoken.calls.truncate(calls);
    for (place, call) in spoken.calls.iter_mut().enumerate() {
        call.id = format!("call_{n}_{place}");
    }
    if let Some(thought) = &mut spoken.thought {
        thought.seal = format!("c2VhbA{n}+/==");
    }
    if n == 3 {
        spoken.text = Vec::new();
    }
    if n == 4 {
        spoken.thought = None;
    }
    spoken
}

/// Five turns, in which all tools return the turn's output.
async fn five_turns(speaker: &dyn Speaker) -> Scene {
    let replies = (1..=5).map(|n| whole(speaker, &speaker.events(&turn(n))));
    let mut scene = Scene::new(speaker, replies.collect::<Vec<_>>()).await;
    for n in 1..=5 {
        let answer = scene.ask().await.unwrap();
        scene.conversation.answered(&answer, &output(n));
        // The part that may change each turn.
        scene.conversation.output_tokens_max += 1;
        scene.conversation.effort = (n > 2).then_some(Effort::High);
        scene.conversation.tool_choice = if n == 2 { ToolChoice::None } else { ToolChoice::Auto };
    }
    scene
}

fn output(n: usize) -> String {
    format!("turn {n} found\n\"it\"")
}

/// The lines with each answer's seals first: some formats attach them to a call.
fn seals_first(lines: Vec<Line>) -> Vec<Line> {
    let is_of_model = |line: &Line| matches!(line, Line::Seal(_) | Line::Said(_) | Line::Call { .. });
    let mut groups =
        lines.chunk_by(|a, b| is_of_model(a) == is_of_model(b)).map(<[Line]>::to_vec).collect::<Vec<_>>();
    groups.iter_mut().for_each(|group| group.sort_by_key(|line| !matches!(line, Line::Seal(_))));
    groups.concat()
}

async fn what_was_said_goes_back_unchanged(speaker: &dyn Speaker) {
    let scene = five_turns(speaker).await;
    let mut expected = vec![Line::System("You are careful.".to_owned()), Line::Person("go".to_owned())];
    let asked = scene.server.seen().asked;
    for (n, asked) in (1..).zip(&asked) {
        assert_eq!(seals_first(speaker.read(&asked.json())), expected, "turn {n}");
        let spoken = turn(n);
        expected.extend(spoken.thought.iter().map(|thought| Line::Seal(thought.seal.clone())));
        expected.extend(spoken.lines());
        expected
            .extend(spoken.calls.iter().map(|call| Line::Result { id: call.id.clone(), output: output(n) }));
    }
    assert_eq!(asked.len(), 5);
}

async fn a_request_begins_with_the_last_ones_bytes_up_to_the_end_of_its_messages(speaker: &dyn Speaker) {
    let scene = five_turns(speaker).await;
    for (n, pair) in scene.server.seen().asked.windows(2).enumerate() {
        let (same, rest) = grown(&pair[0].body, &pair[1].body);
        let last = serde_json::to_string(&if n == 0 { "go".to_owned() } else { output(n) }).unwrap();
        let text = String::from_utf8_lossy(same);
        assert!(text.contains(&last[1..last.len() - 1]), "turn {n}: {text}");
        assert!(!String::from_utf8_lossy(rest).contains("role"), "turn {n}");
    }
}

async fn what_others_have_sealed_isnt_sent(speaker: &dyn Speaker) {
    for other in SPEAKERS.into_iter().filter(|other| other.wire() != speaker.wire()) {
        let there = five_turns(other).await;
        let here = Scene::new(speaker, [whole(speaker, &speaker.events(&Spoken::text(&["a"])))]).await;
        there.conversation.ask(&here.model).await.unwrap();
        let asked = here.server.seen().asked.remove(0);
        assert!(!String::from_utf8_lossy(&asked.body).contains("c2VhbA"), "{}", other.wire());
        let lines = speaker.read(&asked.json());
        let lines = lines.into_iter().filter(|line| !matches!(line, Line::Seal(_))).collect::<Vec<_>>();
        let mut expected = vec![Line::System("You are careful.".to_owned()), Line::Person("go".to_owned())];
        for n in 1..=5 {
            let spoken = turn(n);
            expected.extend(spoken.lines());
            expected.extend(
                spoken.calls.iter().map(|call| Line::Result { id: call.id.clone(), output: output(n) }),
            );
        }
        assert_eq!(lines, expected, "{}", other.wire());
    }
}

async fn a_calls_malformed_arguments_go_back_as_an_object(speaker: &dyn Speaker) {
    let server = Scene::new(speaker, [whole(speaker, &speaker.events(&Spoken::text(&["a"])))]).await;
    let mut conversation = Conversation::new("go");
    let answer = answer_of_anthropic(&Spoken {
        calls: vec![Called { id: "a".to_owned(), name: "shell".to_owned(), pieces: owned(&["{\"comm"]) }],
        ..Spoken::default()
    })
    .await;
    assert!(matches!(&answer[..], [Block::ToolCall(call)] if call.malformed.is_some()));
    let call = match &answer[0] {
        Block::ToolCall(call) => crate::support::result(&call.id, &call.name, "no object", true),
        other => panic!("{other:?}"),
    };
    conversation.push(Role::Assistant, answer.into_iter().map(Part::Block).collect());
    conversation.push(Role::User, vec![call]);
    let model: &ProviderModel = &server.model;
    conversation.ask(model).await.unwrap();
    let lines = speaker.read(&server.server.seen().asked[0].json());
    let arguments = serde_json::json!({});
    assert!(
        lines.contains(&Line::Call { id: "a".to_owned(), name: "shell".to_owned(), arguments }),
        "{lines:?}"
    );
}

/// Anthropic's model streams arguments piece by piece, so that they can be malformed.
async fn answer_of_anthropic(spoken: &Spoken) -> Vec<Block> {
    let scene = Scene::new(&Anthropic, [whole(&Anthropic, &Anthropic.events(spoken))]).await;
    scene.ask().await.unwrap().content
}
