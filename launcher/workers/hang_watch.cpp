#include "launcher/workers/hang_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "launcher/place/placement.h"
#include "launcher/platform/process_view.h"
#include "launcher/workers/stacks.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSeldom{1000};
constexpr milliseconds kOften{10};
constexpr std::chrono::seconds kStackPatience{2};  // for all workers together
constexpr std::size_t kShownFrames = 12;
constexpr std::size_t kShownRanks = 16;

// The last words and the time of the last write: also the same words again are a beat.
std::string text_beat(int fd) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return "";
  return fmt::format("{}.{}.{}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size);
}

// The first line of a program's beat file.
std::string words(int fd) {
  std::array<char, 200> bytes{};
  const ssize_t count = pread(fd, bytes.data(), bytes.size(), 0);
  const std::string_view text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return std::string(text.substr(0, text.find('\n')));
}

// Shortest silence of the running workers; 0 if none runs.
std::chrono::duration<double> shortest_silence(const std::vector<RankView>& views) {
  const auto shortest =
      std::min_element(views.begin(), views.end(),
                       [](const RankView& a, const RankView& b) { return a.silent < b.silent; });
  return shortest == views.end() ? std::chrono::duration<double>(0) : shortest->silent;
}

}  // namespace

HangWatch::HangWatch(int count, Workers kind, milliseconds timeout, int world_size,
                     SilenceExchange exchange)
    : timeout_(timeout),
      world_size_(world_size),
      exchange_(std::move(exchange)),
      looked_(core::now()) {
  const bool ours = kind == Workers::kOurs;
  if (kind == Workers::kPrograms && timeout.count() > 0) note_at_ = looked_ + timeout;
  for (int i = 0; i < count; ++i) {
    Watched& worker = workers_.emplace_back(
        Watched{.file = ours ? core::make_beat_file() : core::make_memory_file("scaletrain-beat"),
                .changed = looked_,
                .is_watched = kind != Workers::kPrograms});
    if (ours) worker.reader.emplace(worker.file.get());
    worker.seen = beat_of(worker);
  }
}

int HangWatch::fd(int local_rank) const {
  return workers_[static_cast<std::size_t>(local_rank)].file.get();
}

void HangWatch::announce_lost_peer() const {
  for (const Watched& worker : workers_) {
    if (worker.reader) core::report_peer_lost(worker.file.get());
  }
}

std::int64_t HangWatch::step_of(int local_rank) const {
  const Watched& worker = workers_[static_cast<std::size_t>(local_rank)];
  return worker.reader ? worker.reader->state().step : 0;
}

milliseconds HangWatch::every() const {
  if (timeout_ == milliseconds(0)) return kSeldom;
  return std::clamp(timeout_ / 10, kOften, kSeldom);
}

std::string HangWatch::beat_of(const Watched& worker) const {
  return worker.reader ? std::to_string(worker.reader->state().count)
                       : text_beat(worker.file.get());
}

std::vector<RankView> HangWatch::look(const std::vector<RunningWorker>& running) {
  const core::SteadyTime time = core::now();
  // Stopped, frozen with its workers, or on a machine that had no time for it.
  const bool slept = time - looked_ > 5 * every() + kSeldom;
  looked_ = time;
  std::vector<RankView> views;
  for (const RunningWorker& runs : running) {
    Watched& worker = workers_[static_cast<std::size_t>(runs.local_rank)];
    std::string beat = beat_of(worker);
    worker.is_watched = worker.is_watched || beat != worker.seen;
    if (slept || beat != worker.seen) {
      worker.seen = std::move(beat);
      worker.changed = time;
    }
    RankView view{.rank = runs.rank, .local_rank = runs.local_rank, .pid = runs.pid};
    view.silent = time - worker.changed;
    if (worker.reader) {
      view.beat = worker.reader->state();
    } else {
      view.text = words(worker.file.get());
    }
    view.unwatched = !worker.is_watched;
    views.push_back(std::move(view));
  }
  note_silence(time);
  job_silent_ = shortest_silence(views);
  if (exchange_) job_silent_ = exchange_(std::chrono::duration_cast<milliseconds>(job_silent_));
  return views;
}

