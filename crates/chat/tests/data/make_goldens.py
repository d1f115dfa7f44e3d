#!/usr/bin/env python3
"""Renders every template of templates/ with every conversation of conversations.json, by jinja2 and in the manner of the
`transformers` library, and writes goldens/NAME.json: conversation to {"text": ...} or {"error": message of raise_exception, or null}.

Needs jinja2 (made with 3.1.6). Run it in this folder after adding a template or a conversation.
"""
import json
import pathlib
from datetime import datetime

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime(2025, 3, 9, 14, 5, 7)


class Generation(Extension):
    """`{% generation %}` marks the assistant's text for training; it prints what it holds."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=lineno)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, conversation):
    values = {"tools": None, "documents": None, "bos_token": "<BOS>", "eos_token": "<EOS>", **conversation}
    try:
        return {"text": environment().from_string(source).render(**values)}
    except jinja2.exceptions.TemplateError as error:
        plain = type(error) is jinja2.exceptions.TemplateError
        return {"error": str(error) if plain else None}
    except Exception:
        return {"error": None}


def main():
    conversations = json.loads((HERE / "conversations.json").read_text())
    (HERE / "goldens").mkdir(exist_ok=True)
    for path in sorted((HERE / "templates").glob("*.jinja")):
        goldens = {name: render(path.read_text(), c) for name, c in conversations.items()}
        text = json.dumps(goldens, ensure_ascii=False, indent=1)
        (HERE / "goldens" / f"{path.stem}.json").write_text(text + "\n")
    snippets = json.loads((HERE / "snippets.json").read_text())
    rendered = [[source, render(source, conversations["tool_result"])] for source in snippets]
    (HERE / "goldens" / "snippets.golden.json").write_text(json.dumps(rendered, ensure_ascii=False, indent=1) + "\n")


main()
