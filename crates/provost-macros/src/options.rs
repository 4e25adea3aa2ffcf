//! The options in `#[tool(…)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Error, Expr, LitStr, Result, Token, bracketed, parenthesized};

use crate::function::Function;

/// What there is to choose, for the error about anything else.
const KNOWN: &str =
    "`name`, `access`, `subject`, `aliases`, `summary_field`, `idempotent`, `timeout_ms`, `output_bytes_max`";

/// The options, each as the code that sets it.
#[derive(Default)]
pub(crate) struct Options {
    name: Option<LitStr>,
    access: Option<Ident>,
    subject: Option<Subject>,
    others: Vec<TokenStream>,
    /// The names of options so far.
    given: Vec<String>,
}

/// What calls are about: the kind and the argument that names it.
struct Subject {
    kind: Ident,
    field: Ident,
    words: Vec<Ident>,
}

impl Options {
    pub(crate) fn parse(options: TokenStream, function: &Function) -> Result<Self> {
        let mut all = Self::default();
        let parse = |input: ParseStream<'_>| {
            while !input.is_empty() {
                all.option(input, function)?;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        };
        parse.parse2(options)?;
        all.check()?;
        Ok(all)
    }

    fn option(&mut self, input: ParseStream<'_>, function: &Function) -> Result<()> {
        let option = input.call(Ident::parse_any)?;
        let name = option.to_string();
        if self.given.contains(&name) {
            return Err(Error::new(option.span(), format!("`{name}` is set twice; remove one of them")));
        }
        if name == "idempotent" {
            self.others.push(quote!(.idempotent()));
            self.given.push(name);
            return Ok(());
        }
        if !KNOWN.contains(&format!("`{name}`")) {
            return Err(Error::new(option.span(), format!("there is no option `{name}`; there are {KNOWN}")));
        }
        input.parse::<Token![=]>().map_err(|error| {
            Error::new(error.span(), format!("`{name}` needs a value; write `{name} = …`"))
        })?;
        match name.as_str() {
            "name" => self.name = Some(input.parse()?),
            "access" => self.access = Some(access(input)?),
            "subject" => self.subject = Some(Subject::parse(input, function)?),
            "aliases" => {
                let list;
                bracketed!(list in input);
                let names = list.parse_terminated(<LitStr as syn::parse::Parse>::parse, Token![,])?;
                self.others.push(quote!(.aliases([#names])));
            }
            "summary_field" => {
                let field = argument(input, function)?.unraw().to_string();
                self.others.push(quote!(.summary_field(#field)));
            }
            "timeout_ms" => {
                let time = input.parse::<Expr>()?;
                self.others.push(quote!(.timeout(::std::time::Duration::from_millis(#time))));
            }
            _ => {
                let bytes = input.parse::<Expr>()?;
                self.others.push(quote!(.output_bytes_max(#bytes)));
            }
        }
        self.given.push(name);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let Some(access) = self.access.as_ref().filter(|access| *access == "writes") else { return Ok(()) };
        if self.subject.as_ref().is_some_and(|subject| subject.words.iter().any(|word| word == "writes")) {
            return Ok(());
        }
        Err(Error::new(
            access.span(),
            "calls that change different files run at the same time, so it must be known which file; add `subject = \
             path(ARGUMENT, writes)`, or choose `access = anything`",
        ))
    }

    /// The calls that set the options of a tool whose function has this name.
    pub(crate) fn settings(&self, function: &str) -> TokenStream {
        let name = self.name.as_ref().map_or_else(|| function.to_owned(), LitStr::value);
        let access = match self.access.as_ref().map(ToString::to_string).as_deref() {
            Some("reads") => quote!(Reads),
            Some("writes") => quote!(Writes),
            _ => quote!(Anything),
        };
        let subject = self.subject.as_ref().map(Subject::setting);
        let others = &self.others;
        quote!(.named(#name).access(::provost::Access::#access) #subject #(#others)*)
    }
}

fn access(input: ParseStream<'_>) -> Result<Ident> {
    let access = input.call(Ident::parse_any)?;
    if ["reads", "writes", "anything"].iter().any(|known| access == known) {
        return Ok(access);
    }
    Err(Error::new(
        access.span(),
        format!(
            "there is no access `{access}`; choose `reads` (runs beside others), `writes` or `anything` (runs alone)"
        ),
    ))
}

/// The name of one of the function's arguments.
fn argument(input: ParseStream<'_>, function: &Function) -> Result<Ident> {
    let name = input.call(Ident::parse_any)?;
    let known = function.argument_names();
    if known.contains(&name.unraw().to_string()) {
        return Ok(name);
    }
    let known = match known.as_slice() {
        [] => "none".to_owned(),
        some => some.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    Err(Error::new(name.span(), format!("the function has no argument `{name}`; it has {known}")))
}

impl Subject {
    fn parse(input: ParseStream<'_>, function: &Function) -> Result<Self> {
        let kind = input.call(Ident::parse_any)?;
        let words: &[&str] = match kind.to_string().as_str() {
            "command" | "url" => &[],
            "path" => &["walks", "writes"],
            other => {
                return Err(Error::new(
                    kind.span(),
                    format!(
                        "there is no subject `{other}`; choose `command(ARGUMENT)`, `path(ARGUMENT)` or `url(ARGUMENT)`"
                    ),
                ));
            }
        };
        let inner;
        parenthesized!(inner in input);
        let mut subject = Self { kind, field: argument(&inner, function)?, words: Vec::new() };
        while !inner.is_empty() {
            inner.parse::<Token![,]>()?;
            let word = inner.call(Ident::parse_any)?;
            if !words.iter().any(|known| word == known) {
                let text = match words {
                    [] => format!("`{}` takes the argument alone; remove `{word}`", subject.kind),
                    _ => {
                        format!("`{word}` says nothing of a path; choose `walks` (all below it) or `writes`")
                    }
                };
                return Err(Error::new(word.span(), text));
            }
            subject.words.push(word);
        }
        Ok(subject)
    }

    fn setting(&self) -> TokenStream {
        let field = self.field.unraw().to_string();
        let field = quote!(field: ::std::string::String::from(#field));
        let subject = match self.kind.to_string().as_str() {
            "command" => quote!(Command { #field }),
            "url" => quote!(Url { #field }),
            _ => {
                let has = |name: &str| self.words.iter().any(|word| word == name).into_token_stream();
                let (walks, writes) = (has("walks"), has("writes"));
                quote!(Path { #field, walks: #walks, writes: #writes, anywhere: false })
            }
        };
        quote!(.subject(::provost::ToolSubject::#subject))
    }
}
