//! The function that becomes a tool.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Block, Error, FnArg, ItemFn, Pat, PatIdent, PatType, Result, ReturnType, Signature, Type,
    Visibility,
};

use crate::options::Options;

/// What the attribute needs of a function.
pub(crate) struct Function {
    /// Its documentation and its other attributes.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    parameters: Vec<Parameter>,
    output: Type,
    body: Block,
}

/// A parameter of the function.
struct Parameter {
    attributes: Vec<Attribute>,
    pattern: PatIdent,
    kind: Type,
}

impl Parameter {
    fn parse(argument: FnArg) -> Result<Self> {
        let PatType { attrs: attributes, pat, ty: kind, .. } = match argument {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(this) => {
                return Err(Error::new(
                    this.span(),
                    "a tool's function has no `self`; for a tool with state, hand a closure to `provost::tool()`",
                ));
            }
        };
        if let Type::Reference(reference) = &*kind {
            return Err(Error::new(
                reference.span(),
                "a tool owns its arguments; take an owned type, such as `String` instead of `&str`",
            ));
        }
        match *pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                Ok(Self { attributes, pattern, kind: *kind })
            }
            other => Err(Error::new(
                other.span(),
                "an argument of a tool needs a name for the model; take it apart in the function's body",
            )),
        }
    }

    /// Whether it is the context of the call, which doesn't come from the model.
    fn is_context(&self) -> bool {
        matches!(&self.kind, Type::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == "ToolContext"))
    }
}

impl Function {
    pub(crate) fn parse(item: ItemFn) -> Result<Self> {
        let ItemFn { attrs: attributes, vis: visibility, sig, block } = item;
        check(&sig)?;
        let has_documentation = attributes.iter().any(|attribute| attribute.path().is_ident("doc"));
        if !has_documentation {
            return Err(Error::new(
                sig.ident.span(),
                "the model needs a description of the tool; write a doc comment (`/// …`) above the function",
            ));
        }
        let Signature { ident: name, inputs, output, .. } = sig;
        let parameters = inputs.into_iter().map(Parameter::parse).collect::<Result<Vec<_>>>()?;
        if let Some(second) = parameters.iter().filter(|parameter| parameter.is_context()).nth(1) {
            return Err(Error::new(
                second.kind.span(),
                "a call has one `ToolContext`; remove this parameter",
            ));
        }
        let ReturnType::Type(_, output) = output else {
            return Err(Error::new(
                name.span(),
                "the model needs a result of the call; return a `String`, a `ToolOutput`, or a `Result` of these",
            ));
        };
        Ok(Self { attributes, visibility, name, parameters, output: *output, body: *block })
    }

    /// The names of the arguments that the model gives.
    pub(crate) fn argument_names(&self) -> Vec<String> {
        self.arguments().map(|parameter| parameter.pattern.ident.unraw().to_string()).collect()
    }

    fn arguments(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| !parameter.is_context())
    }

    /// The function itself.
    pub(crate) fn invoke(&self) -> TokenStream {
        let Self { visibility, output, body, .. } = self;
        let parameters =
            self.parameters.iter().map(|Parameter { pattern, kind, .. }| quote!(#pattern: #kind));
        quote! {
            /// Runs the function itself, without a model.
            #visibility async fn invoke(#(#parameters),*) -> #output #body
        }
    }

    /// The type of the arguments, and the implementation of the tool.
    pub(crate) fn implementation(&self, options: &Options) -> TokenStream {
        let Self { name, output, .. } = self;
        let fields = self.arguments().map(|Parameter { attributes, pattern, kind }| {
            let field = &pattern.ident;
            quote!(#(#attributes)* #field: #kind)
        });
        let description = self.attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
        let values = self.parameters.iter().map(|parameter| {
            let field = &parameter.pattern.ident;
            if parameter.is_context() { quote!(__context) } else { quote!(__arguments.#field) }
        });
        let constructor = if self.parameters.iter().any(Parameter::is_context) {
            quote!(::provost::tool_in(|__arguments: __ProvostArguments, __context| #name::invoke(#(#values),*)))
        } else {
            quote!(::provost::tool(|__arguments: __ProvostArguments| #name::invoke(#(#values),*)))
        };
        let settings = options.settings(&name.unraw().to_string());
        let returns = quote_spanned!(output.span()=> __returns::<#output>());
        quote! {
            #(#description)*
            #[derive(::provost::serde::Deserialize, ::provost::schemars::JsonSchema)]
            #[serde(crate = "::provost::serde")]
            #[schemars(crate = "::provost::schemars")]
            struct __ProvostArguments { #(#fields),* }

            fn __returns<T: ::provost::IntoToolOutput>() {}

            fn __tool() -> &'static ::provost::FunctionTool<__ProvostArguments> {
                static TOOL: ::std::sync::OnceLock<::provost::FunctionTool<__ProvostArguments>> =
                    ::std::sync::OnceLock::new();
                #returns;
                TOOL.get_or_init(|| #constructor #settings)
            }

            #[::provost::async_trait]
            impl ::provost::Tool for #name {
                fn spec(&self) -> &::provost::ToolSpec {
                    ::provost::Tool::spec(__tool())
                }

                async fn call(
                    &self,
                    input: &::provost::Json,
                    context: &::provost::ToolContext,
                ) -> ::provost::ToolOutput {
                    ::provost::Tool::call(__tool(), input, context).await
                }
            }
        }
    }
}

/// Refuses what can't become a tool.
fn check(sig: &Signature) -> Result<()> {
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span(), "a tool's function is async; write `async fn`"));
    }
    if let Some(word) = &sig.unsafety {
        return Err(Error::new(word.span(), "a tool's function is safe to call; remove `unsafe`"));
    }
    if let Some(first) = sig.generics.params.first() {
        return Err(Error::new(
            first.span(),
            "a tool's arguments have types of their own; remove the generics",
        ));
    }
    Ok(())
}
