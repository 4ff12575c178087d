// Keys and values of the tokens that a model was run on, so that the next token is run alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>

namespace scaletrain::units {

class Cache {
 public:
  // For `capacity` tokens at most.
  explicit Cache(std::int64_t capacity) : capacity_(capacity) {}

  // How many tokens all units were run on.
  std::int64_t length() const { return length_; }

  // After a pass over `tokens` tokens.
  void advance(std::int64_t tokens) { length_ += tokens; }

  struct Held {
    at::Tensor keys, values;  // [batch, heads, tokens, head_dim]
  };
  // Appends the keys and values of this pass's tokens to those of `layer` and returns all of them.
  // Throws core::InternalError beyond the capacity.
  Held extend(const void* layer, const Held& added);

 private:
  std::int64_t capacity_, length_ = 0;
  std::unordered_map<const void*, Held> layers_;  // [batch, heads, capacity, head_dim]
};

}  // namespace scaletrain::units
