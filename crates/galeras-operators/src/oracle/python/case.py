"""A module with a method of interest, calls of the method, and values as text.

Programs run in this process, so it imports nothing but what every interpreter has loaded already:
the original of a module must not be in memory when an answer replaces a method of it. Values are
written as Python literals in which a list begins with the name of its kind, and are read with
`eval`; text from an answer is read elsewhere, with `ast.literal_eval`."""

import sys

# Where an answer is judged, `answer` is the program itself.
STARTED_WITH = frozenset(sys.modules) - {"answer"}
external = sys.modules["_frozen_importlib_external"]

MOST_DEPTH, MOST_PARTS, MOST_ITEMS = 40, 4000, 1000
PLAIN = (type(None), bool, int, str, bytes)
FUNCTION = type(lambda: None)
MODULE = type(sys)
CONSTANTS = {"Ellipsis": ..., "NotImplemented": NotImplemented}


# The name of the module of interest.
LOADED = {}
READ = set()


def note_reads(root):
    """Notes the files below a folder that this process reads from now on."""

    def audit(event, args):
        if event == "open" and type(args[0]) is str and args[0].startswith(root):
            READ.add(args[0])

    sys.addaudithook(audit)


def source_of(path):
    """The source of a compiled module."""
    folder, _, name = path.rpartition("/")
    if name.endswith(".pyc") and folder.endswith("/__pycache__"):
        return f"{folder[: -len('/__pycache__')]}/{name.partition('.')[0]}.py"
    return path


class NotPlain(Exception):
    """A value that cannot be written."""


class Loaded(Exception):
    """The original of a module is in memory."""


class Encoder:
    def __init__(self):
        self.parts, self.inside = 0, []

    def encode(self, value):
        kind = type(value)
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise NotPlain("a large value")
        if kind in PLAIN:
            return value
        if kind is float:
            return ["f", value.hex()]
        if len(self.inside) > MOST_DEPTH or any(value is other for other in self.inside):
            raise NotPlain("a value that contains itself, or is deep")
        self.inside.append(value)
        tree = self.encode_parts(kind, value)
        self.inside.pop()
        return tree

    def encode_parts(self, kind, value):
        every = self.encode
        if kind is list:
            return ["l", *map(every, value)]
        if kind is tuple:
            return ["t", *map(every, value)]
        if kind is dict:
            return ["d", *[every(part) for pair in value.items() for part in pair]]
        if kind is set or kind is frozenset:
            return ["s" if kind is set else "z", *sorted(map(every, value), key=repr)]
        if kind is complex:
            return ["j", value.real.hex(), value.imag.hex()]
        if kind is bytearray:
            return ["y", bytes(value)]
        if kind is range or kind is slice:
            return [
                "r" if kind is range else "c",
                *map(every, (value.start, value.stop, value.step)),
            ]
        if value is ... or value is NotImplemented:
            return ["k", repr(value)]
        if kind is MODULE:
            return ["m", value.__name__]
        if isinstance(value, type) or kind is FUNCTION or kind is type(len):
            named = reference(value)
            if named is not None:
                return named
            if kind is FUNCTION or isinstance(value, type):
                raise NotPlain("a function or class that has no place in a module")
        return self.encode_object(value)

    def encode_object(self, value):
        """An object by the parts that `pickle` would make it from again."""
        # Modules register how to write classes of C, such as compiled patterns.
        copyreg = sys.modules.get("copyreg")
        registered = copyreg and copyreg.dispatch_table.get(type(value))
        try:
            parts = registered(value) if registered else value.__reduce_ex__(2)
        except Exception as error:
            raise NotPlain(f"a {type(value).__name__}: {error}") from None
        if type(parts) is str:
            named = reference(value, parts)
            if named is None:
                raise NotPlain(f"a {type(value).__name__}")
            return named
        function, args, state, items, pairs = (*parts, None, None, None)[:5]
        items = None if items is None else list(items)
        pairs = None if pairs is None else [part for pair in pairs for part in pair]
        return ["o", *map(self.encode, (function, args, state, items, pairs))]


def reference(value, name=None):
    """A class or function by its module and name, if it is found there. Some modules, such as
    `_pydecimal`, give their classes the name of another one."""
    name = name or getattr(value, "__qualname__", None)
    for module in (getattr(value, "__module__", None), LOADED.get("name")):
        if type(module) is str and type(name) is str:
            try:
                if named(module, name) is value:
                    return ["g", module, name]
            except Exception:
                continue
    return None


