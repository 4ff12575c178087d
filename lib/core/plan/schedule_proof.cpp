#include "lib/core/plan/schedule_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "lib/core/error.h"
#include "lib/core/text/text.h"

namespace scaletrain::core {
namespace {

constexpr std::size_t kWorks = 4;

const char* name_of(Work work) {
  switch (work) {
    case Work::kForward:
      return "forward";
    case Work::kBackward:
      return "backward";
    case Work::kBackwardInput:
      return "backward_input";
    case Work::kBackwardWeight:
      return "backward_weight";
  }
  return "";
}

std::string text_of(const Action& action) {
  return fmt::format("{} of micro-batch {}, chunk {}", name_of(action.work), action.micro,
                     action.chunk);
}

[[noreturn]] void refuse(int rank, const std::string& found) {
  throw InternalError("pipeline schedule", fmt::format("rank {}: {}", rank, found));
}

bool gives_gradient(Work work) { return work == Work::kBackward || work == Work::kBackwardInput; }

// Time at which each stage has finished each micro-batch; nullopt: not yet.
using Times = std::vector<std::optional<double>>;

class Paper {
 public:
  Paper(const Schedule& schedule, const PipelineShape& shape, const WorkCosts& costs)
      : schedule_(schedule),
        shape_(shape),
        costs_(costs),
        forward_(places()),
        gradient_(places()),
        clock_(schedule.size(), 0.0),
        next_(schedule.size(), 0) {}

  ScheduleProof run() {
    check_actions();
    check_messages();
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
        while (step(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
      if (next_[rank] == schedule_[rank].size()) continue;
      refuse(static_cast<int>(rank),
             fmt::format("waits for ever before {}", text_of(schedule_[rank][next_[rank]])));
    }
    return proof();
  }

 private:
  std::size_t places() const {
    return static_cast<std::size_t>(shape_.stages()) * static_cast<std::size_t>(shape_.micros);
  }
  std::size_t place(int stage, int micro) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(shape_.micros) +
           static_cast<std::size_t>(micro);
  }
  int stage_of(std::size_t rank, const Action& action) const {
    return shape_.stage(static_cast<int>(rank), action.chunk);
  }

  double cost(Work work) const {
    double whole = 0;
    if (work == Work::kForward) whole = costs_.forward;
    if (gives_gradient(work)) whole += costs_.backward_input;
    if (work == Work::kBackward || work == Work::kBackwardWeight) whole += costs_.backward_weight;
    return whole / shape_.chunks;
  }

  // Checks that each stage processes each micro-batch once in each direction, in order.
  void check_actions() const {
    if (static_cast<int>(schedule_.size()) != shape_.ranks) {
      refuse(shape_.ranks, fmt::format("{} for {}", counted(std::ssize(schedule_), "row"),
                                       counted(shape_.ranks, "rank")));
    }
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
      // Micro-batches that have run so far, by chunk and work.
      std::vector<std::vector<int>> had(static_cast<std::size_t>(shape_.chunks),
                                        std::vector<int>(kWorks, 0));
      for (const Action& action : schedule_[rank]) {
        const bool known = action.chunk >= 0 && action.chunk < shape_.chunks;
        if (!known || action.micro < 0 || action.micro >= shape_.micros) {
          refuse(static_cast<int>(rank), text_of(action) + " is not there");
        }
        std::vector<int>& of_chunk = had[static_cast<std::size_t>(action.chunk)];
        if (of_chunk[static_cast<std::size_t>(action.work)]++ != action.micro) {
          refuse(static_cast<int>(rank), text_of(action) + " is not in ascending order");
        }
      }
      for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
        const std::vector<int>& of_chunk = had[static_cast<std::size_t>(chunk)];
        const int whole = of_chunk[1], input = of_chunk[2], weight = of_chunk[3];
        if (of_chunk[0] == shape_.micros && input == weight && whole + input == shape_.micros &&
            (whole == 0 || input == 0)) {
          continue;
        }
        refuse(static_cast<int>(rank),
               fmt::format("chunk {} has {}, {}, {} of inputs and {} of weights of {}", chunk,
                           counted(of_chunk[0], "forward"), counted(whole, "backward"), input,
                           weight, counted(shape_.micros, "micro-batch")));
      }
    }
  }

  // Lists the messages that `rank` sends to its neighbour in one direction, or receives from the
  // other one, in the rank's order, by the place of the sending stage.
  std::vector<std::size_t> messages(std::size_t rank, bool forward, bool sends) const {
    std::vector<std::size_t> result;
    for (const Action& action : schedule_[rank]) {
      const bool moves = forward ? action.work == Work::kForward : gives_gradient(action.work);
      if (!moves) continue;
      const int stage = stage_of(rank, action);
      // Sending and receiving stage.
      const int from = sends ? stage : (forward ? stage - 1 : stage + 1);
      const int to = forward ? from + 1 : from - 1;
      if (from < 0 || from >= shape_.stages() || to < 0 || to >= shape_.stages()) continue;
      result.push_back(place(from, action.micro));
    }
    return result;
  }

  void check_messages() const {
    const std::size_t ranks = schedule_.size();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::size_t next = (rank + 1) % ranks;
      const bool same = messages(rank, true, true) == messages(next, true, false) &&
                        messages(next, false, true) == messages(rank, false, false);
      if (same) continue;
      refuse(static_cast<int>(rank),
             fmt::format("and rank {} exchange messages in different orders", next));
    }
  }

  // Time at which the inputs of the action are available.
  std::optional<double> ready(std::size_t rank, const Action& action) const {
    const int stage = stage_of(rank, action);
    if (action.work == Work::kForward) {
      return stage == 0 ? std::optional(0.0) : forward_[place(stage - 1, action.micro)];
    }
    if (action.work == Work::kBackwardWeight) return gradient_[place(stage, action.micro)];
    const std::optional<double> own = forward_[place(stage, action.micro)];
    if (stage == shape_.stages() - 1 || !own) return own;
    const std::optional<double> given = gradient_[place(stage + 1, action.micro)];
    return given ? std::optional(std::max(*own, *given)) : std::nullopt;
  }

  bool step(std::size_t rank) {
    if (next_[rank] == schedule_[rank].size()) return false;
    const Action& action = schedule_[rank][next_[rank]];
    const std::optional<double> when = ready(rank, action);
    if (!when) return false;
    clock_[rank] = std::max(clock_[rank], *when) + cost(action.work);
    const std::size_t done = place(stage_of(rank, action), action.micro);
    if (action.work == Work::kForward) forward_[done] = clock_[rank];
    if (gives_gradient(action.work)) gradient_[done] = clock_[rank];
    ++next_[rank];
    return true;
  }

  ScheduleProof proof() const {
    ScheduleProof result;
    double busy = 0;
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
      result.length = std::max(result.length, clock_[rank]);
      int held = 0, most = 0;
      for (const Action& action : schedule_[rank]) {
        busy += cost(action.work);
        if (action.work == Work::kForward) most = std::max(most, ++held);
        if (action.work == Work::kBackward || action.work == Work::kBackwardWeight) --held;
      }
      result.held.push_back(most);
    }
    if (result.length > 0) result.idle_share = 1 - busy / (result.length * shape_.ranks);
    return result;
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  const WorkCosts& costs_;
  Times forward_, gradient_;       // indexed by place
  std::vector<double> clock_;      // indexed by rank
  std::vector<std::size_t> next_;  // index of the next action of each rank
};

}  // namespace

ScheduleProof prove(const Schedule& schedule, const PipelineShape& shape, const WorkCosts& costs) {
  return Paper(schedule, shape, costs).run();
}

}  // namespace scaletrain::core
