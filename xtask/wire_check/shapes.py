"""Holds a JSON value against a type of an SDK: a TypedDict's unknown keys and every wrong type are complaints.

The SDKs' request types are TypedDicts, which nothing checks at run time, and pydantic leaves iterables unread: so this walks the
annotations itself. Types that are pydantic models (google-genai's) are validated by pydantic, which forbids what it doesn't know.
"""

import collections.abc
import types
import typing

from typing_extensions import NotRequired, ReadOnly, Required, get_type_hints, is_typeddict

TRANSPARENT = (Required, NotRequired, ReadOnly, typing.Required, typing.NotRequired, typing.Annotated)
LISTS = (list, tuple, collections.abc.Iterable, collections.abc.Sequence, collections.abc.Collection)
HINTS = {}


def complaints(value, kind, place):
    """What is wrong with `value` as a `kind`, each with its place; nothing if it is one."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object):
        return []
    if origin in TRANSPARENT:
        return complaints(value, args[0], place)
    if origin in (typing.Union, types.UnionType):
        return of_union(value, args, place)
    if origin is typing.Literal:
        return [] if any(type(value) is type(one) and value == one for one in args) else [wrong(value, kind, place)]
    if is_typeddict(kind):
        return of_typed_dict(value, kind, place)
    if origin in LISTS or is_list_protocol(origin):
        return of_list(value, args[0], place)
    if origin in (dict, collections.abc.Mapping):
        return of_dict(value, args, place)
    return of_plain(value, kind, place)


def of_typed_dict(value, kind, place):
    if not isinstance(value, dict):
        return [wrong(value, kind, place)]
    if kind not in HINTS:
        HINTS[kind] = get_type_hints(kind, include_extras=True)
    hints = HINTS[kind]
    missing = [f"{place}: lacks {key}" for key in hints if key not in value and is_required(key, kind, hints[key])]
    unknown = [f"{place}.{key}: {kind.__name__} has no such field" for key in value if key not in hints]
    below = [found for key in value if key in hints for found in complaints(value[key], hints[key], f"{place}.{key}")]
    return missing + unknown + below


def is_required(key, kind, hint):
    """Annotations that are kept as text hide `Required` from `__required_keys__`."""
    origin = typing.get_origin(hint)
    is_marked = origin in (Required, typing.Required)
    return is_marked or (key in kind.__required_keys__ and origin not in (NotRequired, typing.NotRequired))


def of_union(value, args, place):
    """Of the alternatives, the complaints of the one that fits best."""
    tried = [complaints(value, arg, place) for arg in args]
    return min(tried, key=len) if all(tried) else []


def of_list(value, of, place):
    if not isinstance(value, list):
        return [wrong(value, list, place)]
    return [found for at, one in enumerate(value) for found in complaints(one, of, f"{place}[{at}]")]


def of_dict(value, args, place):
    if not isinstance(value, dict):
        return [wrong(value, dict, place)]
    of = args[1] if len(args) > 1 else object
    return [found for key, one in value.items() for found in complaints(one, of, f"{place}.{key}")]


def of_plain(value, kind, place):
    if kind is None or kind is type(None):
        fits = value is None
    elif kind is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif isinstance(typing.get_origin(kind), type):
        # An open file or its like, which no JSON value is.
        fits = False
    elif isinstance(kind, type):
        fits = isinstance(value, kind)
    else:
        raise TypeError(f"{place}: {kind!r} can't be checked")
    return [] if fits else [wrong(value, kind, place)]


def is_list_protocol(origin):
    return isinstance(origin, type) and origin.__name__ == "SequenceNotStr"


def wrong(value, kind, place):
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    return f"{place}: {shown} is no {getattr(kind, '__name__', kind)}"
