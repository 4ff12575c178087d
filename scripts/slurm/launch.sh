#!/bin/bash
# Runs a recipe on the nodes of one job: sbatch FILE RECIPE [flags of scaletrain launch]
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --output=slurm-%j.out
#SBATCH --signal=USR2@120
#SBATCH --requeue
#SBATCH --open-mode=append

# One launcher on each node. %a in the words above is the number of the array's task.
srun ${SLURM_CPUS_PER_TASK:+"--cpus-per-task=$SLURM_CPUS_PER_TASK"} \
  scaletrain launch --resume auto "${@//\%a/${SLURM_ARRAY_TASK_ID:-%a}}"
status=$?

# 75: stopped by a signal or a lost node; 74: by the storage. The next start goes on from the newest
# checkpoint. A run that stops a hundred times needs a person.
if [[ $status == 7[45] && ${SLURM_RESTART_COUNT:-0} -lt 100 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
