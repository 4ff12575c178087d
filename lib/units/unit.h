// A model as a sequence of units: values that those who build models and those who run them share.
//
// A unit is the smallest part that can be run again, be cut, or lie in another place than the next
// one. What stands between two units sees nothing but a Flow.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace scaletrain::units {

// What goes from one unit to the next; [0] is the main tensor. What the last one gives beside it in
// training are auxiliary losses, 0-dim fp32, each a mean over the batch; a last one that takes
// tokens alone gets them from the unit before it, and hands them on.
using Flow = std::vector<at::Tensor>;

class Cache;

// Attention among all tokens of sequences that several ranks share: queries [batch, heads, tokens
// here, head_dim], keys and values alike or with fewer heads -> as the queries. A token sees itself
// and those before it. All of those ranks call it alike.
using SharedAttention = std::function<at::Tensor(const at::Tensor& queries, const at::Tensor& keys,
                                                 const at::Tensor& values)>;

// How a unit is run; the same for all units of one pass. What is undefined or null is not there.
struct Context {
  bool again =
      false;  // it ran on this input before: what counts passes, as BatchNorm does, does not
  // Adds up `values`, in place, over the ranks that train on other samples at the same time; all of
  // them call it equally often and in the same order. Empty where this rank has all samples.
  std::function<void(const at::Tensor& values)> sum_over_ranks = {};
  // [batch or 1, tokens] int64: at which place of its text each token stands; otherwise they stand
  // one behind the other.
  at::Tensor positions = {};
  // [batch, 1, tokens, tokens] bool: which tokens (last) each token sees, in place of all before
  // it.
  at::Tensor sees = {};
  // Of sequences that several ranks share: [tokens here] int64, which of a sequence's tokens are
  // here, and what stands for attention among these.
  at::Tensor places = {};
  SharedAttention attend = {};
  // The tokens before these; without gradients.
  Cache* cache = nullptr;
};

struct Unit {
  std::string name;
  // The parameters and buffers that it uses, by their names in the model; a tensor that two units
  // name is tied.
  std::vector<std::string> tensors;
  // May draw from the process's generator (dropout), and depends on nothing that earlier units
  // drew: with the generator in the same state it gives the same.
  std::function<Flow(Flow input, const Context& context)> run;
  // The main tensor is [samples, tokens, ...], and what it gives of a token depends on that token
  // alone: it may be run on a few of them at a time.
  bool takes_tokens_alone = false;
  // Without, it never draws, and nobody has to seed the generator for it.
  bool draws = true;
};

// The units' fold over `input`: each gets what the one before has returned.
Flow run(std::span<const Unit> units, Flow input, const Context& context);

}  // namespace scaletrain::units
