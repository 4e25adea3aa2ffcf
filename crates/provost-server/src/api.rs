//! The routes under `/v1`, and what the OpenAPI document says of them.

mod actions;
mod approvals;
mod document;
mod events;
mod extract;
mod runs;
mod terminals;
mod work;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::routing::{MethodRouter, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::metrics::metrics;
use crate::problem::Problem;
use crate::terminal::cells::ScreenView;
use crate::terminal::recordings::{RecordedScreen, RecordingView};
use document::{Answer, Document, Operation};
pub(crate) use events::{EventStream, stream};
use provost_harness::{ForkRun, ResumeRun, StartRun};
use provost_view::explain::RunExplanation;
use provost_view::{
    AgentGoal, AgentTimeline, Approval, ConversationView, GroupedRuns, RunChanges, RunDetails, RunTree,
    SpendCurve, Spending, ViewVersion,
};
pub(crate) use runs::changes_of;
pub(crate) use terminals::{all_recordings, recorded};

/// Bytes of a request's body.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// The answer to a request that has changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Done {
    /// The version of the view.
    pub(crate) v: ViewVersion,
    /// Always true: what changes nothing is a conflict.
    pub(crate) changed: bool,
}

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NoParameters {}

/// Routes, each declared once: for the router and for the document.
pub(crate) struct Routes {
    router: Router<Arc<App>>,
    document: Document,
}

impl Routes {
    fn new() -> Self {
        Self { router: Router::new(), document: Document::default() }
    }

    /// A route that reads.
    fn reads<Q: JsonSchema, A: JsonSchema>(
        self,
        path: &str,
        says: &str,
        route: MethodRouter<Arc<App>>,
    ) -> Self {
        let answer = Answer::json::<A>();
        self.add(Operation::get::<Q>(path, says, answer), route)
    }

    /// A route that streams events, whose data are `A` each.
    fn streams<Q: JsonSchema, A: JsonSchema>(
        self,
        path: &str,
        says: &str,
        route: MethodRouter<Arc<App>>,
    ) -> Self {
        let operation = Operation::get::<Q>(path, says, Answer::events::<A>());
        self.add(operation.with_headers(events::HEADERS), route)
    }

    /// A route that becomes a WebSocket, over which the server sends `A` and a client `B`.
    fn attaches<Q: JsonSchema, A: JsonSchema, B: JsonSchema>(
        self,
        path: &str,
        says: &str,
        route: MethodRouter<Arc<App>>,
    ) -> Self {
        self.add(Operation::get::<Q>(path, says, Answer::socket::<A, B>()), route)
    }

    /// A route that changes something.
    fn acts<B: JsonSchema>(self, path: &str, says: &str, route: MethodRouter<Arc<App>>) -> Self {
        self.gives::<B, Done>(path, says, route)
    }

    /// A route that makes something, and gives it.
    fn gives<B: JsonSchema, A: JsonSchema>(
        self,
        path: &str,
        says: &str,
        route: MethodRouter<Arc<App>>,
    ) -> Self {
        self.add(Operation::post::<B>(path, says, Answer::json::<A>()), route)
    }

    /// A route that starts a run.
    fn creates<B: JsonSchema>(self, path: &str, says: &str, route: MethodRouter<Arc<App>>) -> Self {
        self.add(Operation::create::<B>(path, says, Answer::json::<work::Started>()), route)
    }

    fn add(mut self, operation: Operation, route: MethodRouter<Arc<App>>) -> Self {
        // Routes of one path are given one by one.
        let router = self.router.route(&operation.path, route);
        self.document.add(operation);
        Self { router, document: self.document }
    }
}

fn declared() -> Routes {
    let routes = starting(terminals_of(acting(reading(Routes::new()))));
    let routes = routes.gives::<actions::NothingMore, actions::IssuedLink>(
        "/v1/links",
        "Creates a link that signs one browser in",
        post(actions::link),
    );
    routes.reads::<NoParameters, Vec<Approval>>(
        "/v1/approvals",
        "Lists the questions that wait for an answer",
        get(approvals::list),
    )
}

