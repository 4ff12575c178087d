"""The pages for users as text: their words, sentences and headings, and which one a search finds.

The search stands for those of GitHub, an editor or a site of documentation. It ranks a page by the number of the
query's words that it has, and pages with equally many by the sum over these words of

    10 log2(1 + t) + 3 log2(1 + h) + log2(1 + b)

where t, h and b are how often the word occurs in the title, the other headings and the rest. The logarithm keeps
a page from winning by repetition. A page that is n times as long as the median page has its h and b divided by n,
since it is about more: the recipe reference has every word. Upper case and a plural's "s" make no difference,
and the words of STOP are left out of a query.
"""
import collections
import math
import re
import statistics

STOP = set("a an and are as at be can do does for from how i in is it my of on or the to use what when with".split())
CODE = re.compile(r"^ *```.*?^ *```\n?", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
TARGET = re.compile(r"\]\([^)]*\)")
LIST_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)


def words(text):
    """Its words in lower case, without a plural's s: "Several GPUs" has "several" and "gpu"."""
    return [word[:-1] if len(word) > 3 and re.search("[^s]s$", word) else word
            for word in re.findall("[a-z0-9]+", text.lower())]


def prose(text):
    """Without code blocks, comments and the targets of links."""
    return TARGET.sub("]", COMMENT.sub("", CODE.sub("", text)))


def sentences(text):
    """The sentences of the prose; a heading, a list's item and a table's cell end one too."""
    lines = [f"\n\n{line}\n\n" if line.startswith("#") else line for line in prose(text).splitlines()]
    blocks = re.split(r"\n\s*\n", LIST_ITEM.sub("\n\n", "\n".join(lines)))
    parts = []
    for block in blocks:
        for part in re.split(r"[|]" if block.lstrip().startswith("|") else r"\A(?!)", block):
            parts += re.split(r"(?<=[.!?])\s+", part)
    return [" ".join(part.split()) for part in parts if re.search("[a-zA-Z]", part)]


def headings(text):
    """(title, [the other headings])."""
    found = re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE)
    return found[0], found[1:]


def counted(text):
    """(how often each word is in the title, in the other headings, in the rest) of a page."""
    title, others = headings(text)
    rest = re.sub(r"^#+ .+$", "", TARGET.sub("]", COMMENT.sub("", text)), flags=re.MULTILINE)
    return tuple(collections.Counter(words(part)) for part in (title, " ".join(others), rest))


def score(counts, query, times_as_long=1.0):
    """Greater for a page that fits better: (words of the query that it has, their weight)."""
    title, others, rest = counts
    found, total = 0, 0.0
    for word in set(words(query)) - STOP:
        weight = (10 * math.log2(1 + title[word]) + 3 * math.log2(1 + others[word] / times_as_long) +
                  math.log2(1 + rest[word] / times_as_long))
        found += weight > 0
        total += weight
    return found, round(total, 2)


def search(pages, query):
    """[(score, name)] of `pages`, a dictionary of texts by name, the best first."""
    counts = {name: counted(text) for name, text in pages.items()}
    length = {name: sum(part.total() for part in count) for name, count in counts.items()}
    median = statistics.median(length.values())
    return sorted(((score(counts[name], query, max(1.0, length[name] / median)), name)
                   for name in pages), reverse=True)
