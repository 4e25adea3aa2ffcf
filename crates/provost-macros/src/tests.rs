//! Each error names the remedy and points to the place.

use proc_macro2::TokenStream;

/// The error for this attribute and function, and the text that it points to.
fn refusal(options: &str, function: &str) -> (String, String) {
    let tokens = |text: &str| text.parse::<TokenStream>().expect("tokens");
    let error = crate::expand(tokens(options), tokens(function)).expect_err("it is refused");
    (error.to_string(), error.span().source_text().unwrap_or_default())
}

#[track_caller]
fn check(options: &str, function: &str, place: &str, remedy: &str) {
    let (message, at) = refusal(options, function);
    assert!(message.contains(remedy), "{message}\nlacks\n{remedy}");
    assert_eq!(at, place, "{message}");
}

#[test]
fn a_function_that_cannot_be_a_tool_is_refused_with_the_remedy() {
    check("", "/** A. */ fn a() -> String { todo() }", "fn", "write `async fn`");
    check("", "async fn a() -> String { todo() }", "a", "write a doc comment");
    check("", "/** A. */ async fn a() {}", "a", "return a `String`");
    check(
        "",
        "/** A. */ async fn a(&self) -> String { todo() }",
        "&self",
        "hand a closure to `provost::tool()`",
    );
    check("", "/** A. */ async fn a(b: &str) -> String { todo() }", "&str", "`String` instead of `&str`");
    check(
        "",
        "/** A. */ async fn a((b, c): P) -> String { todo() }",
        "(b, c)",
        "take it apart in the function's body",
    );
    check("", "/** A. */ async fn a<T: X>(b: T) -> String { todo() }", "T: X", "remove the generics");
    check("", "/** A. */ async unsafe\nfn a() -> String { todo() }", "unsafe", "remove `unsafe`");
    let two = "/** A. */ async fn a(b: ToolContext, c: x::ToolContext) -> String { todo() }";
    check("", two, "x::ToolContext", "remove this parameter");
}

#[test]
fn an_option_that_does_not_fit_is_refused_with_those_that_do() {
    let function =
        "/** A. */ async fn a(file: String, r#type: u8, context: ToolContext) -> String { todo() }";
    for (options, place, remedy) in [
        ("acces = reads", "acces", "there is no option `acces`; there are `name`, `access`,"),
        ("access = network", "network", "choose `reads` (runs beside others), `writes` or `anything`"),
        ("access = writes", "writes", "add `subject = path(ARGUMENT, writes)`"),
        ("access = writes, subject = path(file)", "writes", "add `subject = path(ARGUMENT, writes)`"),
        (
            "subject = folder(file)",
            "folder",
            "choose `command(ARGUMENT)`, `path(ARGUMENT)` or `url(ARGUMENT)`",
        ),
        (
            "subject = url(address)",
            "address",
            "the function has no argument `address`; it has `file`, `type`",
        ),
        ("subject = url(context)", "context", "the function has no argument `context`"),
        ("subject = url(file, writes)", "writes", "`url` takes the argument alone"),
        ("subject = path(file, reads)", "reads", "choose `walks` (all below it) or `writes`"),
        ("summary_field = text", "text", "the function has no argument `text`"),
        ("idempotent, idempotent", "idempotent", "`idempotent` is set twice"),
    ] {
        check(options, function, place, remedy);
    }
    check("subject = url(b)", "/** A. */ async fn a() -> String { todo() }", "b", "it has none");
    let (message, _) = refusal("access", function);
    assert!(message.contains("`access` needs a value; write `access = …`"), "{message}");
}
