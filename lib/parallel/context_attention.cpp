#include "lib/parallel/context_attention.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/parallel/attention_block.h"
#include "lib/units/widened.h"

namespace scaletrain::parallel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kKeys = "keys and values";
constexpr const char* kGradients = "gradients of keys and values";

// Ring, and document numbers of a batch, which masks depend on.
struct Sequences : torch::CustomClassHolder {
  Sequences(std::shared_ptr<dist::Ring> on, const Tensor& numbers)
      : ring(std::move(on)), documents(static_cast<std::size_t>(ring->places)) {
    if (!numbers.defined()) return;
    for (int place = 0; place < ring->places; ++place) {
      const Tensor tokens = places_on_ring(numbers.size(1), place, ring->places);
      documents[static_cast<std::size_t>(place)] =
          numbers.index_select(1, tokens.to(numbers.device()));
    }
  }

  const Tensor& documents_at(int place) const { return documents[static_cast<std::size_t>(place)]; }

  std::shared_ptr<dist::Ring> ring;
  // [batch, tokens] for each rank of the ring; empty without documents.
  std::vector<Tensor> documents;
};

// Unmasked pairs of this rank's queries and another rank's keys: queries from `first_query` on, and
// the first `keys` keys.
struct Pairs {
  std::int64_t first_query = 0, queries = 0, keys = 0;
  Visible visible = {};
};

Pairs pairs_with(const Sequences& sequences, int other, std::int64_t tokens) {
  const int own = sequences.ring->place;
  const std::int64_t half = tokens / 2;
  Pairs pairs{.queries = tokens, .keys = tokens};
  if (other < own) pairs.keys = half;  // its second chunk comes after both of ours
  if (other > own) {                   // our first chunk comes before both of its
    pairs.first_query = half;
    pairs.queries = half;
  }
  const Tensor& own_documents = sequences.documents_at(own);
  pairs.visible.causal = other == own;
  if (own_documents.defined()) {
    pairs.visible.query_documents = own_documents.narrow(1, pairs.first_query, pairs.queries);
    pairs.visible.key_documents = sequences.documents_at(other).narrow(1, 0, pairs.keys);
  }
  return pairs;
}

// Stacks keys and values into one message.
Tensor joined(const Tensor& keys, const Tensor& values) { return at::stack({keys, values}); }

KeyBlock first_keys(const Tensor& both, std::int64_t count) {
  return {.keys = both[0].narrow(2, 0, count), .values = both[1].narrow(2, 0, count)};
}

// Calls body(other, both) with the keys and values of each rank, this rank's first, while the next
// ones are being received.
template <typename Body>
void go_around(dist::Ring& ring, Tensor both, const Body& body) {
  for (int step = 0; step < ring.places; ++step) {
    const bool is_last = step + 1 == ring.places;
    if (!is_last) ring.to_next.send(both, kKeys);
    body((ring.place - step + ring.places) % ring.places, both);
    if (is_last) break;
    Tensor next = at::empty_like(both);
    ring.from_before.receive(next, kKeys);
    both = std::move(next);
  }
}

Mixed forward_around(const Sequences& sequences, const Tensor& queries, const Tensor& both) {
  const std::int64_t tokens = queries.size(2);
  const Mixed mixed = Mixed::none(queries);
  go_around(*sequences.ring, both, [&](int other, const Tensor& theirs) {
    const Pairs pairs = pairs_with(sequences, other, tokens);
    attend(queries.narrow(2, pairs.first_query, pairs.queries), first_keys(theirs, pairs.keys),
           pairs.visible, mixed.rows(pairs.first_query, pairs.queries));
  });
  sequences.ring->to_next.flush();
  return mixed;
}

// Gradients of the queries, and of stacked keys and values; fp32.
struct Gradients {
  Tensor queries, both;
};

