#include "lib/engine/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/core/plan/schedule_proof.h"
#include "lib/engine/deferred_weights.h"
#include "lib/engine/flow_link.h"

namespace scaletrain::engine {
namespace {

using core::Action;
using core::Axis;
using core::Work;

bool gives_gradient(const Action& action) {
  return action.work == Work::kBackward || action.work == Work::kBackwardInput;
}

bool gives_weights(const Action& action) { return action.work == Work::kBackwardWeight; }

// Names flows of equal description: the same pass, stage, and dtype and shape of the batch.
std::string kind_of(const task::Example& example, int stage, const char* pass) {
  return fmt::format("{} {} {} {}", pass, stage, static_cast<int>(example.input.scalar_type()),
                     fmt::join(example.input.sizes(), " "));
}

constexpr const char* kGoesOn = "end of evaluation";

using Row = std::vector<Action>;

// State of a micro-batch on this rank between its forward and backward.
struct Held {
  units::Flow input, output;
  const FlowShape* sent = nullptr;  // description of `output` as sent; null: last stage
  DeferredWeights::Work weights;    // deferred weight gradients
};

}  // namespace

struct Pipeline::Impl {
  struct Tied {
    dist::Group* group = nullptr;
    std::vector<std::string> names;
  };

  Impl(dist::Mesh& mesh, PipelineParts given, const dist::PipeLinks& links)
      : parts(std::move(given)),
        place(mesh.coordinate(Axis::kPipe)),
        ranks(mesh.size(Axis::kPipe)),
        activations_in(links.activations_in),
        activations_out(links.activations_out),
        gradients_in(links.gradients_in),
        gradients_out(links.gradients_out) {}

  int stage_of(int chunk) const { return chunk * ranks + place; }
  bool is_last(int stage) const { return stage + 1 == parts.stages.count(); }
  const Row& row_for(std::int64_t micro_batches);

  PipelineParts parts;
  int place, ranks;
  FlowLink activations_in, activations_out;
  dist::PipeLink gradients_in, gradients_out;
  std::vector<Tied> tied;            // groups that this rank belongs to
  std::map<std::int64_t, Row> rows;  // schedules proven so far, by micro-batches
};

const Row& Pipeline::Impl::row_for(std::int64_t micro_batches) {
  const auto known = rows.find(micro_batches);
  if (known != rows.end()) return known->second;
  const core::PipelineShape shape{
      .ranks = ranks, .micros = static_cast<int>(micro_batches), .chunks = parts.chunks};
  const core::Schedule schedule = core::make_schedule(parts.kind, shape);
  core::prove(schedule, shape);
  return rows.emplace(micro_batches, schedule[static_cast<std::size_t>(place)]).first->second;
}

namespace {

// Runs one step; `Own` is Pipeline::Impl.
template <class Own>
class Step {
 public:
  Step(Own& own, const PipelineCalls& calls) : own_(own), calls_(calls) {}

  void run(const Row& row) {
    const auto last = std::find_if(row.rbegin(), row.rend(), gives_gradient).base() - 1;
    weights_to_come_ = std::count_if(row.begin(), row.end(), gives_weights);
    for (auto action = row.begin(); action != row.end(); ++action) {
      if (action == last) calls_.before_last_backward();
      run(*action);
    }
  }

 private:
  using Key = std::pair<int, int>;
  static Key key_of(const Action& action) { return {action.chunk, action.micro}; }
  Held& held(const Action& action) { return held_.at(key_of(action)); }

  void run(const Action& action) {
    switch (action.work) {
      case Work::kForward:
        return forward(action);
      case Work::kBackward:
        backward(action, /*keeps_weights=*/false);
        break;
      case Work::kBackwardInput: {
        const DeferredWeights::Scope later(*own_.parts.deferred, held(action).weights);
        return backward(action, /*keeps_weights=*/true);
      }
      case Work::kBackwardWeight:
        calls_.weights([&] { held(action).weights.run(); }, --weights_to_come_ == 0);
        break;
    }
    held_.erase(key_of(action));
  }

  // Reads a micro-batch for the rank's first chunk, and drops it after its last chunk.
  const task::Example& example(const Action& action) {
    if (action.chunk == 0) examples_.emplace(action.micro, calls_.next());
    return examples_.at(action.micro);
  }

  void forward(const Action& action) {
    const int stage = own_.stage_of(action.chunk);
    const task::Example& batch = example(action);
    Held one;
    if (stage > 0) one.input = own_.activations_in.receive(kind_of(batch, stage - 1, "train"));
    one.output = calls_.forward(stage, action.micro, batch,
                                stage > 0 ? one.input : units::Flow{batch.input});
    if (!own_.is_last(stage)) {
      one.sent = &own_.activations_out.send(kind_of(batch, stage, "train"), one.output);
    }
    held_.emplace(key_of(action), std::move(one));
    if (action.chunk + 1 == own_.parts.chunks) examples_.erase(action.micro);
  }

