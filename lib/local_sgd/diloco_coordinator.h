// DiLoCo: the coordinator of replicas that synchronize at the same steps.
//
// A synchronization handles one part of the weights at a time: when every active replica has sent
// it, each gets the mean over them. It is summed in the order of ranks, so its bits do not depend
// on the order of arrival; they equal those of the all-reduce over shared memory, which also adds
// fp16 and bf16 in fp32. The coordinator does not wait for a lost replica, and drops the parts that
// it had sent to a synchronization that is not over.
//
// In a replica of several ranks each rank gets the mean over its place in all replicas, and each
// decision about a replica is sent to all of its ranks at once. So parameters that several ranks
// hold get a mean over the same replicas.
//
// Stop: a replica that is to stop sends its step and waits; the coordinator asks the others, who
// send theirs at their next step or while they wait, and answers all with the furthest step. A
// synchronization under way is given up: none ends while a replica has not joined it. Then all
// train to that step, as far as time allows, and synchronize there.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/local_sgd/coordinator.h"

namespace scaletrain::local_sgd {

class DilocoCoordinator : public Coordinator {
 public:
  // `steps` of training are done; parts have dtype `type`.
  DilocoCoordinator(HubRanks hub, std::int64_t steps, at::ScalarType type = at::kFloat);

 private:
  // Replica-local tensors that a rank has sent for the newest request, by number.
  struct States {
    std::map<std::int32_t, std::vector<std::byte>> tensors = {};
    bool is_complete = false;
  };
  void handle(int rank, dist::HubMessage message, const Send& send) override;
  void advance(const Send& send) override;
  void forward_request(std::int32_t request, const Send& send);
  void give_up();
  void request_stop(const Send& send);
  void answer_stop(const Send& send);
  void answer_parts(const Send& send);
  void answer_part(int place, const Send& send);
  void answer_synchronize(const Send& send);
  void answer_states(const Send& send);

  States& states(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  // True if `has` holds for all active ranks.
  template <class Has>
  bool all_active(const Has& has) const;

  at::ScalarType type_;
  std::vector<States> states_;  // by rank
  enum class Stop { kNone, kRequested, kAgreed } stop_ = Stop::kNone;
};

}  // namespace scaletrain::local_sgd
