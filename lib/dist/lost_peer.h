// Errors of communication failures between ranks.
#pragma once

#include <exception>
#include <string>

namespace scaletrain::dist {

// Throws core::StoppedError, "rank 1: the gradients were not completed: a peer was lost or the
// timeout expired (CAUSE)" for `what` "the gradients were"; core::OutOfMemoryError if `cause`
// reports that.
[[noreturn]] void throw_lost(int rank, const std::string& what, const std::string& cause);
[[noreturn]] void throw_lost(int rank, const std::string& what, const std::exception& cause);

// Throws core::Error of kMemory at `place` if `cause` says that the system refused to start a
// thread.
void throw_thread_refusal(const std::string& place, const std::exception& cause);

}  // namespace scaletrain::dist
