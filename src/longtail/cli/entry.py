"""Runs the command line: errors become one line on standard error, and an exit code.

0    done
1    something unexpected: a bug, please report it
2    the input is at fault: a file, an option, a missing package
130  interrupted by Ctrl-C
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from longtail.cli.flags import in_flags

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = _show_warning
    from longtail.cli.app import Stopped, app, usage_errors

    try:
        code = app(args=given, prog_name="longtail", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except usage_errors as error:
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        hint = getattr(error, "ctx", None)
        where = f" (see {hint.command_path} --help)" if hint is not None else ""
        return _fail(f"{text.rstrip('.')}{where}", 2, given)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except Stopped as stopped:
        if isinstance(stopped.__cause__, KeyboardInterrupt):
            return _fail("interrupted", 130, given)
        # Whoever read our output has closed it, as `head` does: no error, and nothing to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, LookupError, OSError, TypeError, ValueError, MemoryError) as error:
        return _fail(in_flags(_message(error)), 2, given)
    except Exception as error:
        text = f"unexpected {type(error).__name__}: {_message(error)} (a bug: please report it)"
        return _fail(text, 1, given)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return " ".join(str(error).split()) or type(error).__name__


def _fail(text: str, code: int, arguments: Sequence[str]) -> int:
    if os.environ.get("LONGTAIL_DEBUG"):
        traceback.print_exc()
    if "--json" in arguments:
        print(json.dumps({"error": text, "code": code}), file=sys.stderr)
    else:
        print(f"longtail: {text}", file=sys.stderr)
    return code


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"longtail: warning: {in_flags(str(message))}", file=sys.stderr)
