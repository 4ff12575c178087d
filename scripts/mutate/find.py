"""The statements of a C++ file and a mutant of each, by Clang's syntax tree.

A mutant is a pair of texts around a part of the file, so that all mutants fit into one copy of it
and nest; switch.h has what the texts call.
"""
import dataclasses
import pathlib
import re

from clang.cindex import Cursor, CursorKind, Diagnostic, Index, TypeKind

RESOURCES = pathlib.Path("/usr/lib/llvm-14/lib/clang/14.0.6")  # headers that the wheel leaves out
SWITCH = "scaletrain_mutants::"
INTEGERS = range(TypeKind.CHAR_U.value, TypeKind.INT128.value + 1)
FLOATS = range(TypeKind.FLOAT.value, TypeKind.LONGDOUBLE.value + 1)
FUNCTIONS = {CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR,
             CursorKind.DESTRUCTOR, CursorKind.CONVERSION_FUNCTION, CursorKind.FUNCTION_TEMPLATE}
LOOPS = {CursorKind.WHILE_STMT, CursorKind.FOR_STMT, CursorKind.CXX_FOR_RANGE_STMT,
         CursorKind.DO_STMT}
# What returns an empty value as it stands.
EMPTY = {"{}", "std::nullopt", "nullptr", '""', "false", "0"}


@dataclasses.dataclass
class Mutant:
    number: int
    line: int
    text: str  # the line of the file
    what: str  # what the mutant does


class NotParsed(Exception):
    """Clang does not read the file; the text says why."""


def is_number(kind):
    return kind.value in INTEGERS or kind.value in FLOATS or kind in (TypeKind.BOOL, TypeKind.ENUM)


def plain_name(written):
    """A type as a function body of its file can name it, or None."""
    name = re.sub(r"\(anonymous namespace\)::", "", written.get_canonical().spelling)
    if "*" not in name:
        name = re.sub(r"^const ", "", name)
    return None if re.search(r"^$|type-parameter|lambda at|unnamed|<dependent", name) else name


