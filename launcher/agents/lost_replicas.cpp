#include "launcher/agents/lost_replicas.h"

#include <algorithm>
#include <utility>

namespace scaletrain::launcher {

bool LostReplicas::note(LostReplica one) {
  const auto known = std::ranges::find(lost_, one.number, &LostReplica::number);
  if (known == lost_.end()) {
    lost_.push_back(std::move(one));
    return true;
  }
  if (!known->failure.followed || one.failure.followed) return false;
  *known = std::move(one);
  return true;
}

std::string LostReplicas::text() const {
  std::string text, before;
  for (const LostReplica& one : lost_) {
    std::string words = short_text(one.failure);
    if (words == before) continue;
    text += (text.empty() ? "" : ", ") + words;
    before = std::move(words);
  }
  return text;
}

}  // namespace scaletrain::launcher
