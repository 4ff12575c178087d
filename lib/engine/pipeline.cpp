#include "lib/engine/pipeline.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "lib/core/schedule_proof.h"

namespace scaletrain::engine {
namespace {

using core::Action;
using core::Axis;
using core::Work;

bool gives_gradient(const Action& action) {
  return action.work == Work::kBackward || action.work == Work::kBackwardInput;
}

// Flows of batches that are described alike go by one name at both ends of a link.
std::string kind_of(const task::Example& example, int stage, const char* pass) {
  return fmt::format("{} {} {} {}", pass, stage, static_cast<int>(example.input.scalar_type()),
                     fmt::join(example.input.sizes(), " "));
}

}  // namespace

// What lies on a rank between forward and backward of a micro-batch.
struct Pipeline::Held {
  units::Flow input, output;
  const FlowShape* sent = nullptr;  // how `output` travelled; null: it is the last stage's
  DeferredWeights::Work weights;    // that were kept for later
};

// One run of the row.
class Pipeline::Step {
 public:
  Step(Pipeline& pipeline, const PipelineCalls& calls) : own_(pipeline), calls_(calls) {}

  void run(const Row& row) {
    const auto last = std::find_if(row.rbegin(), row.rend(), gives_gradient);
    for (auto action = row.begin(); action != row.end(); ++action) {
      if (action == last.base() - 1) calls_.before_last_backward();
      switch (action->work) {
        case Work::kForward:
          forward(*action);
          break;
        case Work::kBackward:
          backward(*action);
          held_.erase(key_of(*action));
          break;
        case Work::kBackwardInput: {
          const DeferredWeights::Scope later(*own_.parts_.deferred, held(*action).weights);
          backward(*action);
          break;
        }
        case Work::kBackwardWeight:
          held(*action).weights.run();
          held_.erase(key_of(*action));
          break;
      }
    }
  }

 private:
  using Key = std::pair<int, int>;
  static Key key_of(const Action& action) { return {action.chunk, action.micro}; }
  Held& held(const Action& action) { return held_.at(key_of(action)); }

  // A rank's first chunk reads a micro-batch, its last one is done with it.
  const task::Example& example(const Action& action) {
    if (action.chunk == 0) examples_.emplace(action.micro, calls_.next());
    return examples_.at(action.micro);
  }

  void forward(const Action& action) {
    const int stage = own_.stage_of(action.chunk);
    const bool is_last = stage + 1 == own_.stages().count();
    const task::Example& batch = example(action);
    Held one;
    if (stage > 0) one.input = own_.activations_in_.receive(kind_of(batch, stage - 1, "train"));
    one.output = calls_.forward(stage, action.micro, batch,
                                stage > 0 ? one.input : units::Flow{batch.input});
    if (!is_last) {
      one.sent = &own_.activations_out_.send(kind_of(batch, stage, "train"), one.output);
    }
    held_.emplace(key_of(action), std::move(one));
    if (action.chunk + 1 == own_.parts_.chunks) examples_.erase(action.micro);
  }

  void backward(const Action& action) {
    Held& one = held(action);
    units::Flow gradients;
    if (one.sent != nullptr) {
      gradients = receive_gradients(own_.gradients_in_, *one.sent, own_.device_);
      std::erase_if(one.output, [](const at::Tensor& tensor) { return !tensor.requires_grad(); });
    }
    if (!one.output.empty()) calls_.backward(one.output, gradients);
    one.output.clear();  // and with it what backward needed
    send_gradients(own_.gradients_out_, one.input);
    one.input.clear();
  }

