#include "lib/recipe/schema/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::recipe {
namespace {

constexpr std::size_t kShownPointerBytes = 200;

}  // namespace

std::string Problems::Problem::place() const {
  std::string result = source->name;
  if (source->has_lines) result += fmt::format(":{}", line);
  // "--set optimizer.lr" already names the key.
  if (!pointer.empty() && pointer != source->pointer) {
    result += ": " + pointer.substr(0, kShownPointerBytes);
  }
  return core::printable(result);
}

void Problems::add(const Node& node, const std::string& pointer, std::string found,
                   std::string remedy) {
  push({node.source, node.line, pointer, std::move(found), std::move(remedy)});
}

void Problems::add_at_key(const Node& node, const std::string& pointer, std::string found,
                          std::string remedy) {
  push({node.source, node.key_line, pointer, std::move(found), std::move(remedy)});
}

void Problems::push(Problem problem) {
  if (!full()) problems_.push_back(std::move(problem));
}

bool Problems::none_under(std::string_view pointer) const {
  if (full()) return false;
  return std::none_of(problems_.begin(), problems_.end(), [&](const Problem& problem) {
    return problem.pointer.compare(0, pointer.size(), pointer) == 0;
  });
}

bool Problems::none_at_root() const {
  if (full()) return false;
  return std::none_of(problems_.begin(), problems_.end(),
                      [](const Problem& problem) { return problem.pointer.empty(); });
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::pair(a.source->order, a.line) < std::pair(b.source->order, b.line);
  });
  // The first problem becomes the error's place, text and remedy; the others are appended.
  std::string rest;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    rest += fmt::format("\n{}: {}\n  {}", sorted[i].place(), sorted[i].found, sorted[i].remedy);
  }
  if (full()) rest += fmt::format("\nthese are the first {} mistakes", kMost);
  const Problem& first = sorted.front();
  throw core::RecipeError(first.place(), first.found, first.remedy + rest);
}

}  // namespace scaletrain::recipe
