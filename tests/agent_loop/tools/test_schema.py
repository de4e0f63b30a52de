"""Schema: what a model is told of a tool's arguments, and what is made of what it writes."""

import json
from enum import Enum
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from agent_loop.tools.schema import parameters_of, parse_arguments
from agent_loop.tools.tool import ToolRefused


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Part(BaseModel):
    """A part of it."""

    title: str
    size: Size = Size.SMALL


class Tree(BaseModel):
    children: list["Tree"] = []


class Everything(BaseModel):
    """What nobody but us reads."""

    path: Annotated[str, Field(description="Where.", min_length=1, max_length=5, pattern="^[a-z]*$")]
    count: Annotated[int, Field(ge=1, le=9)] = 3
    ratio: Annotated[float | None, Field(gt=0, lt=1, description="How much.")] = None
    size: Size | None = Size.LARGE
    either: int | str | None = None
    flag: bool = False
    mode: Literal["a", "b"] = "a"
    parts: Annotated[list[Part], Field(min_length=1, max_length=3)] = [Part(title="x")]
    extra: dict[str, int] = {}
    main: Annotated[Part | None, Field(description="The main one.")] = None
    tree: Tree | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    even: int
    alias: Annotated[int, Field(alias="as")] = 1

    @field_validator("even")
    @classmethod
    def only_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("not even")
        return value


class Anything(BaseModel):
    number: complex = 0j


def refusal_of(model: type[BaseModel], raw: str) -> list[str]:
    """The violations, one each."""
    with pytest.raises(ToolRefused) as refused:
        parse_arguments(model, raw)

    first, *violations, last = str(refused.value).split("\n")
    assert refused.value.code == "INVALID_ARGS"
    assert (first, last) == ("the arguments cannot be used:", "Call again with these mended.")
    return [violation.removeprefix("- ") for violation in violations]


def test_the_schema_says_what_matters_and_nothing_else() -> None:
    """Spec loop 1.7: name, description, parameters; fewer tokens, no titles, definitions in their place."""
    part = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
        },
        "required": ["title"],
        "description": "A part of it.",
    }

    assert parameters_of(Everything) == {
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {
                "type": "string",
                "description": "Where.",
                "minLength": 1,
                "maxLength": 5,
                "pattern": "^[a-z]*$",
            },
            "count": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9},
            "ratio": {
                "type": "number",
                "description": "How much.",
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 1,
            },
            "size": {"type": "string", "enum": ["small", "large"], "default": "large"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "flag": {"type": "boolean", "default": False},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "parts": {
                "type": "array",
                "items": part,
                "minItems": 1,
                "maxItems": 3,
                "default": [{"title": "x", "size": "small"}],
            },
            "extra": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
            "main": {**part, "description": "The main one."},
            "tree": {"$ref": "#/$defs/Tree"},
        },
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}
                },
            }
        },
    }


def test_a_tool_without_arguments_has_a_schema_too() -> None:
    """Providers refuse parameters that are no object with properties."""

    class Nothing(BaseModel):
        pass

    assert parameters_of(Nothing) == {"type": "object", "properties": {}}
    assert parse_arguments(Nothing, "") == Nothing()


def test_good_arguments_become_an_instance() -> None:
    """Spec loop 1.7: extra keys are allowed; and models write null for what they leave out."""
    parsed = parse_arguments(
        Everything, '{"path": "a", "count": null, "ratio": null, "parts": [{"title": "t"}], "more": [1]}'
    )

    assert parsed == Everything(path="a", parts=[Part(title="t")])
    assert parse_arguments(Strict, '{"even": 2, "as": null}') == Strict(even=2)


