// Lists the mismatches of many tensors for an error message: a few of each kind by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

namespace scaletrain::checkpoint {

// "[64, 3, 7, 7]"
std::string shape_text(at::IntArrayRef shape);

// Counts the differences of one kind and keeps the first three names.
class Differences {
 public:
  explicit Differences(const char* kind) : kind_(kind) {}

  void add(const std::string& what);
  bool empty() const { return count_ == 0; }
  // Adds "2 missing (a, b)" to `parts` if there are differences.
  void list(std::vector<std::string>& parts) const;

 private:
  const char* kind_;
  std::size_t count_ = 0;
  std::vector<std::string> shown_;
};

}  // namespace scaletrain::checkpoint
