"""Small changes to a source file, each of which should make some test fail.

``mutants(source)`` yields them in the order of the file: comparisons and arithmetic with another
operator, conditions turned round, numbers moved, a ``raise`` left out. Annotations, texts,
``__all__`` and what only type checkers read stay as they are.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Mutant", "mutants"]

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutant(NamedTuple):
    """A change: its line and the text of that, which of several alike it is there, before and
    after, and the whole file with it.
    """

    line: int
    text: str
    nth: int
    before: str
    after: str
    source: str

    @property
    def what(self) -> str:
        return f"{self.before}  ->  {self.after}"

    @property
    def name(self) -> str:
        """What it is called in ``explained.txt``."""
        return self.what if self.nth == 1 else f"{self.what}  ({self.nth})"


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a file.

    >>> [mutant.what for mutant in mutants("if a < 2:\\n    b = not c")]
    ['a < 2  ->  not (a < 2)', 'a < 2  ->  a <= 2', '2  ->  3', 'not c  ->  c']
    """
    lines, seen = source.splitlines(), Counter[tuple[int, str, str]]()

    def made(before: str, after: str, whole: str) -> Mutant:
        seen[node.lineno, before, after] += 1
        nth = seen[node.lineno, before, after]
        return Mutant(node.lineno, lines[node.lineno - 1].strip(), nth, before, after, whole)

    for node in _nodes(ast.parse(source)):
        for changed in _changed(node):
            before, after = ast.unparse(node), ast.unparse(changed)
            yield made(before, after, _spliced(source, node, f"({after})"))
        if isinstance(node, (ast.If, ast.IfExp, ast.While)) and not _is_turned_round(node.test):
            test, after = ast.unparse(node.test), f"not ({ast.unparse(node.test)})"
            yield made(test, after, _spliced(source, node.test, after))
        if isinstance(node, ast.Raise):
            yield made(ast.unparse(node), "pass", _spliced(source, node, "pass"))


def _nodes(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Expressions and statements that compute something, in the order of the file."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Assign) and "__all__" in ast.dump(child.targets[0]):
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child
            if not isinstance(child, ast.Raise):  # what it says is not tested by the letter
                yield from _nodes(child)


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[i] = OPERATORS[type(operator)]()  # type: ignore[call-overload]
            yield other
    elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in OPERATORS:
        other = copy.deepcopy(node)
        other.op = OPERATORS[type(node.op)]()  # type: ignore[assignment]
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1 if isinstance(node.value, int) else 2 * node.value or 1.0)


def _is_turned_round(test: ast.expr) -> bool:
    """Whether another mutant of the condition is its opposite."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn))
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _spliced(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    assert node.end_lineno is not None and node.end_col_offset is not None
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    raw = source.encode()
    return (raw[:begin] + text.encode() + raw[end:]).decode()