  Pipeline& own_;
  const PipelineCalls& calls_;
  std::map<int, task::Example> examples_;  // by micro-batch
  std::map<Key, Held> held_;
};

namespace {

FlowLink flow_link(const dist::PipeLink& link, const dist::Mesh& mesh) {
  return FlowLink(link, mesh.world().device());
}

}  // namespace

Pipeline::Pipeline(dist::Mesh& mesh, PipelineParts parts)
    : Pipeline(mesh, std::move(parts), dist::open_pipe_links(mesh)) {}

Pipeline::Pipeline(dist::Mesh& mesh, PipelineParts parts, const dist::PipeLinks& links)
    : parts_(std::move(parts)),
      device_(mesh.world().device()),
      place_(mesh.coordinate(Axis::kPipe)),
      ranks_(mesh.size(Axis::kPipe)),
      activations_in_(flow_link(links.activations_in, mesh)),
      activations_out_(flow_link(links.activations_out, mesh)),
      gradients_in_(links.gradients_in),
      gradients_out_(links.gradients_out) {
  // In the same order on all ranks: those that share tensors wait for each other.
  std::map<std::vector<int>, std::vector<std::string>> shared;
  for (const auto& [name, stages] : stages().tensors()) shared[places_of(name)].push_back(name);
  const std::vector<int> ranks = mesh.plan().group(mesh.world().rank(), {Axis::kPipe});
  for (auto& [places, names] : shared) {
    if (places.size() == 1) continue;
    if (std::find(places.begin(), places.end(), place_) == places.end()) continue;
    std::vector<int> members;
    for (const int place : places) members.push_back(ranks[static_cast<std::size_t>(place)]);
    dist::Group& group =
        mesh.open(members, fmt::format("tied tensors of ranks {}", fmt::join(members, ", ")));
    tied_.push_back({.group = &group, .names = std::move(names)});
  }
}

Pipeline::~Pipeline() = default;

std::vector<int> Pipeline::places_of(const std::string& name) const {
  std::vector<int> places;
  const auto found = stages().tensors().find(name);
  if (found == stages().tensors().end()) return places;
  for (const int stage : found->second) places.push_back(rank_of(stage));
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

bool Pipeline::has(const std::string& name) const {
  const std::vector<int> places = places_of(name);
  return std::find(places.begin(), places.end(), place_) != places.end();
}

const Pipeline::Row& Pipeline::row_for(std::int64_t micro_batches) {
  const auto known = rows_.find(micro_batches);
  if (known != rows_.end()) return known->second;
  const core::PipelineShape shape{
      .ranks = ranks_, .micros = static_cast<int>(micro_batches), .chunks = parts_.chunks};
  const core::Schedule schedule = core::make_schedule(parts_.kind, shape);
  core::prove(schedule, shape);
  return rows_.emplace(micro_batches, schedule[static_cast<std::size_t>(place_)]).first->second;
}

void Pipeline::run(const PipelineCalls& calls) {
  Step(*this, calls).run(row_for(calls.micro_batches));
  activations_out_.link().flush();
  gradients_out_.flush();
}

void Pipeline::sum_tied(const std::function<at::Tensor(const std::string& name)>& gradient_of) {
  for (const Tied& tied : tied_) {
    for (const std::string& name : tied.names) {
      const at::Tensor gradient = gradient_of(name);
      if (gradient.defined()) tied.group->all_reduce_sum(gradient, "tied gradients").wait();
    }
  }
}

void Pipeline::evaluate(const task::Example& example,
                        const std::function<units::Flow(int stage, units::Flow input)>& forward) {
  for (int chunk = 0; chunk < parts_.chunks; ++chunk) {
    const int stage = stage_of(chunk);
    const units::Flow output =
        forward(stage, stage == 0 ? units::Flow{example.input}
                                  : activations_in_.receive(kind_of(example, stage - 1, "eval")));
    if (stage + 1 < stages().count()) {
      activations_out_.send(kind_of(example, stage, "eval"), output);
    }
  }
}

bool Pipeline::agree(bool goes_on) {
  at::Tensor word = at::zeros({1}, at::TensorOptions(at::kLong).device(device_));
  if (place_ == 0) {
    word.fill_(goes_on ? 1 : 0);
  } else {
    activations_in_.link().receive(word, "whether evaluation goes on");
  }
  if (!is_last()) activations_out_.link().send(word, "whether evaluation goes on");
  return word.item<std::int64_t>() != 0;
}

}  // namespace scaletrain::engine
