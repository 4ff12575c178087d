// A model as a sequence of units: types shared by code that builds models and code that runs them.
//
// A unit is the smallest part that can be recomputed, sharded or placed on another pipeline stage.
// Code between two units sees nothing but a Flow.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace scaletrain::units {

// Tensors passed from one unit to the next; [0] is the main tensor. In training the last unit may
// add auxiliary losses, 0-dim fp32, each a mean over the batch; a last unit with takes_tokens_alone
// receives them from the unit before it instead.
using Flow = std::vector<at::Tensor>;

class Cache;

// Causal attention over sequences that are split over several ranks: queries [batch, heads, tokens
// here, head_dim]; keys and values likewise, perhaps with fewer heads; returns the shape of the
// queries. Collective over those ranks.
using SharedAttention = std::function<at::Tensor(const at::Tensor& queries, const at::Tensor& keys,
                                                 const at::Tensor& values)>;

// Options of a pass, equal for all its units. Undefined or null members do not apply.
struct Context {
  bool again =
      false;  // reruns the same input: counters that count passes, such as BatchNorm's, do not move
  // All-reduces `values` in place over the ranks that train on other samples of the same step.
  // Collective. Empty if this rank has all samples.
  std::function<void(const at::Tensor& values)> sum_over_ranks = {};
  // Positions of the tokens in their text, [batch or 1, tokens] int64; undefined: consecutive.
  at::Tensor positions = {};
  // Attention mask, [batch, 1, tokens, tokens] bool: true where a token (third dimension) sees
  // another (last dimension); undefined: causal.
  at::Tensor sees = {};
  // Context parallelism: positions of this rank's tokens in the sequence, [tokens here] int64, and
  // the attention across ranks.
  at::Tensor places = {};
  SharedAttention attend = {};
  // KV cache of the tokens before these; used without gradients.
  Cache* cache = nullptr;
};

struct Unit {
  std::string name;
  // Names in the model of the parameters and buffers that it uses; a tensor that two units name is
  // tied.
  std::vector<std::string> tensors;
  // Runs the unit. May draw from the process's generator (dropout), but the output depends only on
  // the input and on the generator's state before the call.
  std::function<Flow(Flow input, const Context& context)> run;
  // True if the main tensor is [samples, tokens, ...] and the output for a token depends on that
  // token only, so that the unit may run on some tokens at a time.
  bool takes_tokens_alone = false;
  // False: it never draws random numbers, and the generator need not be seeded for it.
  bool draws = true;
};

// Runs `units` in order: each gets the output of the previous one.
Flow run(std::span<const Unit> units, Flow input, const Context& context);

}  // namespace scaletrain::units
