#!/bin/bash
# One task of Slurm's for each GPU: sbatch scripts/slurm/worker.sh RECIPE [flags]
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --signal=USR2@120
#SBATCH --requeue
#SBATCH --open-mode=append

srun scaletrain worker --resume auto --grace 90s "$@"
status=$?

# 75: stopped by a signal or a lost node; 74: by the storage. The next start goes on from the newest
# checkpoint. A run that stops a hundred times needs a person.
if [[ $status == 7[45] && ${SLURM_RESTART_COUNT:-0} -lt 100 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