// Gradients of keys and values travel one step after them around the ring; after as many steps as
// there are ranks they are back at their own rank.
Gradients backward_around(const Sequences& sequences, const Tensor& queries, const Tensor& both,
                          const MixedGradient& gradient) {
  const std::int64_t tokens = queries.size(2);
  const auto options = queries.options().dtype(units::wide_type(queries));
  dist::Ring& ring = *sequences.ring;
  Gradients result{.queries = at::zeros(queries.sizes(), options), .both = {}};
  const auto receive = [&](const Tensor& like) {
    Tensor sums = at::empty(like.sizes(), options);
    ring.from_before.receive(sums, kGradients);
    return sums;
  };
  go_around(ring, both, [&](int other, const Tensor& theirs) {
    const Pairs pairs = pairs_with(sequences, other, tokens);
    const Tensor own = at::zeros(theirs.sizes(), options);
    attend_backward(
        queries.narrow(2, pairs.first_query, pairs.queries), first_keys(theirs, pairs.keys),
        pairs.visible, gradient.rows(pairs.first_query, pairs.queries),
        result.queries.narrow(2, pairs.first_query, pairs.queries), first_keys(own, pairs.keys));
    if (other != ring.place) own.add_(receive(theirs));  // sums of the ranks visited before
    ring.to_next.send(own, kGradients);
  });
  result.both = receive(both);
  ring.to_next.flush();  // not earlier: the next rank receives its own at the end of its loop
  return result;
}

class RingAttention : public torch::autograd::Function<RingAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& keys,
                        const Tensor& values, const c10::intrusive_ptr<Sequences>& sequences) {
    const c10::impl::ExcludeDispatchKeyGuard in_fp32(c10::autocast_dispatch_keyset);
    const Tensor both = joined(keys, values);
    const Mixed mixed = forward_around(*sequences, queries, both);
    const Tensor output = mixed.output.to(queries.scalar_type());
    context->saved_data["sequences"] = c10::IValue::make_capsule(sequences);
    context->save_for_backward({queries, both, output, mixed.sums});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const c10::impl::ExcludeDispatchKeyGuard in_fp32(c10::autocast_dispatch_keyset);
    const variable_list saved = context->get_saved_variables();
    const Tensor &queries = saved[0], &both = saved[1];
    const auto holder = context->saved_data["sequences"].toCapsule();
    const Tensor of_output = units::widened(gradients[0]);
    const Gradients result = backward_around(
        static_cast<Sequences&>(*holder), queries, both,
        {.output = of_output, .along = (of_output * saved[2]).sum(-1), .sums = saved[3]});
    const auto as_given = [&](const Tensor& sums) { return sums.to(queries.scalar_type()); };
    return {as_given(result.queries), as_given(result.both[0]), as_given(result.both[1]), Tensor()};
  }
};

}  // namespace

at::Tensor places_on_ring(std::int64_t tokens, int place, int places) {
  const std::int64_t chunks = 2 * static_cast<std::int64_t>(places);
  if (tokens % chunks != 0) {
    throw core::RecipeError(
        "/parallel/context",
        fmt::format("{} ranks divide a sequence into {} chunks, and it has {} tokens", places,
                    chunks, tokens),
        fmt::format("use a multiple of {}", chunks));
  }
  const std::int64_t chunk = tokens / chunks;
  const auto of = [&](std::int64_t number) {
    return at::arange(number * chunk, (number + 1) * chunk, at::kLong);
  };
  return at::cat({of(place), of(chunks - 1 - place)});
}

units::TokenCut token_cut(std::shared_ptr<dist::Ring> ring) {
  const auto known = std::make_shared<std::map<std::int64_t, Tensor>>();  // keyed by token count
  return {.places =
              [ring, known](std::int64_t tokens) {
                Tensor& places = (*known)[tokens];
                if (!places.defined()) {
                  places =
                      places_on_ring(tokens, ring->place, ring->places).to(ring->to_next.device());
                }
                return places;
              },
          .attention = [ring](const Tensor& documents) -> units::SharedAttention {
            const auto sequences = c10::make_intrusive<Sequences>(ring, documents);
            return [sequences](const Tensor& queries, const Tensor& keys, const Tensor& values) {
              return RingAttention::apply(queries, keys, values, sequences);
            };
          }};
}

}  // namespace scaletrain::parallel
