//! When a field is left out of the serialized form.

/// Whether a field has its default value.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
