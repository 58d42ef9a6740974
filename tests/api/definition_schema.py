"""Whether a definition fits its schema in the OpenAPI document."""

from functools import cache

# The package says nothing of its types.
import jsonschema  # type: ignore[import-untyped]

from tests.api.shapes import document


@cache
def validator() -> jsonschema.Draft202012Validator:
    """A validator of the bodies of PUT workflows/NAME."""
    schema = {
        "$ref": "#/components/schemas/DefinitionBody",
        "components": document()["components"],
    }
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def fits(definition: object) -> bool:
    """Whether it does."""
    return bool(validator().is_valid(definition))
