"""Files that a unity build compiles together share one anonymous namespace: their names must not clash."""
import collections
import hashlib
import pathlib
import re
import unittest

import tracked

# Comments, raw strings, strings and characters.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
                     re.DOTALL)
TARGET = re.compile(r"^\s*scaletrain_(module|unit_tests)\((\w+)([^)]*)\)", re.MULTILINE)
BATCHES = re.compile(r"\bBATCHES (\d+)")
ALONE = re.compile(r"set_source_files_properties\(([^)]*?)\s+PROPERTIES")
# Targets that call _scaletrain_batch themselves: folder, number of batches, files of their own.
OTHERS = [("launcher", 3, {"main.cpp", "build_version.cpp"}), ("app/data", 3, set()),
          ("app/worker", 1, {"main.cpp"}), ("app/foreign", 1, set()),
          ("app/tokenizer", 1, {"sentence_pieces.cpp", "pieces_library.cpp"})]
TYPE = re.compile(r"^(?:struct|class|union|enum(?: class| struct)?) (\w+)")
ALIAS = re.compile(r"^(?:using (\w+) =|namespace (\w+) =)")
SKIPPED = re.compile(r"^(?:using |static_assert|friend |extern |TEST_CASE|TEST_SUITE|$)")


def without_templates(text):
    before = None
    while before != text:
        before, text = text, re.sub(r"<[^<>]*>", "", text)
    return text


def types_of(parameters):
    """"const A& a, int b = 1" as "const A&,int": what tells overloads apart."""
    parts = re.split(r",(?![^<]*>)", re.sub(r"=[^,]*", "", parameters))
    return ",".join(re.sub(r"(?<=[\s&*>])\w+\s*$", "", part.strip()).replace(" ", "")
                    for part in parts)


def is_function(statement):
    return bool(re.match(r"[^={]*\)[^={]*$", re.sub(r"\boperator\W+", "", without_templates(statement))))


def declared(statement):
    """What a statement in a namespace declares, as a key that may not appear twice; None: nothing."""
    statement = re.sub(r"^template <[^<>]*>\s*", "", re.sub(r"\[\[.*?\]\]", "", statement).strip())
    alias = ALIAS.match(statement)
    if alias:  # repeating the same alias is no clash
        return (alias[1] or alias[2], statement.split("=", 1)[1].strip())
    if SKIPPED.match(statement):
        return None
    kind = TYPE.match(statement)
    if kind:
        return None if statement == kind[0] else (kind[1], "")
    flat = without_templates(statement)
    function = re.match(r"[^=({]*?([\w:~]+)\s*\((.*)", flat, re.DOTALL)
    if function and not re.match(r"k[A-Z]", function[1]):
        if "::" in function[1] or "operator" in flat.split("(")[0]:
            return None
        parameters = statement[statement.index("(", statement.index(function[1])) + 1:]
        return (function[1], "(" + types_of(parameters[:parameters.rfind(")")]) + ")")
    variable = re.match(r"[^={(\[]*?(\w+)\s*(?:[={(\[].*)?$", flat, re.DOTALL)
    return (variable[1], "") if variable else None


def anonymous_names(text):
    """Keys of what a file declares in anonymous namespaces, each with its named namespace."""
    code = NO_CODE.sub(lambda match: "" if match[0][0] == "/" else '""', text)
    code = re.sub(r"^[ \t]*#.*?(?<!\\)$", "", code, flags=re.MULTILINE | re.DOTALL)
    found, scopes, begin, is_initializer = set(), [], 0, False

    def note(statement):
        if scopes and scopes[-1] == "":
            key = declared(" ".join(statement.split()))
            if key:
                found.add(("::".join(name for name in scopes if name),) + key)

    for match in re.finditer(r"[{};]", code):
        statement = code[begin:match.start()]
        begin = match.end()
        if match[0] == "}":
            if scopes:
                scopes.pop()
            continue
        space = re.fullmatch(r"\s*(?:inline )?namespace\s*([\w:]*)\s*", statement)
        inside = scopes and scopes[-1] is None
        if not inside and not space:
            if not is_initializer:
                note(statement + (" {" if match[0] == "{" else ""))
            # "T x = T{1} << 2;" and "struct A {};" end after their braces, a function with them.
            is_initializer = match[0] == "{" and (is_initializer or not is_function(statement))
        if match[0] == "{":
            scopes.append(space[1] if space and not inside else None)
    return found


