#include "lib/recipe/catalog/braces.h"

#include <doctest/doctest.h>

namespace scaletrain::recipe {
namespace {

using Names = std::vector<std::string>;

Names expand(const std::string& text) {
  std::string mistake;
  Names names = expand_braces(text, mistake);
  CHECK(mistake.empty());
  return names;
}

std::string mistake_of(const std::string& text) {
  std::string mistake;
  CHECK(expand_braces(text, mistake).empty());
  return mistake;
}

}  // namespace

TEST_CASE("ranges keep their width, lists their order, the first brace changes slowest") {
  CHECK(expand("plain.tar") == Names{"plain.tar"});
  CHECK(expand("t-{0008..0011}.tar") ==
        Names{"t-0008.tar", "t-0009.tar", "t-0010.tar", "t-0011.tar"});
  CHECK(expand("{9..11}") == Names{"9", "10", "11"});
  CHECK(expand("{b,a,}x") == Names{"bx", "ax", "x"});
  CHECK(expand("{a,b}/{0..1}") == Names{"a/0", "a/1", "b/0", "b/1"});
}

TEST_CASE("an invalid brace expression is reported") {
  CHECK(mistake_of("a{b") == "has a \"{\" without a \"}\"");
  CHECK(mistake_of("a}b") == "has a \"}\" without a \"{\"");
  CHECK(mistake_of("{a,{b,c}}") == "has a brace inside a brace");
  CHECK(mistake_of("{a}") == "\"{a}\" has neither \"..\" nor a comma");
  CHECK(mistake_of("{3..1}") == "\"{3..1}\" counts down");
  CHECK(mistake_of("{a..c}") == "\"{a..c}\" is not a range of two numbers");
  CHECK(mistake_of("{-1..2}") == "\"{-1..2}\" is not a range of two numbers");
  CHECK(mistake_of("{0..100000}") == "\"{0..100000}\" stands for more than 100000 names");
  CHECK(mistake_of("{0..999}{0..99}{0..9}") == "stands for more than 100000 names");
}

}  // namespace scaletrain::recipe