def named(module, name):
    found = sys.modules.get(module)
    if found is None:
        __import__(module)
        found = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def decode(tree):
    if type(tree) is not list:
        return tree
    kind, *rest = tree
    if kind == "f":
        return float.fromhex(rest[0])
    if kind == "g":
        return named(*rest)
    if kind == "k":
        return CONSTANTS[rest[0]]
    if kind == "m":
        __import__(rest[0])
        return sys.modules[rest[0]]
    if kind == "j":
        return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
    values = [decode(part) for part in rest]
    if kind == "l":
        return values
    if kind == "d":
        return dict(zip(values[::2], values[1::2]))
    if kind == "o":
        return rebuilt(*values)
    return MAKERS[kind](values)


MAKERS = {
    "t": tuple,
    "s": set,
    "z": frozenset,
    "y": lambda values: bytearray(values[0]),
    "r": lambda values: range(*values),
    "c": lambda values: slice(*values),
}


def rebuilt(function, args, state, items, pairs):
    value = function(*args)
    if state is not None:
        setter = getattr(value, "__setstate__", None)
        if setter is not None:
            setter(state)
        else:
            state, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
            if state:
                value.__dict__.update(state)
            for name, part in (slots or {}).items():
                setattr(value, name, part)
    for item in items or []:
        value.append(item)
    for key, item in zip((pairs or [])[::2], (pairs or [])[1::2]):
        value[key] = item
    return value


def encoded(value):
    return Encoder().encode(value)


def class_name(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


def outcome(function, arguments):
    """How a call with these arguments ends, as a tree: its kind, its value, and the arguments that
    it changed, by position."""
    values = decode(arguments)
    if encoded(values) != arguments:
        raise ValueError("they change when they are written and read")
    args, keywords = values
    try:
        result = function(*args, **keywords)
        if is_iterator(result):
            end = ["yielded", class_name(type(result)), items_of(result)]
        else:
            end = ["returned", result]
    except NotPlain:
        raise
    except BaseException as error:
        # The class alone counts: texts differ between versions of Python.
        end = ["raised", class_name(type(error))]
        if isinstance(error, (MemoryError, RecursionError)):
            raise NotPlain(f"a {type(error).__name__}") from None
    end = [end[0], *map(encoded, end[1:])]
    after = encoded(values)
    before, now = arguments[1][1:] + arguments[2][1:], after[1][1:] + after[2][1:]
    return [*end, [[at, new] for at, (old, new) in enumerate(zip(before, now)) if old != new]]


def is_iterator(value):
    kind = type(value)
    return hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools")


def items_of(iterator):
    """The items, and the class of the exception that ends them."""
    items = []
    try:
        for item in iterator:
            items.append(item)
            if len(items) > MOST_ITEMS:
                raise NotPlain("an iterator without an end")
    except NotPlain:
        raise
    except Exception as error:
        items.append(class_name(type(error)))
    return items


class Finder:
    """Gives one module the file that it is read from. All others are found as always."""

    def __init__(self, name, file, root):
        self.name, self.file, self.root = name, file, root

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        folders = None
        if self.file.endswith("__init__.py"):
            # Other modules of a package may be where the interpreter has them.
            folders = [self.file.rpartition("/")[0], *self.elsewhere(path)]
        return external.spec_from_file_location(name, self.file, submodule_search_locations=folders)

    def elsewhere(self, path):
        inside = f"{self.root}/"
        path = [folder for folder in path or sys.path if not f"{folder}/".startswith(inside)]
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(self.name, path)
            if spec is not None and spec.submodule_search_locations:
                return list(spec.submodule_search_locations)
        return []


def load(name, file, top, root):
    """Imports a module from a file. `top` is the folder that its name starts at."""
    if name in STARTED_WITH:
        raise Loaded(f"the interpreter itself uses {name}, so an answer could find the original")
    sys.path[:0] = [top, *[folder for folder in (root, f"{root}/src") if folder != top]]
    sys.meta_path.insert(0, Finder(name, file, root))
    # Modules that parse a command line show its first word.
    sys.argv[:] = ["program.py"]
    package = name.partition(".")[0]
    for known in list(sys.modules):
        if known == package or known.startswith(package + "."):
            if known not in STARTED_WITH:
                del sys.modules[known]
    __import__(name)
    LOADED["name"] = name
    return sys.modules[name]


def function_at(file, line, name):
    """The function whose definition begins at this line, behind its decorators."""
    import gc

    for found in gc.get_objects():
        if type(found) is FUNCTION:
            code = found.__code__
            if code.co_firstlineno == line and code.co_name == name and code.co_filename == file:
                return found
    return None
