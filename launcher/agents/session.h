// One agent at one store: a thread that keeps the agent (and the leader, on the node with the
// store) going, while the main thread starts and watches the workers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "launcher/agents/leader.h"
#include "launcher/agents/member.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class Session {
 public:
  // Joins. Throws the errors of Member's constructor.
  Session(std::unique_ptr<KeyStore> store, const Join& join, const JobTerms& terms,
          const AgentTiming& timing, std::optional<Leader::Options> leader, Journal& journal);
  ~Session();  // stops and joins the thread
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  struct View {
    JobState state;
    std::optional<int> rank;  // this node's rank in the job state's round
    LastRound last;
    std::string leader_heartbeat;  // the leader's newest heartbeat
    bool leads = false;
    bool ended = false;     // this leader's job has ended, or another launcher leads it
    bool finished = false;  // this leader may exit
    std::string lost;       // why the connection to the store was lost; "": it was not
  };
  // Returns the current state. Throws the errors of Member::step except StoreLost.
  View view();
  // The oldest verdict that was not taken yet.
  std::optional<Verdict> take_verdict();
  // Readable after something has changed; clear_changes() before looking.
  int changes_fd() const { return changes_.get(); }
  void clear_changes();

  // Messages of the main thread; they are dropped after the store is lost.
  void report(const Report& report);
  void report_lost(const LostReplica& lost);
  void publish(const Endpoint& workers_store, const std::string& plan);
  // Announces that this node leaves. A leader must stay until View::finished.
  void leave(const Departure& departure);

  // A SilenceExchange (launcher/workers/hang_watch.h) without waiting: sends the time since the
  // last heartbeat of this node's workers, and returns that of the whole job as last reported by
  // the leader.
  std::chrono::milliseconds exchange_silence(std::chrono::milliseconds own);

 private:
  void run();
  void step();
  void send_change();
  template <class Say>
  void say(const Say& words);

  std::unique_ptr<KeyStore> store_;
  core::Descriptor changes_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false, woken_ = false;
  std::optional<Leader> leader_;
  std::optional<Member> member_;
  std::string lost_, seen_;
  std::exception_ptr error_;
  bool finished_ = false;
  std::atomic<std::chrono::milliseconds> own_silence_{std::chrono::milliseconds(0)};
  std::atomic<std::chrono::milliseconds> job_silence_{std::chrono::milliseconds(0)};
  std::thread thread_;
};

}  // namespace scaletrain::launcher
