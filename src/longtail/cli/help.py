"""``--help`` as plain text that fits the terminal, options and commands under their headings."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["Command", "Group"]

_KEPT = "\N{NON-BREAKING HYPHEN}"


class Command(TyperCommand):
    """A command whose options stand under the heading of their panel, if they have one."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options, then the panels in the order in which they begin."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                argument = param.param_type_name == "argument"
                panel = getattr(param, "rich_help_panel", None) or "Options"
                sections.setdefault("Arguments" if argument else panel, []).append(record)
        _write(formatter, sections)


class Group(TyperGroup):
    """The commands under the headings of their panels, each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per panel."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = command.rich_help_panel or "Commands"
            first = " ".join((command.help or "").partition("\n\n")[0].split())
            sections.setdefault(panel, []).append((name, first))
        _write(formatter, sections)


def _write(formatter: Any, sections: dict[str, list[tuple[str, str]]]) -> None:
    """Write lists of names and texts; no line ends inside a word with a hyphen, such as a flag."""
    for heading, records in sections.items():
        if records:
            with formatter.section(heading):
                formatter.write_dl([(name, text.replace("-", _KEPT)) for name, text in records])
    formatter.buffer[:] = [part.replace(_KEPT, "-") for part in formatter.buffer]
