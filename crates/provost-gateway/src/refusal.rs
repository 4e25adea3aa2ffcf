//! Answers of the gateway itself, in each provider's own form of errors.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use provost_event::ErrorClass;
use provost_harness::GatewayFailure;
use provost_llm::WireFormat;
use serde_json::{Value, json};

/// An error that the program gets instead of the provider's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// Whether the program could do better; not where the run makes no further calls.
    pub(crate) is_failure: bool,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), is_failure: true }
    }

    /// The run makes no further calls now.
    pub(crate) fn of_run(message: impl Into<String>) -> Self {
        Self { is_failure: false, ..Self::bad(message) }
    }

    /// A request that the gateway doesn't forward. Programs don't retry this status, and show the message.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// As the failure of the program's last call.
    pub(crate) fn failure(&self) -> GatewayFailure {
        let class = match self.status {
            StatusCode::TOO_MANY_REQUESTS => ErrorClass::RateLimited,
            _ => ErrorClass::InvalidRequest,
        };
        let message = format!("the gateway refused its call: {}", self.message);
        GatewayFailure { class, status: Some(self.status.as_u16()), message }
    }

    pub(crate) fn response(self, wire: WireFormat) -> Response<Body> {
        let body = body(wire, self.status, &format!("Provost: {}", self.message));
        let response =
            Response::builder().status(self.status).header(header::CONTENT_TYPE, "application/json");
        response.body(Body::from(body.to_string())).unwrap_or_default()
    }
}

fn body(wire: WireFormat, status: StatusCode, message: &str) -> Value {
    match wire {
        WireFormat::Anthropic => {
            json!({"type": "error", "error": {"type": anthropic_kind(status), "message": message}})
        }
        WireFormat::OpenaiResponses | WireFormat::OpenaiChat => {
            json!({"error": {"message": message, "type": openai_kind(status), "param": null, "code": null}})
        }
        WireFormat::Gemini => {
            json!({"error": {"code": status.as_u16(), "message": message, "status": gemini_kind(status)}})
        }
    }
}

const fn anthropic_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

const fn openai_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

const fn gemini_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500.. => "UNAVAILABLE",
        _ => "FAILED_PRECONDITION",
    }
}
