// KV cache: keys and values of earlier tokens, so that a model runs on new tokens only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>

namespace scaletrain::units {

class Cache {
 public:
  // Holds at most `capacity` tokens.
  explicit Cache(std::int64_t capacity) : capacity_(capacity) {}

  // Number of tokens that all units were run on.
  std::int64_t length() const { return length_; }

  // Call after a pass over `tokens` tokens through all units.
  void advance(std::int64_t tokens) { length_ += tokens; }

  struct Held {
    at::Tensor keys, values;  // [batch, heads, tokens, head_dim]
  };
  // Appends this pass's keys and values of `layer` and returns those of all its tokens. Throws
  // core::InternalError beyond the capacity.
  Held extend(const void* layer, const Held& added);

 private:
  std::int64_t capacity_, length_ = 0;
  std::unordered_map<const void*, Held> layers_;  // [batch, heads, capacity, head_dim]
};

}  // namespace scaletrain::units
