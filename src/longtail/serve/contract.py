"""The contract (OpenAPI) as a page to read: no script, nothing from elsewhere."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from longtail.report.templates import document

__all__ = ["contract_page"]

_STYLE = """
:root { --ground: #fbfbfa; --card: #fff; --ink: #1c2127; --soft: #5b6673; --line: #dde2e8; --accent: #1f5fa8; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #12161b; --card: #1a2027; --ink: #e9edf1; --soft: #a4afbb; --line: #323c47; --accent: #7db4ef; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.25rem 1rem 3rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } h3 { font-size: .9rem; margin: 1rem 0 .3rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); font-size: .9rem; }
details { margin: .6rem 0; padding: .7rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
summary { cursor: pointer; min-height: 1.6rem; } summary b { color: var(--accent); display: inline-block; min-width: 3.2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); font-size: .9rem; } th { font-weight: 600; }
pre { margin: .3rem 0; padding: .6rem .8rem; overflow-x: auto; background: var(--ground); border: 1px solid var(--line); border-radius: .4rem;
  font-size: .85rem; } a { color: var(--accent); }
@media (max-width: 40rem) { td, th { display: block; border: 0; padding: 0; } tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  thead { display: none; } }
"""  # noqa: E501


def contract_page(contract: dict[str, Any]) -> str:
    """Return an OpenAPI document as HTML: every endpoint with what it takes and answers."""
    shapes = contract.get("components", {}).get("schemas", {})
    parts = [
        _endpoint(path, method, one, shapes)
        for path, methods in contract["paths"].items()
        for method, one in methods.items()
    ]
    kinds = [
        f'<details id="{escape(name)}"><summary>{escape(name)}</summary>{_shape(shape)}</details>'
        for name, shape in shapes.items()
        if "properties" in shape and "Validation" not in name
    ]
    title = f"{contract['info']['title']}: the interface"
    body = (
        f"<h1>{escape(title)}</h1>"
        f'<p class="soft">longtail {escape(contract["info"]["version"])}. For programs: '
        '<a href="/openapi.json">openapi.json</a>. Where the server asks for a token, send '
        "<code>Authorization: Bearer …</code>. Errors are problem JSON (RFC 9457).</p>"
        f"<h2>What to ask</h2>{''.join(parts)}<h2>Shapes</h2>{''.join(kinds)}"
    )
    return document(title, body, _STYLE)


def _endpoint(path: str, method: str, one: dict[str, Any], shapes: dict[str, Any]) -> str:
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    inside = [f'<p class="soft">{escape(one.get("description", ""))}</p>']
    rows = [
        (p["name"], _type(p["schema"]), p.get("description") or p["schema"].get("description", ""))
        for p in one.get("parameters", [])
    ]
    if rows:
        inside.append(f"<h3>In the address</h3>{_table(rows)}")
    if body:
        shape = shapes[_named(body["schema"])]
        inside.append(f"<h3>In the body, JSON</h3>{_shape(shape)}")
    inside.append(f"<h3>For example</h3><pre>{escape(_example(path, method, body, shapes))}</pre>")
    answers = []
    for status, answer in one.get("responses", {}).items():
        content: dict[str, Any] = next(iter(answer.get("content", {}).values()), {})
        answers.append((status, _type(content.get("schema", {})), answer.get("description", "")))
    inside.append(f"<h3>Answers</h3>{_table(answers)}")
    opened = " open" if path == "/predict" else ""
    return (
        f"<details{opened}><summary><b>{method.upper()}</b> <code>{escape(path)}</code> "
        f'<span class="soft">{escape(one.get("summary", ""))}</span></summary>'
        f"{''.join(inside)}</details>"
    )


def _shape(shape: dict[str, Any]) -> str:
    rows = [
        (name, _type(part), part.get("description", ""))
        for name, part in shape.get("properties", {}).items()
    ]
    return f'<p class="soft">{escape(shape.get("description", ""))}</p>{_table(rows)}'


def _table(rows: list[tuple[str, str, str]]) -> str:
    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{kind}</td><td>{escape(text)}</td></tr>"
        for name, kind, text in rows
    )
    return f"<table>{lines}</table>"


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a value, in words, with a link to its shape."""
    if "$ref" in schema:
        name = escape(_named(schema))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    kind = escape(str(schema.get("type", "")))
    if kind == "array":
        inner = schema.get("items") or {"type": "tuple"}
        return f"list of {_type(inner)}"
    limits = [f"{sign} {schema[name]}" for name, sign in _LIMITS.items() if name in schema]
    if schema.get("default") not in (None, ""):
        limits.append(f"default {schema['default']}")
    return f"{kind} ({escape(', '.join(limits))})" if limits else kind


_LIMITS = {"minimum": "≥", "maximum": "≤"}


def _named(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _example(path: str, method: str, body: dict[str, Any], shapes: dict[str, Any]) -> str:
    ask = f"curl -s localhost:8000{path}"
    if not body:
        return ask
    known = {"label": "printer", "k": 3}
    fields = shapes[_named(body["schema"])]["properties"]
    wanted = {
        name: part.get("examples", [known.get(name)])[0]
        for name, part in fields.items()
        if name in ("text", "label", "k")
    }
    return f"{ask} -H 'content-type: application/json' \\\n  -d '{json.dumps(wanted)}'"
