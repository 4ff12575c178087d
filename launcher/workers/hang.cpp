#include "launcher/workers/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/core/log.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {

namespace {

bool is_waiting(const RankView& view) {
  const core::Phase phase = view.beat.phase;
  return !view.stopped && !view.text &&
         (phase == core::Phase::kCollective || phase == core::Phase::kJoining ||
          phase == core::Phase::kWaiting);
}

}  // namespace

bool waits_for_peers(const RankView& view) { return is_waiting(view) && !view.others_ahead; }

std::optional<std::size_t> find_behind(const std::vector<RankView>& views) {
  const auto order = [](const RankView& view) {
    return std::make_tuple(view.unwatched, !view.stopped, view.beat.collectives, is_waiting(view),
                           -view.silent);
  };
  const auto behind =
      std::min_element(views.begin(), views.end(),
                       [&](const RankView& a, const RankView& b) { return order(a) < order(b); });
  if (behind == views.end()) return std::nullopt;
  return static_cast<std::size_t>(behind - views.begin());
}

bool is_hung(const RankView& behind, std::chrono::duration<double> job_silent,
             std::chrono::milliseconds timeout) {
  if (!waits_for_peers(behind)) return behind.silent > timeout;
  return std::min(behind.silent, job_silent) > timeout + kPeersTurn;
}

std::string describe_hang(
    const RankView& behind, const std::string& host, bool alone,
    const std::function<std::optional<core::BeatCollective>(std::int64_t)>& collective) {
  const std::string who = fmt::format("rank {} on host {}", behind.rank, host);
  if (behind.text) return who + " does not beat";
  const core::BeatState& beat = behind.beat;
  if (beat.phase == core::Phase::kStarting && beat.collectives == 0 && !alone)
    return who + " never joined";
  const std::string step = beat.step > 0 ? fmt::format(" of step {}", beat.step) : "";
  if (waits_for_peers(behind)) {
    if (beat.phase == core::Phase::kJoining)
      return who + " waits for the others to join, and no rank of this node is behind it";
    const auto last = collective(beat.collectives);
    return fmt::format("{} waits in {} {}{}, and no rank of this node is behind it", who,
                       last ? last->kind : "collective", beat.collectives, step);
  }
  if (alone) {
    return fmt::format("{} stands still{}", who,
                       beat.step > 0 ? fmt::format(" in step {}", beat.step) : "");
  }
  const auto next = collective(beat.collectives + 1);
  if (!next)
    return fmt::format("{} never arrived at collective {}{}", who, beat.collectives + 1, step);
  return fmt::format("{} never arrived at {} {}{}{}", who, next->kind, beat.collectives + 1,
                     next->step > 0 ? fmt::format(" of step {}", next->step) : "",
                     next->name.empty() ? "" : fmt::format(" ({})", next->name));
}

std::string describe_silence(const RankView& view) {
  std::string text = fmt::format("silent for {:.1f} s", view.silent.count());
  if (view.text) {
    if (view.text->empty()) {
      return text + ", it never wrote to its beat file (SCALETRAIN_BEAT_FILE)";
    }
    return text + fmt::format(", its last words: \"{}\"", core::printable(*view.text));
  }
  text += fmt::format(" in {}", core::to_text(view.beat.phase));
  if (view.beat.step > 0) text += fmt::format(", step {}", view.beat.step);
  return text + fmt::format(", {} collectives entered", view.beat.collectives);
}

}  // namespace scaletrain::launcher
