#include "lib/train/rules/fault.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/text/text.h"
#include "lib/dist/collective_fault.h"
#include "lib/train/rules/bit_flip.h"

namespace scaletrain::train {
namespace {

constexpr std::array<std::pair<std::string_view, Fault::Kind>, 14> kKinds{
    {{"nan", Fault::Kind::kNan},
     {"nans", Fault::Kind::kNans},
     {"spike", Fault::Kind::kSpike},
     {"kill", Fault::Kind::kKill},
     {"segv", Fault::Kind::kSegv},
     {"stop", Fault::Kind::kStop},
     {"exit", Fault::Kind::kExit},
     {"throw", Fault::Kind::kThrow},
     {"oom", Fault::Kind::kOom},
     {"spin", Fault::Kind::kSpin},
     {"slow", Fault::Kind::kSlow},
     {"slows", Fault::Kind::kSlows},
     {"slow-data", Fault::Kind::kSlowData},
     {"stuck-data", Fault::Kind::kStuckData}}};
constexpr int kExitStatus = 7;
constexpr double kSpikeFactor = 1000;
constexpr std::chrono::milliseconds kSlowness{50};

std::optional<Fault::Kind> kind_of(std::string_view name) {
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

class FaultyPool : public core::BufferPool {
 public:
  FaultyPool(std::unique_ptr<core::BufferPool> pool, const Fault& fault)
      : pool_(std::move(pool)), fault_(fault) {}

  core::Buffer take(std::size_t bytes) override {
    if (++taken_ >= fault_.step) {
      if (fault_.kind == Fault::Kind::kSlowData) std::this_thread::sleep_for(kSlowness);
      while (fault_.kind == Fault::Kind::kStuckData) ::pause();
    }
    return pool_->take(bytes);
  }

 private:
  std::unique_ptr<core::BufferPool> pool_;
  Fault fault_;
  std::atomic<std::int64_t> taken_{0};
};

}  // namespace

std::optional<Fault> parse_fault(const std::string& text) {
  const std::string_view view = text;
  const auto at = view.find('@');
  const auto comma = view.find(',');
  const bool has_rank = comma != std::string_view::npos;
  Fault fault;
  const auto kind = kind_of(view.substr(0, at));
  std::optional<std::int64_t> step;
  if (at != std::string_view::npos) {
    step = core::parse_number<std::int64_t>(view.substr(at + 1, comma - at - 1));
  }
  if (has_rank) fault.rank = core::parse_number<int>(view.substr(comma + 1));
  if (!kind || !step || (has_rank && !fault.rank)) {
    throw core::UsageError(
        "SCALETRAIN_FAULT", fmt::format("\"{}\" is not a fault", text),
        "use KIND@STEP or KIND@STEP,RANK; lib/train/rules/fault.h lists the kinds");
  }
  fault.kind = *kind;
  fault.step = *step;
  return fault;
}

std::optional<Fault> read_fault() {
  for (const std::string& text : core::planted_faults()) {
    if (core::parse_delay(text) || dist::parse_collective_fault(text)) continue;
    if (parse_bit_flip(text)) continue;
    return parse_fault(text);
  }
  return std::nullopt;
}

bool commit_fault(const std::optional<Fault>& fault, std::int64_t step, int rank) {
  if (!fault || fault->rank.value_or(rank) != rank) return false;
  if (fault->kind == Fault::Kind::kNans) return step >= fault->step;
  if (fault->kind == Fault::Kind::kSlows && step >= fault->step) {
    std::this_thread::sleep_for(kSlowness);
  }
  if (fault->step != step) return false;
  switch (fault->kind) {
    case Fault::Kind::kNan:
    case Fault::Kind::kNans:
      return true;
    case Fault::Kind::kKill:
      ::raise(SIGKILL);
      break;
    case Fault::Kind::kSegv:
      ::raise(SIGSEGV);
      break;
    case Fault::Kind::kStop:
      ::raise(SIGSTOP);
      break;
    case Fault::Kind::kExit:
      ::_exit(kExitStatus);
    case Fault::Kind::kThrow:
      throw std::runtime_error("a fault was asked for");
    case Fault::Kind::kOom:
      C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory. Tried to allocate 2.00 GiB.");
    case Fault::Kind::kSpin:
      for (volatile bool ever = true; ever;) {
      }
      break;
    case Fault::Kind::kSlow:
      std::this_thread::sleep_for(std::chrono::seconds(1));
      break;
    case Fault::Kind::kSpike:
    case Fault::Kind::kSlows:
    case Fault::Kind::kSlowData:
    case Fault::Kind::kStuckData:
      break;
  }
  return false;
}

double planted_loss_factor(const std::optional<Fault>& fault, std::int64_t step, int rank) {
  const bool is_meant = fault && fault->kind == Fault::Kind::kSpike && fault->step == step &&
                        fault->rank.value_or(rank) == rank;
  return is_meant ? kSpikeFactor : 1;
}

std::unique_ptr<core::BufferPool> with_fault(std::unique_ptr<core::BufferPool> pool,
                                             const std::optional<Fault>& fault, int rank) {
  const bool meant =
      fault && fault->rank.value_or(rank) == rank &&
      (fault->kind == Fault::Kind::kSlowData || fault->kind == Fault::Kind::kStuckData);
  if (!meant) return pool;
  return std::make_unique<FaultyPool>(std::move(pool), *fault);
}

}  // namespace scaletrain::train