  void backward(const Action& action, bool keeps_weights) {
    Held& one = held(action);
    units::Flow gradients;
    if (one.sent != nullptr) {
      gradients = receive_gradients(own_.gradients_in, *one.sent);
      std::erase_if(one.output, [](const at::Tensor& tensor) { return !tensor.requires_grad(); });
    }
    calls_.backward(one.output, gradients, keeps_weights);
    one.output.clear();  // frees the graph and its saved tensors
    send_gradients(own_.gradients_out, one.input);
    one.input.clear();
  }

  Own& own_;
  const PipelineCalls& calls_;
  std::map<int, task::Example> examples_;  // keyed by micro-batch
  std::map<Key, Held> held_;
  std::ptrdiff_t weights_to_come_ = 0;  // deferred weight gradients still to run
};

}  // namespace

Pipeline::Pipeline(dist::Mesh& mesh, PipelineParts parts)
    : impl_(std::make_unique<Impl>(mesh, std::move(parts), dist::open_pipe_links(mesh))) {
  // Opens groups in the same order on all ranks, as opening one is collective.
  std::map<std::vector<int>, std::vector<std::string>> shared;
  for (const auto& [name, stages] : stages().tensors()) shared[places_of(name)].push_back(name);
  const std::vector<int> ranks = mesh.plan().group(mesh.rank(), {Axis::kPipe});
  for (auto& [places, names] : shared) {
    if (places.size() == 1 || !has(names.front())) continue;
    std::vector<int> members;
    members.reserve(places.size());
    for (const int place : places) members.push_back(ranks[static_cast<std::size_t>(place)]);
    dist::Group& group =
        mesh.open(members, fmt::format("tied tensors of ranks {}", fmt::join(members, ", ")));
    impl_->tied.push_back({.group = &group, .names = std::move(names)});
  }
}

Pipeline::~Pipeline() = default;

const Stages& Pipeline::stages() const { return impl_->parts.stages; }

std::vector<bool> Pipeline::own_units() const {
  std::vector<bool> own(stages().end(stages().count() - 1), false);
  for (int chunk = 0; chunk < impl_->parts.chunks; ++chunk) {
    const int stage = impl_->stage_of(chunk);
    std::fill(own.begin() + static_cast<std::ptrdiff_t>(stages().begin(stage)),
              own.begin() + static_cast<std::ptrdiff_t>(stages().end(stage)), true);
  }
  return own;
}

bool Pipeline::is_last() const { return impl_->place + 1 == impl_->ranks; }

std::vector<int> Pipeline::places_of(const std::string& name) const {
  std::vector<int> places;
  const auto found = stages().tensors().find(name);
  if (found == stages().tensors().end()) return places;
  for (const int stage : found->second) places.push_back(stage % impl_->ranks);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

bool Pipeline::has(const std::string& name) const {
  const std::vector<int> places = places_of(name);
  return std::find(places.begin(), places.end(), impl_->place) != places.end();
}

bool Pipeline::counts(const std::string& name) const {
  const std::vector<int> places = places_of(name);
  return !places.empty() && places.front() == impl_->place;
}

void Pipeline::run(const PipelineCalls& calls) {
  Step(*impl_, calls).run(impl_->row_for(calls.micro_batches));
  impl_->activations_out.link().flush();
  impl_->gradients_out.flush();
}

void Pipeline::sum_tied(const std::function<at::Tensor(const std::string& name)>& gradient_of) {
  for (const Impl::Tied& tied : impl_->tied) {
    for (const std::string& name : tied.names) {
      const at::Tensor gradient = gradient_of(name);
      if (gradient.defined()) tied.group->all_reduce_sum(gradient, "tied gradients").wait();
    }
  }
}

void Pipeline::evaluate(const task::Example& example,
                        const std::function<units::Flow(int stage, units::Flow input)>& forward) {
  for (int chunk = 0; chunk < impl_->parts.chunks; ++chunk) {
    const int stage = impl_->stage_of(chunk);
    units::Flow input{example.input};
    if (stage > 0) input = impl_->activations_in.receive(kind_of(example, stage - 1, "eval"));
    const units::Flow output = forward(stage, std::move(input));
    if (!impl_->is_last(stage)) {
      impl_->activations_out.send(kind_of(example, stage, "eval"), output);
    }
  }
}

bool Pipeline::agree(bool goes_on) {
  if (impl_->place > 0) {
    goes_on = impl_->activations_in.link().receive_numbers(kGoesOn).front() != 0;
  }
  if (!is_last()) impl_->activations_out.link().send_numbers({goes_on ? 1 : 0}, kGoesOn);
  return goes_on;
}

}  // namespace scaletrain::engine