/// What looks at runs.
fn reading(routes: Routes) -> Routes {
    routes
        .reads::<runs::ListParameters, runs::RunsPage>("/v1/runs", "Lists runs, the newest first", get(runs::list))
        .reads::<NoParameters, GroupedRuns>("/v1/groups", "Lists runs in groups by what they need", get(runs::groups))
        .streams::<NoParameters, GroupedRuns>("/v1/events", "Streams the groups of runs whenever they change", get(events::groups))
        .reads::<NoParameters, RunDetails>("/v1/runs/{run}", "Reads a run with its agents", get(runs::details))
        .reads::<runs::EntriesParameters, runs::EntriesPage>(
            "/v1/runs/{run}/entries",
            "Reads entries of one of a run's logs",
            get(runs::entries),
        )
        .streams::<events::Parameters, provost_view::LogEntry>(
            "/v1/runs/{run}/events",
            "Streams the entries of all logs of a run in the order in which they were committed; goes on after Last-Event-ID",
            get(events::run),
        )
        .reads::<runs::TimelineParameters, AgentTimeline>("/v1/runs/{run}/timeline", "Reads what an agent did, turn by turn", get(runs::timeline))
        .reads::<runs::AgentParameters, ConversationView>("/v1/runs/{run}/conversation", "Reads what an agent's model sees", get(runs::conversation))
        .reads::<NoParameters, RunTree>("/v1/runs/{run}/tree", "Reads the agents of a run and the steps of its workflow", get(runs::tree))
        .reads::<runs::AgentParameters, AgentGoal>("/v1/runs/{run}/goal", "Reads what judges verify of an agent, and their verdicts", get(runs::goal))
        .reads::<NoParameters, Spending>("/v1/runs/{run}/spend", "Reads what was spent, by agent and model", get(runs::spend))
        .reads::<NoParameters, RunExplanation>("/v1/runs/{run}/explain", "Reads which limits, hooks and rules took effect", get(runs::explain))
        .reads::<runs::AgentParameters, RunChanges>("/v1/runs/{run}/changes", "Reads what was changed in a workspace", get(runs::changes))
}

/// What acts on runs.
fn acting(routes: Routes) -> Routes {
    routes
        .acts::<actions::Say>("/v1/runs/{run}/say", "Sends a message to an agent", post(actions::say))
        .acts::<actions::WholeOrAgent>(
            "/v1/runs/{run}/pause",
            "Suspends a run, or an agent",
            post(actions::pause),
        )
        .acts::<actions::WholeOrAgent>(
            "/v1/runs/{run}/cancel",
            "Cancels a run, or an agent",
            post(actions::cancel),
        )
        .acts::<actions::Reprioritize>(
            "/v1/runs/{run}/reprioritize",
            "Changes the priority of an agent",
            post(actions::reprioritize),
        )
        .acts::<actions::OneAgent>(
            "/v1/runs/{run}/clear-goal",
            "Clears the goal of an agent",
            post(actions::clear_goal),
        )
        .reads::<NoParameters, approvals::AskedQuestion>(
            "/v1/runs/{run}/approvals/{agent}/{asked}",
            "Reads the question that an entry of an agent's log asked, with its answer",
            get(approvals::one),
        )
        .acts::<approvals::GivenAnswer>(
            "/v1/runs/{run}/approvals/{agent}/{asked}",
            "Answers the question that an entry of an agent's log asked",
            post(approvals::answer),
        )
}

/// What concerns terminals, and what was spent over time.
fn terminals_of(routes: Routes) -> Routes {
    routes
        .reads::<runs::AgentParameters, ScreenView>(
            "/v1/runs/{run}/terminal",
            "Reads the screen of an external agent's terminal",
            get(terminals::screen),
        )
        .acts::<terminals::TypedInput>(
            "/v1/runs/{run}/terminal/input",
            "Types into the terminal of an external agent",
            post(terminals::input),
        )
        .attaches::<terminals::AttachParameters, terminals::FromTerminal, terminals::ToTerminal>(
            "/v1/runs/{run}/terminal/attach",
            "Attaches to the terminal of an external agent, by a WebSocket",
            get(terminals::attach),
        )
        .reads::<runs::AgentParameters, Vec<RecordingView>>(
            "/v1/runs/{run}/recordings",
            "Lists the recordings of an external agent's terminal",
            get(terminals::list),
        )
        .reads::<terminals::MomentParameters, RecordedScreen>(
            "/v1/runs/{run}/recordings/{number}",
            "Reads the screen at a moment of a recording",
            get(terminals::moment),
        )
        .reads::<NoParameters, SpendCurve>(
            "/v1/runs/{run}/spend-curve",
            "Reads what was spent over time, by model",
            get(runs::spend_curve),
        )
}

/// What has runs worked on.
fn starting(routes: Routes) -> Routes {
    routes
        .creates::<StartRun>("/v1/runs", "Starts a run, in a process of its own", post(work::start))
        .creates::<ForkRun>(
            "/v1/runs/{run}/fork",
            "Starts a run from another's conversation up to an entry",
            post(work::fork),
        )
        .acts::<ResumeRun>(
            "/v1/runs/{run}/resume",
            "Resumes a run, in a process of its own",
            post(work::resume),
        )
}

/// All routes for programs.
pub(crate) fn routes() -> Router<Arc<App>> {
    declared()
        .router
        .route("/v1/openapi.json", get(async || axum::Json(openapi())))
        .route("/metrics", get(metrics))
}

/// The OpenAPI document of the routes under `/v1`.
#[must_use]
pub fn openapi() -> serde_json::Value {
    declared().document.json()
}

pub(crate) async fn no_such_route(uri: Uri) -> Problem {
    Problem::not_found(format!("there is no {}; /v1/openapi.json describes what there is", uri.path()))
}

pub(crate) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        axum::http::StatusCode::METHOD_NOT_ALLOWED,
        format!("{} doesn't take {method}; the header Allow says what it takes", uri.path()),
    )
}
