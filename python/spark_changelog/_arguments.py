# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Checks the arguments of the public functions against their annotations."""

from __future__ import annotations

import functools
import inspect
import numbers
import reprlib
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from pyspark.sql import DataFrame

P = ParamSpec("P")
R = TypeVar("R")

_NUMBERS = {int: numbers.Integral, float: numbers.Real}
_FRAMES = "spark.table(name) gives the DataFrame of a table, spark.sql(query) that of a query."


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Reject arguments that don't fit the function's annotations, with the parameter's name.

    Examples
    --------
    >>> @checked
    ... def draw(format: Literal["text", "svg"] | None = None, names: str | Sequence[str] = ()):
    ...     return format
    >>> draw("svg", ["a"])
    'svg'
    >>> draw(names=3)
    Traceback (most recent call last):
    TypeError: Pass a str or a sequence of str as `names` of draw: got 3, of type int.
    >>> draw("png")
    Traceback (most recent call last):
    ValueError: Pass 'text' or 'svg' as `format` of draw: got 'png', of type str.
    >>> @checked
    ... def store(scd_type: Literal[1, 2]):
    ...     return scd_type
    >>> store(2)
    2
    >>> store(True)
    Traceback (most recent call last):
    TypeError: Pass 1 or 2 as `scd_type` of store: got True, of type bool.
    """
    parameters = list(inspect.signature(function).parameters)
    hints = functools.cache(lambda: get_type_hints(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        for name, value in given.items():
            # Python itself rejects unknown names.
            if name in parameters and not _fits(value, hints()[name]):
                raise _refused(function.__name__, name, value, hints()[name])
        return function(*args, **kwargs)

    return call


def _refused(function: str, name: str, value: Any, hint: Any) -> Exception:
    wanted = [part for part in _parts(hint) if part is not type(None)]
    is_choice = isinstance(value, str) and any(get_origin(part) is Literal for part in wanted)
    phrases = [phrase for part in wanted for phrase in _phrases(part)]
    listed = " or ".join([part for part in (", ".join(phrases[:-1]), phrases[-1]) if part])
    got = f"{reprlib.repr(value)}, of type {type(value).__name__}"
    message = f"Pass {listed} as `{name}` of {function}: got {got}."
    if isinstance(value, str) and DataFrame in wanted:
        message = f"{message} {_FRAMES}"
    return ValueError(message) if is_choice else TypeError(message)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if len(_parts(hint)) > 1:
        return any(_fits(value, part) for part in arguments)
    if hint is Any:
        return True
    if origin is Literal:
        choice = value.lower() if isinstance(value, str) else value
        return any(choice == one and type(choice) is type(one) for one in arguments)
    if origin is Mapping:
        return isinstance(value, origin) and all(
            _fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items()
        )
    if origin is Sequence:
        is_list = isinstance(value, Collection)
        is_other = isinstance(value, str | bytes | Mapping)
        return is_list and not is_other and all(_fits(item, arguments[0]) for item in value)
    if origin is Callable:
        return callable(value)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    # Spark Connect has separate classes with the names of the classic classes.
    names = [kind.__name__ for kind in type(value).__mro__]
    return isinstance(value, hint) or hint.__name__ in names


def _phrases(hint: Any) -> list[str]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return [repr(choice) for choice in arguments]
    if origin is Callable:
        return ["a callable"]
    noun = _noun(hint)
    return [f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"]


def _noun(hint: Any) -> str:
    nouns = [_noun(part) for part in get_args(hint)]
    if len(_parts(hint)) > 1:
        return " or ".join(nouns)
    if get_origin(hint) is Mapping:
        return f"mapping of {nouns[0]} to {nouns[1]}"
    if get_origin(hint) is Sequence:
        return f"sequence of {nouns[0]}"
    return "values" if hint is Any else str(hint.__name__)
