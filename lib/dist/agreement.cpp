#include "lib/dist/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "lib/core/process/host_name.h"
#include "lib/core/text/json_text.h"
#include "lib/dist/foreign_text.h"

namespace scaletrain::dist {
namespace {

using Json = nlohmann::json;
using Values = std::map<std::string, std::string>;  // key: field

constexpr std::size_t kMaxRanksNamed = 16;
// How much longer the others wait for rank 0's verdict than rank 0 waits for them.
constexpr std::chrono::seconds kVerdictMargin{5};

// The keys of one comparison.
struct Keys {
  std::string name;
  std::string said(int rank) const { return fmt::format("{}/said/{}", name, rank); }
  std::string heard(int rank) const { return fmt::format("{}/heard/{}", name, rank); }
  std::string verdict() const { return name + "/verdict"; }
};

// Message of one rank; the claims are separate, so that equal ones need not be parsed.
struct Said {
  std::string host, claims;
};

std::string to_text(const Said& said) { return said.host + "\n" + said.claims; }

Said parse_said(const std::string& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  return {.host = text.substr(0, end), .claims = text.substr(std::min(end + 1, text.size()))};
}

std::string to_text(const std::vector<Claim>& claims) {
  Json values = Json::object();
  for (const Claim& claim : claims) values[claim.field] = claim.value;
  return core::json_text(values);
}

std::string ranks_text(const std::vector<int>& ranks) {
  const std::size_t named = std::min(ranks.size(), kMaxRanksNamed);
  std::string text = fmt::format("{}", fmt::join(std::span(ranks).first(named), ", "));
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

// Ranks that are not there when all are or when time is up.
std::vector<int> missing_ranks(c10d::Store& store, const Keys& keys, int world_size,
                               std::chrono::milliseconds timeout) {
  std::vector<std::string> all;
  all.reserve(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) all.push_back(keys.said(rank));
  try {
    store.wait(all, timeout);
    return {};
  } catch (const c10::DistStoreError&) {  // timed out: find out who is missing
  }
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({keys.said(rank)})) missing.push_back(rank);
  }
  return missing;
}

// Error that all ranks throw; code 0: none.
struct Verdict {
  int code = 0;
  std::string place, found, remedy;  // place "": each rank reports its own
};

std::string to_text(const Verdict& verdict) {
  return core::json_text(Json{verdict.code, verdict.place, verdict.found, verdict.remedy});
}

Verdict parse_verdict(const std::string& text) {
  const Json json = Json::parse(text);
  return {.code = json.at(0), .place = json.at(1), .found = json.at(2), .remedy = json.at(3)};
}

constexpr const char* kMissingRemedy =
    "look at the logs of the missing ranks, and check that every node was started with the same "
    "--nnodes, --master-addr and --master-port";

Verdict verdict_on_missing(const std::vector<int>& missing, int world_size,
                           std::chrono::milliseconds timeout) {
  return {.code = static_cast<int>(core::ExitCode::kTemporary),
          .place = "",
          .found = fmt::format("{} of {} ranks did not arrive within {:g} s: {}", missing.size(),
                               world_size, std::chrono::duration<double>(timeout).count(),
                               ranks_text(missing)),
          .remedy = kMissingRemedy};
}

std::string shown(const std::optional<std::string>& value) { return value.value_or("unset"); }

// `claims` are rank 0's; claims of a rank that rank 0 does not make are compared with nothing.
Verdict compare(const std::vector<Claim>& claims, const std::vector<Said>& all) {
  std::vector<std::pair<std::size_t, Values>> others;  // ranks whose claims differ
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].claims != all.front().claims) {
      others.emplace_back(rank, Json::parse(all[rank].claims).get<Values>());
    }
  }
  const auto verdict = [&](std::size_t rank, const Claim& claim,
                           const std::optional<std::string>& here,
                           const std::optional<std::string>& there) {
    return Verdict{.code = static_cast<int>(claim.code),
                   .place = fmt::format("rank {} on host {}", rank, all[rank].host),
                   .found = fmt::format("{} is {}; on rank 0 (host {}) it is {}", claim.field,
                                        shown(there), all.front().host, shown(here)),
                   .remedy = claim.remedy};
  };
  for (const Claim& claim : claims) {
    for (const auto& [rank, values] : others) {
      const auto found = values.find(claim.field);
      if (found == values.end()) return verdict(rank, claim, claim.value, std::nullopt);
      if (claim.value.empty() || found->second.empty() || found->second == claim.value) continue;
      return verdict(rank, claim, claim.value, found->second);
    }
  }
  const Values own = Json::parse(all.front().claims).get<Values>();
  for (const auto& [rank, values] : others) {
    for (const auto& [field, value] : values) {
      if (own.contains(field)) continue;
      return verdict(rank,
                     {.field = field,
                      .value = "",
                      .code = core::ExitCode::kUsage,
                      .remedy = "start the same program with the same recipe on every node"},
                     std::nullopt, value);
    }
  }
  return {};
}

// The store ends with rank 0, so rank 0 stays until all connected ranks have read the verdict or
// seem to be gone.
void await_hearers(c10d::Store& store, const Keys& keys, int world_size,
                   const std::vector<int>& missing) {
  std::vector<std::string> heard;
  for (int rank = 1; rank < world_size; ++rank) {
    if (std::find(missing.begin(), missing.end(), rank) == missing.end()) {
      heard.push_back(keys.heard(rank));
    }
  }
  try {
    if (!heard.empty()) store.wait(heard, kVerdictMargin);
  } catch (const c10::DistStoreError&) {
  }
}

// Rank 0's side: reads all claims and answers them.
Verdict judge(c10d::Store& store, const Keys& keys, int world_size,
              const std::vector<Claim>& claims, std::chrono::milliseconds timeout) {
  const std::vector<int> missing = missing_ranks(store, keys, world_size, timeout);
  Verdict verdict;
  if (missing.empty()) {
    std::vector<Said> all;
    for (int rank = 0; rank < world_size; ++rank) {
      all.push_back(parse_said(store.get_to_str(keys.said(rank))));
    }
    verdict = compare(claims, all);
  } else {
    verdict = verdict_on_missing(missing, world_size, timeout);
  }
  store.set(keys.verdict(), to_text(verdict));
  if (verdict.code != 0) await_hearers(store, keys, world_size, missing);
  return verdict;
}

}  // namespace

void agree(c10d::Store& store, StoreRank who, const std::string& name,
           const std::vector<Claim>& claims, std::chrono::milliseconds timeout) {
  const Keys keys{name};
  const std::string place = fmt::format("rank {}", who.rank);
  Verdict verdict;
  try {
    const Said own{.host = core::host_name(), .claims = to_text(claims)};
    store.set(keys.said(who.rank), to_text(own));
    if (who.rank == 0) {
      verdict = judge(store, keys, who.world_size, claims, timeout);
    } else {
      store.wait({keys.verdict()}, timeout + kVerdictMargin);
      verdict = parse_verdict(store.get_to_str(keys.verdict()));
      if (verdict.code != 0) store.set(keys.heard(who.rank), "1");
    }
  } catch (const std::exception& error) {
    throw core::StoppedError(
        place, fmt::format("rank 0 was lost during rendezvous ({})", foreign_text(error)),
        kMissingRemedy);
  }
  if (verdict.code == 0) return;
  throw core::Error(static_cast<core::ExitCode>(verdict.code),
                    verdict.place.empty() ? place : verdict.place, verdict.found, verdict.remedy);
}

}  // namespace scaletrain::dist