class Finder:
    """Walks the functions of one file; `mutants` and `left` (line, text, why) are what it found."""

    def __init__(self, path, text, first_number):
        self.first_number = first_number
        self.path = str(path)
        self.text = text
        self.lines = text.decode().split("\n")
        self.mutants = []
        self.left = []
        self.never_returns = False  # the function that is walked
        self.before = {}  # offset -> texts in the order of the nesting
        self.behind = {}

    # Places.

    def begin(self, cursor: Cursor):
        return cursor.extent.start.offset

    def end(self, cursor: Cursor):
        return cursor.extent.end.offset

    def source(self, cursor: Cursor):
        return self.text[self.begin(cursor):self.end(cursor)].decode()

    def line_of(self, offset):
        return self.text.count(b"\n", 0, offset) + 1

    def semicolon(self, offset):
        """The offset behind the `;` that follows, or None."""
        rest = re.compile(rb"\s*;").match(self.text, offset)
        return rest.end() if rest else None

    def closing(self, offset):
        """The offset of the `)` for the first `(` from `offset` on, and of what `;` is between."""
        depth, semicolons = 0, []
        token = re.compile(rb'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|[(){}\[\];]')
        for match in token.finditer(self.text, offset):
            if match[0] in b"([{":
                depth += 1
            elif match[0] in b")]}":
                depth -= 1
                if depth == 0:
                    return match.start(), semicolons
            elif match[0] == b";" and depth == 1:
                semicolons.append(match.start())
        raise NotParsed(f"{self.path}:{self.line_of(offset)}: a bracket without its other one")

    # What is written down.

    def mutant(self, offset, what):
        line = self.line_of(offset)
        text = self.lines[line - 1].strip()
        self.mutants.append(Mutant(self.first_number + len(self.mutants), line, text, what))
        return self.mutants[-1].number

    def leave(self, offset, why):
        line = self.line_of(offset)
        self.left.append((line, self.lines[line - 1].strip(), why))

    def around(self, begin, end, prefix, suffix):
        """Inner parts come after the outer ones that they are in."""
        self.before.setdefault(begin, []).append(prefix)
        self.behind.setdefault(end, []).insert(0, suffix)

    def result(self):
        """The file with all mutants in it."""
        pieces, done = [], 0
        for offset in sorted(self.before.keys() | self.behind.keys()):
            pieces.append(self.text[done:offset].decode())
            pieces += self.behind.get(offset, []) + self.before.get(offset, [])
            done = offset
        return "".join(pieces) + self.text[done:].decode()

    # Statements.

    def declaration(self, cursor: Cursor):
        if cursor.location.file is not None and cursor.location.file.name != self.path:
            return
        children = list(cursor.get_children())
        if cursor.kind in FUNCTIONS and cursor.is_definition():
            body = [child for child in children if child.kind == CursorKind.COMPOUND_STMT
                    and self.source(child).startswith("{")]  # what is defaulted has none
            head = self.text[:self.begin(cursor)].rstrip()
            self.never_returns = head.endswith(b"[[noreturn]]")
            for child in body:
                self.statement(child, cursor.result_type, last=True)
        else:
            for child in children:
                self.declaration(child)

    def statement(self, cursor: Cursor, result, last=False):
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind.is_statement() and not re.match(r"[{;\w\[]", self.source(cursor)):
            self.leave(self.begin(cursor), "it is part of a macro")
        elif kind == CursorKind.COMPOUND_STMT:
            for child in children:
                self.statement(child, result, last and child == children[-1])
        elif kind == CursorKind.IF_STMT:
            self.choice(cursor, children, result)
        elif kind in LOOPS:
            self.loop(cursor, children, result)
        elif kind in (CursorKind.SWITCH_STMT, CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT,
                      CursorKind.CXX_CATCH_STMT, CursorKind.CXX_TRY_STMT):
            for child in children:
                if child.kind.is_statement() or child == children[-1]:
                    self.statement(child, result)
        elif kind == CursorKind.RETURN_STMT and children:
            self.returned(cursor, children[0], result)
        elif kind == CursorKind.DECL_STMT:
            self.declared(children)
        elif kind in (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT, CursorKind.RETURN_STMT):
            self.left_out(cursor)
        elif kind == CursorKind.CXX_THROW_EXPR or "throw" == self.source(cursor).split(" ")[0]:
            returns_value = result.get_canonical().kind != TypeKind.VOID
            self.thrown(cursor, self.never_returns or (last and returns_value))
        elif kind.is_expression():
            self.left_out(cursor)
            self.expression(cursor)

    def left_out(self, cursor: Cursor):
        if re.match(r"[\w.]+\.reserve\(", self.source(cursor)):
            self.leave(self.begin(cursor), "the same values, from more allocations")
            return
        end = self.semicolon(self.end(cursor))
        if end is None:
            self.leave(self.begin(cursor), "no `;` follows")
            return
        number = self.mutant(self.begin(cursor), "left out")
        self.around(self.begin(cursor), end, f"{{ if (!{SWITCH}on({number})) {{ ", " } }")

    def thrown(self, cursor: Cursor, ends_function):
        if not ends_function:
            self.left_out(cursor)
        elif end := self.semicolon(self.end(cursor)):
            number = self.mutant(self.begin(cursor), "something else is thrown")
            self.around(self.begin(cursor), end,
                        f"{{ if ({SWITCH}on({number})) throw {SWITCH}Other{{}}; ", " }")
        for child in cursor.get_children():
            self.expression(child)

    def choice(self, cursor: Cursor, children, result):
        close, _ = self.closing(self.begin(cursor))
        heads = [child for child in children if self.begin(child) < close]
        if re.match(r"if\s+constexpr", self.source(cursor)):
            self.leave(self.begin(cursor), "constexpr")
        elif heads[0].kind == CursorKind.VAR_DECL:
            number = self.mutant(self.begin(cursor), "condition negated")
            self.around(close, close, f"; {SWITCH}negated({number}, {heads[0].spelling})", "")
        else:
            self.condition(heads[-1], self.begin(cursor))
        for child in heads:
            if child.kind == CursorKind.DECL_STMT:
                self.declared(child.get_children())
            elif child.kind != CursorKind.VAR_DECL or child == heads[0]:
                self.expression(child)
        for child in children:
            if child not in heads:
                self.statement(child, result)

    def condition(self, cursor: Cursor, place, call="negated", what="condition negated"):
        if cursor.type.get_canonical().kind == TypeKind.VECTOR:
            self.leave(place, "it is a condition for each lane of a vector")
            return
        number = self.mutant(place, what)
        self.around(self.begin(cursor), self.end(cursor), f"{SWITCH}{call}({number}, (", "))")

    def loop(self, cursor: Cursor, children, result):
        body = children[0] if cursor.kind == CursorKind.DO_STMT else children[-1]
        heads = [child for child in children if child != body]
        if cursor.kind == CursorKind.CXX_FOR_RANGE_STMT:
            number = self.mutant(self.begin(cursor), "loop not run")
            end = self.semicolon(self.end(body)) or self.end(body)
            self.around(self.begin(body), end, f"{{ if ({SWITCH}on({number})) break; ", " }")
        else:
            parts = heads
            if cursor.kind == CursorKind.FOR_STMT:
                _, (first, second) = self.closing(self.begin(cursor))
                parts = [head for head in heads if first < self.begin(head) < second]
            if not parts or parts[-1].kind == CursorKind.VAR_DECL or len(parts) > 1:
                self.leave(self.begin(cursor), "a loop without a plain condition")
            elif cursor.kind == CursorKind.DO_STMT:
                self.condition(parts[-1], self.begin(cursor), "runs", "loop run once")
            else:
                self.condition(parts[-1], self.begin(cursor), "runs", "loop not run")
        for head in heads:
            self.expression(head)
        self.statement(body, result)

    def returned(self, cursor: Cursor, value, result):
        kind, name = result.get_canonical().kind, plain_name(result)
        begin, end = self.begin(cursor), self.semicolon(self.end(cursor))
        written = self.source(value)
        default = name is not None and written == f"{name.split('::')[-1]}()"
        if (default or written in EMPTY) and not is_number(kind):
            self.leave(begin, "it returns what is empty already")
        elif name is None or end is None or kind in (
                TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE, TypeKind.AUTO):
            self.leave(begin, "it returns a reference or a type without a name")
        elif is_number(kind):
            number = self.mutant(begin, "negated" if kind == TypeKind.BOOL else "1 more")
            self.around(self.begin(value), self.end(value), f"{SWITCH}changed<{name}>({number}, ", ")")
        elif kind == TypeKind.VOID:
            self.left_out(cursor)
        else:
            number = self.mutant(begin, "returns an empty value")
            self.around(begin, end, f"{{ if ({SWITCH}empties<{name}>({number})) "
                        f"return {SWITCH}empty<{name}>(); ", " }")
        self.expression(value)

    def declared(self, declarations):
        for one in declarations:
            values = [child for child in one.get_children() if child.kind.is_expression()]
            written, name = self.source(one), plain_name(one.type)
            if one.kind != CursorKind.VAR_DECL or not is_number(one.type.get_canonical().kind):
                self.leave(self.begin(one), "it declares what is no number")
            elif not values or name is None or re.match(r"(constexpr|static|thread_local)\b", written) or not re.search(
                    rb"[^=!<>]=\s*$", self.text[self.begin(one):self.begin(values[-1])]):
                self.leave(self.begin(one), "a constant, or no `=` before its value")
            else:
                what = "1 more"
                if one.type.get_canonical().kind == TypeKind.BOOL:
                    what = "negated"
                number = self.mutant(self.begin(one), what)
                self.around(self.begin(values[-1]), self.end(values[-1]),
                            f"{SWITCH}changed<{name}>({number}, ", ")")
            for value in values:
                self.expression(value)

    def expression(self, cursor: Cursor):
        """What an expression has in it: lambdas and `?:`."""
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.LAMBDA_EXPR and self.source(cursor).startswith("["):
            body = children[-1]
            self.statement(body, self.result_of(cursor, body))
            children = children[:-1]
        elif cursor.kind == CursorKind.CONDITIONAL_OPERATOR and re.match(
                rb"[\s)]*\?", self.text[self.end(children[0]):]):
            self.condition(children[0], self.begin(children[0]), what="?: negated")
        for child in children:
            self.expression(child)

    def result_of(self, closure: Cursor, body: Cursor):
        """What a lambda returns: the type of its first value, or of the function that it is."""
        for part in own_parts(body):
            if part.kind == CursorKind.RETURN_STMT:
                values = list(part.get_children())
                if values:
                    return values[0].type
        return closure.type


def own_parts(body: Cursor):
    """All that is in a function's body, but for what is in lambdas there."""
    for part in body.get_children():
        yield part
        if part.kind != CursorKind.LAMBDA_EXPR:
            yield from own_parts(part)


def flags_of(command):
    """What Clang needs of a compile command."""
    kept, words = [], iter(command)
    for word in words:
        if word in ("-isystem", "-I", "-D"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std=")):
            kept.append(word)
    return kept


def find(path, command, first_number):
    """The Finder of `path`, after it has walked the file; its mutants count from `first_number`.
    Throws NotParsed."""
    unit = Index.create().parse(
        str(path), [*flags_of(command), "-resource-dir", str(RESOURCES), "-xc++"])
    errors = [str(one) for one in unit.diagnostics if one.severity >= Diagnostic.Error]
    if errors:
        raise NotParsed("\n".join(errors[:10]))
    finder = Finder(path, path.read_bytes(), first_number)
    finder.declaration(unit.cursor)
    return finder
