// Reads the environment variables by which Kubernetes and its operators describe a pod's job.
#pragma once

#include "launcher/flags/launch_options.h"

namespace scaletrain::launcher {

// Fills in the options that neither a flag nor a PET_* variable has set:
//   - of an Indexed Job or a JobSet with several nodes: the number of this one,
//   JOB_COMPLETION_INDEX;
//   - of a PyTorchJob whose operator sets no PET_* (before 1.7): nodes, this one's number and where
//     they meet, from WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT.
// Does nothing outside of a pod. Throws core::UsageError for a variable
// that is not a valid number or address.
void take_from_kubernetes(LaunchOptions& options);

// Maps exit codes for an operator that restarts pods by exit code: codes worth a restart (74, 75)
// are replaced by SCALETRAIN_RETRY_STATUS, if it is set to a valid exit code.
int status_for_operator(int status);

}  // namespace scaletrain::launcher
