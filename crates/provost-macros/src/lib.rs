//! The attribute `#[provost::tool]`. Programs use it through the crate `provost`, which documents it.

mod function;
mod options;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use quote::quote;

/// Makes an async function a tool of an agent; see the documentation of `provost::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options.into(), function.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(
    options: proc_macro2::TokenStream,
    function: proc_macro2::TokenStream,
) -> syn::Result<proc_macro2::TokenStream> {
    let function = function::Function::parse(syn::parse2(function)?)?;
    let options = options::Options::parse(options, &function)?;
    let (attributes, name, visibility) = (&function.attributes, &function.name, &function.visibility);
    let invoke = function.invoke();
    let implementation = function.implementation(&options);
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types, reason = "it stands for a function")]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #name;

        impl #name { #invoke }

        const _: () = { #implementation };
    })
}
