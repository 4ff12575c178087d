// What a training gives, to compare one with another.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::testing {

struct Course {
  std::vector<double> numbers;
  std::vector<at::Tensor> gradients;

  void add(const at::Tensor& values) {
    const at::Tensor flat = values.to(at::kDouble).reshape({-1}).contiguous();
    const double* const data = flat.const_data_ptr<double>();
    numbers.insert(numbers.end(), data, data + flat.numel());
  }
};

inline double largest_error(const Course& one, const Course& other) {
  if (one.numbers.size() != other.numbers.size() ||
      one.gradients.size() != other.gradients.size()) {
    return 1;
  }
  double error = 0;
  for (std::size_t i = 0; i < one.numbers.size(); ++i) {
    const double size = std::max(std::abs(other.numbers[i]), 1e-3);
    error = std::max(error, std::abs(one.numbers[i] - other.numbers[i]) / size);
  }
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    // The true gradient of a bias of keys is zero.
    const double size = std::max(other.gradients[i].abs().max().item<double>(), 1e-4);
    const double off = (one.gradients[i] - other.gradients[i]).abs().max().item<double>();
    error = std::max(error, off / size);
  }
  return error;
}

// What `make` gives rank 0, which alone calls it, for all of `world`; of the shape of `own`.
inline Course of_rank_0(dist::Group& world, const Course& own,
                        const std::function<Course()>& make) {
  Course course = world.rank() == 0 ? make() : own;
  at::Tensor numbers = at::tensor(course.numbers, at::kDouble);
  world.broadcast(numbers, 0, "the numbers of one process").wait();
  course.numbers.clear();
  course.add(numbers);
  for (at::Tensor& gradient : course.gradients) {
    gradient = gradient.clone(at::MemoryFormat::Contiguous);
    world.broadcast(gradient, 0, "a gradient of one process").wait();
  }
  return course;
}

}  // namespace scaletrain::testing
