#include "lib/checkpoint/differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scaletrain::checkpoint {

std::string shape_text(at::IntArrayRef shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

void Differences::add(const std::string& what) {
  constexpr std::size_t kShown = 3;
  if (++count_ <= kShown) shown_.push_back(what);
}

void Differences::list(std::vector<std::string>& parts) const {
  if (count_ == 0) return;
  parts.push_back(fmt::format("{} {} ({}{})", count_, kind_, fmt::join(shown_, ", "),
                              count_ > shown_.size() ? ", ..." : ""));
}

}  // namespace scaletrain::checkpoint