def batch_of(path, count):
    return int(hashlib.md5(path.name.encode()).hexdigest()[:6], 16) % count


def clashes(files, count):
    """files: path -> text of one target in `count` batches; the names that clash."""
    users = collections.defaultdict(list)
    for path, text in sorted(files.items()):
        for key in anonymous_names(text):
            users[batch_of(path, count), key[:2]].append((key[2], path))
    lines = []
    for (_, (_, name)), uses in users.items():
        details = collections.defaultdict(list)
        for detail, path in uses:
            details[detail].append(path)
        for detail, paths in details.items():
            if len(paths) > 1 and (detail == "" or detail.startswith("(")):
                lines.append(f"{name}{detail}: {', '.join(sorted(map(str, paths)))}")
        if len(details) > 1 and not all(detail.startswith("(") for detail in details):
            lines.append(f"{name}: {', '.join(sorted({str(path) for _, path in uses}))}")
    return sorted(set(lines))


def targets():
    """Folder, number of batches and the names of files that are compiled alone, of each target."""
    for path in tracked.files("lib/*/CMakeLists.txt", "tests/CMakeLists.txt"):
        text = tracked.text(path)
        alone = {pathlib.PurePosixPath(name).name for match in ALONE.finditer(text)
                 for name in match[1].split()}
        for kind, name, arguments in TARGET.findall(text):
            count = BATCHES.search(arguments)
            yield (f"lib/{name}" if kind == "module" else f"tests/{name}",
                   int(count[1]) if count else 1, alone)
    yield from OTHERS


class UnityBatches(unittest.TestCase):
    maxDiff = None

    def test_files_of_a_batch_have_different_names(self):
        found, read = [], 0
        for folder, count, alone in targets():
            pattern = "*_test.cpp" if folder.startswith("tests/") else "*.cpp"
            paths = [path for path in tracked.files(f"{folder}/{pattern}", f"{folder}/**/{pattern}")
                     if path.name not in alone]
            read += len(paths)
            found += clashes({path: tracked.text(path) for path in paths}, count)
        self.assertGreater(read, 1000)
        self.assertEqual("", "\n".join(found), "these names are declared twice in a unity batch")


class TheCheckItself(unittest.TestCase):
    FIRST = "namespace a {\nnamespace {\nconstexpr int kMost = 3;\nint size(const T& t) { return 1; }\n" \
            "struct Part {\n  int size(int x);\n};\nusing J = json;\n}  // namespace\nint f() { int g; }\n}"

    def found(self, second, count=1):
        return clashes({pathlib.PurePosixPath("a.cpp"): self.FIRST,
                        pathlib.PurePosixPath("b.cpp"): second}, count)

    def anonymous(self, body, space="a"):
        return self.found(f"namespace {space} {{\nnamespace {{\n{body}\n}}\n}}")

    def test_names_that_clash_are_found(self):
        for body, expected in [("const long kMost{4};", "kMost: a.cpp, b.cpp"),
                               ("bool size(const T& other) { return {}; }", "size(constT&): a.cpp, b.cpp"),
                               ("template <class A> class Part {};", "Part: a.cpp, b.cpp"),
                               ("using J = ordered_json;", "J: a.cpp, b.cpp")]:
            with self.subTest(body):
                self.assertEqual([expected], self.anonymous(body))

    def test_names_that_do_not_clash_are_no_mistake(self):
        for body in ["int size(int t) { return 1; }", "using J = json;", "// int kMost;",
                     'const char* const kText = "int kMost = 3;";', "struct Other { int kMost; };",
                     "int g() { struct Part {}; int kMost = 2; return kMost; }"]:
            with self.subTest(body):
                self.assertEqual([], self.anonymous(body))
        self.assertEqual([], self.anonymous("int kMost;", space="b"))
        self.assertEqual([], self.found("namespace a {\nint f() { return 1; }\n}"))

    def test_files_of_different_batches_do_not_clash(self):
        batches = {batch_of(pathlib.PurePosixPath(name), 64) for name in ("a.cpp", "b.cpp")}
        self.assertEqual(2, len(batches))
        self.assertEqual([], self.found(self.FIRST, 64))


if __name__ == "__main__":
    unittest.main()