void HangWatch::note_silence(core::SteadyTime time) {
  if (!note_at_ || time < *note_at_) return;
  note_at_.reset();
  if (std::any_of(workers_.begin(), workers_.end(),
                  [](const Watched& worker) { return worker.is_watched; })) {
    return;
  }
  core::log(
      "--hang-timeout: no worker has beaten for {:g} s, and one is watched from its first beat on\n"
      "  it beats by writing to the file that SCALETRAIN_BEAT_FILE names; --beat-from-start "
      "watches "
      "it from its start",
      std::chrono::duration<double>(timeout_).count());
}

std::optional<core::BeatCollective> HangWatch::collective(std::int64_t number) const {
  for (const Watched& worker : workers_) {
    if (!worker.reader) continue;
    if (auto found = worker.reader->collective(number)) return found;
  }
  return std::nullopt;
}

std::optional<Hang> HangWatch::judge(const std::vector<RankView>& views) const {
  const auto quiet = [&](const RankView& view) {
    return !view.unwatched && view.silent > timeout_;
  };
  if (timeout_ == milliseconds(0) || std::none_of(views.begin(), views.end(), quiet)) {
    return std::nullopt;
  }
  std::vector<RankView> looked_at = views;
  for (RankView& view : looked_at) {
    view.stopped = is_stopped(process_state(view.pid));
    view.others_ahead = std::any_of(views.begin(), views.end(), [&](const RankView& other) {
      return other.beat.collectives > view.beat.collectives;
    });
  }
  const std::size_t behind = *find_behind(looked_at);
  const RankView& view = looked_at[behind];
  if (!is_hung(view, job_silent_, timeout_)) return std::nullopt;
  Hang hang{.rank = view.rank, .local_rank = view.local_rank, .pid = view.pid};
  if (view.beat.step > 0) hang.step = view.beat.step;
  hang.followed = waits_for_peers(view);
  hang.what = describe_hang(view, host_name(), world_size_ == 1,
                            [this](std::int64_t number) { return collective(number); });
  describe(looked_at, behind, hang);
  return hang;
}

std::optional<Hang> HangWatch::judge(const std::vector<RankView>& views,
                                     const std::function<int(int rank)>& group_of) const {
  std::map<int, std::vector<RankView>> groups;
  for (const RankView& view : views) groups[group_of(view.rank)].push_back(view);
  for (const auto& [number, members] : groups) {
    if (std::optional<Hang> hang = judge(members)) return hang;
  }
  return std::nullopt;
}

void HangWatch::describe(const std::vector<RankView>& views, std::size_t behind, Hang& hang) const {
  const core::SteadyTime deadline = core::now() + kStackPatience;
  std::size_t shown = 0;
  // The worker that is behind comes first: time may not suffice for all.
  std::vector<std::size_t> order{behind};
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (i != behind) order.push_back(i);
  }
  for (const std::size_t i : order) {
    const RankView& view = views[i];
    const std::string line = fmt::format("rank {}, pid {}: {}; {}", view.rank, view.pid,
                                         describe_silence(view), describe_process(view.pid));
    if (shown++ < kShownRanks) hang.lines.push_back(line);
    hang.stacks += line + "\n";
    const Watched& worker = workers_[static_cast<std::size_t>(view.local_rank)];
    if (!worker.reader) continue;
    const std::vector<ThreadStack> stacks = capture_stacks(view.pid, *worker.reader, deadline);
    for (std::size_t thread = 0; thread < stacks.size(); ++thread) {
      hang.stacks += fmt::format("  {}\n", stacks[thread].thread);
      for (std::size_t frame = 0; frame < stacks[thread].frames.size(); ++frame) {
        const std::string text = fmt::format("    #{} {}", frame, stacks[thread].frames[frame]);
        hang.stacks += text + "\n";
        if (i == behind && thread == 0 && frame < kShownFrames) hang.lines.push_back(text);
      }
    }
  }
}

}  // namespace scaletrain::launcher
