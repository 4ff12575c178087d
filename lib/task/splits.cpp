#include <algorithm>
#include <iterator>

#include "lib/task/task.h"

namespace scaletrain::task {
namespace {

constexpr const char* kExtraPrefix = "extra/";

const std::pair<const std::string, recipe::Source>& extra_of(const recipe::Data& data,
                                                             Split split) {
  const auto number = static_cast<std::size_t>(split) - static_cast<std::size_t>(Split::kExtra);
  return *std::next(data.extra.begin(), static_cast<std::ptrdiff_t>(number));
}

}  // namespace

Split extra_split(std::size_t number) {
  return static_cast<Split>(static_cast<std::size_t>(Split::kExtra) + number);
}

std::string name_of(Split split, const recipe::Data& data) {
  if (split == Split::kTrain) return "train";
  if (split == Split::kVal) return "val";
  if (split == Split::kTest) return "test";
  return kExtraPrefix + extra_of(data, split).first;
}

std::optional<Split> find_split(const recipe::Data& data, const std::string& name) {
  if (name == "val" && data.val) return Split::kVal;
  if (name == "test" && data.test) return Split::kTest;
  if (!name.starts_with(kExtraPrefix)) return std::nullopt;
  const auto found = data.extra.find(name.substr(std::string(kExtraPrefix).size()));
  if (found == data.extra.end()) return std::nullopt;
  return extra_split(static_cast<std::size_t>(std::distance(data.extra.begin(), found)));
}

const recipe::Source& source_of(const recipe::Data& data, Split split) {
  if (split == Split::kTrain) return data.train;
  if (split == Split::kVal) return *data.val;
  if (split == Split::kTest) return *data.test;
  return extra_of(data, split).second;
}

}  // namespace scaletrain::task