def test_every_violation_is_listed_in_plain_words() -> None:
    """Spec loop 1.7: all violations in one error."""
    violations = refusal_of(
        Everything,
        json.dumps(
            {
                "path": 5,
                "count": 0,
                "ratio": "much",
                "size": "medium",
                "either": [],
                "flag": "perhaps",
                "mode": "c",
                "parts": [{"title": 1}, {}, "x"],
                "extra": {"a": 1.5, "b": []},
                "main": 3,
                "tree": {"children": 1},
            }
        ),
    )

    assert violations == [
        "path must be text",
        "count must be at least 1",
        "ratio must be a number",
        "size must be 'small' or 'large'",
        "either.int must be a whole number",
        "either.str must be text",
        "flag must be true or false",
        "mode must be 'a' or 'b'",
        "parts[0].title must be text",
        "parts[1].title is required",
        "parts[2] must be an object",
        "extra.a must be a whole number",
        "extra.b must be a whole number",
        "main must be an object",
        "tree.children must be a list",
    ]


@pytest.mark.parametrize(
    ("model", "raw", "violations"),
    [
        (Everything, "{}", ["path is required"]),
        (Everything, " \n", ["path is required"]),
        (Everything, '{"path": null}', ["path must be text"]),
        (Everything, '{"path": ""}', ["path must have at least 1 characters"]),
        (Everything, '{"path": "abcdef"}', ["path must have at most 5 characters"]),
        (Everything, '{"path": "A"}', ["path must match ^[a-z]*$"]),
        (Everything, '{"path": "a", "ratio": 0}', ["ratio must be greater than 0.0"]),
        (Everything, '{"path": "a", "ratio": 1}', ["ratio must be less than 1.0"]),
        (Everything, '{"path": "a", "parts": []}', ["parts must have at least 1 items"]),
        (Everything, '{"path": "a", "parts": [1,1,1,1]}', ["parts must have at most 3 items"]),
        (Everything, '{"path": "a", "count": 10}', ["count must be at most 9"]),
        (Strict, '{"even": 3, "odd": 1}', ["even is refused: not even", "odd is not known"]),
        (Anything, '{"number": []}', ["number does not have the form the schema asks for"]),
        (Everything, "[]", ["they must be one JSON object, not a list"]),
        (Everything, "null", ["they must be one JSON object, not null"]),
        (Everything, '"path"', ["they must be one JSON object, not text"]),
        (Everything, "true", ["they must be one JSON object, not true or false"]),
        (Everything, '{"path": ', ["they are not JSON: Expecting value at character 9"]),
        (
            Everything,
            '{"ratio": NaN}',
            ["they are not JSON: a number is not one JSON knows, or has too many digits"],
        ),
        (
            Everything,
            "1" * 5000,
            ["they are not JSON: a number is not one JSON knows, or has too many digits"],
        ),
        (Everything, "[" * 100_000, ["they are nested too deep"]),
    ],
)
def test_what_is_wrong_is_told_so_that_a_model_can_mend_it(
    model: type[BaseModel], raw: str, violations: list[str]
) -> None:
    """Spec loop 1.7: bad arguments are INVALID_ARGS, never an exception."""
    assert refusal_of(model, raw) == violations


def test_lone_surrogates_are_cleaned_wherever_they_stand() -> None:
    """Contracts 8: text is cleaned where it enters; no JSON line can carry them."""

    class Texts(BaseModel):
        model_config = ConfigDict(extra="allow")
        texts: list[str]

    parsed = parse_arguments(Texts, r'{"texts": ["a\ud800b"], "k\udc00": {"x": "\udfff"}}')

    assert parsed.texts == ["a\ufffdb"]
    assert parsed.model_extra == {"k\ufffd": {"x": "\ufffd"}}


json_texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*Everything.model_fields]), inner)
    ),
    max_leaves=8,
).map(json.dumps)


@given(st.text() | json_texts | st.text(st.sampled_from('{}[]":,\\ud8001eE.-path')))
def test_whatever_a_model_writes_gives_an_instance_or_a_refusal(raw: str) -> None:
    """Spec loop 1.7: `execute` never raises."""
    answer: Everything | ToolRefused
    try:
        answer = parse_arguments(Everything, raw)
    except ToolRefused as refused:
        answer = refused

    assert isinstance(answer, Everything) or answer.code == "INVALID_ARGS"
    assert "pydantic" not in str(answer)
