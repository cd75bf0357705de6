"""The program whose answer is judged by an oracle: the module in which the answer replaces the
method. Put after `case.py`. The text of the original method is not here."""

import os

AST_ONLY = 0x400


def placed(task, file):
    """The module's text with the answer, and the first line of its definition.

    The first line of an answer begins with `def`. Its other lines are as they are in the file, or
    as they would be outside of a class."""
    lines = task["answer"].strip("\n").split("\n")
    own = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    bare = [line[len(own) :] if line.startswith(own) else line for line in lines]
    indent, error = task["indent"], None
    for texts in (
        [indent + bare[0], *lines[1:]],
        [indent + line if line.strip() else line for line in bare],
    ):
        source = task["before"] + "\n".join(texts) + "\n" + task["after"]
        try:
            tree = compile(source, file, "exec", AST_ONLY, dont_inherit=True)
        except (SyntaxError, ValueError) as invalid:
            error = error or invalid
            continue
        first = task["line"]
        line = defined(tree.body, task["classes"], task["name"], range(first, first + len(texts)))
        if line is not None:
            return source, line
    raise error or SyntaxError(f"the answer does not define {task['name']}")


def defined(nodes, classes, name, lines):
    """The line where the function begins that has this name, in these classes and lines."""
    for node in nodes:
        kind = type(node).__name__
        found = None
        if kind == "FunctionDef":
            if not classes and node.name == name and node.lineno in lines:
                return min([node.lineno, *[part.lineno for part in node.decorator_list]])
        elif kind == "ClassDef":
            if classes and node.name == classes[0]:
                found = defined(node.body, classes[1:], name, lines)
        else:
            for field in ("body", "orelse", "handlers", "finalbody", "cases"):
                found = found or defined(getattr(node, field, []), classes, name, lines)
        if found is not None:
            return found
    return None


def start(task):
    # No import finds a folder of this name.
    root = f"{os.getcwd()}/.tree"
    file = f"{root}/{task['path']}"
    source, line = placed(task, file)
    for path, text in [*task["files"].items(), (task["path"], source)]:
        folder = f"{root}/{path}".rpartition("/")[0]
        os.makedirs(folder, exist_ok=True)
        with open(f"{root}/{path}", "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
    top = f"{root}/{task['top']}".rstrip("/")
    sys.modules.pop("answer", None)
    module = load(task["module"], file, top, root)
    function = function_at(file, line, task["name"])
    if function is None:
        raise LookupError(f"the module does not keep the function {task['name']}")
    return module, function


def galeras_outcome(arguments):
    """The end of a call of the answer with these arguments, as a text."""
    try:
        return repr(outcome(ORACLE_FUNCTION, eval(arguments, {"__builtins__": {}})))
    except NotPlain as error:
        return repr(["failed", f"its result is {error}"])
    except BaseException as error:
        return repr(["failed", f"{type(error).__name__} around the call"])
