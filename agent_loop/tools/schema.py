"""What a tool's arguments look like: to the model as JSON Schema, from the model as an instance.

The language model reads both, so the schema carries no noise and a violation is told in plain words.
"""

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Json
from agent_loop.tools.tool import ToolRefused

A = TypeVar("A", bound=BaseModel)


def parameters_of(arguments: type[BaseModel]) -> Json:
    """The JSON Schema of an argument model: no titles, no model docstring, definitions in their place.

    An optional argument loses its null; leaving it out says the same. A definition that contains itself
    stays under `$defs`.
    """
    schema = arguments.model_json_schema()
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)
    inlined: Json = _plain(schema, definitions, ())
    kept = {name: _plain(definitions[name], definitions, (name,)) for name in _recursive(definitions)}
    return {"properties": {}, **inlined, **({"$defs": kept} if kept else {})}


def parse_arguments(arguments: type[A], raw: str) -> A:
    """The instance `raw` stands for; nothing at all stands for `{}`, unknown keys are ignored.

    A null for an argument that may be left out counts as leaving it out: models write it so.


    Raises:
        ToolRefused: `INVALID_ARGS`; the text lists everything that is wrong.
    """
    try:
        return arguments.model_validate(_without_empty(arguments, parse_object(raw)))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        violations = dict.fromkeys(f"{_place(detail['loc'])} {_violation(detail)}" for detail in details)
        raise _invalid(*violations) from error


def parse_object(raw: str) -> Json:
    """The JSON object a model wrote, with lone surrogates cleaned.

    Raises:
        ToolRefused: `INVALID_ARGS`: it is not JSON, or not an object.
    """
    try:
        value = _clean(json.loads(raw, parse_constant=_refuse_constant)) if raw.strip() else {}
    except json.JSONDecodeError as error:
        raise _invalid(f"they are not JSON: {error.msg} at character {error.pos}") from error
    except ValueError as error:
        raise _invalid("they are not JSON: a number is not one JSON knows, or has too many digits") from error
    except RecursionError as error:
        raise _invalid("they are nested too deep") from error

    if not isinstance(value, dict):
        raise _invalid(f"they must be one JSON object, not {_JSON_NAMES[type(value)]}")

    return value


def _without_empty(arguments: type[BaseModel], value: Json) -> Json:
    optional = {
        field.alias or name for name, field in arguments.model_fields.items() if not field.is_required()
    }
    return {key: item for key, item in value.items() if item is not None or key not in optional}


def _plain(schema: Any, definitions: Json, inside: tuple[str, ...]) -> Any:
    """`schema` without noise; `inside` names the definitions it stands in, which are not entered again."""
    if isinstance(schema, list):
        return [_plain(item, definitions, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema

    schema = _without_null(schema)
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and name not in inside and name not in _recursive(definitions):
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain({**definitions[name], **beside}, definitions, (*inside, name))

    plain = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {field: _plain(value[field], definitions, inside) for field in value}
        elif key in ("default", "const", "enum", "examples"):
            plain[key] = value
        elif key != "title":
            plain[key] = _plain(value, definitions, inside)

    return plain


def _without_null(schema: Json) -> Json:
    """`{anyOf: [X, null], default: null}` as X."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if "anyOf" not in schema or len(choices) == len(schema["anyOf"]):
        return schema

    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    if schema.get("default") is not None:
        rest["default"] = schema["default"]

    return {**choices[0], **rest} if len(choices) == 1 else {**rest, "anyOf": choices}


def _recursive(definitions: Json) -> list[str]:
    """The definitions that can be reached from themselves."""
    direct = {name: _references(schema) & set(definitions) for name, schema in definitions.items()}

    def reaches(start: str) -> bool:
        seen: set[str] = set()
        ahead = set(direct[start])
        while ahead:
            seen |= ahead
            ahead = set().union(*(direct[name] for name in ahead)) - seen
        return start in seen

    return [name for name in definitions if reaches(name)]


def _references(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_references, schema))
    if not isinstance(schema, dict):
        return set()

    found = set().union(*map(_references, schema.values()))
    reference = schema.get("$ref")
    return found | {reference.removeprefix("#/$defs/")} if isinstance(reference, str) else found


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _clean(item) for key, item in value.items()}
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _invalid(*violations: str) -> ToolRefused:
    lines = "".join(f"\n- {violation}" for violation in violations)
    return ToolRefused(
        f"the arguments cannot be used:{lines}\nCall again with these mended.", code="INVALID_ARGS"
    )


def _place(location: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".") or "the object"


def _violation(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    words = _WORDS.get(detail["type"])
    if words is not None:
        return words.format(**context)
    if detail["type"] in ("value_error", "assertion_error"):
        return f"is refused: {context['error']}"
    return "does not have the form the schema asks for"


_JSON_NAMES = {str: "text", list: "a list", int: "a number", float: "a number", bool: "true or false"}
_JSON_NAMES[type(None)] = "null"

# Pydantic's error types in the house's words; its own change by version and name Python's types.
_WHOLE = "must be a whole number"
_WORDS = {
    "missing": "is required",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "is too large a number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
}
